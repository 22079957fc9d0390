"""Deleted topics: kept for a while, brought back whole, and removed for good."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest
import redis

from lakelog import Lakelog
from lakelog.base.failpoints import armed
from lakelog.cold.by_path import purging
from lakelog.cold.by_path.purging import MARK, MARK_LASTS_MS
from lakelog.cold.change import Change
from lakelog.cold.registers import ReservedEnd
from lakelog.errors import (
    CleanupFailedError,
    ColdTierError,
    ColdTierRefusedError,
    LakelogError,
    TopicExistsError,
    TopicPurgedError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition
from tests.support.later_clock import LaterClock

KEPT = [b"v%d" % n for n in range(45)]
DAY_MS = 86_400_000


class Ahead:
    """A clock some time ahead of the real one."""

    def __init__(self) -> None:
        self.by_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.by_ms


@pytest.fixture
def clock() -> Ahead:
    return Ahead()


@pytest.fixture
def lake(redis_url: str, tmp_path: Path, clock: Ahead) -> Iterator[Lakelog]:
    """A tiered topic of which five records are not archived, and an untiered one."""
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline", clock=clock) as lake:
        lake.topics.create("orders", 3, {"max.message.bytes": 99_999})
        lake.topics.create("alone", 2, {"remote.storage.enable": "false"})
        send(lake, "orders", 40)
        lake.archive()
        send(lake, "orders", 5, first=40)
        send(lake, "alone", 45)
        yield lake


def send(lake: Lakelog, topic: str, count: int, first: int = 0) -> list[int]:
    with lake.producer() as producer:
        sent = [
            producer.send(topic, key=b"k", value=b"v%d" % n, partition=0)
            for n in range(first, first + count)
        ]
    return [one.result().offset for one in sent]


def values(lake: Lakelog, topic: str) -> list[bytes]:
    return list(lake.log(topic).read(0).to_arrow().column("value").to_pylist())


def files_under(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file())


# -- undelete ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["orders", "alone"])
def test_what_was_deleted_comes_back_whole(lake: Lakelog, name: str) -> None:
    before = lake.topics.get(name)
    offsets = lake.log(name).offsets()
    deleted = lake.topics.delete(name)
    assert deleted.deleted_ms is not None
    assert deleted.kept_until_ms == deleted.deleted_ms + DAY_MS
    assert [topic.topic_id for topic in lake.deleted()] == [before.topic_id]
    with pytest.raises(UnknownTopicOrPartitionError, match=f"undelete {name}"):
        lake.log(name)

    restored = lake.undelete(name)

    assert restored.kept_hot
    assert lake.deleted() == []
    found = lake.topics.get(name)
    assert (found.topic_id, found.config, found.partitions, found.generation) == (
        before.topic_id,
        before.config,
        before.partitions,
        before.generation,
    )
    assert lake.log(name).offsets() == offsets
    assert values(lake, name) == KEPT
    assert send(lake, name, 2, first=45) == [45, 46]
    lake.archive()
    assert lake.topics.alter(name, {"retention.ms": 10**12}).config["retention.ms"] == 10**12
    if name == "orders":
        assert lake.archived.topics.get(name).config["retention.ms"] == 10**12
    assert lake.undelete(name).topic.topic_id == before.topic_id  # doing it again does nothing
    assert values(lake, name) == [*KEPT, b"v45", b"v46"]
    assert lake.log(name).raise_log_start(0, 3) == 3  # its policies count
    assert values(lake, name) == [*KEPT[3:], b"v45", b"v46"]


def test_nothing_is_archived_into_the_table_of_a_deleted_topic(lake: Lakelog) -> None:
    archiver = lake.archiver("orders")
    topic = lake.topics.get("orders")
    table = lake.place.table(topic)
    lake.topics.delete("orders")
    with pytest.raises(UnknownTopicIdError):
        archiver.run_once()
    snapshot = table.snapshot()
    assert snapshot.is_deleted
    with pytest.raises(UnknownTopicIdError, match="undelete orders"):
        table.apply(reserved(), snapshot)
    assert table.snapshot().version == snapshot.version


@pytest.mark.parametrize("held", ["delete", "undelete"])
def test_a_deletion_that_redis_lost_is_told_with_both_ways_out(
    lake: Lakelog, redis_client: redis.Redis, held: str
) -> None:
    before = {key: redis_client.dump(key) for key in redis_client.scan_iter()}
    lake.topics.delete("orders")
    redis_client.flushall()
    for key, dumped in before.items():
        redis_client.restore(key, 0, dumped)
    with pytest.raises(LakelogError, match="has lost the deletion: say again"):
        lake.archive()
    if held == "delete":
        lake.topics.delete("orders")
        assert not lake.archive()
        with pytest.raises(UnknownTopicOrPartitionError, match="it was deleted"):
            values(lake, "orders")
    else:
        lake.undelete("orders")
        assert [report.topic for report in lake.archive()] == ["orders"]
        assert values(lake, "orders") == KEPT


def reserved() -> Change:
    return Change(registers={ReservedEnd(0): 10**9})


def test_after_the_delay_the_archived_part_comes_back_until_cleanup_took_it(
    lake: Lakelog, redis_client: redis.Redis, clock: Ahead
) -> None:
    for name in ("orders", "alone"):
        lake.topics.delete(name)
    for key in redis_client.scan_iter("*:deleted:*"):
        assert 0 < redis_client.pttl(key) <= DAY_MS
        redis_client.delete(key)  # as if it had expired
    with pytest.raises(TopicPurgedError, match="nothing is left of topic 'alone'"):
        lake.undelete("alone")
    restored = lake.undelete("orders")
    assert not restored.kept_hot
    assert values(lake, "orders") == KEPT[:40]
    (first,) = send(lake, "orders", 1, first=99)
    assert first >= 45  # no offset is given out twice
    assert values(lake, "orders") == [*KEPT[:40], b"v99"]


def test_a_name_that_is_taken_is_not_taken_away(lake: Lakelog) -> None:
    first = lake.topics.delete("orders")
    second = lake.topics.create("orders")
    send(lake, "orders", 1)
    with pytest.raises(TopicExistsError, match="Delete that one first"):
        lake.undelete("orders")
    lake.archive()
    lake.topics.delete("orders")
    assert [topic.topic_id for topic in lake.deleted()] == [first.topic_id, second.topic_id]
    with pytest.raises(UnknownTopicOrPartitionError, match=str(first.topic_id)):
        lake.undelete("orders", UUID(int=1))
    assert lake.undelete("orders", first.topic_id).topic.topic_id == first.topic_id
    assert values(lake, "orders") == KEPT
    assert lake.archived.topics.get("orders").topic_id == first.topic_id
    lake.topics.delete("orders")
    assert lake.undelete("orders", str(second.topic_id)).topic.topic_id == second.topic_id
    assert values(lake, "orders") == [b"v0"]


def test_a_lost_redis_does_not_hide_a_deleted_topic(
    lake: Lakelog, redis_client: redis.Redis
) -> None:
    lake.topics.delete("orders")
    redis_client.flushall()
    assert lake.restorable() == []
    assert [topic.name for topic in lake.deleted()] == ["orders"]
    restored = lake.undelete("orders")
    assert not restored.kept_hot
    assert values(lake, "orders") == KEPT[:40]


def test_without_a_delay_nothing_is_kept(lake: Lakelog, redis_client: redis.Redis) -> None:
    lake.topics.alter("alone", {"file.delete.delay.ms": 0})
    lake.topics.delete("alone")
    assert not list(redis_client.scan_iter("*stream:alone*"))
    with pytest.raises(TopicPurgedError, match="nothing is left"):
        lake.undelete("alone")
    lake.cleanup()
    assert lake.deleted() == []
    with pytest.raises(UnknownTopicOrPartitionError, match="no deleted topic 'alone'"):
        lake.undelete("alone")


# -- purge and cleanup ---------------------------------------------------------------------------


def test_a_purge_leaves_nothing(lake: Lakelog, redis_client: redis.Redis, tmp_path: Path) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="no deleted topic 'orders'"):
        lake.purge("orders")  # it is not deleted
    topic = lake.topics.delete("orders")
    before = files_under(tmp_path / "cold")
    purged = lake.purge("orders")
    assert purged.cold is not None
    assert purged.cold.files == len(before) + 1 > 3  # one more commit said so
    assert purged.cold.left == ()
    assert purged.cold.size_bytes
    place = tmp_path / "cold" / "orders" / str(topic.topic_id)
    assert [one.name for one in place.iterdir()] == [MARK]
    assert not list(redis_client.scan_iter("*orders*"))
    assert lake.deleted() == []
    with pytest.raises(UnknownTopicOrPartitionError, match="no deleted topic 'orders'"):
        lake.undelete("orders")
    with pytest.raises(UnknownTopicOrPartitionError):
        lake.purge("orders")
    assert lake.archived.topics.list() == []
    lake.cleanup()
    anew = lake.topics.create("orders")
    assert anew.topic_id != topic.topic_id
    assert send(lake, "orders", 1) == [0]
    lake.archive()
    assert values(lake, "orders") == [b"v0"]


def test_cleanup_removes_what_is_kept_no_longer(
    lake: Lakelog, redis_client: redis.Redis, clock: Ahead, tmp_path: Path
) -> None:
    for name in ("orders", "alone"):
        lake.topics.delete(name)
    reports = lake.cleanup()
    assert [report.topic for report in reports] == []
    clock.by_ms = DAY_MS - 60_000
    assert lake.cleanup() == []
    assert len(lake.deleted()) == 2
    assert lake.cleanup_plan() == []
    clock.by_ms = DAY_MS + 60_000
    assert lake.cleanup(steps=["retain"]) == []
    plans = {plan.topic: plan for plan in lake.cleanup_plan()}
    assert sorted(plans) == ["alone", "orders"]
    assert "purge: delete 1 file" in str(plans["orders"])
    reports = lake.cleanup()
    assert sorted(report.topic for report in reports) == ["alone", "orders"]
    assert all(report and report.purged for report in reports)
    assert "gone for good" in "".join(map(str, reports))
    assert [one.rpartition("/")[2] for one in files_under(tmp_path / "cold")] == [MARK]
    assert not list(redis_client.scan_iter("*stream*"))
    assert lake.deleted() == []
    with pytest.raises(UnknownTopicOrPartitionError, match=r"cleanup .* has removed it"):
        lake.undelete("orders")


def test_cleanup_by_cold_alone_removes_it_too(lake: Lakelog, clock: Ahead, tmp_path: Path) -> None:
    topic = lake.topics.delete("orders")
    with Lakelog.connect(None, tmp_path / "cold", engine="inline", clock=clock) as cold:
        assert [one.topic_id for one in cold.deleted()] == [topic.topic_id]
        with pytest.raises(UnknownTopicOrPartitionError, match="undelete orders"):
            cold.log("orders")
        assert cold.cleanup() == []
        clock.by_ms = 2 * DAY_MS
        (report,) = cold.cleanup()
        assert report.purged is not None
        assert cold.deleted() == []
        assert [one.rpartition("/")[2] for one in files_under(tmp_path / "cold")] == [MARK]
    # Redis did not know of it yet, and then does.
    lake.cleanup()
    assert lake.deleted() == []


def test_purge_by_cold_alone(lake: Lakelog, tmp_path: Path) -> None:
    topic = lake.topics.delete("orders")
    with Lakelog.connect(None, tmp_path / "cold", engine="inline") as cold:
        with pytest.raises(UnknownTopicOrPartitionError):
            cold.purge("alone")
        assert cold.purge("orders", str(topic.topic_id)).cold is not None
    with pytest.raises((TopicPurgedError, LakelogError)):
        lake.undelete("orders")


def test_who_comes_first_decides(lake: Lakelog, tmp_path: Path) -> None:
    """A purge by cold alone and an undelete look at the same table at the same time."""
    deleted = lake.topics.delete("orders")
    cold = lake.archived

    # Brought back while the purge was about to begin: nothing is removed.
    table = lake.place.table(deleted)
    assert table.mirrored() is not None
    lake.undelete("orders")
    with pytest.raises(TopicPurgedError, match="brought it back"):
        table.purge()
    assert values(lake, "orders") == KEPT

    # Being removed when somebody wants it back: it does not come back.
    lake.topics.delete("orders")

    def stop() -> None:
        raise KeyboardInterrupt

    with armed("purge.after_mark", stop), suppress(KeyboardInterrupt):
        cold.purge("orders")
    with pytest.raises((TopicPurgedError, ColdTierError)):
        lake.undelete("orders")
    assert "orders" not in {topic.name for topic in lake.topics.list()}
    lake.purge("orders")
    assert [one.rpartition("/")[2] for one in files_under(tmp_path / "cold")] == [MARK]


PURGE_STEPS = [
    "purge.after_begin",
    "purge.after_mark",
    "purge.after_data",
    "purge.after_log",
    "purge.before_end",
]


@pytest.mark.parametrize("by", ["purge", "cleanup", "cold"])
@pytest.mark.parametrize("step", PURGE_STEPS)
def test_a_purge_that_was_cut_short_is_finished(
    lake: Lakelog, clock: Ahead, tmp_path: Path, redis_client: redis.Redis, step: str, by: str
) -> None:
    lake.topics.delete("orders")

    def stop() -> None:
        raise KeyboardInterrupt

    with armed(step, stop), pytest.raises(KeyboardInterrupt):
        lake.purge("orders")
    with pytest.raises(LakelogError):
        lake.undelete("orders")
    if by == "purge":
        lake.purge("orders")
    elif by == "cleanup":
        lake.cleanup()
    else:
        clock.by_ms = DAY_MS + 1
        lake.archived.cleanup()
        assert not any(name.endswith(".parquet") for name in files_under(tmp_path / "cold"))
        lake.cleanup()
    assert [one.rpartition("/")[2] for one in files_under(tmp_path / "cold")] == [MARK]
    assert not list(redis_client.scan_iter("*orders*"))
    assert lake.deleted() == []


@pytest.mark.parametrize("name", ["orders", "alone"])
def test_a_deletion_that_was_cut_short_is_finished(
    lake: Lakelog, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(self: object, topic: Topic) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("lakelog.hot.registry.TopicRegistry._delete_partitions", stop)
        with pytest.raises(KeyboardInterrupt):
            lake.topics.delete(name)
    assert name not in {topic.name for topic in lake.topics.list()}
    assert lake.restorable() == []
    # A new topic of the name does not take over what is still in its place.
    anew = lake.topics.create(name, 3, {"remote.storage.enable": str(name == "orders").lower()})
    assert send(lake, name, 1) == [0]
    lake.topics.delete(name)
    (first, second) = lake.deleted()
    assert second.topic_id == anew.topic_id
    lake.undelete(name, first.topic_id)
    assert values(lake, name) == KEPT


def test_an_undelete_that_was_cut_short_is_finished(lake: Lakelog) -> None:
    lake.topics.delete("orders")

    def stop() -> None:
        raise KeyboardInterrupt

    with armed("undelete.after_table", stop), pytest.raises(KeyboardInterrupt):
        lake.undelete("orders")
    assert lake.restorable() == []  # the table says it is there, but Redis knows better
    assert [topic.name for topic in lake.deleted()] == ["orders"]
    lake.cleanup()
    assert [topic.name for topic in lake.archived.deleted()] == ["orders"]  # told again
    lake.undelete("orders")
    assert values(lake, "orders") == KEPT


def test_readers_and_archivers_of_a_purged_topic_end_in_a_sentence(
    lake: Lakelog, tmp_path: Path
) -> None:
    topic = lake.topics.get("orders")
    log, archiver = lake.log("orders"), lake.archiver("orders")
    assert values(lake, "orders") == KEPT
    with Lakelog.connect(None, tmp_path / "cold", engine="inline") as cold:
        archived = cold.log("orders")
        records = archived.read(0)
        assert archived.offsets()
        consumer = cold.consumer()
        consumer.assign([TopicPartition("orders", 0)])
        lake.topics.delete("orders")
        assert records.to_arrow().num_rows == 40  # kept: who has begun may end
        records = archived.read(0)
        lake.purge("orders")
        for call in (
            lambda: records.to_arrow(),
            lambda: archived.offsets(),
            lambda: archived.read(0).to_arrow(),
            lambda: list(consumer.poll(100)),
            lambda: log.read(0).to_arrow(),
            archiver.run_once,
            lambda: lake.skips(topic, 0).list(),
        ):
            with pytest.raises(LakelogError) as raised:
                call()
            assert "deleted" in str(raised.value), raised.value
            assert "behind the table's back" not in str(raised.value)


def test_an_archiver_that_was_held_up_since_before_the_deletion(
    lake: Lakelog, tmp_path: Path
) -> None:
    topic = lake.topics.get("orders")
    table = lake.place.table(topic)
    planned_on = table.snapshot()
    place = tmp_path / "cold" / "orders" / str(topic.topic_id)

    def meanwhile() -> None:
        lake.topics.delete("orders")
        lake.purge("orders")

    with armed("cold.before_commit", meanwhile), pytest.raises(LakelogError, match="was deleted"):
        table.apply(reserved(), planned_on)
    assert files_under(place) == [MARK]


def test_what_comes_late_into_a_purged_folder_is_nobodys_table(
    lake: Lakelog, tmp_path: Path
) -> None:
    """A file and a commit by somebody who looked at the table just before: a log with no begin."""
    topic = lake.topics.delete("orders")
    place = tmp_path / "cold" / "orders" / str(topic.topic_id)
    newest = sorted((place / "_delta_log").glob("*.json"))[-1]
    commit = newest.read_bytes()
    lake.purge("orders")
    newest.parent.mkdir()
    (newest.parent / "00000000000000000009.json").write_bytes(commit)
    (place / "partition=0").mkdir()
    (place / "partition=0" / "late.parquet").write_bytes(b"PAR1")
    assert lake.archived.topics.list() == []
    assert lake.restorable() == []
    with pytest.raises(UnknownTopicOrPartitionError):
        lake.archived.log("orders")
    (report,) = lake.cleanup()
    assert report.purged is not None
    assert files_under(place) == [MARK]
    lake.topics.create("orders")


def test_the_mark_goes_after_a_day(lake: Lakelog, tmp_path: Path) -> None:
    topic = lake.topics.delete("orders")
    lake.purge("orders")
    place = tmp_path / "cold" / "orders" / str(topic.topic_id)
    storage = lake.place.cold.storage  # type: ignore[union-attr]
    lake.cleanup()
    assert files_under(place) == [MARK]
    purging.remove(storage, str(place), LaterClock(MARK_LASTS_MS + 60_000).now_ms)
    assert not place.exists()
    assert lake.cleanup() == []


def test_a_store_that_refuses_does_not_forget_the_deletion(
    lake: Lakelog, clock: Ahead, tmp_path: Path
) -> None:
    lake.topics.delete("orders")
    clock.by_ms = DAY_MS + 1

    def refuse() -> None:
        raise ColdTierRefusedError("no", path="x")

    with armed("purge.after_mark", refuse), pytest.raises(CleanupFailedError) as raised:
        lake.cleanup()
    assert raised.value.reports[-1].failures[0].step == "purge"
    assert [topic.name for topic in lake.deleted()] == ["orders"]
    (report,) = lake.cleanup()
    assert report.purged is not None
