"""Optimize: the same records in fewer files, so that a log stays fast to open and to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base.batched import batched
from ..cold.change import Change, Rewrite
from ..cold.segment import Segment, SegmentFile, is_ours, is_stand_in
from ..cold.table import ColdSnapshot
from ..values.topic import Topic


def plan_optimize(topic: Topic, cold: ColdSnapshot) -> list[Rewrite]:
    """The files to be merged, largest first. Pure.

    A closed segment becomes one file, sorted by offset, even if a foreign OPTIMIZE left one that is
    not sorted. In the open segment, newer files are merged with the one before them as long as that
    is no larger than all of them together. So n archive runs leave about log2(n) files, and a
    record is copied about that often, not once in each run. Neighbouring closed segments that hold
    no records any more become one.
    """
    rewrites: list[Rewrite] = []
    for partition in cold.files.partitions:
        topic_partition = topic.partition(partition)
        *closed, newest = cold.files.segments(partition)
        merged = [[file for one in run for file in one.files] for run in _runs(closed)]
        rewrites += [
            Rewrite(topic_partition, files[0].segment, tuple(files))
            for files in [*merged, _tail(newest)]
            if (len(files) > 1 or not is_ours(files[0].path))
            # merged, nothing would say that a skipped file is missing
            and not any(is_stand_in(file.path) for file in files)
        ]
    rewrites.sort(key=size_bytes, reverse=True)
    return rewrites


def optimize_change(rewrites: Sequence[Rewrite]) -> Change:
    """The change that merges them: readers of the Delta table see no new data."""
    return Change(
        adds=tuple(rewrites),
        removes=tuple(file for rewrite in rewrites for file in rewrite.files),
        data_change=False,
    )


def size_bytes(rewrite: Rewrite) -> int:
    """The bytes that it reads."""
    return sum(file.size_bytes for file in rewrite.files)


def _runs(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Each segment by itself, but neighbouring empty ones without a gap together."""
    run: list[Segment] = []
    for segment in segments:
        if run and (segment.records or run[-1].records or segment.base_offset > run[-1].end_offset):
            yield run
            run = []
        run.append(segment)
    if run:
        yield run


def _tail(segment: Segment) -> tuple[SegmentFile, ...]:
    """The newest files of an open segment that are worth merging.

    Foreign files may overlap others, so if there is one, all files are taken.
    """
    files = segment.files
    if not all(is_ours(file.path) for file in files):
        return files
    start = len(files) - 1
    total = files[start].size_bytes
    for at in range(len(files) - 2, -1, -1):
        if files[at].size_bytes <= total:
            start = at
        total += files[at].size_bytes
    return files[start:]


#: One commit rewrites about this much: a crash loses no more work than that.
COMMIT_BYTES = 4 * 2**30


def rounds(rewrites: Sequence[Rewrite]) -> Iterator[list[Rewrite]]:
    """The rewrites in their order, as many together as make up `COMMIT_BYTES`; at least one."""
    return batched(rewrites, size_bytes, COMMIT_BYTES)
