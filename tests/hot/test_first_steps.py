"""What is read first of many partitions at once is what each would have given alone."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelog.values.config import EntryFormat
from lakelog.values.topic_partition import TopicPartition

NOW_MS = 1_700_000_000_000
PARTITIONS = 5


@pytest.fixture
def filled(make_bench):
    bench = make_bench(partitions=PARTITIONS)
    for partition in range(PARTITIONS - 1):  # the last stays empty
        bench.append(*[NOW_MS + n for n in range(10)], partition=partition)
        times = [NOW_MS + 10 + n for n in range(30)]
        bench.append(*times, partition=partition, entry_format=EntryFormat.ARROW)
    return bench


@pytest.mark.parametrize("start", [0, 3, 10, 25, 39])
@pytest.mark.parametrize("end", [12, 40, 1000])
@pytest.mark.parametrize("max_bytes", [1, 600, 1 << 20])
def test_they_are_the_first_steps_of_reads(filled, start, end, max_bytes):
    ranges = {filled.tp(n): (start, max(end, start + 1)) for n in range(PARTITIONS)}
    found = filled.hot.first_steps(ranges, max_bytes=max_bytes).steps()
    assert filled.tp(PARTITIONS - 1) not in found
    for tp, step in found.items():
        alone = next(iter(filled.hot.read(tp, *ranges[tp], max_bytes=max_bytes)))
        assert step.start_offset == start
        assert step.records.equals(alone.records)
        assert (step.next_offset, step.gaps) == (alone.next_offset, ())
    if max_bytes > 600:
        assert len(found) == PARTITIONS - 1


@pytest.mark.parametrize("start", [0, 3, 12])
@pytest.mark.parametrize("end", [13, 25, 40])
@pytest.mark.parametrize("max_bytes", [1, 600, 1 << 20])
def test_backward_they_end_where_the_ranges_do(filled, start, end, max_bytes):
    ranges = {filled.tp(n): (start, end) for n in range(PARTITIONS)}
    found = filled.hot.first_steps(ranges, max_bytes=max_bytes, backward=True).steps()
    assert filled.tp(PARTITIONS - 1) not in found
    for tp, step in found.items():
        assert start <= step.start_offset < step.next_offset == end
        alone = [one.records for one in filled.hot.read(tp, step.start_offset, end)]
        assert pa.Table.from_batches([step.records]).equals(pa.Table.from_batches(alone))
    if max_bytes > 1 << 10:
        assert len(found) == PARTITIONS - 1


def test_the_step_after_may_ask_for_more_and_goes_on(filled):
    tp = filled.tp(1)
    at, counts, offsets, steps = 0, {}, [], 0
    while at < 40:
        found = filled.hot.first_steps({tp: (at, 40)}, max_bytes=1 << 20, counts=counts)
        (step,) = found.steps().values()
        assert step.start_offset == at
        offsets += step.records.column("offset").to_pylist()
        at, counts = step.next_offset, {tp: found.next_counts[0]}
        steps += 1
    assert offsets == list(range(40))
    assert steps == 2  # of 4 entries, then of all there are


def test_a_damaged_entry_of_one_leaves_the_others_as_they_are(filled, redis_client):
    stream = filled.keys(2)[0]
    entries = redis_client.xrange(stream)
    entries[-1][1][b"c"] = b"00000000"
    redis_client.delete(stream)
    for entry_id, fields in entries:
        redis_client.xadd(stream, fields, id=entry_id)
    asked = {filled.tp(n): (10, 40) for n in range(PARTITIONS)}
    for backward in (False, True):
        found = filled.hot.first_steps(asked, max_bytes=1 << 20, backward=backward).steps()
        assert set(found) == {filled.tp(0), filled.tp(1), filled.tp(3)}
        for step in found.values():
            assert step.records.column("offset").to_pylist() == list(range(10, 40))


def test_those_that_need_a_closer_look_are_left_out(filled, redis_client):
    filled.hot.trim(filled.tp(0), 10)
    stream = filled.keys(1)[0]
    entry_id, _ = redis_client.xrange(stream)[0]
    redis_client.xdel(stream, entry_id)  # a hole, which a read refuses
    unknown = TopicPartition("nowhere", 0)
    asked = {filled.tp(n): (0, 40) for n in range(PARTITIONS)} | {unknown: (0, 40)}
    found = filled.hot.first_steps(asked, max_bytes=1 << 20).steps()
    assert filled.tp(0) not in found  # below its local log start
    assert unknown not in found
    assert set(found) == {filled.tp(2), filled.tp(3)}


def test_times_are_sought_together_as_alone(filled):
    asked = [filled.tp(n) for n in range(PARTITIONS)]
    for time_ms in (0, NOW_MS, NOW_MS + 17, NOW_MS + 39, NOW_MS + 40):
        found = filled.hot.offsets_for_timestamp(asked, time_ms)
        assert found == {tp: filled.hot.offset_for_timestamp(tp, time_ms) for tp in found}
        assert filled.tp(PARTITIONS - 1) in found
        assert len(found) == PARTITIONS or time_ms > NOW_MS
