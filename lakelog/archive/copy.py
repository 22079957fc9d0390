"""Reading one hot range for the archive: every record of it, or an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import NoReturn

import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc
from ..base.failpoints import failpoint
from ..cold.change import HotRange
from ..engines.engine import LONG_S
from ..engines.threads import Workers
from ..errors import ContradictionError
from ..hot.hot_log import HotLog, HotSource
from ..values.config import KIB
from ..values.record import Fetched
from ..values.topic_partition import OffsetRange

#: A step below this is worked through sooner than a thread could have read the next one.
_READ_AHEAD_BYTES = 256 * KIB

#: A record larger than a step has no bound of its own, so a process holds one of them at a time.
_LARGE = threading.Semaphore(1)


class HotRows(Struct, frozen=True):
    """A `RowsOf`: reads hot ranges with a hot tier of its own process, opened once.

    What it yields is exactly the range: dense, in order, less the gaps that the hot tier declares.
    No more than two read steps are in memory at a time, whatever the range's size. A record that is
    larger than a step is there alone, and in no other copy of this process at the same time.

    Raises (while iterating):
        TrimmedError: another archiver was faster, or the log start was raised.
        UnknownTopicIdError: the topic was dropped since the plan was made.
        ContradictionError: the hot tier answered with fewer or other records than the range has.

    Runs on: executor.
    """

    source: HotSource

    def __call__(self, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
        position = hot_range.start_offset
        for step in _read_ahead(_Steps(self.source.open(), hot_range), hot_range.end_offset):
            check_cover(hot_range, step, position)
            position, records = step.next_offset, step.records
            del step  # nobody may hold a large one any more when the next one is asked for
            if records.num_rows:
                yield records
            del records
        if position != hot_range.end_offset:
            _refuse(hot_range, OffsetRange(position, hot_range.end_offset), "the read ended early")
        failpoint("archive.after_copy")


class _Steps:
    """The steps of one hot range. A large one waits until no other copy holds a large one."""

    def __init__(self, log: HotLog, hot_range: HotRange) -> None:
        self._is_held = False  # `_LARGE`, which it may also go without: see `LONG_S`
        self.is_large = False  # whether the last step that was read is a large one
        self._steps = log.read(
            hot_range.topic_partition,
            hot_range.start_offset,
            hot_range.end_offset,
            topic_id=hot_range.topic_id,
            before_large=self._hold,
        )

    def next(self) -> Fetched | None:
        """The next step, if there is one. The caller is done with a large one before it."""
        self.end()
        return next(self._steps, None)

    def end(self) -> None:
        """The caller is done with what was read."""
        self.is_large = False
        if self._is_held:
            self._is_held = False
            _LARGE.release()

    def _hold(self) -> None:
        self._is_held = _LARGE.acquire(timeout=LONG_S)
        self.is_large = True


def _read_ahead(steps: _Steps, end_offset: int) -> Iterator[Fetched]:
    """The steps, each read while the caller still works on the one before.

    Otherwise a worker would wait for Redis half of the time, and Redis for the worker the rest.
    While a large record is worked on, nothing else is held.
    """
    reader = Workers("lakelog-read-ahead")
    following: Future[Fetched | None] | None = None
    try:
        step = steps.next()
        while step is not None:
            is_last = step.next_offset >= end_offset
            if is_last or steps.is_large or step.records.nbytes < _READ_AHEAD_BYTES:
                yield step
                del step
                step = steps.next()
            else:
                following = reader.ask(steps.next)
                yield step
                del step
                step = following.result()
    finally:
        if following is not None:
            following.exception()  # wait for it, since it uses the steps
        reader.end()
        steps.end()


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
