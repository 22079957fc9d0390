"""Possible layouts of a cold tier, without a table: files of segments and the rows in them.

A segment has one file or many, with gaps before it; compaction removed rows and emptied files; the
log start cuts into a segment, or whole segments below it are gone; a foreign OPTIMIZE moved the
rows of a segment to files of its own. What an index says of such a layout is compared with its
rows, which are a plain list.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing

from msgspec import Struct

from lakelog.cold.added_file import AddedFile, index_of
from lakelog.cold.segment import SegmentIndex, file_name
from lakelog.errors import MissingExtraError
from lakelog.values.topic_partition import OffsetRange

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

_INSERT = "INSERT INTO rows VALUES (?, ?, ?)"


class LaidFile(Struct, frozen=True):
    """One file: what its name says, and the offsets of its rows."""

    partition: int
    segment: int
    path: str
    start_offset: int
    end_offset: int  # exclusive
    offsets: tuple[int, ...]  # in any order if the file is foreign


class ColdLayout(Struct, frozen=True):
    """The files of a topic, and where each partition's log starts and its archive ends."""

    files: tuple[LaidFile, ...]
    log_starts: Mapping[int, int]
    archived_ends: Mapping[int, int]

    def index(self) -> SegmentIndex:
        """The index that a look at a table with these files would give."""
        files = [
            AddedFile(
                file.path,
                file.partition,
                file.segment,
                1000,
                1,
                len(file.offsets),
                min(file.offsets, default=None),
                max(file.offsets, default=None),
            )
            for file in self.files
        ]
        return index_of(files)

    def rows(self) -> list[tuple[int, int, int]]:
        """Partition, segment and offset of each row."""
        return [
            (file.partition, file.segment, offset) for file in self.files for offset in file.offsets
        ]

    def held(self, ranges: Mapping[int, OffsetRange]) -> list[tuple[int, int]]:
        """Partition and offset of each row in the ranges, in order."""
        return sorted(
            (partition, offset)
            for partition, _, offset in self.rows()
            if partition in ranges and ranges[partition].start <= offset < ranges[partition].end
        )

    def places(self, partition: int) -> list[int]:
        """Where an answer could be wrong: at and next to each edge that the log still covers."""
        low, high = self.log_starts[partition], self.archived_ends[partition]
        edges = {low, high}
        for file in self.files:
            if file.partition == partition:
                edges |= {file.segment, file.start_offset, file.end_offset}
                edges |= {edge for offset in file.offsets for edge in (offset, offset + 1)}
        return near(edges, low, high)


class RowTable:
    """Rows of a Delta table in memory, which take the same SQL conditions as Spark.

    Args:
        rows: partition, segment and offset of each.
    """

    def __init__(self, rows: Iterable[tuple[int, int, int]]) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE TABLE rows (partition INT, segment INT, offset INT)")
        self._database.executemany(_INSERT, rows)

    def where(self, condition: str | None) -> list[tuple[int, int]]:
        """Partition and offset of the rows for which a condition holds, in order; None: all."""
        text = "SELECT partition, offset FROM rows WHERE " + (condition or "true")
        with closing(self._database.execute(text)) as found:
            return sorted(found)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> RowTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def near(edges: Iterable[int], low: int, high: int) -> list[int]:
    """Each edge and its neighbours that lie in [low, high], in order."""
    beside = {edge + step for edge in edges for step in (-1, 0, 1)}
    return sorted({low, high} | {place for place in beside if low <= place <= high})


@st.composite
def cold_layouts(draw: st.DrawFn, partitions: int = 2) -> ColdLayout:
    """Some segments for each partition, with some files of some rows each."""
    files: list[LaidFile] = []
    log_starts, archived_ends = {}, {}
    for partition in range(partitions):
        segments = draw(st.lists(_segments, max_size=4))
        laid = list(_laid(partition, segments))
        end = max((file.end_offset for file in laid), default=0)
        # The last record of a partition is always there, so the archive ends one past it.
        log_start = archived_ends[partition] = end
        if end:
            log_start = draw(st.sampled_from([0, 0, end, draw(st.integers(0, end))]))
        log_starts[partition] = log_start
        if draw(st.booleans()):  # cleanup has run since
            ends: dict[int, int] = {}
            for file in laid:
                ends[file.segment] = max(ends.get(file.segment, 0), file.end_offset)
            laid = [file for file in laid if ends[file.segment] > log_start]
        files += laid
    return ColdLayout(tuple(draw(st.permutations(files))), log_starts, archived_ends)


class _Segment(Struct, frozen=True):
    gap: int  # offsets before it that no record ever had
    files: tuple[tuple[bool, ...], ...]  # whether there is a row at each offset
    dealt: int  # the number of foreign files that got the rows; 0: as written


_segments = st.builds(
    _Segment,
    st.sampled_from([0, 0, 0, 1, 5]),
    st.lists(
        st.one_of(
            st.integers(1, 4).map(lambda count: (True,) * count),
            st.lists(st.booleans(), min_size=1, max_size=4).map(tuple),
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    st.sampled_from([0, 0, 0, 1, 2, 3]),
)


def _laid(partition: int, segments: list[_Segment]) -> Iterator[LaidFile]:
    at = 0
    for number, segment in enumerate(segments):
        base = at + segment.gap
        folder = f"partition={partition}/segment={base}"
        # A file's range begins with the gap before it.
        start, at = at, base
        runs = []
        for index, there in enumerate(segment.files):
            last = number + 1 == len(segments) and index + 1 == len(segment.files)
            rows = tuple(at + i for i, row in enumerate((*there[:-1], there[-1] or last)) if row)
            at += len(there)
            runs.append((start, at, rows))
            start = at
        if not segment.dealt:
            for low, high, rows in runs:
                kind = "archive" if len(rows) == high - max(low, base) else "clean"
                name = file_name(kind, low, high, f"{low:032x}")
                yield LaidFile(partition, base, f"{folder}/{name}", low, high, rows)
            continue
        everything = [offset for _, _, rows in runs for offset in rows]
        for index in range(segment.dealt):
            mine = tuple(reversed(everything[index :: segment.dealt]))
            if mine:
                path = f"{folder}/part-{index:05}-{base}.snappy.parquet"
                low, high = min(mine), max(mine) + 1
                yield LaidFile(partition, base, path, low, high, mine)
