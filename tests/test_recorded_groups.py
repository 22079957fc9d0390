"""What groups have committed is kept under the cold root too, and comes back when Redis is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis
from deltalake import DeltaTable, write_deltalake

from lakelog import Lakelog, TopicPartition
from lakelog.base.failpoints import armed
from lakelog.cli.main import main
from lakelog.errors import ForeignTableError, InvalidArgumentError, RestoreFailedError
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.group_values import GroupState
from lakelog.groups.recorded_offset import GroupType
from lakelog.operate.restore import restore
from lakelog.read.consumer import Consumer
from lakelog.testing.eventually import eventually
from lakelog.values.record import OffsetAndMetadata
from tests.support.servers import RedisClusterServers

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def open_log(url: str, tmp_path: Path) -> Lakelog:
    return Lakelog.connect(url, tmp_path / "cold", engine="inline")


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    """A topic of two partitions with forty archived records, of which a group has read some."""
    with open_log(redis_url, tmp_path) as lake:
        lake.topics.create("orders", 2)
        with lake.producer() as producer:
            for n in range(40):
                producer.send("orders", f"{n}", partition=n % 2)
        yield lake


def commit(lake: Lakelog, group_id: str, offset: int, metadata: str = "") -> None:
    topic_id = lake.topics.get("orders").topic_id
    GroupCoordinator(lake.hot.connections).commit(
        group_id,
        {FIRST: OffsetAndMetadata(offset, metadata, 3), SECOND: OffsetAndMetadata(1)},
        topic_ids={"orders": topic_id},
    )


def committed(lake: Lakelog, group_id: str) -> dict[str, int]:
    found = GroupCoordinator(lake.hot.connections).committed(group_id)
    return {str(tp): one.committed.offset for tp, one in found.items()}


def rows(tmp_path: Path) -> list[tuple[str, str, int]]:
    """As somebody reads them who has no lakelog."""
    table = DeltaTable(str(tmp_path / "cold" / "_lakelog_groups")).to_pyarrow_table()
    return sorted(
        (row["group_id"], f"{row['topic']}-{row['partition']}", row["committed_offset"])
        for row in table.to_pylist()
        if row["group_id"] is not None
    )


def version(tmp_path: Path) -> int:
    return DeltaTable(str(tmp_path / "cold" / "_lakelog_groups")).version()


def test_archiving_records_groups_and_a_restore_brings_them_back(
    lake: Lakelog, redis_client: redis.Redis, tmp_path: Path
) -> None:
    commit(lake, "nightly", 7, "half way")
    before = GroupCoordinator(lake.hot.connections).committed("nightly")
    lake.archive()
    assert rows(tmp_path) == [("nightly", "orders-0", 7), ("nightly", "orders-1", 1)]
    redis_client.flushall()
    restored = lake.restore()
    (group,) = restored.groups
    assert (group.group_id, len(group.offsets)) == ("nightly", 2)
    assert GroupCoordinator(lake.hot.connections).committed("nightly") == before
    assert lake.groups.describe("nightly").state is GroupState.EMPTY
    assert lake.restore().groups == ()


def test_a_consumer_goes_on_where_its_group_was(lake: Lakelog, redis_client: redis.Redis) -> None:
    settings = {"group_id": "nightly", "auto_offset_reset": "earliest"}
    found: list[bytes | None] = []

    def has_read(consumer: Consumer, count: int) -> bool:
        for records in consumer.poll(timeout_ms=1000).values():
            found.extend(record.value for record in records)
        return len(found) >= count

    with lake.consumer("orders", **settings) as consumer:
        eventually(lambda: has_read(consumer, 40))
    lake.archive()
    redis_client.flushall()
    lake.restore()
    with lake.producer() as producer:
        for partition in (0, 1):
            producer.send("orders", f"after {partition}", partition=partition)
    with lake.consumer("orders", **settings) as consumer:
        eventually(lambda: has_read(consumer, 42))
    assert sorted(found[40:]) == [b"after 0", b"after 1"]  # type: ignore[type-var]


def dry_run(redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What ``restore --dry-run`` says of groups."""
    asked = ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--output", "json"]
    capsys.readouterr()
    assert main([*asked, "restore", "--dry-run"]) == 0
    found = json.loads(capsys.readouterr().out)
    return [
        (row["group"], row["type"], f"{row['topic']}-{row['partition']}", row["goes_on_at"])
        for row in found.get("groups", [])
    ]


