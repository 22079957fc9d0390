"""`Lakelog` wires the stages; what it adds itself: places, engines, many topics at once."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from deltalake import DeltaTable

from lakelog import Lakelog
from lakelog.archive import continuous
from lakelog.base.clock import ManualClock
from lakelog.base.failpoints import armed
from lakelog.cold.by_path.listing import tables
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import TASKS_AT_ONCE
from lakelog.errors import (
    ArchiveFailedError,
    ColdTierError,
    EmbeddedRedisError,
    HotTierUnavailableError,
    InvalidArgumentError,
    InvalidConfigError,
)
from lakelog.testing.eventually import eventually

T = TypeVar("T")
R = TypeVar("R")


def append(log: Lakelog, topic: str, count: int) -> None:
    with log.producer() as producer:
        for number in range(count):
            producer.send(topic, str(number))


def values(log: Lakelog, topic: str) -> list[bytes | None]:
    unified = log.log(topic)
    return [
        record.value
        for partition in range(unified.topic.partitions)
        for record in unified.read(partition).records()
    ]


def test_an_untiered_topic_needs_no_cold_root(redis_url: str) -> None:
    with Lakelog.connect(redis_url) as log:
        log.topics.create("t", 1, {"remote.storage.enable": False})
        append(log, "t", 3)
        assert values(log, "t") == [b"0", b"1", b"2"]
        assert log.log("t").seek(0, "latest") == 3
        assert log.archive() == []
        (partition,) = log.status().partitions
        assert (partition.tiered, partition.archive_lag_ms) == (False, None)
        with log.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([("t", 0)])
            assert len(consumer.poll(60_000)[("t", 0)]) == 3  # type: ignore[index]
        assert log.log("t").raise_log_start(0, 2) == 2
        assert values(log, "t") == [b"2"]


def test_a_tiered_topic_without_a_cold_root_says_what_is_missing(redis_url: str) -> None:
    with Lakelog.connect(redis_url) as log:
        log.topics.create("t", 1, {"remote.storage.enable": True})
        with pytest.raises(InvalidArgumentError, match="no cold root"):
            log.log("t")
        with pytest.raises(InvalidArgumentError, match="no cold root"):
            log.archive("t")


def test_archiving_an_untiered_topic_by_name_is_refused(log: Lakelog) -> None:
    log.topics.create("t", 1, {"remote.storage.enable": False})
    with pytest.raises(InvalidArgumentError, match="no cold tier"):
        log.archive("t")


def test_a_topic_that_fails_does_not_stop_the_others(log: Lakelog, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        log.topics.create(name)
        append(log, name, 2)
    bad = log.topics.get("b")
    (tmp_path / "cold" / "b").mkdir(parents=True)
    (tmp_path / "cold" / "b" / str(bad.topic_id)).write_text("in the way")
    with pytest.raises(ArchiveFailedError, match="b: ") as failed:
        log.archive()
    (error,) = failed.value.errors["b"]
    assert isinstance(error, ColdTierError)
    assert [(report.topic, report.records) for report in failed.value.reports] == [
        ("a", 2),
        ("c", 2),
    ]
    assert log.log("a").offsets()[0].archived_end == 2
    assert log.log("c").offsets()[0].archived_end == 2
    assert values(log, "a") == [b"0", b"1"]


def test_topics_are_archived_a_few_at_a_time_and_told_in_their_order(log: Lakelog) -> None:
    names = [f"t{number}" for number in range(2 * TASKS_AT_ONCE)]
    for name in names:
        log.topics.create(name)
        append(log, name, 2)
    together = threading.Barrier(TASKS_AT_ONCE)  # nobody goes on alone
    with armed("archive.after_plan", lambda: together.wait(60) and None):
        reports = log.archive(reversed(names))
    assert [(report.topic, report.records) for report in reports] == [
        (name, 2) for name in reversed(names)
    ]
    assert [report.topic for report in log.archive(names)] == names


def test_every_damaged_partition_is_told_and_all_that_was_archived_beside_it(
    log: Lakelog, redis_client: Any
) -> None:
    for topic in ("bad", "good"):
        log.topics.create(topic, 4)
        with log.producer() as producer:
            for partition in range(4):
                producer.send(topic, "value", partition=partition)
    for partition in (1, 2):
        stream = f"lakelog:stream:bad:{partition}"
        ((entry_id, fields),) = redis_client.xrange(stream)
        redis_client.delete(stream)
        redis_client.xadd(stream, {**fields, b"value": b"other"}, id=entry_id)
    with pytest.raises(ArchiveFailedError, match=r"bad: bad-1.*bad: bad-2") as failed:
        log.archive(["bad", "good"])
    errors = failed.value.errors
    assert [error.topic_partition for error in errors["bad"]] == [("bad", 1), ("bad", 2)]  # type: ignore[attr-defined]
    assert list(errors) == ["bad"]
    assert [(report.topic, report.records) for report in failed.value.reports] == [
        ("bad", 2),
        ("good", 4),
    ]
    with pytest.raises(ArchiveFailedError) as again:
        log.archive(["bad", "good"])
    assert [report.topic for report in again.value.reports] == ["good"]


def test_an_idle_untiered_topic_forgets_when_the_others_are_archived(
    redis_url: str, tmp_path: Path
) -> None:
    clock = ManualClock()
    with Lakelog.connect(redis_url, tmp_path, engine="inline", clock=clock) as log:
        log.topics.create("t", 1, {"remote.storage.enable": False, "retention.ms": 1000})
        append(log, "t", 2)
        clock.advance(2000)
        log.archive()
        assert values(log, "t") == [b"0", b"1"]
        clock.advance(298_000)  # log.retention.check.interval.ms are over
        log.archive()
        assert values(log, "t") == []
        assert log.log("t").offsets()[0].log_start == 2


def test_a_continuous_run_finds_new_topics_and_drains_when_stopped(log: Lakelog) -> None:
    log.topics.create("first", 1, {"lakelog.flush.interval.ms": 0})
    append(log, "first", 1)
    stop = threading.Event()
    archived = {"first": 0, "second": 0}
    for report in log.archive_continuously(stop=stop):
        archived[report.topic] += report.records
        if archived == {"first": 1, "second": 0}:
            log.topics.create("second", 1, {"lakelog.flush.rows": 2})
            append(log, "second", 2)
        elif archived == {"first": 1, "second": 2}:
            append(log, "first", 4)
            stop.set()
    assert archived == {"first": 5, "second": 2}


def trickle(log: Lakelog, runs: int) -> int:
    """Has a continuous run make so many commits of one record each; the runs it took."""
    log.topics.create("t", 1, {"lakelog.flush.interval.ms": 0})
    stop = threading.Event()
    archived = 0

    def is_archived(end: int) -> bool:
        return log.status("t").partitions[0].offsets.archived_end >= end

    with ThreadPoolExecutor(1) as appending:

        def one_by_one() -> None:
            for number in range(runs):
                append(log, "t", 1)
                eventually(partial(is_archived, number + 1))
            stop.set()

        done = appending.submit(one_by_one)
        for report in log.archive_continuously(stop=stop):
            archived += report.records
        done.result()
    return archived


def test_frequent_commits_leave_few_files(
    log: Lakelog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(continuous, "TIDY_RUNS", 4)
    assert trickle(log, 40) == 40
    path = Storage(str(tmp_path / "cold")).table_path(log.topics.get("t"))
    # Optimize leaves about log2(40) of 40 equal files; a few runs may have followed the last one.
    assert len(DeltaTable(path).file_uris()) <= 6 + 3 * 4
    assert values(log, "t") == [b"0"] * 40


def test_an_embedded_log_that_is_dropped_unclosed_stops_nobody_who_still_writes(
    tmp_path: Path,
) -> None:
    log = Lakelog.embedded(tmp_path / "log", engine="inline")
    log.topics.create("orders", 1, {})
    producer = log.producer()
    del log
    gc.collect()
    assert producer.send("orders", "late").result().offset == 0
    producer.close()


def test_nobody_else_looks_into_an_embedded_log(tmp_path: Path) -> None:
    with Lakelog.embedded(tmp_path / "log", engine="inline") as log:
        log.topics.create("t")
        append(log, "t", 2)
        log.archive()
    assert {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "log").iterdir()} == {
        "redis": 0o700,
        "cold": 0o700,
    }


def test_a_cold_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cold").mkdir()
    (tmp_path / "cold").chmod(0o777)
    with pytest.raises(EmbeddedRedisError, match="others may write to it"):
        Lakelog.embedded(tmp_path, engine="inline")


def test_an_embedded_log_goes_on_without_a_gap_after_a_stop(tmp_path: Path) -> None:
    for run in range(3):
        with Lakelog.embedded(tmp_path / "log", engine="inline") as log:
            if run == 0:
                log.topics.create("t", 1, {"local.retention.ms": 0})
            append(log, "t", 2)
            log.archive()
            append(log, "t", 1)
            offsets = log.log("t").offsets()[0]
            assert (offsets.log_end, offsets.gaps) == (3 * (run + 1), ())
            assert values(log, "t") == [b"0", b"1", b"0"] * (run + 1)


def test_a_lost_tail_is_told_by_status_while_producers_and_consumers_go_on(
    make_redis: Any, tmp_path: Path
) -> None:
    server = make_redis(appendfsync="no")
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as log:
        log.topics.create("t", 1)
        append(log, "t", 3)
        log.archive()
        size = server.append_only_size()
        before_ms = log.hot.now_ms() - 60_000
        producer, consumer = log.producer(), log.consumer(auto_offset_reset="earliest")
        consumer.assign([("t", 0)])
        assert producer.send("t", "lost").result().offset == 3
        assert len(consumer.poll(60_000)[("t", 0)]) == 4  # type: ignore[index]
        server.kill()
        server.cut_append_only_file(to_size=size)
        server.start()

        (partition,) = log.status().partitions
        assert (partition.state, partition.skipped) == ("recovery needed", ())
        assert consumer.poll() == {}  # it waits
        new = producer.send("t", "new").result().offset
        (partition,) = log.status().partitions
        (skipped,) = partition.skipped
        assert (partition.state, skipped.start_offset, skipped.end_offset) == ("ok", 3, new)
        assert before_ms <= skipped.last_append_ms <= skipped.recovered_ms <= log.hot.now_ms()
        assert [r.offset for r in consumer.poll(60_000)[("t", 0)]] == [new]  # type: ignore[index]
        assert sum(report.records for report in log.archive()) == 1
        (partition,) = log.status().partitions
        assert [one.start_offset for one in partition.skipped] == [3]
        assert values(log, "t") == [b"0", b"1", b"2", b"new"]
        producer.close()


@pytest.mark.parametrize(
    ("url", "cold", "error"),
    [
        ("http://127.0.0.1", None, InvalidArgumentError),
        ("redis://127.0.0.1:1", None, HotTierUnavailableError),
        (None, "/Volumes/main/default/log", ColdTierError),
        (None, "ftp://host/log", InvalidArgumentError),
    ],
)
def test_connecting_to_a_wrong_place_says_so(
    redis_url: str, url: str | None, cold: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Lakelog.connect(url or redis_url, cold)


def test_unknown_settings_and_engines_are_named(log: Lakelog, redis_url: str) -> None:
    with pytest.raises(InvalidConfigError, match="linger_ms"):
        log.producer(linger=5)
    with pytest.raises(InvalidArgumentError, match="'spark' or 'inline'"):
        Lakelog.connect(redis_url, engine="flink")


def test_what_topics_are_changed_to_is_said_by_their_tables_at_once(
    log: Lakelog, tmp_path: Path
) -> None:
    """A cleanup without Redis must not go by the settings before."""
    log.topics.create("t", 1, {"retention.ms": 1000})
    append(log, "t", 3)
    log.archive("t")
    (before,) = tables(Storage(str(tmp_path / "cold"))).topics
    assert before.config["retention.ms"] == 1000
    log.topics.alter("t", {"retention.ms": -1})
    log.topics.set_defaults({"log.cleaner.enable": False})
    log.topics.add_partitions("t", 2)
    (after,) = tables(Storage(str(tmp_path / "cold"))).topics
    assert after.config["retention.ms"] == -1
    assert not after.config.cleaner_enabled
    assert after.partitions == 2


def test_what_only_redis_holds_counts_for_retention_bytes(log: Lakelog) -> None:
    small = {"internal.segment.bytes": 200, "lakelog.entry.format": "fields"}
    log.topics.create("t", 1, {**small, "retention.bytes": 1_000_000, "retention.ms": -1})
    append(log, "t", 20)
    log.archive("t")
    (all_of_it,) = log.cleanup_plan("t", {"retention.bytes": 0})[0].retention
    limit = {"retention.bytes": all_of_it.size_bytes}
    assert not log.cleanup_plan("t", limit)[0].retention[0].dropped
    with log.producer() as producer:
        for _ in range(300):
            producer.send("t", bytes(100))
    (tp,) = log.topics.get("t").topic_partitions()
    hot_only = log.hot.segments([tp])[tp].bytes_from(20)
    assert hot_only > 30_000

    (with_redis,) = log.cleanup_plan("t", limit)[0].retention
    (without,) = log.archived.cleanup_plan("t", limit)[0].retention

    assert (with_redis.hot_only_bytes, without.hot_only_bytes) == (hot_only, None)
    assert with_redis.dropped
    assert not without.dropped


def test_the_history_of_a_table_says_what_each_commit_did(log: Lakelog, tmp_path: Path) -> None:
    settings = {"internal.segment.bytes": 300, "cleanup.policy": "compact,delete"}
    log.topics.create("orders", 1, {**settings, "min.cleanable.dirty.ratio": "0"})
    for _ in range(2):
        with log.producer() as producer:
            for _ in range(3):
                producer.send("orders", b"v" * 100, key=b"k")
        log.archive("orders")
    log.cleanup("orders", steps=["optimize"])
    log.cleanup("orders", steps=["compact"])
    log.log("orders").raise_log_start(0, 5)
    log.cleanup("orders", steps=["retain"])
    (table,) = (tmp_path / "cold" / "orders").iterdir()
    history = reversed(DeltaTable(table).history())
    said = [commit["userMetadata"] for commit in history if "userMetadata" in commit]
    steps = ["archive", "archive", "optimize", "compact", "delete records", "retain"]
    assert said == [f"lakelog: {step}" for step in steps]


def test_cleanup_forgets_in_both_tiers(log: Lakelog) -> None:
    log.topics.create("t", 1, {"retention.ms": 1000, "internal.segment.bytes": 200})
    with log.producer(linger_ms=0) as producer:
        for number in range(10):
            producer.send("t", str(number), timestamp_ms=1_700_000_000_000).result()
    log.archive("t")
    (report,) = log.cleanup("t")
    assert report.retained[0].log_start == 10
    assert report.trimmed.keys() <= {0}  # the archive run may have trimmed it all
    offsets = log.log("t").offsets()[0]
    assert (offsets.log_start, offsets.local_log_start, offsets.log_end) == (10, 10, 10)
    append(log, "t", 1)
    assert values(log, "t") == [b"0"]
    assert not log.cleanup()[0]
