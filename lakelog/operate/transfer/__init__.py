"""Topics as files that leave the log and come into another: `export`, `import_topics`."""
