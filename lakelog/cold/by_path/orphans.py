"""Which files in a table's folders can never become part of it. Pure.

A change writes its files first, then names them in its commit. One that others overtake, or that
fails, deletes its own, unless a commit may still name them; one that is killed leaves them. Other
processes cannot know whether it is still at work, so they delete a file only when the commit that
would name it can no longer succeed. The file's name says when:

- ``archive-{start}-{end}-…``: its commit moves archived_end from `start` on, and archived_end only
  grows. So the file may go once archived_end lies above `start`.
- ``clean-{start}-{end}-{digest of the sources}…``: its commit removes the sources, which are all
  files that lay within [start, end) when it was planned. So the file may go once other files lie
  there: then a source was removed, and a removed file never comes back. (A RESTORE does bring it
  back; that is why a commit checks that its files are still there.)

Both rules hold only for files that were there before the snapshot was taken: a snapshot knows
nothing of files committed since. So files are listed first, and judged by a snapshot newer than the
list, however long the process pauses in between. A verdict stays true for ever, so a pause before
the deletion does no harm.

As a second line of defence, no file younger than `SETTLING_MS` goes, by the store's own clock.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from ...values.config import MINUTE_MS
from ...values.record import MAX_OFFSET
from ..answers import ORPHAN, PENDING, QUARANTINED, REMOVED, Leftover
from ..segment import (
    UNKNOWN_TIMESTAMP_MS,
    SegmentFile,
    archived_start,
    clean_sources,
    file_range,
    sources_digest,
)
from ..table import ColdSnapshot

#: How old a file must be to be deleted, by the clock that stamped it. More than any commit takes,
#: and more than the clocks of a store's servers differ.
SETTLING_MS = 10 * MINUTE_MS


def may_be_orphan(path: str, snapshot: ColdSnapshot) -> bool:
    """Whether it is worth asking if the table's log names the file; a quick `is_settled`."""
    partition = _partition(path)
    if partition is None:
        return False
    start = archived_start(path)
    if start is not None:
        return start < snapshot.archived_end(partition)
    return clean_sources(path) is not None


def is_settled(path: str, snapshot: ColdSnapshot) -> bool:
    """Whether no future commit can name the file.

    Says nothing of a file that a commit named already: ask the snapshot and the tombstones.
    """
    partition = _partition(path)
    sources = clean_sources(path)
    if partition is None or sources is None:
        return may_be_orphan(path, snapshot)
    start, end, digest = sources
    return sources_digest(snapshot.files.within(partition, start, end)) != digest


def _partition(path: str) -> int | None:
    number = path.partition("/")[0].removeprefix("partition=")
    return int(number) if number.isdecimal() else None


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
