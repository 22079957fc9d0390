"""A hot range comes out whole, or not at all."""

from __future__ import annotations

import pickle
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lakelog.archive import copy
from lakelog.archive.copy import HotRows, check_cover
from lakelog.codec import ProducedBatch, encode
from lakelog.cold.change import HotRange
from lakelog.errors import (
    ContradictionError,
    CorruptRecordError,
    TrimmedError,
    UnknownTopicIdError,
)
from lakelog.hot.fetch import READ_STEP_BYTES
from lakelog.hot.hot_log import HotSource
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import RECORDS, Fetched, produced_batch
from lakelog.values.topic_partition import OffsetRange, TopicPartition

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = uuid.UUID(int=7)
LIVENESS_S = 60.0


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


def test_a_range_may_begin_and_end_inside_an_entry(make_tiers):
    tiers = make_tiers()
    tiers.append(300, entry_records=100)
    assert read(tiers, 50, 217) == list(range(50, 217))


def test_a_trimmed_range_says_so(make_tiers):
    tiers = make_tiers()
    tiers.append(300, entry_records=100)
    tiers.hot.trim(TopicPartition("orders", 0), 200)
    with pytest.raises(TrimmedError) as caught:
        read(tiers, 100, 300)
    assert caught.value.local_log_start == 200


def test_a_range_past_the_log_end_is_refused(make_tiers):
    tiers = make_tiers()
    tiers.append(10)
    with pytest.raises(ContradictionError, match=r"\[10, 20\).*ended early"):
        read(tiers, 0, 20)


def test_the_stream_of_a_topic_created_again_is_not_read(make_tiers):
    tiers = make_tiers()
    tiers.append(10)
    with pytest.raises(UnknownTopicIdError):
        read(tiers, 0, 10, topic_id=uuid.uuid4())


class Counted:
    """In the place of a semaphore of one: counts who holds it, and says who asks."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(1)
        self.held = 0
        self.asked = threading.Semaphore(0)

    def acquire(self, timeout: float) -> bool:
        self.asked.release()
        is_held = self._free.acquire(timeout=timeout)
        self.held += is_held
        return is_held

    def release(self) -> None:
        self.held -= 1
        self._free.release()


@pytest.fixture
def large(monkeypatch) -> Counted:
    """The place of the one large record that a process may hold."""
    counted = Counted()
    monkeypatch.setattr(copy, "_LARGE", counted)
    return counted


def append_values(tiers, *sizes_bytes: int) -> HotRange:
    """A record of so many bytes each, in an entry of its own; the range of all of them."""
    for number, size_bytes in enumerate(sizes_bytes):
        rows = produced_batch([(tiers.clock.now_ms(), None, bytes(size_bytes), ())])
        entries = encode(rows, EntryFormat.ARROW, Compression.ZSTD)
        batch = ProducedBatch(entries, tiers.producer_id, 0, number, number)
        tiers.hot.append(TopicPartition("orders", 0), tiers.topic.topic_id, batch)
    return HotRange(TopicPartition("orders", 0), tiers.topic.topic_id, 0, 0, len(sizes_bytes))


LARGE, SMALL = READ_STEP_BYTES + 1, READ_STEP_BYTES // 2


def test_a_record_larger_than_a_step_is_held_in_the_place_of_such_ones(make_tiers, large):
    tiers = make_tiers()
    wanted = append_values(tiers, 1, LARGE, SMALL, SMALL, SMALL, LARGE, LARGE, 1, SMALL, SMALL)
    held = {}
    for batch in HotRows(HotSource(tiers.url))(wanted):
        held |= dict.fromkeys(batch["offset"].to_pylist(), large.held)
    assert [offset for offset in (1, 5, 6) if held[offset]] == [1, 5, 6]
    # What comes before a large record may still be worked on when that is read already.
    assert [offset for offset in (2, 7, 8, 9) if held[offset]] == []
    assert large.held == 0


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_copy_that_ends_early_leaves_its_place(make_tiers, large, taken):
    tiers = make_tiers()
    rows = HotRows(HotSource(tiers.url))(append_values(tiers, READ_STEP_BYTES - 1000, LARGE, LARGE))
    for _ in range(taken):
        next(rows)
    rows.close()
    assert large.held == 0


def test_a_large_record_that_cannot_be_read_leaves_its_place(make_tiers, large, redis_client):
    tiers = make_tiers()
    wanted = append_values(tiers, LARGE)
    stream = "lakelog:stream:orders:0"
    ((entry_id, fields),) = redis_client.xrange(stream)
    redis_client.delete(stream)
    redis_client.xadd(stream, {**fields, b"c": b"1234"}, id=entry_id)
    with pytest.raises(CorruptRecordError):
        list(HotRows(HotSource(tiers.url))(wanted))
    assert large.held == 0


def test_a_large_record_is_decoded_when_no_other_copy_holds_one(make_tiers, large):
    tiers = make_tiers()
    wanted = append_values(tiers, LARGE)
    rows, others = (HotRows(HotSource(tiers.url))(wanted) for _ in range(2))
    next(rows)
    held: list[str] = []

    def read_other() -> None:
        next(others)
        held.append("the other")

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(read_other)
        for _ in range(2):
            assert large.asked.acquire(timeout=LIVENESS_S)
        held.append("the first, still")
        rows.close()
        done.result(LIVENESS_S)
    others.close()
    assert held == ["the first, still", "the other"]


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
