"""Reads the ranges that a share consumer acquired, one here and one there."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...values.config import MIB
from ...values.record import Fetched
from ...values.topic_partition import TopicPartition
from ..tiers import out_of_range
from ..topic_log import TopicLog

#: What a step brings: more than was asked for, since what follows is often acquired next.
_STEP_BYTES = MIB


class Stretch(Struct, frozen=True):
    """The records of [start, end), and where the next one may be."""

    records: pa.RecordBatch  # RECORDS
    start: int
    end: int
    next_offset: int  # [end, next_offset) holds no records; ≥ end


class AcquiredReader:
    """One partition, read by the log's ordinary reader, from whichever tier holds it.

    It remembers the last step and reads on behind it, so that neither an entry nor a cold file is
    read again for each range that lies in it.
    """

    def __init__(self, log: TopicLog, partition: int) -> None:
        self._log = log
        self._partition = partition
        self._steps: Iterator[Fetched] | None = None
        self._last: Fetched | None = None

    def read(self, start: int, end: int) -> Iterator[Stretch]:
        """Stretches that cover [start, end), each where the one before ended.

        Raises:
            OffsetOutOfRangeError: some of it is below the log start.
            LakelogError: a tier does not answer or is damaged.
        """
        at = start
        while at < end:
            step = self._step_at(at)
            last = min(step.next_offset, end)
            offsets = step.records.column("offset")
            first = pc.sum(pc.less(offsets, at)).as_py() or 0
            until = pc.sum(pc.less(offsets, last)).as_py() or 0
            following = offsets[until].as_py() if until < len(offsets) else step.next_offset
            yield Stretch(step.records.slice(first, until - first), at, last, max(following, last))
            at = last

    def _step_at(self, offset: int) -> Fetched:
        last = self._last
        if last is not None and last.start_offset <= offset < last.next_offset:
            return last
        if last is None or last.next_offset != offset:
            self._steps = None
        self._last = None
        while True:
            steps = self._steps or self._log.fetches(self._partition, offset, max_bytes=_STEP_BYTES)
            was_open, self._steps = self._steps is not None, None  # one that raises is over
            step = next(steps, None)
            if step is not None:
                self._steps, self._last = steps, step
                return step
            if not was_open:  # it was acquired, so the log had it
                offsets = self._log.offsets([self._partition])[self._partition]
                out_of_range(TopicPartition(self._log.topic.name, self._partition), offset, offsets)
