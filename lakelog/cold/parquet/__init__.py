"""Parquet files of segments: what they hold, and how they are read."""
