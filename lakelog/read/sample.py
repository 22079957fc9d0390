"""A few records from all over a log, without reading it."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import pyarrow as pa

from ..values.record import RECORDS
from ..values.topic_partition import OffsetRange, TopicPartition
from .fetch import range_fetches
from .found import check_records
from .stretches import Stretch, stretches
from .tiers import Tiers

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
