"""A few records from all over a log, without reading it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import pyarrow as pa

from ..errors import InvalidArgumentError
from ..offsets import LogOffsets
from ..record import RECORDS, OffsetRange, TopicPartition
from .fetch import fetches
from .tiers import Tiers

DEFAULT_SAMPLE_RECORDS = 100

#: Places that are read. A cold one costs some milliseconds, so 32 answer in well under a second;
#: each gives several neighbours when more records are asked for.
_PLACES = 32

SAMPLED = pa.schema([pa.field("partition", pa.int32(), nullable=False), *RECORDS])


def sample(tiers: Tiers, n: int, seed: int) -> pa.Table:
    """At most `n` records; see `UnifiedLog.sample`."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise InvalidArgumentError(f"{n!r} is not a number of records ≥ 0")
    look = tiers.look(range(tiers.topic.partitions))
    batches = []
    for partition, part in _parts(look.offsets, n, random.Random(seed)):
        topic_partition = TopicPartition(tiers.topic.name, partition)
        for step in fetches(tiers, topic_partition, part.start, part.end):
            numbers = pa.repeat(pa.scalar(partition, pa.int32()), step.records.num_rows)
            columns = [numbers, *step.records.columns]
            batches.append(pa.RecordBatch.from_arrays(columns, schema=SAMPLED))
    return pa.Table.from_batches(batches, schema=SAMPLED)


def _parts(
    offsets: Mapping[int, LogOffsets], n: int, chance: random.Random
) -> Iterator[tuple[int, OffsetRange]]:
    """Ranges of `n` offsets altogether (or all there are), in order: one at random in each of
    `_PLACES` about equal shares of the log.
    """
    stretches = [
        (partition, stretch) for partition, log in sorted(offsets.items()) for stretch in _held(log)
    ]
    total = sum(stretch.end - stretch.start for _, stretch in stretches)
    n = min(n, total)
    skipped = total - n
    places = min(n, _PLACES)
    for place in range(places):
        # What is skipped up to here lies between an equal share for each place before and one more.
        skip = chance.randint(skipped * place // places, skipped * (place + 1) // places)
        first, end = n * place // places, n * (place + 1) // places
        yield from _slice(stretches, skip + first, skip + end)


def _held(log: LogOffsets) -> Iterator[OffsetRange]:
    """[log_start, log_end) without the gaps."""
    start = log.log_start
    for gap in log.gaps:
        if start < gap.start:
            yield OffsetRange(start, gap.start)
        start = max(start, gap.end)
    if start < log.log_end:
        yield OffsetRange(start, log.log_end)


def _slice(
    stretches: list[tuple[int, OffsetRange]], start: int, end: int
) -> Iterator[tuple[int, OffsetRange]]:
    """The part [start, end) of all stretches laid end to end."""
    for partition, stretch in stretches:
        length = stretch.end - stretch.start
        low, high = max(start, 0), min(end, length)
        if low < high:
            yield partition, OffsetRange(stretch.start + low, stretch.start + high)
        start, end = start - length, end - length
