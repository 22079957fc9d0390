"""Compression that is left out where it does not pay: of values that are encrypted, or pictures.

Incompressible bytes cost more to compress than to send, and their readers as much again. Whether a
partition's are is seen by what becomes of them: an entry that stayed about as large as it was has
the next ones written plain, and one of `TRIED_EACH` is compressed to see whether that still holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..values.config import KIB, Compression
from .entry import Entry

#: Compression pays from this share saved; below, a reader's work outweighs the bytes.
LEAST_SAVED = 0.05

#: One in so many calls tries again.
TRIED_EACH = 16

_LEAST_BYTES = 4 * KIB  # a smaller entry says little: most of it may be what surrounds the records


class AdaptiveCompression:
    """How to compress the next entries of one partition.

    Threads may share one: what they find out is at worst learnt one call later.

    Args:
        wanted: where it pays.
    """

    __slots__ = ("_plain_left", "wanted")

    def __init__(self, wanted: Compression) -> None:
        self.wanted = wanted
        self._plain_left = 0

    def next(self) -> Compression:
        """For the entries of the next call."""
        if self._plain_left == 0:
            return self.wanted
        self._plain_left -= 1
        return Compression.NONE

    def learn(self, used: Compression, entries: Sequence[Entry]) -> None:
        """Takes note of what became of a call's entries."""
        if used is Compression.NONE:
            return
        decoded_bytes = sum(entry.decoded_bytes for entry in entries)
        if decoded_bytes < _LEAST_BYTES:
            return
        stored_bytes = sum(entry.size_bytes for entry in entries)
        pays = stored_bytes <= (1 - LEAST_SAVED) * decoded_bytes
        self._plain_left = 0 if pays else TRIED_EACH - 1
