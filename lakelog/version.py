"""The version of this lakelog, for what may not import the whole package."""

__version__ = "0.1.0"
