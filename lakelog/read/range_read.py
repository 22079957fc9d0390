"""A range of one partition as Arrow batches, records, or a table; and a sample of a topic."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain

import pyarrow as pa

from ..base.watched import watched
from ..values.config import TopicConfig
from ..values.record import RECORDS, Record, RecordRows
from ..values.topic_partition import OffsetRange, TopicPartition
from .fetch import range_fetches
from .found import check_records
from .frames import Frames
from .stretches import Stretch, stretches
from .tiers import Tiers
from .where import Where, matching, parse, write


class RangeRead(Frames):
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
        self._where = where  # None: all of them
        self.topic_partition = topic_partition
        self.start_offset = start_offset
        self.end_offset = end_offset  # exclusive

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self._watched(lambda done: None)

    def _watched(self, at: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """As the iteration; `at` is told how many offsets are behind it."""
        for step in range_fetches(
            self._tiers,
            self.topic_partition,
            self.start_offset,
            self.end_offset,
            max_bytes=self._max_bytes,
        ):
            records = step.records
            if records.num_rows:
                at(records["offset"][-1].as_py() + 1 - self.start_offset)
            if self._where is not None:
                number, form = self.topic_partition.partition, self._config().value_format
                records = matching(self._where, records, number, form)
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
        return chain.from_iterable(self._parts())

    def _parts(self) -> Iterator[list[Record]]:
        for batch in self:
            yield from RecordRows.of(self.topic_partition, batch).in_parts()

    def to_arrow(self) -> pa.Table:
        """All of it as one `RECORDS` table, in memory."""
        total = self.end_offset - self.start_offset
        with watched(f"reading {self.topic_partition}", total) as at:
            return pa.Table.from_batches(list(self._watched(at)), schema=RECORDS)

    def _config(self) -> TopicConfig:
        return self._tiers.topic.config

    def __repr__(self) -> str:
        said = "" if self._where is None else write(self._where)
        where = said and f" where {said}"
        return f"RangeRead({self.topic_partition} [{self.start_offset}, {self.end_offset}){where})"


DEFAULT_SAMPLE_RECORDS = 100

#: The number of places read. A cold one costs some milliseconds, so 32 take well under a second;
#: each gives several neighbours when more records are asked for.
_PLACES = 32

SAMPLED = pa.schema([pa.field("partition", pa.int32(), nullable=False), *RECORDS])


def sample(tiers: Tiers, n: int, seed: int) -> pa.Table:
    """At most `n` records; see `TopicLog.sample`."""
    n = check_records(n)
    found = stretches(tiers.look(range(tiers.topic.partitions)))
    batches = []
    taken = 0
    for wanted, partition, part in _parts(found, n, random.Random(seed)):
        topic_partition = TopicPartition(tiers.topic.name, partition)
        for step in range_fetches(tiers, topic_partition, part.start, part.end):
            rows = step.records.slice(0, wanted - taken)
            taken += rows.num_rows
            numbers = pa.repeat(pa.scalar(partition, pa.int32()), rows.num_rows)
            batches.append(pa.RecordBatch.from_arrays([numbers, *rows.columns], schema=SAMPLED))
            if taken == wanted:
                break
    return pa.Table.from_batches(batches, schema=SAMPLED)


def _parts(
    found: Sequence[Stretch], n: int, chance: random.Random
) -> Iterator[tuple[int, int, OffsetRange]]:
    """Disjoint ranges of about `n` records altogether (or of all), in order: one at random in each
    of `_PLACES` about equal shares of the records.

    Yields:
        How many records to have at most after the range (a place may make up for what those before
        it lacked), its partition, the range.
    """
    ends = list(accumulate(stretch.records for stretch in found))  # by rank
    total = ends[-1] if ends else 0
    if n >= total:
        for stretch in found:
            yield n, stretch.partition, OffsetRange(stretch.start, stretch.end)
        return
    skipped = total - n
    places = min(n, _PLACES)
    for place in range(places):
        # The skipped records so far: between an equal share for each earlier place, and one more.
        skip = chance.randint(skipped * place // places, skipped * (place + 1) // places)
        wanted = n * (place + 1) // places
        rank, end = skip + n * place // places, skip + wanted
        index = bisect_right(ends, rank)
        while rank < end:
            stretch = found[index]
            base = ends[index] - stretch.records
            until = min(end, ends[index])
            span = OffsetRange(stretch.offset(rank - base), stretch.offset(until - base))
            yield wanted - (end - until), stretch.partition, span
            rank, index = until, index + 1
