"""Looking at a log in a notebook: the explorer and the charts."""
