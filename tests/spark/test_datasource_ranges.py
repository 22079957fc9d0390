"""How offsets are written down, dealt out to tasks, and limited; no Spark, no Redis."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import InvalidArgumentError
from lakelog.offsets import LogOffsets
from lakelog.record import OffsetRange, TopicPartition
from lakelog.spark.offsets_json import StreamOffset, parse_offsets
from lakelog.spark.ranges import SizedRange, advance, records_between, share, split
from lakelog.topic import Topic

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
        '{"orders": {"2": 7, "10": 5}, '
        '"@topic_ids": {"orders": "00000000-0000-0000-0000-000000000001"}}'
    )


@given(OFFSETS, st.booleans(), st.none() | OFFSETS)
def test_what_is_written_is_read_back(offsets, initial, since) -> None:
    ids = {tp.topic: uuid4() for tp in offsets}
    offset = StreamOffset(offsets, ids, initial, since)
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset


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
    ],
)
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="startingOffsets should be JSON such as"):
        parse_offsets(text, "startingOffsets")


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 5000), st.floats(1, 1e6)), max_size=6),
    st.integers(1, 40),
    st.integers(1, 100_000),
)
def test_parts_cover_the_ranges_once_and_are_as_many_as_asked(given_ranges, least, size) -> None:
    ranges = [
        SizedRange(ORDERS, number, start, start + length, length * bytes_each)
        for number, (start, length, bytes_each) in enumerate(given_ranges)
    ]
    parts = split(ranges, least, size)
    for one in ranges:
        of_range = [part for part in parts if part.partition == one.partition]
        covered = [n for part in of_range for n in range(part.start_offset, part.end_offset)]
        assert covered == list(range(one.start_offset, one.end_offset))
        assert all(part.start_offset < part.end_offset for part in of_range)
    offsets = sum(one.end_offset - one.start_offset for one in ranges)
    assert len(parts) >= min(least, len([one for one in ranges if one.size_bytes]), offsets)
    if len(ranges) == 1:
        assert len(parts) >= min(least, offsets)


def test_one_hot_partition_is_cut_and_the_small_ones_are_not() -> None:
    ranges = [SizedRange(ORDERS, 0, 0, 1000, 1000.0), SizedRange(ORDERS, 1, 0, 10, 10.0)]
    assert [(p.partition, p.start_offset, p.end_offset) for p in split(ranges, 4)] == [
        (0, 0, 250),
        (0, 250, 500),
        (0, 500, 750),
        (0, 750, 1000),
        (1, 0, 10),
    ]
    assert len(split(ranges, 1, split_bytes=100)) == 11


LOG = LogOffsets(0, 0, 0, 1000, gaps=(OffsetRange(100, 900), OffsetRange(950, 960)))


def test_a_limit_counts_records_not_what_was_lost() -> None:
    assert records_between(LOG, 0, 1000) == 190
    assert records_between(LOG, 950, 1000) == 40
    assert [advance(LOG, 0, n) for n in (50, 99, 100, 120, 150, 151, 190)] == [
        50,
        99,
        100,
        920,
        950,
        961,
        1000,
    ]
    assert advance(LOG, 100, 1) == advance(LOG, 500, 1) == 901
    assert advance(LOG, 990, 100) == 1000


@given(st.dictionaries(PARTITIONS, st.integers(0, 10_000), max_size=8), st.integers(1, 5000))
def test_a_limit_is_shared_out_by_what_there_is_and_starves_nobody(available, limit) -> None:
    shares = share(available, limit)
    assert shares.keys() == available.keys()
    assert all(0 <= shares[tp] <= available[tp] for tp in available)
    assert all(shares[tp] > 0 for tp in available if available[tp])
    assert sum(shares.values()) <= limit + len(available)
    if sum(available.values()) <= limit:
        assert shares == available
