"""The log explorer: decisions are values and functions; only `widget` knows ipywidgets."""
