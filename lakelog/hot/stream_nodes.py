"""The nodes of a stream, which keep the bytes of entries that are gone.

Redis keeps up to ``stream-node-max-entries`` entries in one piece of memory. It marks those that
are deleted or trimmed, and frees the piece once all of them are. Until then `DUMP`, a replica and
the files on disk have their bytes, though no reader is given them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class StreamNodes(Struct, frozen=True):
    """What XINFO tells of a stream's nodes."""

    count: int = 0
    has_gone: bool = False  # entries are gone, so that the first node may have some of them
    has_gone_amid: bool = False  # one that was no first one is: any node may

    @classmethod
    def of(cls, fields: Mapping[bytes, Any]) -> StreamNodes:
        """From the answer, by name."""
        first = fields[b"first-entry"]
        if not isinstance(first, (list, tuple)):
            return cls()  # no entries, no nodes
        # Trimming moves the first entry and leaves this id: XDEL alone sets it.
        deleted = fields[b"max-deleted-entry-id"]
        return cls(
            fields[b"radix-tree-keys"],
            fields[b"entries-added"] > fields[b"length"],
            _order(deleted) > _order(first[0]),
        )


def _order(entry_id: bytes) -> tuple[int, ...]:
    return tuple(int(part) for part in entry_id.split(b"-"))
