"""Whether all of a log is as it should be, and putting right what can be derived."""
