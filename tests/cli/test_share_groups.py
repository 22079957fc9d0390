"""``lakelog share-groups``: what kafka-share-groups does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lakelog.groups.recorded_offset import GroupType
from lakelog.lakelog import Lakelog
from lakelog.read.share_consumer import ShareConsumer
from lakelog.values.topic_partition import TopicPartition

Run = Callable[..., str]

NOON_MS = 1_388_491_200_000  # 2013-12-31T12:00:00Z


@pytest.fixture
def run(redis_url: str, command: Callable[..., tuple[str, str]]) -> Run:
    def run(*arguments: str, code: int = 0) -> str:
        out, err = command("--redis", redis_url, "share-groups", *arguments, code=code)
        return out + err if code else out

    return run


@pytest.fixture
def lake(redis_url: str) -> Iterator[Lakelog]:
    """Topic jobs of two partitions, ten records in each, one a second from noon on."""
    with Lakelog.connect(redis_url) as lake:
        lake.topics.create("jobs", 2, {"remote.storage.enable": False, "retention.ms": -1})
        with lake.producer() as producer:
            for n in range(20):
                time_ms = NOON_MS + 1000 * (n // 2)
                producer.send("jobs", str(n), partition=n % 2, timestamp_ms=time_ms)
        yield lake


def worker(lake: Lakelog, group_id: str = "workers") -> ShareConsumer:
    return lake.share_consumer(
        "jobs", group_id=group_id, share_auto_offset_reset="earliest", max_poll_records=500
    )


def work(lake: Lakelog, group_id: str = "workers") -> int:
    """Takes all there is, and is done with it."""
    with worker(lake, group_id) as consumer:
        count = 0
        while taken := consumer.poll(100):
            count += sum(map(len, taken.values()))
            consumer.commit_sync()
        return count


def as_json(run: Run, *arguments: str) -> Any:
    return json.loads(run(*arguments, "--output", "json"))


def starts(lake: Lakelog, group_id: str = "workers") -> dict[int, int]:
    found = lake.share_groups.describe(group_id).partitions
    return {one.topic_partition.partition: one.start_offset for one in found}


def test_groups_are_listed_and_described(run: Run, lake: Lakelog) -> None:
    assert "no share groups" in run("list")
    assert work(lake) == 20
    holder = worker(lake, "holders")
    taken = sum(map(len, holder.poll(60_000).values()))
    assert as_json(run, "list", "--state") == [
        {"group": "holders", "state": "Stable"},
        {"group": "workers", "state": "Empty"},
    ]
    assert run("describe", "--group", "workers").splitlines()[0].split() == [
        *("GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LOG-END-OFFSET", "LAG", "IN-FLIGHT")
    ]
    found = as_json(run, "describe", "--group", "workers")
    assert [(row["start_offset"], row["lag"]) for row in found] == [(10, 0), (10, 0)]
    found = as_json(run, "describe", "--group", "holders")
    assert sum(row["in_flight"] for row in found) == taken
    members = as_json(run, "describe", "--all-groups", "--members")
    assert sum(row["held_offsets"] for row in members) == taken
    (state,) = as_json(run, "describe", "--group", "holders", "--state")
    assert state == {"group": "holders", "state": "Stable", "#member_count": 1}
    holder.close()
    assert "there is no share group" in run("describe", "--group", "none", code=1)


def test_a_lag_counts_records_and_not_the_offsets_that_a_lost_tail_skipped(
    run: Run, lake: Lakelog
) -> None:
    lake.hot.recover(TopicPartition("jobs", 0), 1_000_000)
    run("reset-offsets", "--group", "g", "--topic", "jobs", "--to-offset", "4", "--execute")
    found = as_json(run, "describe", "--group", "g")
    assert [row["lag"] for row in found] == [6, 6]
    assert found[0]["log_end_offset"] > 1_000_000


def test_all_kinds_of_groups_are_listed_together(lake: Lakelog) -> None:
    work(lake)
    with lake.consumer("jobs", group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.poll(5000)
    assert [one.group_id for one in lake.groups.list()] == ["readers"]
    found = lake.groups.list(None)
    assert [(one.group_id, one.group_type) for one in found] == [
        ("readers", GroupType.CLASSIC),
        ("workers", GroupType.SHARE),
    ]
    assert [one.group_id for one in lake.groups.list(GroupType.SHARE)] == ["workers"]


@pytest.mark.parametrize(
    ("scenario", "there"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 10),
        (["--to-datetime", "2013-12-31T12:00:04.000Z"], 4),
        (["--to-offset", "7"], 7),
        (["--to-offset", "99"], 10),
        (["--by-duration", "PT1S"], 10),
    ],
)
def test_a_group_is_moved(run: Run, lake: Lakelog, scenario: list[str], there: int) -> None:
    work(lake)
    arguments = ["reset-offsets", "--group", "workers", "--topic", "jobs:1", *scenario]
    (row,) = as_json(run, *arguments)
    assert (row["partition"], row["new_offset"]) == (1, there)
    assert starts(lake) == {0: 10, 1: 10}
    run(*arguments, "--execute")
    assert starts(lake) == {0: 10, 1: there}
    assert work(lake) == 10 - there


def test_a_group_that_never_was_is_given_a_beginning(run: Run, lake: Lakelog) -> None:
    run("reset-offsets", "--group", "new", "--topic", "jobs", "--to-offset", "8", "--execute")
    assert starts(lake, "new") == {0: 8, 1: 8}
    assert work(lake, "new") == 4


def test_nothing_moves_while_members_hold_records(run: Run, lake: Lakelog) -> None:
    holder = worker(lake)
    holder.poll(60_000)
    before = starts(lake)
    for arguments in (
        ["reset-offsets", "--group", "workers", "--all-topics", "--to-latest", "--execute"],
        ["delete-offsets", "--group", "workers", "--topic", "jobs"],
        ["delete", "--group", "workers"],
    ):
        assert "hold records" in run(*arguments, code=1)
    assert starts(lake) == before
    holder.close()
    run("reset-offsets", "--group", "workers", "--all-topics", "--to-latest", "--execute")
    assert work(lake) == 0 or before.keys() != {0, 1}  # a partition it never was in is as before


def test_where_a_group_is_can_be_forgotten(run: Run, lake: Lakelog) -> None:
    work(lake)
    found = as_json(run, "delete-offsets", "--group", "workers", "--topic", "jobs:0")
    assert found == [{"topic": "jobs", "partition": 0, "status": "deleted"}]
    assert starts(lake) == {1: 10}
    assert work(lake) == 10
    assert "deleted: workers" in run("delete", "--group", "workers")
    assert "there is no share group" in run("delete", "--group", "workers", code=1)
    assert "there is no share group" in run(
        "delete-offsets", "--group", "workers", "--topic", "jobs", code=1
    )


def test_a_topic_that_is_not_there_is_an_error(run: Run, lake: Lakelog) -> None:
    work(lake)
    arguments = ("reset-offsets", "--group", "workers", "--topic", "none", "--to-earliest")
    assert "no topic 'none'" in run(*arguments, code=1)
    assert "one of them" in run("reset-offsets", "--group", "workers", "--to-latest", code=1)
