"""What is read first of many partitions at once is what each would have given alone."""

from __future__ import annotations

import pytest

from lakelog.config import EntryFormat
from lakelog.record import TopicPartition

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
    found = filled.hot.first_steps(ranges, max_bytes=max_bytes)
    assert filled.tp(PARTITIONS - 1) not in found
    for tp, step in found.items():
        alone = next(iter(filled.hot.read(tp, *ranges[tp], max_bytes=max_bytes)))
        assert step.start_offset == start
        assert step.records.equals(alone.records)
        assert (step.next_offset, step.gaps) == (alone.next_offset, ())
    if max_bytes > 600:
        assert len(found) == PARTITIONS - 1


def test_those_that_need_a_closer_look_are_left_out(filled, redis_client):
    filled.hot.trim(filled.tp(0), 10)
    stream = filled.keys(1)[0]
    entry_id, _ = redis_client.xrange(stream)[0]
    redis_client.xdel(stream, entry_id)  # a hole, which a read refuses
    unknown = TopicPartition("nowhere", 0)
    asked = {filled.tp(n): (0, 40) for n in range(PARTITIONS)} | {unknown: (0, 40)}
    found = filled.hot.first_steps(asked, max_bytes=1 << 20)
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
