"""What a search gives: matches, how far it has come, and where it goes on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..errors import InvalidArgumentError
from ..values.arguments import settle_numbers, whole
from ..values.record import MAX_OFFSET, RECORDS, Record, RecordRows
from ..values.topic_partition import TopicPartition

#: What a search gives: `RECORDS`, and which partition each is of.
FOUND = pa.schema([pa.field("partition", pa.int32(), nullable=False), *RECORDS])

FULL, EDGE, STOPPED = "full", "edge", "stopped"
TOO_MANY_RECORDS, TOO_MANY_BYTES = "records", "bytes"


def check_records(n: object) -> int:
    """How many records, at most.

    Raises:
        InvalidArgumentError: not a whole number ≥ 0.
    """
    number = whole(n)
    if number is None or not 0 <= number <= MAX_OFFSET:
        raise InvalidArgumentError(f"{n!r} is not a number of records from 0 to {MAX_OFFSET}")
    return number


class SearchLimit(Struct, frozen=True):
    """How much a page may read before it is given as it is: then with all that was found, also
    where what was not read yet might have come before.
    """

    records: float = math.inf
    bytes: float = math.inf

    def __post_init__(self) -> None:
        settle_numbers(self)
        for name in ("records", "bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 1:
                raise InvalidArgumentError(
                    f"a search's limit of {name} is a number ≥ 1, not {value!r}", value=value
                )


class Progress(Struct, frozen=True):
    """How far a search has come."""

    read: int  # records
    skipped: int  # records, about: those that were known not to match without being read
    total: int  # records, about: what is to be read or skipped
    bytes: int  # of those that were read
    matches: int
    offsets: Mapping[int, int]  # where it is in each partition

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, (self.read + self.skipped) / self.total) if self.total else 1.0


class Place(Struct, frozen=True):
    """Where a search goes on in a partition."""

    offset: int  # the first to be seen; backward, the last plus one
    rank: float = -math.inf  # of the record before, so that pages follow each other as one search


class Page(Struct, frozen=True):
    """Matches in the order of time, oldest first, and where the search goes on."""

    records: pa.Table  # FOUND
    next: Mapping[int, Place]  # by partition
    ended: str  # FULL, EDGE (of what was asked for), STOPPED, TOO_MANY_RECORDS or TOO_MANY_BYTES
    progress: Progress


def records_of(topic: str, table: pa.Table) -> Iterator[Record]:
    """The rows of a `FOUND` table as records."""
    for batch in table.to_batches():
        partitions = np.asarray(batch.column("partition"))
        edges = np.flatnonzero(np.diff(partitions)) + 1
        starts = [0, *edges.tolist()]
        for start, end in zip(starts, [*edges.tolist(), len(partitions)], strict=True):
            partition = int(partitions[start]) if end > start else 0
            rows = batch.slice(start, end - start).select(RECORDS.names)
            rows = pa.RecordBatch.from_arrays(rows.columns, schema=RECORDS)
            for part in RecordRows.of(TopicPartition(topic, partition), rows).in_parts():
                yield from part


def with_partition(records: pa.RecordBatch, partition: int) -> pa.Table:
    """A `RECORDS` batch of a partition as a `FOUND` table."""
    numbers = pa.repeat(pa.scalar(partition, pa.int32()), records.num_rows)
    return pa.Table.from_arrays([numbers, *records.columns], schema=FOUND)


def rows_within(table: pa.Table, size_bytes: float) -> int:
    """How many of the first rows it takes to fill so many bytes; all, if they do not."""
    low, high = 0, int(table.num_rows)  # `low` rows do not fill them, `high` do, if all do
    if table.nbytes <= size_bytes:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if table.slice(0, middle).nbytes >= size_bytes else (middle, high)
    return high
