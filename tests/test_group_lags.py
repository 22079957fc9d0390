"""How far groups are behind: in records that are there, in time, and who is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog, TopicPartition
from lakelog.base.clock import ManualClock
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.group_values import GroupState
from lakelog.groups.recorded_offset import GroupType
from lakelog.operate.group_lag import GroupLag
from lakelog.values.record import OffsetAndMetadata

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
START_MS = 1_700_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START_MS + 60_000)


@pytest.fixture
def lake(redis_url: str, tmp_path: Path, clock: ManualClock) -> Iterator[Lakelog]:
    """A topic of two partitions of twenty records each, one a second."""
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline", clock=clock) as lake:
        lake.topics.create("orders", 2, {"retention.ms": -1, "local.retention.ms": 0})
        send(lake, range(20))
        yield lake


def send(lake: Lakelog, seconds: range) -> None:
    with lake.producer() as producer:
        for second in seconds:
            for partition in (0, 1):
                at_ms = START_MS + 1000 * second
                producer.send("orders", f"{second}", partition=partition, timestamp_ms=at_ms)


def commit(lake: Lakelog, group_id: str, offsets: dict[TopicPartition, int]) -> None:
    GroupCoordinator(lake.hot.connections).commit(
        group_id,
        {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()},
        topic_ids={"orders": lake.topics.get("orders").topic_id},
    )


def told(lags: list[GroupLag]) -> list[tuple[object, ...]]:
    return [
        (one.group_id, str(one.topic_partition), one.offset, one.lag_records, one.lag_ms)
        for one in lags
    ]


@pytest.mark.parametrize("archived", [False, True])
def test_it_is_what_is_left_and_the_age_of_the_first_of_it(lake: Lakelog, archived: bool) -> None:
    commit(lake, "nightly", {FIRST: 15, SECOND: 20})
    if archived:
        lake.archive()
        assert lake.log("orders").offsets()[0].local_log_start == 20
    lags = lake.group_lags()
    assert told(lags) == [
        ("nightly", "orders-0", 15, 5, 45_000),
        ("nightly", "orders-1", 20, 0, None),
    ]
    assert {(one.state, one.members, one.log_end) for one in lags} == {(GroupState.EMPTY, 0, 20)}


def test_a_group_beyond_the_end_or_below_the_start_is_told(lake: Lakelog) -> None:
    commit(lake, "ahead", {FIRST: 99})
    commit(lake, "behind", {FIRST: 0})
    lake.archive()
    lake.log("orders").raise_log_start(0, 12)
    assert told(lake.group_lags()) == [
        ("ahead", "orders-0", 99, 0, None),
        ("behind", "orders-0", 0, 8, 48_000),
    ]


def test_members_are_counted_and_a_share_group_s_too(lake: Lakelog) -> None:
    lake.topics.set_defaults({"group.initial.rebalance.delay.ms": 0})
    settings = {"auto_offset_reset": "earliest", "max_poll_records": 10}
    with (
        lake.consumer("orders", group_id="readers", **settings) as consumer,
        lake.share_consumer(
            "orders",
            group_id="workers",
            share_auto_offset_reset="earliest",
            share_acknowledgement_mode="explicit",
            max_poll_records=4,
        ) as worker,
    ):
        assert consumer.poll(timeout_ms=10_000)
        consumer.commit()
        taken = [one for batch in worker.poll(timeout_ms=10_000).values() for one in batch]
        worker.acknowledge(taken[1])  # the first is still at work: all counts from there
        worker.commit_sync()
        lags = lake.group_lags()
    by_group = {one.group_id: one for one in lags}
    readers, workers = by_group["readers"], by_group["workers"]
    assert (readers.group_type, readers.state, readers.members) == (
        GroupType.CLASSIC,
        GroupState.STABLE,
        1,
    )
    assert sum(one.lag_records for one in lags if one.group_id == "readers") == 30
    assert (workers.group_type, workers.state, workers.members) == (
        GroupType.SHARE,
        GroupState.STABLE,
        1,
    )
    shared = [one for one in lags if one.group_id == "workers"]
    assert sum(one.lag_records for one in shared) == 40 - 1 - (20 if len(shared) == 1 else 0)
    assert {one.offset for one in shared} == {0}
    assert {one.lag_ms for one in shared} == {60_000}


def test_skipped_offsets_are_none_that_a_share_group_has_left(lake: Lakelog) -> None:
    settings = {
        "share_auto_offset_reset": "earliest",
        "share_acknowledgement_mode": "explicit",
        "max_poll_records": 4,
    }
    lake.topics.create("skipped", 1)
    with lake.producer() as producer:
        for value in b"abcd":
            producer.send("skipped", bytes([value]))
    with lake.share_consumer("skipped", group_id="workers", **settings) as worker:
        (taken,) = worker.poll(timeout_ms=10_000).values()
        worker.acknowledge(taken[1])  # the first is still at work: all counts from there
        worker.commit_sync()
        lake.log("skipped").recover(0, 5)
        with lake.producer() as producer:
            producer.send("skipped", b"e")
        assert lake.log("skipped").offsets()[0].log_end > 1_000_000
        (lag,) = lake.group_lags("skipped")
        ((described,),) = lake.share_group_offsets.described(
            lake.share_groups.described(["workers"])
        )
    assert (lag.offset, lag.lag_records, described.lag_records) == (0, 4, 4)


def test_what_was_committed_of_a_topic_that_is_gone_is_none_of_them(lake: Lakelog) -> None:
    commit(lake, "nightly", {FIRST: 15})
    lake.topics.delete("orders")
    assert lake.group_lags() == []
    lake.topics.create("orders", 2)
    assert lake.group_lags() == []  # it was of the other one
