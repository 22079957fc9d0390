"""A topic's cold tier as a Delta table of a catalog, which Spark alone may write."""
