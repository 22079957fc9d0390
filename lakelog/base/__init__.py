"""Small tools that know nothing of a log: times, texts, files, threads, what is tried again."""
