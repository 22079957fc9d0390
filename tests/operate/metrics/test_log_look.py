"""What there is to measure of a log, in both tiers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from deltalake import DeltaTable

from lakelog.base.clock import ManualClock
from lakelog.cleanup.plan import cleanables
from lakelog.cold.table import ColdSnapshot, ColdTable
from lakelog.errors import CleanupFailedError
from lakelog.hot.key_patterns import KeyPatterns
from lakelog.lakelog import Lakelog
from lakelog.operate.acl.redis_rules import Role, redis_rules
from lakelog.operate.metrics import cold_looks, log_look
from lakelog.operate.metrics.exposition import METRICS
from lakelog.operate.metrics.log_look import LogLook
from lakelog.operate.metrics.table import METRICS_SCHEMA, metrics_table
from lakelog.testing.eventually import eventually
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

TINY_SEGMENTS = {"internal.segment.bytes": 100}  # a segment a record


def test_each_partition_is_as_status_has_it(log, append):
    log.topics.create("t", 2, {**TINY_SEGMENTS, "local.retention.ms": 0})
    log.topics.create("untiered", 1, {"remote.storage.enable": False})
    append("t", 3)
    log.archive()
    append("t", 2)
    append("t", 1, partition=1)
    append("untiered", 4)
    table = log.metrics()
    assert table.schema == METRICS_SCHEMA
    found = {
        (row["metric"], *dict(row["labels"]).values()): row["value"] for row in table.to_pylist()
    }
    seen = log.status()
    for part in seen.partitions:
        tp, offsets = part.topic_partition, part.offsets
        at = (tp.topic, str(tp.partition))
        assert found[("lakelog_log_start_offset", *at)] == offsets.log_start
        assert found[("lakelog_log_end_offset", *at)] == offsets.log_end
        assert found[("lakelog_log_local_start_offset", *at)] == offsets.local_log_start
        assert found[("lakelog_log_size_bytes", *at)] == part.hot_size_bytes
        assert found[("lakelog_log_recovery_needed", *at)] == 0
        if part.tiered:
            assert found[("lakelog_log_archived_end_offset", *at)] == offsets.archived_end
            assert found[("lakelog_cold_size_bytes", *at)] == part.cold_size_bytes
            assert found[("lakelog_cold_segments", *at)] == part.cold_segments
            assert found[("lakelog_archive_lag_records", *at)] == part.unarchived
        else:
            assert ("lakelog_cold_size_bytes", *at) not in found
            assert ("lakelog_archive_lag_records", *at) not in found
    assert found["lakelog_cold_files", "t", "0"] == 3
    assert found["lakelog_cold_segment_files_max", "t", "0"] == 1
    hot = log.hot.segments([TopicPartition("t", 0)])[TopicPartition("t", 0)]
    assert found["lakelog_log_segments", "t", "0"] == len(hot.segments) > 1
    assert found["lakelog_archive_lag_bytes", "t", "0"] == hot.bytes_from(3)
    assert found["lakelog_archive_lag_seconds", "t", "0"] > 0
    assert found["lakelog_redis_memory_used_bytes", seen.servers[0].name] > 0
    assert found["lakelog_up",] == 1


def test_a_group_s_lag_is_what_it_has_not_read(log, append, value_of):
    log.topics.create("t", 1, {"local.retention.ms": 0})
    append("t", 10)
    log.archive()
    with log.consumer("t", group_id="g", auto_offset_reset="earliest") as consumer:
        eventually(lambda: consumer.poll(100, max_records=4))
        consumer.commit()
        assert value_of("lakelog_group_members", group="g") == 1
    assert value_of("lakelog_group_lag_records", group="g", topic="t") == 6
    assert value_of("lakelog_group_committed_offset", group="g", topic="t") == 4
    assert value_of("lakelog_group_members", group="g") == 0


def test_a_share_group_has_a_lag_too(log, append, value_of):
    log.topics.create("t", 1)
    append("t", 5)
    with log.share_consumer("t", group_id="w", share_auto_offset_reset="earliest") as consumer:
        eventually(lambda: consumer.poll(100))
        consumer.commit_sync()
    lag = value_of("lakelog_group_lag_records", group="w", group_type="share", topic="t")
    assert lag is not None
    assert lag == 5 - value_of("lakelog_group_committed_offset", group="w", group_type="share")


def test_a_compacted_topic_tells_how_dirty_it_is(log, append, value_of):
    log.topics.create("plain", 1)
    log.topics.create("t", 1, {**TINY_SEGMENTS, "cleanup.policy": "compact"})
    with log.producer() as producer:
        for _ in range(4):
            producer.send("t", b"v" * 50, key=b"k").result()
    log.archive()
    assert value_of("lakelog_cleaner_dirty_ratio") == 1  # of t alone
    log.cleanup()
    assert value_of("lakelog_cleaner_dirty_ratio") == 0


def test_how_dirty_a_table_is_is_reckoned_again_once_it_changed_or_a_minute_is_over(
    log, monkeypatch
):
    """It takes half a second for 10,000 segments."""
    topic = log.topics.create("t", 1, {**TINY_SEGMENTS, "cleanup.policy": "compact"})
    with log.producer() as producer:
        producer.send("t", b"v", key=b"k").result()
    log.archive()
    now, reckoned = ManualClock(), []

    def counted(topic: Topic, cold: ColdSnapshot, now_ms: int) -> Any:
        reckoned.append(cold.version)
        return cleanables(topic, cold, now_ms)

    monkeypatch.setattr(log_look, "cleanables", counted)
    look = LogLook(None, log._table, None, now.now_ms)
    for _ in range(2):
        look.look([topic])
    assert len(reckoned) == 1
    now.advance(60_000)
    look.look([topic])
    assert len(reckoned) == 2
    with log.producer() as producer:
        producer.send("t", b"v", key=b"k").result()
    log.archive()
    look.look([topic])
    assert len(reckoned) == 3
    look.look([])
    look.look([topic])
    assert len(reckoned) == 4  # what was not looked at is forgotten


def test_a_cleanup_that_failed_is_told_and_a_topic_that_is_gone_forgotten(
    log, append, value_of, tmp_path
):
    compacted = {**TINY_SEGMENTS, "cleanup.policy": "compact"}
    for name in ("gone", "t"):
        log.topics.create(name, 1, compacted)
    with log.producer() as producer:
        for _ in range(4):
            producer.send("t", b"v" * 50, key=b"k").result()
    log.archive()
    log.cleanup("gone")
    assert value_of("lakelog_cleaner_runs_total", topic="gone") == 1
    log.topics.delete("gone")
    (first, *_) = sorted((tmp_path / "cold" / "t").rglob("archive-*.parquet"))
    first.unlink()

    with pytest.raises(CleanupFailedError):
        log.cleanup()

    assert value_of("lakelog_cleaner_runs_total", topic="t") == 1
    assert value_of("lakelog_cleaner_failures_total", topic="t") >= 1
    assert value_of("lakelog_cleaner_failed_partitions", topic="t") == 1
    assert value_of("lakelog_cleaner_runs_total", topic="gone") is None
    assert list(log.hot.cleanups().read()) == [str(log.topics.get("t").topic_id)]


def test_who_may_not_read_what_cleanups_counted_cleans_up_and_is_told_the_rest(
    log, redis_url, tmp_path, caplog
):
    log.topics.create("t", 1)
    log.cleanup()
    rules = redis_rules(Role.ARCHIVER, KeyPatterns("lakelog"), ["*"], ["*"], loads_scripts=False)
    rights = [rule for rule in rules if "cleanups" not in rule]
    assert len(rights) == len(rules) - 1
    with redis.Redis.from_url(redis_url) as client:
        client.execute_command("ACL", "SETUSER", "older", ">secret", *rights)
    url = redis_url.replace("redis://", "redis://older:secret@")
    with Lakelog.connect(url, tmp_path / "cold", engine="inline") as older:
        older.cleanup()
        assert "counted anew" not in caplog.text  # no quota is set that could be
        found = {row["metric"]: row["value"] for row in older.metrics().to_pylist()}
    assert found["lakelog_up"] == 1
    assert found["lakelog_log_end_offset"] == 0


def test_a_topic_that_fails_hides_no_other(log, append, value_of, tmp_path):
    for name in ("a", "b"):
        log.topics.create(name, 1)
        append(name, 2)
        log.archive(name)
    (path,) = (tmp_path / "cold" / "a").iterdir()
    DeltaTable(str(path)).restore(0)
    table = log.metrics()
    assert value_of("lakelog_topic_failed", table, topic="a", error="ContradictionError") == 1
    assert value_of("lakelog_log_end_offset", table, topic="a") == 2  # what Redis says of it
    assert value_of("lakelog_cold_size_bytes", table, topic="a") is None
    assert value_of("lakelog_cold_size_bytes", table, topic="b") > 0
    assert value_of("lakelog_topic_failed", table, topic="b") is None


def test_without_redis_the_tables_tell(log, append, value_of):
    log.topics.create("t", 1)
    append("t", 3)
    log.archive()
    table = log.archived.metrics()
    assert value_of("lakelog_log_archived_end_offset", table, topic="t") == 3
    assert value_of("lakelog_log_start_offset", table, topic="t") == 0
    assert value_of("lakelog_cold_files", table, topic="t") == 1
    assert value_of("lakelog_log_end_offset", table, topic="t") is None
    assert value_of("lakelog_up", table) is None


def test_a_failing_archiver_is_told(log, append, value_of):
    log.topics.create("t", 1)
    trouble = {"topic": "t", "since_ms": log.hot.now_ms() - 60_000, "why": "full", "tries": 3}
    log.hot.beats().leave("a", {"troubles": [trouble, "foreign"]}, 60_000)
    assert value_of("lakelog_archivers") == 1
    assert 60 <= value_of("lakelog_archive_failing_seconds", topic="t") < 120


@pytest.fixture
def stuck(log: Lakelog, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LogLook, Any]]:
    """Looks at a log of which the table of topic `a` does not answer until it is set."""
    monkeypatch.setattr(cold_looks, "LONG_LOOK_S", 0.0)
    gate = threading.Event()

    def table_of(topic: Topic) -> ColdTable | None:
        if topic.name == "a":
            gate.wait()
        return log._table(topic)

    yield LogLook(log.hot, table_of, None, log.hot.now_ms), gate
    gate.set()


def test_a_table_that_hangs_holds_up_no_other(log, append, value_of, stuck):
    look, gate = stuck
    for name in ("a", "b"):
        log.topics.create(name, 1)
        append(name, 2)
    log.archive()
    topics = log.topics.list()
    looks = []

    def b_is_there() -> bool:
        looks.append(metrics_table(look.look(topics, 0.05)))
        return value_of("lakelog_cold_files", looks[-1], topic="b") is not None

    eventually(b_is_there)
    b_alone = looks[-1]
    assert value_of("lakelog_topic_failed", b_alone, topic="a", error="TimeoutError") == 1
    assert value_of("lakelog_log_end_offset", b_alone, topic="a") == 2
    assert value_of("lakelog_archive_lag_records", b_alone, topic="a") is None
    gate.set()
    assert value_of("lakelog_cold_files", metrics_table(look.look(topics)), topic="a") == 1


def test_every_metric_that_a_look_gives_is_known(log, append):
    log.topics.create("t", 1)
    names = {one.metric.name for one in log.log_look.look(log.topics.list())}
    assert names <= {metric.name for metric in METRICS}
