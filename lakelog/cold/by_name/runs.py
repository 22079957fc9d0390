"""Consecutive offsets of a table by name, and where they lie. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ...values.record import OffsetAndTimestamp
from ..segment import SegmentFile
from .notes import version_of_path


class Run(Struct, frozen=True):
    """Consecutive offsets of one partition, and where they lie."""

    partition: int
    first_segment: int
    last_segment: int
    start: int
    end: int
    rows: int  # about
    size_bytes: int  # stored
    path: str  # of its first file, for errors

    @classmethod
    def of(cls, files: Sequence[SegmentFile], start: int, end: int) -> Run:
        first, last = files[0], files[-1]
        return cls(
            first.partition,
            min(file.segment for file in files),
            max(file.segment for file in files),
            # A gap lies before a segment's first record, and a query for it would find nothing.
            max(start, first.start_offset, min(first.segment, first.end_offset)),
            min(end, last.end_offset),
            sum(file.records for file in files),
            sum(file.size_bytes for file in files),
            first.path,
        )

    def where(self, start: int, end: int) -> str:
        """The rows of a part of it, as SQL."""
        return (
            f"partition = {self.partition} AND segment BETWEEN {self.first_segment} AND "
            f"{self.last_segment} AND offset >= {start} AND offset < {end}"
        )


def runs(files: Iterable[SegmentFile], start: int, end: int) -> Iterator[Run]:
    """The files with records of [start, end); those without a gap between them make one run."""
    together: list[SegmentFile] = []
    for file in sorted(files, key=lambda file: (file.partition, file.start_offset)):
        if not file.records or file.end_offset <= start or file.start_offset >= end:
            continue
        last = together[-1] if together else None
        if last is not None and (
            (last.partition, last.end_offset) != (file.partition, file.start_offset)
            or file.segment > file.start_offset
        ):
            yield Run.of(together, start, end)
            together = []
        together.append(file)
    if together:
        yield Run.of(together, start, end)


def version_with(
    files: Sequence[SegmentFile], active: Callable[[Iterable[str]], tuple[int, set[str]]]
) -> int:
    """A version that has all of the files, which were together in some snapshot.

    Files that were removed since are read as they were, as long as Delta keeps them.

    Args:
        active: the newest version seen, and which of some paths it lacks.
    """
    newest, gone = active(file.path for file in files)
    return max(version_of_path(file.path) for file in files) if gone else newest


def newest_of(
    files: Iterable[SegmentFile], newest_in: Callable[[SegmentFile], OffsetAndTimestamp | None]
) -> OffsetAndTimestamp | None:
    """The best of what each file has; see `SegmentReader.newest`.

    Args:
        files: by largest timestamp, then by offset; no more are looked into than needed.
    """
    best: OffsetAndTimestamp | None = None
    for file in files:
        if file.max_timestamp_ms < 0:
            break
        if best is not None and not beats(best, file.max_timestamp_ms, file.start_offset):
            if file.max_timestamp_ms < best.timestamp_ms:
                break
            continue
        found = newest_in(file)
        if found is not None and (best is None or beats(best, found.timestamp_ms, found.offset)):
            best = found
    return best


def beats(best: OffsetAndTimestamp, timestamp_ms: int, offset: int) -> bool:
    """Whether a record of at most that time and at least that offset would beat the best one."""
    return (timestamp_ms, -offset) > (best.timestamp_ms, -best.offset)


def by_segment(files: Iterable[SegmentFile]) -> dict[int, list[SegmentFile]]:
    """Files by the segment that they belong to."""
    found: dict[int, list[SegmentFile]] = {}
    for file in files:
        found.setdefault(file.segment, []).append(file)
    return found


def where_slices(files: Iterable[SegmentFile], known: Mapping[int, Sequence[SegmentFile]]) -> str:
    """The rows of some slices of a partition, as SQL.

    Args:
        files: of which those of a segment have no other between them.
        known: all slices of the partition, by segment: of a whole segment all rows are asked for.
    """
    asked = by_segment(files)
    whole = [segment for segment in asked if len(asked[segment]) == len(known[segment])]
    wheres = [f"segment IN ({', '.join(map(str, sorted(whole)))})"] if whole else []
    for segment in sorted(asked.keys() - set(whole)):
        start = min(file.start_offset for file in asked[segment])
        end = max(file.end_offset for file in asked[segment])
        wheres.append(f"segment = {segment} AND offset >= {start} AND offset < {end}")
    return " OR ".join(f"({one})" for one in wheres)
