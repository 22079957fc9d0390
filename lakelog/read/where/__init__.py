"""What a search asks of records: an expression in words, its meaning, and where it can be decided.

`grammar` reads and writes the text, `expression` says which rows match, `bounds` which parts of a
log cannot hold a match.
"""

from .bounds import Bounds
from .expression import Always, Where, is_all, matching
from .grammar import parse, write

__all__ = ["Always", "Bounds", "Where", "is_all", "matching", "parse", "write"]
