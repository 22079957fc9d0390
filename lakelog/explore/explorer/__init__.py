"""The log explorer: decisions are values and functions; `widget` alone knows ipywidgets."""
