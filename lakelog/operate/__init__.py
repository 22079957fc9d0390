"""What keeps a log going when something is broken."""
