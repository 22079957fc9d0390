"""How offsets are written down, dealt out to tasks, and limited; no Spark, no Redis."""

from __future__ import annotations

import json
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.table import ColdSnapshot
from lakelog.engines.shared_tasks import SHARED_BYTES, SHARED_RANGES
from lakelog.errors import InvalidArgumentError
from lakelog.read.lag import RecordCount, count_records
from lakelog.read.stretches import Stretch
from lakelog.read.tiers import Look
from lakelog.spark.datasource import LakelogReader
from lakelog.spark.offsets_json import StreamOffset, parse_offsets
from lakelog.spark.options import parse
from lakelog.spark.ranges import (
    SHARED_RANGES_OF_STREAM,
    SizedRange,
    advance,
    share,
    shared,
    split,
)
from lakelog.values.offsets import HotOffsets, LogOffsets
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import OffsetRange, TopicPartition

ORDERS = Topic("orders", UUID(int=1), 3)
PARTITIONS = st.builds(
    TopicPartition, st.sampled_from(["orders", "a.b", "Z-9"]), st.integers(0, 120)
)
OFFSETS = st.dictionaries(PARTITIONS, st.integers(0, 2**53), max_size=8)


def test_offsets_are_written_as_kafkas_with_the_topic_ids() -> None:
    offset = StreamOffset(
        {TopicPartition("orders", 10): 5, TopicPartition("orders", 2): 7}, {"orders": UUID(int=1)}
    )
    assert json.dumps(offset.to_json()) == (
        '{"orders": {"2": 7, "10": 5}, "@id orders": {"0": 0, "1": 0, "2": 0, "3": 1}}'
    )


GAPS = st.dictionaries(
    PARTITIONS,
    st.lists(
        st.builds(OffsetRange, st.integers(0, 9), st.integers(9, 2**53)),
        min_size=1,
        unique_by=lambda gap: gap.start,
    ).map(tuple),
    max_size=3,
)


@given(OFFSETS, st.booleans(), st.none() | OFFSETS, GAPS)
def test_what_is_written_is_read_back(offsets, initial, since, gaps) -> None:
    ids = {tp.topic: uuid4() for tp in offsets}
    offset = StreamOffset(offsets, ids, initial, since, gaps)
    members = json.loads(json.dumps(offset.to_json()))
    assert StreamOffset.from_json(members) == offset
    for partitions in members.values():  # as who walks over Kafka's offsets does
        assert all(int(number) >= 0 and type(at) is int for number, at in partitions.items())


def test_checkpoints_of_older_versions_are_read() -> None:
    written = {
        "orders": {"0": 30, "1": 7},
        "@topic_ids": {"orders": "12345678-9abc-def0-1234-56789abcdef0"},
        "@initial": True,
        "@since": {"orders": {"0": 3, "1": 0}},
        "@gaps": {"orders": {"0": [[5, 9], [20, 21]]}},
    }
    orders_0, orders_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
    assert StreamOffset.from_json(written) == StreamOffset(
        {orders_0: 30, orders_1: 7},
        {"orders": UUID("12345678-9abc-def0-1234-56789abcdef0")},
        True,
        {orders_0: 3, orders_1: 0},
        {orders_0: (OffsetRange(5, 9), OffsetRange(20, 21))},
    )
    assert StreamOffset.from_json({"@since": {}}) == StreamOffset({}, since={})


def test_equal_offsets_are_equal_texts_in_whatever_order_they_came() -> None:
    one, two = TopicPartition("orders", 1), TopicPartition("orders", 2)
    texts = [json.dumps(StreamOffset(o).to_json()) for o in ({one: 1, two: 2}, {two: 2, one: 1})]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "text",
    [
        "3",
        "[]",
        '{"a b": {"0": 1}}',
        '{"orders": 3}',
        '{"orders": {"0": 1.5}}',
        '{"o": {"0": true}}',
        '{"@id orders": {"0": 1}}',
        '{"@id orders": {"0": 0, "1": 0, "2": 0, "3": 4294967296}}',
        '{"@topic_ids": {"orders": "x"}}',
        '{"@gaps orders": {"0": 1}}',
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="startingOffsets should be JSON such as"):
        parse_offsets(text, "startingOffsets")


