"""A topic gets a cold tier, loses it, and gets it again (``remote.storage.enable``)."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.readers import Readers

from lakelog import Lakelog
from lakelog.base.failpoints import armed
from lakelog.errors import (
    InvalidConfigError,
    OffsetOutOfRangeError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from lakelog.read.consumer import Consumer
from lakelog.values.topic_partition import TopicPartition

ON: dict[str, Any] = {"remote.storage.enable": True}
OFF: dict[str, Any] = {"remote.storage.enable": False, "remote.log.delete.on.disable": True}
SMALL = {
    "internal.segment.bytes": 300,
    "lakelog.entry.format": "fields",
    "local.retention.ms": 0,
    "retention.ms": -1,
}


def send(lake: Lakelog, count: int, topic: str = "orders") -> None:
    with lake.producer() as producer:
        for _ in range(count):
            producer.send(topic, key=b"k", value=b"v", partition=0)


def once(action: Callable[[], object]) -> Callable[[], None]:
    """The action, the first time: what it does may come by the same failpoint."""
    left = [action]

    def act() -> None:
        if left:
            left.pop()()

    return act


def create(lake: Lakelog, **settings: Any) -> None:
    lake.topics.create("orders", 2, {**SMALL, **settings})


def polled(consumer: Consumer, count: int) -> list[int]:
    """The offsets of the next records."""
    found: list[int] = []
    while len(found) < count:
        polled = consumer.poll(timeout_ms=10_000, max_records=count - len(found))
        assert polled, f"nothing after {found}"
        found += [one.offset for records in polled.values() for one in records]
    return found


def offsets(lake: Lakelog) -> list[int]:
    return list(lake.log("orders").read(0).to_arrow().column("offset").to_pylist())


def read_by_everyone(lake: Lakelog) -> None:
    """Every reader gives the same records, in every range at the edges of both tiers."""
    log = lake.log("orders")
    seen = log.offsets()[0]
    held = list(log.read(0).records())
    assert [record.offset for record in held] == list(range(seen.log_start, seen.log_end))
    edges = {seen.log_start, seen.local_log_start, seen.archived_end, seen.log_end}
    near = sorted(
        offset
        for edge in edges
        for offset in (edge - 1, edge, edge + 1)
        if seen.log_start <= offset <= seen.log_end
    )
    ranges = [(start, end) for start in near for end in near if start <= end]
    Readers(log, lake.place, {}).compare(0, held, ranges)


# -- without a cold root -------------------------------------------------------------------------


def test_without_a_cold_root_a_topic_is_untiered_and_says_so(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Lakelog.connect(redis_url, engine="inline") as lake:
        with caplog.at_level(logging.WARNING, "lakelog"):
            topic = lake.topics.create("orders")
        assert not topic.config.tiered
        assert "orders' lives in Redis alone (remote.storage.enable=false)" in caplog.text
        send(lake, 3)
        assert offsets(lake) == [0, 1, 2]
        assert lake.archive() == []


def test_a_compacted_topic_needs_a_cold_root(redis_url: str) -> None:
    with (
        Lakelog.connect(redis_url, engine="inline") as lake,
        pytest.raises(InvalidConfigError, match=r"no cold root was given .* needs the cold tier"),
    ):
        lake.topics.create("orders", config={"cleanup.policy": "compact"})


# -- on ------------------------------------------------------------------------------------------


def test_archiving_begins_with_what_redis_holds(redis_url: str, tmp_path: Path) -> None:
    with Lakelog.connect(redis_url, engine="inline") as lake:
        create(lake)
        opened = lake.log("orders")
        send(lake, 40)
        opened.raise_log_start(0, 10)
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        opened = lake.log("orders")
        consumer = lake.consumer(auto_offset_reset="earliest")
        consumer.assign([TopicPartition("orders", 0)])
        found = polled(consumer, 5)

        lake.topics.alter("orders", ON)

        (report,) = lake.archive("orders")
        assert report.records == 30
        seen = opened.offsets()[0]
        assert (seen.log_start, seen.local_log_start, seen.archived_end) == (10, 40, 40)
        send(lake, 5)
        assert opened.read(0).to_arrow().column("offset").to_pylist() == list(range(10, 45))
        assert opened.seek(0, "earliest") == 10
        assert opened.seek(0, "latest-tiered") == 39
        assert opened.count(0) == 35
        assert found + polled(consumer, 30) == list(range(10, 45))
        read_by_everyone(lake)
        assert lake.archived.log("orders").offsets()[0].log_start == 10
        with pytest.raises(OffsetOutOfRangeError):
            opened.fetch(0, 9)


def test_a_log_that_was_opened_before_deletes_in_both_tiers(lake: Lakelog) -> None:
    create(lake, **{"remote.storage.enable": False})
    opened = lake.log("orders")
    send(lake, 30)
    lake.topics.alter("orders", ON)
    lake.archive("orders")
    opened.raise_log_start(0, 25)
    assert lake.archived.log("orders").offsets()[0].log_start == 25
    assert offsets(lake) == list(range(25, 30))


def test_retention_of_an_untiered_topic_ends_when_it_is_tiered(lake: Lakelog) -> None:
    create(lake, **{"remote.storage.enable": False, "retention.bytes": 600})
    send(lake, 40)
    start = lake.log("orders").offsets()[0].log_start
    assert start > 0
    lake.topics.alter("orders", ON)
    send(lake, 40)
    assert lake.log("orders").offsets()[0].log_start == start
    lake.archive("orders")
    read_by_everyone(lake)
    lake.topics.alter("orders", {"retention.bytes": -1})
    assert offsets(lake) == list(range(start, 80))


# -- off -----------------------------------------------------------------------------------------


@pytest.fixture
def archived(lake: Lakelog) -> Lakelog:
    """40 records are archived alone, 10 more are in both tiers, and 5 in Redis alone."""
    create(lake)
    send(lake, 40)
    lake.archive()
    lake.topics.alter("orders", {"local.retention.ms": -2})
    send(lake, 10)
    lake.archive()
    send(lake, 5)
    assert lake.log("orders").offsets()[0].local_log_start == 40
    return lake


def test_it_is_refused_unless_what_is_archived_may_go(archived: Lakelog) -> None:
    with pytest.raises(InvalidConfigError, match=r"remote\.log\.delete\.on\.disable=true"):
        archived.topics.alter("orders", {"remote.storage.enable": False})
    assert offsets(archived) == list(range(55))


def test_what_only_the_table_holds_is_deleted(archived: Lakelog, tmp_path: Path) -> None:
    opened = archived.log("orders")
    iterating = iter(opened.read(0, max_bytes=1))
    assert next(iterating).num_rows == 1

    archived.topics.alter("orders", OFF)

    seen = opened.offsets()[0]
    assert (seen.log_start, seen.local_log_start, seen.log_end) == (40, 40, 55)
    assert offsets(archived) == list(range(40, 55))
    assert sum(batch.num_rows for batch in iterating) == 54  # what was there when it began
    read_by_everyone(archived)
    table = opened.table
    assert table is not None
    cold = table.snapshot()
    assert cold.files.columns.num_rows == 0
    assert (cold.archived_end(0), cold.log_start(0)) == (40, 40)
    assert archived.archive() == []
    with pytest.raises(UnknownTopicOrPartitionError, match="archived no more"):
        archived.archived.log("orders")
    send(archived, 5)
    assert offsets(archived) == list(range(40, 60))


@pytest.mark.parametrize(
    "cleaned",
    [
        pytest.param(lambda lake: lake.cleanup(), id="all"),
        pytest.param(lambda lake: lake.cleanup("orders"), id="named"),
        pytest.param(lambda lake: lake.archived.cleanup(), id="all without Redis"),
        pytest.param(lambda lake: lake.archived.cleanup("orders"), id="named without Redis"),
    ],
)
def test_its_files_go_with_cleanup(
    lake: Lakelog, tmp_path: Path, cleaned: Callable[[Lakelog], list[Any]]
) -> None:
    create(lake, **{"file.delete.delay.ms": 0})
    send(lake, 40)
    lake.archive()
    lake.topics.alter("orders", OFF)
    assert lake.log("orders").table is None
    names = list((tmp_path / "cold").rglob("*.parquet"))
    assert names
    past_s = time.time() - 3600
    for name in names:
        os.utime(name, (past_s, past_s))
    (report,) = cleaned(lake)
    assert (report.topic, len(names)) == ("orders", report.vacuumed.files)
    assert list((tmp_path / "cold").rglob("*.parquet")) == []
    (again,) = cleaned(lake)
    assert str(again) == "orders: nothing to clean up"


def test_a_switch_that_was_cut_short_is_finished_by_cleanup(archived: Lakelog) -> None:
    class Cut(BaseException):
        pass

    def cut() -> None:
        raise Cut

    table = archived.log("orders").table
    assert table is not None
    with armed("untier.after_settings", cut), pytest.raises(Cut):
        archived.topics.alter("orders", OFF)
    assert offsets(archived) == list(range(40, 55))
    assert table.snapshot().files.columns.num_rows
    archived.cleanup_plan("orders")
    assert table.snapshot().files.columns.num_rows
    archived.cleanup("orders")
    assert not table.snapshot().files.columns.num_rows


@pytest.mark.parametrize("step", ["archive.after_plan", "cold.after_files", "archive.before_trim"])
def test_an_archiver_that_is_at_work_loses_nothing(archived: Lakelog, step: str) -> None:
    with armed(step, once(lambda: archived.topics.alter("orders", OFF))):
        _, errors = archived.archiver("orders").attempt()
    assert [type(error) for error in errors] in ([], [PolicyViolationError])
    assert offsets(archived) == list(range(40, 55))
    archived.cleanup()
    table = archived._opened_once(archived.topics.get("orders"))
    assert not table.snapshot().files.columns.num_rows
    read_by_everyone(archived)


def test_a_held_up_archiver_cannot_commit_after_it_is_tiered_again(archived: Lakelog) -> None:
    def switch() -> None:
        archived.topics.alter("orders", OFF)
        archived.topics.alter("orders", ON)
        send(archived, 5)

    with armed("cold.after_files", once(switch)):
        report, errors = archived.archiver("orders").attempt()
    assert not errors
    assert [(p.start_offset, p.end_offset) for p in report.partitions] == [(40, 55)]
    archived.archive()
    assert offsets(archived) == list(range(40, 60))
    read_by_everyone(archived)


@pytest.mark.parametrize("forgotten", [False, True])
def test_tiered_again_it_goes_on_with_what_redis_holds(archived: Lakelog, forgotten: bool) -> None:
    opened = archived.log("orders")
    archived.topics.alter("orders", OFF)
    send(archived, 20)
    start = 40
    if forgotten:
        archived.topics.alter("orders", {"retention.bytes": 0})
        archived.cleanup()
        archived.topics.alter("orders", {"retention.bytes": -1})
        start = opened.offsets()[0].log_start
        assert start > 55
    send(archived, 1)
    archived.topics.alter("orders", {**ON, "local.retention.ms": 0})
    assert opened.offsets()[0].log_start == start
    archived.archive()
    assert opened.offsets()[0].local_log_start == 76
    send(archived, 4)
    assert offsets(archived) == list(range(start, 80))
    assert opened.read(0).to_arrow().column("offset").to_pylist() == list(range(start, 80))
    read_by_everyone(archived)
    archived.archive()
    assert archived.archived.log("orders").offsets()[0].log_start == start
    archived.cleanup()
    assert offsets(archived) == list(range(start, 80))


def test_a_switch_that_redis_has_lost_is_said(archived: Lakelog) -> None:
    topic = archived.topics.get("orders")
    archived.topics.alter("orders", OFF)
    registry = archived.hot.topics()
    definition = registry.get("orders")
    with pytest.raises(PolicyViolationError, match="Redis says otherwise in version"):
        _archive_as(archived, topic)
    assert definition.config_version > topic.config_version
    archived.topics.alter("orders", ON)
    archived.archive()
    assert offsets(archived) == list(range(40, 55))


def _archive_as(lake: Lakelog, topic: Any) -> None:
    """Archives by settings that somebody else has changed since, as after a lost tail of Redis."""
    from lakelog.archive.archiver import Archiver

    for number in range(topic.partitions):
        keys = f"{{lakelog:stream:orders:{number}}}:state"
        from lakelog.hot.topic_definition import settings_text

        with_server = lake.hot._servers.for_key(keys)
        with_server.call(("HSET", keys, "settings", settings_text(topic.config)))
    archiver = Archiver(topic, lake.hot, lake._opened(topic))
    archiver.run_once()


def test_a_lost_redis_does_not_bring_it_back(archived: Lakelog, redis_url: str) -> None:
    import redis

    archived.topics.alter("orders", OFF)
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
    assert archived.restorable() == []
    assert archived.restore() == []
    with pytest.raises(UnknownTopicOrPartitionError, match="archived no more"):
        archived.restore("orders")
    archived.topics.create("orders")
