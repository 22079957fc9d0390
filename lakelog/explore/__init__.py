"""Looking at a log."""
