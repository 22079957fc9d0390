"""Reading one hot range for the archive: every record of it, or an error."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from ..cold.change import HotRange
from ..config import MIB
from ..errors import ContradictionError
from ..failpoints import failpoint
from ..hot.hot_log import HotSource
from ..record import Fetched, OffsetRange

#: Steps up to this are read ahead: a usual one has 8 MiB, one of a single record has no bound.
_READ_AHEAD_BYTES = 32 * MIB


@dataclass(frozen=True, slots=True)
class HotRows:
    """A `RowsOf`: reads hot ranges with a hot tier of its own process, opened once.

    What it yields is exactly the range: dense, in order, less the gaps that the hot tier declares.
    No more than two read steps, or one record, are in memory at a time, whatever the range's size.

    Raises (while iterating):
        TrimmedError: another archiver was faster, or the log start was raised.
        UnknownTopicIdError: the topic was dropped since the plan was made.
        ContradictionError: the hot tier answered with fewer or other records than the range has.

    Runs on: executor.
    """

    source: HotSource

    def __call__(self, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
        position = hot_range.start_offset
        steps = self.source.open().read(
            hot_range.topic_partition, position, hot_range.end_offset, topic_id=hot_range.topic_id
        )
        for step in _read_ahead(steps):
            check_cover(hot_range, step, position)
            position = step.next_offset
            if step.records.num_rows:
                yield step.records
        if position != hot_range.end_offset:
            _refuse(hot_range, OffsetRange(position, hot_range.end_offset), "the read ended early")
        failpoint("archive.after_copy")


def _read_ahead(steps: Iterator[Fetched]) -> Iterator[Fetched]:
    """The same steps, each read while the caller still works on the one before.

    Otherwise a worker would wait for Redis half of the time, and Redis for the worker the rest.
    While a single huge record is worked on, nothing else is held.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="lakelog-read-ahead") as reader:
        following = reader.submit(next, steps, None)
        while (step := following.result()) is not None:
            is_huge = step.records.nbytes > _READ_AHEAD_BYTES
            if not is_huge:
                following = reader.submit(next, steps, None)
            yield step
            if is_huge:
                del step
                following = reader.submit(next, steps, None)


def check_cover(hot_range: HotRange, step: Fetched, position: int) -> None:
    """Check that the step goes on at `position` and holds each offset outside of gaps once.

    Raises:
        ContradictionError: it does not.
    """
    covered = OffsetRange(step.start_offset, step.next_offset)
    if covered.start != position or not position < covered.end <= hot_range.end_offset:
        _refuse(hot_range, covered, f"the step should go on at {position}")
    lost = 0
    offsets = step.records.column("offset")
    for gap in step.gaps:
        lost += max(0, min(gap.end, covered.end) - max(gap.start, covered.start))
        inside = pc.and_(pc.greater_equal(offsets, gap.start), pc.less(offsets, gap.end))
        if pc.any(inside).as_py():
            _refuse(hot_range, covered, f"it has records inside the gap [{gap.start}, {gap.end})")
    records = len(offsets)
    expected = covered.end - covered.start - lost
    if records != expected:
        _refuse(hot_range, covered, f"it has {records} records instead of {expected}")
    # There are as many distinct offsets as places, all in the range: each is there once.
    if records and not (
        offsets[0].as_py() >= covered.start
        and offsets[-1].as_py() < covered.end
        and pc.all(pc.less(offsets[:-1], offsets[1:])).as_py() is not False
    ):
        _refuse(hot_range, covered, "its offsets are not in order")


def _refuse(hot_range: HotRange, covered: OffsetRange, what: str) -> NoReturn:
    raise ContradictionError(
        f"{hot_range.topic_partition} [{hot_range.start_offset}, {hot_range.end_offset}) cannot be "
        f"archived: reading [{covered.start}, {covered.end}) from the hot tier, {what}. Nothing "
        "was committed; look for entries that lakelog did not write with XRANGE",
        topic_partition=hot_range.topic_partition,
        covered=covered,
    )
