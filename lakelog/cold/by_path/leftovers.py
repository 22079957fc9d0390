"""Tells what lies in the folder of a table at a path and is none of its newest version's. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from ...values.record import MAX_OFFSET
from ..leftovers import ORPHAN, PENDING, QUARANTINED, REMOVED, Leftover
from ..segment import UNKNOWN_TIMESTAMP_MS, SegmentFile, file_range
from ..table import ColdSnapshot
from .orphans import is_settled

_DATA = re.compile(r"(?P<aside>_quarantine/)?partition=(?P<number>\d+)/segment=(?P<base>\d+)/.+")


def leftovers_of(
    sizes: Mapping[str, int], snapshot: ColdSnapshot, tombstones: Container[str]
) -> list[Leftover]:
    """The data files that the snapshot does not name, by path.

    Args:
        sizes: of all files in the table's folder, listed before the snapshot was taken.
        tombstones: the paths that the table's log names as removed.
    """
    data = [path for path in sizes if path.endswith(".parquet") and _DATA.fullmatch(path)]
    unnamed = snapshot.files.missing(data)
    return [
        Leftover(_file(path, sizes[path]), _kind(path, snapshot, tombstones))
        for path in sorted(unnamed)
    ]


def _kind(path: str, snapshot: ColdSnapshot, tombstones: Container[str]) -> str:
    if path.startswith("_quarantine/"):
        return QUARANTINED
    if path in tombstones:
        return REMOVED
    return ORPHAN if is_settled(path, snapshot) else PENDING


def _file(path: str, size_bytes: int) -> SegmentFile:
    """The file as far as its name tells: it may hold any records of its range."""
    found = _DATA.fullmatch(path)
    assert found is not None
    start, end = file_range(path) or (0, MAX_OFFSET)
    return SegmentFile(
        int(found["number"]),
        int(found["base"]),
        path,
        size_bytes,
        -1,
        start,
        end,
        -1,
        UNKNOWN_TIMESTAMP_MS,
    )
