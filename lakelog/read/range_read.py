"""A range of one partition, to be read as Arrow batches, as records, or whole."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..record import RECORDS, Record, TopicPartition, to_records
from .fetch import fetches
from .matching import Match
from .tiers import Tiers


class RangeRead:
    """The records of [start_offset, end_offset), read again by each iteration.

    Iterating gives `RECORDS` batches in bounded memory. A record that the log held when the
    iteration began is there, or the iteration raises; see `fetches` for the errors. Only what
    compaction removes meanwhile may be there or not.
    """

    def __init__(
        self,
        tiers: Tiers,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int,
        max_bytes: int,
        match: Match | None = None,
    ) -> None:
        self._tiers = tiers
        self._max_bytes = max_bytes
        self._match = match or Match()
        self.topic_partition = topic_partition
        self.start_offset = start_offset
        self.end_offset = end_offset  # exclusive

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for step in fetches(
            self._tiers,
            self.topic_partition,
            self.start_offset,
            self.end_offset,
            max_bytes=self._max_bytes,
        ):
            records = self._match.rows(step.records)
            if records.num_rows:
                yield records

    def matching(
        self,
        *,
        key: str | bytes | None = None,
        header: str | tuple[str, str | bytes | None] | None = None,
        text: str | bytes | None = None,
        json: str | None = None,
    ) -> RangeRead:
        """Only the records of the range that meet all conditions; the whole range is read.

        Args:
            key: the record's key, whole. Texts, here and below, are their UTF-8 bytes.
            header: the name of a header it has; ``name=value`` or ``(name, value)``: with a value.
            text: somewhere in its value; case-sensitive.
            json: a path that its value has, such as ``$.legs[0].origin``, or a comparison with
                what is there: ``$.distance > 1000``, ``$.origin == "JFK"``.

        Raises:
            InvalidArgumentError: not a text or bytes, or not a path.
        """
        match = Match.of(key=key, header=header, text=text, json=json)
        return RangeRead(
            self._tiers,
            self.topic_partition,
            self.start_offset,
            self.end_offset,
            self._max_bytes,
            match,
        )

    def records(self) -> Iterator[Record]:
        """The records one by one."""
        for batch in self:
            yield from to_records(self.topic_partition, batch)

    def to_arrow(self) -> pa.Table:
        """All of it as one `RECORDS` table, in memory."""
        return pa.Table.from_batches(list(self), schema=RECORDS)

    def __repr__(self) -> str:
        matching = f" matching {self._match.arguments()}" if self._match else ""
        return (
            f"RangeRead({self.topic_partition} [{self.start_offset}, {self.end_offset}){matching})"
        )
