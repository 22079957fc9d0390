"""Small ranges that are archived by name share a task of Spark."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.change import HotRange
from lakelog.engines.shared_tasks import SHARED_BYTES, SHARED_RANGES, sharing
from lakelog.values.config import MIB
from lakelog.values.topic_partition import TopicPartition

TOPIC_ID = UUID("11111111-2222-3333-4444-555555555555")


@given(st.lists(st.integers(0, 9 * MIB) | st.integers(0, 2_000), max_size=400))
def test_each_range_is_in_one_task_and_only_small_ones_share_one(sizes: list[int]) -> None:
    ranges = [
        HotRange(TopicPartition("orders", number), TOPIC_ID, 0, 0, 1, size_bytes)
        for number, size_bytes in enumerate(sizes)
    ]
    tasks = sharing(ranges)
    assert [one for task in tasks for one in task] == ranges
    sums = [sum(one.size_bytes for one in task) for task in tasks]
    for task, size_bytes in zip(tasks, sums, strict=True):
        assert 0 < len(task) <= SHARED_RANGES
        assert len(task) == 1 or size_bytes <= SHARED_BYTES
    for task, left, right in zip(tasks, sums, sums[1:], strict=False):  # none is there needlessly
        assert len(task) == SHARED_RANGES or left + right > SHARED_BYTES


def test_ten_thousand_partitions_with_a_record_each_are_some_tasks() -> None:
    ranges = [
        HotRange(TopicPartition("orders", number), TOPIC_ID, 0, 0, 1, 200)
        for number in range(10_000)
    ]
    assert len(sharing(ranges)) == 125