def sized(partition: int, start: int, *lengths: int, bytes_each: float = 1.0) -> SizedRange:
    """Records and gaps in turn, so many of each."""
    stretches, at = [], start
    for number, length in enumerate(lengths):
        if number % 2 == 0 and length:
            stretches.append(Stretch(partition, at, at + length, length))
        at += length
    records = sum(stretch.records for stretch in stretches)
    return SizedRange(ORDERS, partition, start, at, tuple(stretches), records * bytes_each)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1000), st.lists(st.integers(0, 900), max_size=5), st.floats(1, 1e6)
        ),
        max_size=6,
    ),
    st.integers(1, 40),
    st.integers(1, 100_000),
)
def test_parts_cover_the_ranges_once_and_are_as_many_as_asked(given_ranges, least, size) -> None:
    ranges = [
        sized(number, start, *lengths, bytes_each=bytes_each)
        for number, (start, lengths, bytes_each) in enumerate(given_ranges)
    ]
    parts = split(ranges, least, size)
    for one in ranges:
        of_range = [part for part in parts if part.partition == one.partition]
        covered = [n for part in of_range for n in range(part.start_offset, part.end_offset)]
        assert covered == list(range(one.start_offset, one.end_offset))
        assert all(part.start_offset < part.end_offset for part in of_range)
        counts = [part.records for part in of_range]
        assert sum(counts) == one.records
        assert not counts or max(counts) - min(counts) <= 1
    records = sum(one.records for one in ranges)
    assert len(parts) >= min(least, len([one for one in ranges if one.size_bytes]), records)
    if len(ranges) == 1:
        assert len(parts) >= min(least, records)


@given(
    st.lists(st.integers(1, 3 * SHARED_BYTES // 2), max_size=120),
    st.integers(1, 150),
    st.sampled_from([SHARED_RANGES, SHARED_RANGES_OF_STREAM]),
)
def test_small_parts_share_tasks_and_none_is_left_out(sizes, min_tasks, max_ranges) -> None:
    parts = [
        SizedRange(ORDERS, number, 0, 1, (Stretch(number, 0, 1, 1),), size)
        for number, size in enumerate(sizes)
    ]
    tasks = shared(parts, min_tasks, max_ranges)
    assert [part for task in tasks for part in task] == parts
    assert len(tasks) >= min(min_tasks, len(parts))
    for task in tasks:
        assert 1 <= len(task) <= max_ranges
        assert len(task) == 1 or sum(part.size_bytes for part in task) <= SHARED_BYTES
    for one, other in pairwise(tasks):  # no two that could have been one
        together = sum(part.size_bytes for part in (*one, other[0]))
        full = len(one) >= min(max_ranges, max(1, len(parts) // min_tasks))
        assert full or together > SHARED_BYTES


@given(st.integers(1, 10**9), st.integers(1, 40))
def test_a_gap_makes_no_part_more(gap, least) -> None:
    with_gap = split([sized(0, 0, 500, gap, 500)], least, 100)
    without = split([sized(0, 0, 1000)], least, 100)
    assert [part.records for part in with_gap] == [part.records for part in without]


GAPS_SEEN = (OffsetRange(100, 900), OffsetRange(950, 960))
LOOK = Look(
    {0: LogOffsets(0, 0, 0, 1000, gaps=GAPS_SEEN)},
    ColdSnapshot(),
    {0: HotOffsets(0, 1000, -1, 0, gaps=GAPS_SEEN)},
)


def test_a_limit_counts_records_not_what_was_skipped() -> None:
    assert count_records(LOOK, 0, 0, 1000) == RecordCount(190)
    assert count_records(LOOK, 0, 950, 1000) == RecordCount(40)
    assert [advance(LOOK, 0, 0, n) for n in (50, 99, 100, 120, 150, 151, 190)] == [
        50,
        99,
        900,
        920,
        960,
        961,
        1000,
    ]
    assert advance(LOOK, 0, 100, 1) == advance(LOOK, 0, 500, 1) == 901
    assert advance(LOOK, 0, 990, 100) == 1000


@given(st.dictionaries(PARTITIONS, st.integers(0, 10_000), max_size=8), st.integers(1, 5000))
def test_a_limit_is_shared_out_by_what_there_is_and_starves_nobody(available, limit) -> None:
    shares = share(available, limit)
    assert shares.keys() == available.keys()
    assert all(0 <= shares[tp] <= available[tp] for tp in available)
    assert all(shares[tp] > 0 for tp in available if available[tp])
    assert sum(shares.values()) <= limit + len(available)
    if sum(available.values()) <= limit:
        assert shares == available


def test_a_record_in_redis_does_not_make_what_is_archived_large(make_log) -> None:
    """A stream of one record takes kilobytes there; 300 partitions were read by 100 tasks."""
    log = make_log(SHARED_RANGES + 8)
    for partition in range(SHARED_RANGES + 8):
        log.append(100, partition)
    log.archive()
    options = parse(log.options(startingOffsets="earliest"), streaming=False)
    (archived,) = LakelogReader(options).partitions()[:1]
    for partition in range(SHARED_RANGES + 8):
        log.append(1, partition)
    tasks = LakelogReader(options).partitions()
    assert len(tasks) == 2
    assert len(tasks[0].ranges) == len(archived.ranges) == SHARED_RANGES