def test_a_dry_run_lists_the_groups_that_a_restore_brings_back(
    lake: Lakelog,
    redis_client: redis.Redis,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    commit(lake, "nightly", 7)
    commit(lake, "web", 9)
    with lake.share_consumer(
        "orders", group_id="jobs", share_auto_offset_reset="earliest", max_poll_records=100
    ) as worker:
        eventually(lambda: len(worker.poll(timeout_ms=1000)) > 0)
    lake.archive()
    assert dry_run(redis_url, tmp_path, capsys) == []
    redis_client.flushall()
    listed = dry_run(redis_url, tmp_path, capsys)
    assert {row[:3] for row in listed} >= {
        ("nightly", "classic", "orders-0"),
        ("nightly", "classic", "orders-1"),
        ("web", "classic", "orders-0"),
    }
    assert {row[1] for row in listed} == {"classic", "share"}
    assert lake.groups.list() == []  # nothing was done
    assert [
        (group.group_id, group.group_type.value, str(one.topic_partition), one.committed.offset)
        for group in lake.restore().groups
        for one in group.offsets
    ] == listed
    assert dry_run(redis_url, tmp_path, capsys) == []


def test_nothing_is_written_while_nothing_changes(lake: Lakelog, tmp_path: Path) -> None:
    commit(lake, "nightly", 7)
    assert lake.record_groups().is_new
    before = version(tmp_path)
    commit(lake, "nightly", 7)  # the same again, as a consumer does that reads nothing
    assert not lake.record_groups().is_new
    assert version(tmp_path) == before
    commit(lake, "nightly", 8)
    found = lake.record_groups()
    assert (found.groups, found.offsets, found.is_new) == (1, 2, True)
    assert version(tmp_path) == before + 1
    assert rows(tmp_path)[0] == ("nightly", "orders-0", 8)


def test_a_later_commit_is_not_undone(lake: Lakelog, redis_client: redis.Redis) -> None:
    commit(lake, "nightly", 7)
    commit(lake, "weekly", 3)
    lake.archive()
    topic_id = lake.topics.get("orders").topic_id
    redis_client.flushall()
    GroupCoordinator(lake.hot.connections).commit(
        "nightly", {FIRST: OffsetAndMetadata(5)}, topic_ids={"orders": topic_id}
    )
    back = {group.group_id: group.offsets for group in lake.restore().groups}
    assert [str(one.topic_partition) for one in back["nightly"]] == ["orders-1"]
    assert committed(lake, "nightly") == {"orders-0": 5, "orders-1": 1}
    assert committed(lake, "weekly") == {"orders-0": 3, "orders-1": 1}


def test_what_was_deleted_since_stays_deleted(
    lake: Lakelog, redis_client: redis.Redis, tmp_path: Path
) -> None:
    commit(lake, "nightly", 7)
    commit(lake, "weekly", 3)
    lake.archive()
    lake.groups.delete("weekly")
    assert lake.restore().groups == ()  # Redis knows that it was deleted
    lake.record_groups()
    redis_client.flushall()
    assert [group.group_id for group in lake.restore().groups] == ["nightly"]
    lake.groups.delete("nightly")
    lake.record_groups()
    assert rows(tmp_path) == []
    redis_client.flushall()
    assert lake.restore().groups == ()


def test_a_loss_is_never_recorded(lake: Lakelog, redis_client: redis.Redis, tmp_path: Path) -> None:
    commit(lake, "nightly", 7)
    lake.archive()
    before = rows(tmp_path)
    redis_client.flushall()
    lake.archive()
    lake.record_groups()
    assert rows(tmp_path) == before
    # Somebody commits before the groups are back.
    bring_topic_back(lake)
    commit(lake, "weekly", 3)
    lake.record_groups()
    assert committed(lake, "nightly") == {"orders-0": 7, "orders-1": 1}
    assert rows(tmp_path) == [*before, ("weekly", "orders-0", 3), ("weekly", "orders-1", 1)]


def bring_topic_back(lake: Lakelog) -> None:
    """As a restore that was cut short before the groups."""
    (lost,) = lake.restorable()
    table = lake.archived.log("orders").table
    assert table is not None
    restore(lost, lake.hot, lake.topics, table)


class CutShort(Exception):
    pass


def cut_short() -> None:
    raise CutShort


@pytest.mark.parametrize(
    "step", ["groups.after_take", "groups.before_commit", "groups.after_commit"]
)
def test_a_recording_that_is_cut_short_is_done_by_the_next(
    lake: Lakelog, redis_client: redis.Redis, tmp_path: Path, step: str
) -> None:
    commit(lake, "nightly", 7)
    lake.archive()
    commit(lake, "nightly", 9)
    with armed(step, cut_short), pytest.raises(CutShort):
        lake.record_groups()
    assert rows(tmp_path)[0][2] in (7, 9)
    lake.record_groups()
    assert rows(tmp_path)[0] == ("nightly", "orders-0", 9)
    assert not lake.record_groups().is_new
    redis_client.flushall()
    lake.restore()
    assert committed(lake, "nightly") == {"orders-0": 9, "orders-1": 1}


def test_redis_that_is_lost_while_it_is_read_is_not_recorded(
    lake: Lakelog, redis_client: redis.Redis, tmp_path: Path
) -> None:
    commit(lake, "nightly", 7)
    lake.archive()
    commit(lake, "nightly", 9)
    before = rows(tmp_path)
    with armed("groups.after_take", redis_client.flushall):
        assert not lake.record_groups().is_new
    assert rows(tmp_path) == before
    (group,) = lake.restore().groups
    assert group.offsets[0].committed.offset == 7


def test_a_restore_that_is_cut_short_is_done_by_the_next(
    lake: Lakelog, redis_client: redis.Redis
) -> None:
    commit(lake, "nightly", 7)
    commit(lake, "weekly", 8)
    lake.archive()
    redis_client.flushall()
    with armed("groups.before_mark", cut_short), pytest.raises(CutShort):
        lake.restore()
    lake.groups.delete("weekly")  # not known to be whole: it comes back
    assert [group.group_id for group in lake.restore().groups] == ["weekly"]
    assert committed(lake, "nightly") == {"orders-0": 7, "orders-1": 1}
    lake.groups.delete("weekly")  # from now on Redis knows
    assert lake.restore().groups == ()


def test_one_that_was_held_up_does_not_undo_what_another_recorded(
    lake: Lakelog, redis_url: str, tmp_path: Path
) -> None:
    commit(lake, "nightly", 7)
    lake.record_groups()
    commit(lake, "nightly", 8)

    def others_go_on() -> None:
        with open_log(redis_url, tmp_path) as other, armed("groups.before_commit", lambda: None):
            commit(other, "nightly", 9)
            assert other.record_groups().is_new

    with armed("groups.before_commit", others_go_on):
        assert not lake.record_groups().is_new
    assert rows(tmp_path)[0] == ("nightly", "orders-0", 9)
    assert not lake.record_groups().is_new


def test_a_redis_that_goes_on_from_an_older_copy_gets_what_was_committed_since(
    lake: Lakelog, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    commit(lake, "nightly", 7)
    lake.archive()
    copy = {key: redis_client.dump(key) for key in redis_client.scan_iter()}
    commit(lake, "nightly", 9)
    commit(lake, "weekly", 3)
    lake.record_groups()
    redis_client.flushall()
    for key, dumped in copy.items():
        redis_client.restore(key, 0, dumped)
    assert committed(lake, "nightly")["orders-0"] == 7
    with open_log(redis_url, tmp_path) as after_restart:
        after_restart.record_groups()
    assert committed(lake, "nightly")["orders-0"] == 9
    assert committed(lake, "weekly") == {"orders-0": 3, "orders-1": 1}


def test_share_groups_begin_where_they_were(lake: Lakelog, redis_client: redis.Redis) -> None:
    settings = {"share_auto_offset_reset": "earliest", "max_poll_records": 10}
    with lake.share_consumer("orders", group_id="workers", **settings) as consumer:
        first = sum(map(len, consumer.poll(60_000).values()))
        consumer.commit_sync()
    lake.archive()
    starts = {
        str(one.topic_partition): one.start_offset
        for one in lake.share_groups.describe("workers").partitions
    }
    assert sum(starts.values()) == first > 0
    redis_client.flushall()
    (group,) = lake.restore().groups
    assert group.group_type is GroupType.SHARE
    assert {
        str(one.topic_partition): one.start_offset
        for one in lake.share_groups.describe("workers").partitions
    } == starts
    with lake.share_consumer("orders", group_id="workers", **settings) as consumer:
        offsets = {"orders-0": set(), "orders-1": set()}
        while left := consumer.poll(1000):
            for partition, records in left.items():
                offsets[str(partition)] |= {record.offset for record in records}
    assert {name: len(found) for name, found in offsets.items()} == {
        name: 20 - starts.get(name, 0) for name in offsets
    }
    assert min(offsets["orders-0"], default=20) == starts.get("orders-0", 0)
    assert lake.restore().groups == ()


def test_a_table_that_cannot_be_written_fails_no_archiving(
    lake: Lakelog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit(lake, "nightly", 7)
    write_deltalake(str(tmp_path / "cold" / "_lakelog_groups"), pa.table({"a": [1]}))
    assert lake.archive("orders")[0].records == 40
    assert "groups were not looked after" in caplog.text
    with pytest.raises(ForeignTableError):
        lake.record_groups()
    with pytest.raises(RestoreFailedError, match="_lakelog_groups"):
        lake.restore()


def test_without_a_cold_root_there_is_nowhere_to_record(redis_url: str) -> None:
    with Lakelog.connect(redis_url) as lake, pytest.raises(InvalidArgumentError, match="cold"):
        lake.record_groups()


def test_keyspaces_under_one_root_keep_their_groups_apart(
    lake: Lakelog, redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    commit(lake, "nightly", 7)
    lake.record_groups()
    with Lakelog.connect(redis_url, tmp_path / "cold", keyspace="other", engine="inline") as other:
        topic = other.topics.create("orders", 2)
        GroupCoordinator(other.hot.connections, "other").commit(
            "nightly", {FIRST: OffsetAndMetadata(2)}, topic_ids={"orders": topic.topic_id}
        )
        other.record_groups()
    assert rows(tmp_path) == [
        ("nightly", "orders-0", 2),
        ("nightly", "orders-0", 7),
        ("nightly", "orders-1", 1),
    ]
    lake.archive()
    redis_client.flushall()
    lake.restore()
    assert committed(lake, "nightly") == {"orders-0": 7, "orders-1": 1}


def test_the_command_line_tells_what_was_recorded_and_what_came_back(
    lake: Lakelog,
    redis_url: str,
    redis_client: redis.Redis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*arguments: str) -> str:
        place = ("--redis", redis_url, "--cold", str(tmp_path / "cold"))
        assert main([*place, "--engine", "inline", *arguments]) == 0
        return capsys.readouterr().out

    commit(lake, "nightly", 7)
    lake.archive()
    commit(lake, "nightly", 8)
    assert run("groups", "record") == "recorded: 1 group, 2 offsets\n"
    assert run("groups", "record").startswith("nothing has changed")
    redis_client.flushall()
    found = json.loads(run("restore", "--output", "json"))
    assert found["groups"][0] == {
        "group": "nightly",
        "type": "classic",
        "topic": "orders",
        "partition": 0,
        "goes_on_at": 8,
    }
    assert "groups" not in json.loads(run("restore", "--output", "json"))


def test_on_a_cluster_too(redis_cluster: RedisClusterServers, tmp_path: Path) -> None:
    with open_log(redis_cluster.url, tmp_path) as lake:
        lake.topics.create("orders", 2)
        with lake.producer() as producer:
            producer.send("orders", "one", partition=0)
        for n in range(20):
            commit(lake, f"group-{n}", n)
        lake.archive()
        assert len(rows(tmp_path)) == 40
        for server in lake.hot.connections.all():
            server.call(("FLUSHALL",))
        assert len(lake.restore().groups) == 20
        assert committed(lake, "group-19") == {"orders-0": 19, "orders-1": 1}
