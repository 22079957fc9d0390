"""Share groups from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from lakelog import Lakelog, TopicPartition
from lakelog.base.clock import ManualClock
from lakelog.errors import ForeignEntryError, GroupIdNotFoundError, NonEmptyGroupError
from lakelog.groups.group_values import GroupState
from lakelog.hot.keys import Keys

UNTIERED = {"remote.storage.enable": False}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def lake(redis_url: str, tmp_path: Path, clock: ManualClock) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, engine="inline", clock=clock) as lake:
        lake.topics.create("jobs", 2, UNTIERED)
        lake.topics.create("tasks", 1, UNTIERED)
        with lake.producer() as producer:
            for n in range(6):
                producer.send("jobs", f"{n}", partition=n % 2)
            producer.send("tasks", "one")
        yield lake


def take(lake: Lakelog, group_id: str, *topics: str) -> None:
    """All there is, and holds it."""
    settings = {"group_id": group_id, "share_auto_offset_reset": "earliest"}
    lake.share_consumer(*topics, **settings).poll()


def test_groups_are_listed_with_where_they_stand(lake: Lakelog) -> None:
    take(lake, "workers", "jobs", "tasks")
    take(lake, "{odd} id:0", "tasks")
    found = {group.group_id: group for group in lake.share_groups.list()}
    assert [*found] == ["workers", "{odd} id:0"]
    workers = found["workers"]
    assert workers.state is GroupState.STABLE
    assert len(workers.member_ids) == 1
    assert [(str(one.topic_partition), one.end_offset) for one in workers.partitions] == [
        ("jobs-0", 3),
        ("jobs-1", 3),
        ("tasks-0", 1),
    ]
    assert lake.groups.list() == []


def test_a_group_of_which_nobody_holds_records_can_go(lake: Lakelog, clock: ManualClock) -> None:
    take(lake, "workers", "jobs")
    with pytest.raises(NonEmptyGroupError) as caught:
        lake.share_groups.delete("workers")
    assert len(caught.value.members) == 1
    clock.advance(30_000)
    assert lake.share_groups.describe("workers").state is GroupState.EMPTY
    lake.share_groups.delete("workers")
    assert lake.share_groups.describe("workers").state is GroupState.DEAD
    assert lake.share_groups.list() == []
    with pytest.raises(GroupIdNotFoundError):
        lake.share_groups.delete("workers")


def test_a_group_of_a_deleted_topic_is_none(lake: Lakelog) -> None:
    take(lake, "workers", "jobs")
    lake.topics.delete("jobs")
    assert lake.share_groups.list() == []


def test_a_list_that_others_wrote_to_is_refused(lake: Lakelog, redis_client: redis.Redis) -> None:
    take(lake, "workers", "jobs")
    for junk in (b"junk", b"[]", b'["a"]', b'["", "jobs", 0]', b"\xff", b'["a", "jobs", "x"]'):
        redis_client.hset(Keys().share_groups, junk, b"1")
        with pytest.raises(ForeignEntryError):
            lake.share_groups.list()
        redis_client.hdel(Keys().share_groups, junk)
    (group,) = lake.share_groups.list()
    assert group.partitions[0].topic_partition == TopicPartition("jobs", 0)
