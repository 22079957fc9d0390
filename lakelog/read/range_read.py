"""A range of one partition, to be read as Arrow batches, as records, or whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from ..values.record import RECORDS, Record, RecordRows
from ..values.topic_partition import TopicPartition
from .fetch import range_fetches
from .tiers import Tiers
from .where import Always, Where, is_all, matching, parse, write


class RangeRead:
    """The records of [start_offset, end_offset), read again by each iteration.

    Iterating gives `RECORDS` batches in bounded memory. A record that the log held when the
    iteration began is there, or the iteration raises; see `range_fetches` for the errors. Only what
    compaction removes meanwhile may be there or not.
    """

    def __init__(
        self,
        tiers: Tiers,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int,
        max_bytes: int,
        where: Where | None = None,
    ) -> None:
        self._tiers = tiers
        self._max_bytes = max_bytes
        self._where = where or Always()
        self.topic_partition = topic_partition
        self.start_offset = start_offset
        self.end_offset = end_offset  # exclusive

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for step in range_fetches(
            self._tiers,
            self.topic_partition,
            self.start_offset,
            self.end_offset,
            max_bytes=self._max_bytes,
        ):
            records = matching(self._where, step.records, self.topic_partition.partition)
            if records.num_rows:
                yield records

    def matching(self, where: str | Where) -> RangeRead:
        """Only the records of the range that match; the whole range is read.

        Args:
            where: such as ``key = "N229JB" and value.dep_delay > 60``, or a text to look for in
                keys and values; see `lakelog.read.where.grammar`. Times without a zone are UTC.

        Raises:
            InvalidArgumentError: an expression that cannot be read.
        """
        return RangeRead(
            self._tiers,
            self.topic_partition,
            self.start_offset,
            self.end_offset,
            self._max_bytes,
            parse(where) if isinstance(where, str) else where,
        )

    def records(self) -> Iterator[Record]:
        """The records one by one."""
        rows = (RecordRows.of(self.topic_partition, batch) for batch in self)
        return chain.from_iterable(part for one in rows for part in one.in_parts())

    def to_arrow(self) -> pa.Table:
        """All of it as one `RECORDS` table, in memory."""
        return pa.Table.from_batches(list(self), schema=RECORDS)

    def __repr__(self) -> str:
        where = "" if is_all(self._where) else f" where {write(self._where)}"
        return f"RangeRead({self.topic_partition} [{self.start_offset}, {self.end_offset}){where})"
