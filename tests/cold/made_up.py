"""Records made up from their offsets, so that any process can tell what a range holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakelog.cold.change import Change, HotRange
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.table import ColdSnapshot
from lakelog.values.producer_calls import ProducerCall
from lakelog.values.record import HEADERS_TYPE, RECORDS, Record
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

BATCH_RECORDS = 700
EPOCH_MS = 1_700_000_000_000


@dataclass(frozen=True)
class MadeUpRows:
    """A `RowsOf` over records that are functions of their offset.

    ``lost`` are offsets that the hot tier has not; ``times`` are timestamps other than the usual.
    """

    lost: frozenset[int] = frozenset()
    times: Mapping[int, int] = field(default_factory=dict)

    def __call__(self, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
        first = max(hot_range.start_offset, hot_range.segment)
        offsets = [at for at in range(first, hot_range.end_offset) if at not in self.lost]
        for at in range(0, len(offsets), BATCH_RECORDS):
            yield batch_of(
                [
                    self.record(hot_range.topic_partition, offset)
                    for offset in offsets[at : at + BATCH_RECORDS]
                ]
            )

    def record(self, topic_partition: TopicPartition, offset: int) -> Record:
        return Record(
            *topic_partition,
            offset,
            self.times.get(offset, EPOCH_MS + offset),
            key=None if offset % 5 == 0 else b"" if offset % 7 == 0 else b"key-%d" % (offset % 11),
            value=None if offset % 13 == 0 else b"" if offset % 17 == 0 else b"value-%d" % offset,
            headers=((("a", b"1"), ("b", None), ("a", b"")) if offset % 3 == 0 else ()),
        )

    def records(self, topic_partition: TopicPartition, start: int, end: int) -> list[Record]:
        return [self.record(topic_partition, offset) for offset in range(start, end)]


def batch_of(records: list[Record]) -> pa.RecordBatch:
    headers = [
        [{"key": key, "value": value} for key, value in record.headers] for record in records
    ]
    times_us = pa.array([record.timestamp_ms * 1000 for record in records], pa.int64())
    return pa.RecordBatch.from_arrays(
        [
            pa.array([record.offset for record in records], pa.int64()),
            times_us.cast(RECORDS.field("timestamp").type),
            pa.array([record.timestamp_type for record in records], pa.int32()),
            pa.array([record.key for record in records], pa.binary()),
            pa.array([record.value for record in records], pa.binary()),
            pa.array(headers, HEADERS_TYPE),
        ],
        schema=RECORDS,
    )


def archive(
    topic: Topic,
    planned_on: ColdSnapshot,
    *bounds: int,
    partition: int = 0,
    segment: int = 0,
    calls: Sequence[ProducerCall] = (),
) -> Change:
    """From the archived end to each bound in turn: one file each, all of one segment."""
    start = planned_on.archive_start(partition)
    edges = [start, *bounds]
    return Change(
        adds=tuple(
            HotRange(topic.partition(partition), topic.topic_id, segment, low, high)
            for low, high in zip(edges, bounds, strict=False)
        ),
        registers={ArchivedEnd(partition): bounds[-1]},
        calls={partition: calls},
    )
