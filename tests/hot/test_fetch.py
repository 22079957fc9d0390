"""Reading: every step follows the one before, and nothing is missing without an error."""

from __future__ import annotations

import random

import pytest

from lakelog.errors import (
    CorruptRecordError,
    ForeignEntryError,
    LakelogError,
    TrimmedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.hot import fetch
from lakelog.values.config import MIB, EntryFormat
from lakelog.values.topic_partition import TopicPartition

NOW_MS = 1_700_000_000_000


@pytest.fixture
def mixed(make_bench):
    """100 records in entries of 1, 10, 1, 10 … records."""
    bench = make_bench()
    while bench.offsets().log_end < 99:
        bench.append(NOW_MS)
        bench.append(*[NOW_MS] * 10, entry_format=EntryFormat.ARROW)
    bench.append(NOW_MS)
    assert bench.offsets().log_end == 100
    return bench


def steps(bench, start, end=None, **more):
    return list(bench.hot.read(bench.tp(), start, end, **more))


@pytest.mark.parametrize("start", [0, 1, 5, 10, 11, 12, 57, 98, 99, 100, 101, 10**9])
@pytest.mark.parametrize("length", [None, 0, 1, 3, 10, 40, 1000])
def test_steps_cover_the_range_densely(mixed, start, length):
    end = None if length is None else start + length
    expected = list(range(start, min(100, 10**10 if end is None else end)))
    at = start
    for step in steps(mixed, start, end, max_bytes=1):
        assert step.start_offset == at
        assert step.next_offset > at
        at = step.next_offset
    assert at == max(start, min(100, 10**10 if end is None else end))
    assert mixed.read_offsets(start, end) == expected


def test_a_read_of_one_record_is_one_step(mixed):
    (step,) = steps(mixed, 57, 58)
    assert step.records.num_rows == 1
    assert step.records.column("offset")[0].as_py() == 57


def test_a_step_brings_at_least_one_entry(mixed):
    first, *_ = steps(mixed, 0, max_bytes=1)
    assert first.next_offset > 0


def test_a_step_stays_near_max_bytes(make_bench):
    bench = make_bench()
    for _ in range(200):
        bench.append(NOW_MS, value_bytes=10_000)
    sizes = [step.records.num_rows for step in steps(bench, 0, max_bytes=100_000)]
    assert sum(sizes) == 200
    assert max(sizes) <= 10
    assert len(sizes) < 30


def test_the_first_steps_bring_little_to_who_wants_little(make_bench):
    bench = make_bench()
    for _ in range(50):
        bench.append(*[NOW_MS] * 10, entry_format=EntryFormat.ARROW)
    sizes = [step.records.num_rows for step in steps(bench, 0, lead_bytes=1)]
    assert (sizes[:4], sum(sizes)) == ([10] * 4, 500)
    assert max(sizes[4:]) > 100  # as much as otherwise
    assert steps(bench, 0)[0].records.num_rows == 40


def test_a_step_is_bounded_when_large_entries_follow_small_ones(make_bench, monkeypatch):
    """What the small ones lead to expect is no measure for what comes."""
    monkeypatch.setattr(fetch, "MAX_STEP_BYTES", 2 * MIB)
    bench = make_bench()
    for _ in range(300):
        bench.append(NOW_MS)
    for _ in range(40):
        bench.append(NOW_MS, value_bytes=400_000)
    sizes = [step.records.nbytes for step in steps(bench, 0, max_bytes=MIB)]
    assert sum(sizes) > 40 * 400_000
    assert max(sizes) < 2 * MIB


def test_trimmed_before_and_midway(mixed):
    reading = mixed.hot.read(mixed.tp(), 0, max_bytes=1)
    first = next(reading)
    mixed.hot.trim(mixed.tp(), first.next_offset + 3)
    with pytest.raises(TrimmedError) as caught:
        next(reading)
    assert caught.value.offset == first.next_offset
    assert caught.value.local_log_start == first.next_offset + 3


def test_trimmed_to_the_end_is_no_silent_end(mixed):
    mixed.hot.trim(mixed.tp(), 100)
    with pytest.raises(TrimmedError):
        mixed.read(99)
    assert mixed.read(100) == []


def test_what_is_appended_while_reading_is_read(mixed):
    reading = mixed.hot.read(mixed.tp(), 90, max_bytes=1)
    next(reading)
    mixed.append(NOW_MS, NOW_MS)
    assert [step.next_offset for step in reading][-1] == 102


def test_another_creation_of_the_topic(mixed):
    topic_id = mixed.topic.topic_id
    reading = mixed.hot.read(mixed.tp(), 0, max_bytes=1, topic_id=topic_id)
    next(reading)
    mixed.hot.topics().delete("orders")
    with pytest.raises(UnknownTopicIdError, match="was deleted since"):
        mixed.read(topic_id=topic_id)
    recreated = mixed.hot.topics().create("orders")
    mixed.topic = recreated
    mixed.append(*[NOW_MS] * 100)
    with pytest.raises(UnknownTopicIdError, match="created again"):
        next(reading)
    assert len(mixed.read(topic_id=recreated.topic_id)) == 100


def test_an_unknown_partition_is_not_an_empty_one(mixed):
    with pytest.raises(UnknownTopicOrPartitionError, match="orders-3"):
        list(mixed.hot.read(TopicPartition("orders", 3), 0))
    with pytest.raises(UnknownTopicOrPartitionError, match="orders-3"):
        mixed.hot.offsets([mixed.tp(), TopicPartition("orders", 3)])


@pytest.mark.parametrize("victim", [0, 1, 5, -1])
def test_a_deleted_entry_is_an_error_that_names_the_hole(mixed, victim):
    ids = [entry_id for entry_id, _ in mixed.client.xrange(mixed.keys()[0])]
    last, count = map(int, ids[victim].split(b"-"))
    mixed.client.xdel(mixed.keys()[0], ids[victim])
    start = last - count + 1
    with pytest.raises(CorruptRecordError, match="orders-0") as caught:
        mixed.read()
    if victim != -1:
        assert caught.value.offset == start
        assert caught.value.end_offset == last + 1
    assert mixed.read_offsets(0, start) == list(range(start))
    with pytest.raises(CorruptRecordError):
        mixed.read(start, start + 1)


def test_a_deleted_stream_below_the_log_end_is_an_error(mixed):
    mixed.client.delete(mixed.keys()[0])
    with pytest.raises(CorruptRecordError, match=r"0\.\.99"):
        mixed.read()


@pytest.mark.parametrize("entry_format", [EntryFormat.FIELDS, EntryFormat.ARROW])
def test_a_flipped_bit_names_topic_partition_and_entry(make_bench, entry_format):
    bench = make_bench()
    bench.append(*[NOW_MS] * 3, entry_format=EntryFormat.ARROW)
    bench.append(NOW_MS, entry_format=entry_format, value_bytes=100)
    stream = bench.keys()[0]
    entries = bench.client.xrange(stream)
    name = b"a" if entry_format is EntryFormat.ARROW else b"value"
    data = bytearray(entries[-1][1][name])
    data[random.Random(3).randrange(len(data))] ^= 4
    entries[-1][1][name] = bytes(data)
    bench.client.delete(stream)  # a stream takes no id twice, so all of it is written anew
    for entry_id, fields in entries:
        bench.client.xadd(stream, fields, id=entry_id)
    with pytest.raises(CorruptRecordError, match="CRC") as caught:
        bench.read()
    assert caught.value.topic_partition == bench.tp()
    assert str(caught.value.entry_id) == "3-1"
    assert "orders-0" in str(caught.value)
    assert "3-1" in str(caught.value)
    assert bench.read_offsets(0, 3) == [0, 1, 2]


@pytest.mark.parametrize("entry_id", ["3-0", "3-9", "3-1"])
def test_an_entry_of_somebody_else_is_named(make_bench, entry_id):
    bench = make_bench()
    bench.append(NOW_MS, NOW_MS)
    bench.client.xadd(bench.keys()[0], {"field": "value"}, id=entry_id)
    bench.client.hset(bench.keys()[1], "log_end", 4)
    with pytest.raises((ForeignEntryError, CorruptRecordError), match=r"orders-0.*") as caught:
        bench.read(2)
    assert caught.value.topic_partition == bench.tp()
    assert "lakelog skip add orders -p 0 --entry" in str(caught.value)


@pytest.mark.parametrize("entry_id", ["5-0", "2-9", "12-3"])
def test_an_entry_past_the_log_end_is_skipped_and_named(make_bench, entry_id, caplog):
    bench = make_bench()
    bench.append(NOW_MS, NOW_MS)
    bench.client.xadd(bench.keys()[0], {"field": "value"}, id=entry_id)
    for _ in range(3):
        assert bench.read_offsets() == [0, 1]
    (said,) = [line for line in caplog.messages if entry_id in line]
    assert "skipped" in said


def test_a_copied_entry_is_not_read_twice(make_bench):
    """One of ours under another id: its bytes are sound, its place is not."""
    bench = make_bench()
    bench.append(NOW_MS, NOW_MS, entry_format=EntryFormat.ARROW)
    ((_, fields),) = bench.client.xrange(bench.keys()[0])
    bench.client.xadd(bench.keys()[0], fields, id="2-2")
    assert bench.read_offsets() == [0, 1]


def test_a_key_that_is_no_stream(mixed):
    mixed.client.delete(mixed.keys()[0])
    mixed.client.set(mixed.keys()[0], "text")
    with pytest.raises(ForeignEntryError, match=mixed.keys()[0]):
        mixed.read()


def test_a_negative_offset_is_an_error(mixed):
    with pytest.raises(LakelogError):
        mixed.read(-1)
