"""Erasing records of the cold tier: by key or condition, from all files that hold them."""
