"""A hot range comes out whole, or not at all."""

from __future__ import annotations

import pickle
import uuid

import pyarrow as pa
import pytest

from lakelog.archive.copy import HotRows, check_cover
from lakelog.codec import ProducedBatch, encode
from lakelog.cold.change import HotRange
from lakelog.errors import (
    ContradictionError,
    TrimmedError,
)
from lakelog.hot.fetch import READ_STEP_BYTES
from lakelog.hot.hot_log import HotSource
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import RECORDS, Fetched, produced_batch
from lakelog.values.topic_partition import OffsetRange, TopicPartition

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = uuid.UUID(int=7)


def hot_range(start: int, end: int) -> HotRange:
    return HotRange(ORDERS, TOPIC_ID, 0, start, end)


def step(offsets, start: int, end: int, gaps=()) -> Fetched:
    rows = [{"offset": o, "timestamp": 0, "timestampType": 0, "headers": []} for o in offsets]
    records = pa.RecordBatch.from_pylist(rows, schema=RECORDS)
    return Fetched(records, start, end, tuple(OffsetRange(*gap) for gap in gaps))


@pytest.mark.parametrize(
    "good",
    [
        step(range(5, 10), 5, 10),
        step([5], 5, 6),
        step([7, 8], 5, 9, gaps=[(5, 7)]),
        step([5, 6, 9], 5, 10, gaps=[(7, 9)]),
        step([], 5, 8, gaps=[(0, 8)]),
        step([8], 5, 9, gaps=[(0, 8), (9, 20)]),
    ],
)
def test_a_step_that_holds_every_offset_but_the_gaps_passes(good):
    check_cover(hot_range(5, 10), good, 5)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (step([5, 6, 8, 9], 5, 10), "4 records instead of 5"),
        (step([5, 6, 6, 8, 9], 5, 10), "not in order"),
        (step([5, 7, 6, 8, 9], 5, 10), "not in order"),
        (step(range(4, 9), 5, 10), "not in order"),
        (step(range(6, 11), 5, 10), "not in order"),
        (step([5, 6], 5, 8, gaps=[(6, 7)]), "inside the gap"),
        (step(range(6, 10), 6, 10), "should go on at 5"),
        (step(range(5, 11), 5, 11), "should go on at 5"),
        (step([], 5, 5), "should go on at 5"),
    ],
)
def test_a_step_with_a_hole_a_repetition_or_another_range_is_refused(bad, why):
    with pytest.raises(ContradictionError, match=why) as caught:
        check_cover(hot_range(5, 10), bad, 5)
    assert caught.value.topic_partition == ORDERS


def read(tiers, start: int, end: int, topic_id=None) -> list[int]:
    rows_of = pickle.loads(pickle.dumps(HotRows(HotSource(tiers.url))))
    wanted = HotRange(
        TopicPartition(tiers.topic.name, 0), topic_id or tiers.topic.topic_id, 0, start, end
    )
    return [offset for batch in rows_of(wanted) for offset in batch["offset"].to_pylist()]


def test_a_trimmed_range_says_so(make_tiers):
    tiers = make_tiers()
    tiers.append(300, entry_records=100)
    tiers.hot.trim(TopicPartition("orders", 0), 200)
    with pytest.raises(TrimmedError) as caught:
        read(tiers, 100, 300)
    assert caught.value.local_log_start == 200


LARGE, SMALL = READ_STEP_BYTES + 1, READ_STEP_BYTES // 2


@pytest.mark.slow
def test_memory_does_not_grow_with_the_segment(make_tiers, processes):
    tiers = make_tiers()
    value = b"x" * 10_000
    rows = produced_batch((tiers.clock.now_ms(), None, value, ()) for _ in range(500))
    entries = encode(rows, EntryFormat.ARROW, Compression.NONE)

    def peak_kib(batches: int) -> int:
        """Of a process that archives so many batches of 5 MB in one segment."""
        for _ in range(batches):
            first = tiers.sequences.get(0, 0)
            batch = ProducedBatch(entries, tiers.producer_id, 0, first, first + 499)
            tiers.hot.append(TopicPartition("orders", 0), tiers.topic.topic_id, batch)
            tiers.sequences[0] = first + 500
        process = processes.start(tiers, "once")
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        return int(output.split()[-1])

    small, large = peak_kib(12), peak_kib(60)
    assert large - small < 100 * 1024  # for 240 MB more to copy
