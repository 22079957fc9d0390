"""Looking at a log for its metrics, and showing them."""
