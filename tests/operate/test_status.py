"""The state of a log in one look: sizes, lag, what will not go away by itself, and what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelog.clock import ManualClock
from lakelog.config import DAY_MS, HOUR_MS
from lakelog.errors import ArchivedElsewhereError, ContradictionError, InvalidArgumentError
from lakelog.lakelog import Lakelog
from lakelog.operate.status import PartitionWarning, status
from lakelog.record import TopicPartition

ANY_TIME = {"message.timestamp.after.max.ms": 2**63 - 1}
T_0 = TopicPartition("t", 0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(redis_url: str, tmp_path: Path, clock: ManualClock) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline", clock=clock) as log:
        yield log


@pytest.fixture
def append(log: Lakelog, clock: ManualClock) -> Callable[..., None]:
    """One record for each "so long ahead of now"."""

    def append(*ahead_ms: int, topic: str = "t") -> None:
        with log.producer() as producer:
            for ahead in ahead_ms:
                sent = producer.send(topic, "v", timestamp_ms=clock.now_ms() + ahead, partition=0)
                sent.result()

    return append


def add_actions(table: DeltaTable) -> list[dict[str, Any]]:
    import pyarrow as pa

    return pa.table(table.get_add_actions(flatten=True)).to_pylist()


def test_both_tiers_have_a_size(log, append, tmp_path):
    log.topics.create("t", 1, {"internal.segment.bytes": 50})  # a segment a record
    log.topics.create("untiered", 1, {"remote.storage.enable": False})
    append(0, 0, 0)
    log.archive()

    tiered, untiered = log.status().partitions

    (path,) = (tmp_path / "cold" / "t").iterdir()
    files = add_actions(DeltaTable(str(path)))
    assert (tiered.cold_segments, tiered.cold_size_bytes) == (
        3,
        sum(file["size_bytes"] for file in files),
    )
    assert tiered.hot_size_bytes > 0
    assert (untiered.tiered, untiered.cold_segments, untiered.cold_size_bytes) == (False, 0, 0)


def test_a_timestamp_in_the_future_is_warned_about_until_its_segment_goes(log, append, clock):
    log.topics.create("t", 1, {**ANY_TIME, "local.retention.ms": HOUR_MS})
    append(0, 0, 3 * DAY_MS)
    assert log.status().warnings == (
        PartitionWarning(
            T_0,
            "segment 0 of t-0 holds a record with the timestamp 2023-11-17T22:13:20.000+00:00, "
            "which is yet to come. retention.ms and local.retention.ms count from then, so the "
            "segment and all after it stay. If that timestamp is wrong, `lakelog delete-records "
            "t -p 0 --before 3` deletes the segment with all before it",
        ),
    )
    log.archive()
    (archived,) = log.status().warnings
    assert "local.retention.ms count from then" in archived.text  # Redis has it still

    log.hot.trim(T_0, 3)
    (cold_alone,) = log.status().warnings
    assert ". retention.ms counts from then" in cold_alone.text

    log.log("t").raise_log_start(0, 3)
    assert log.status().warnings == ()


def test_what_blocks_nothing_or_soon_is_past_is_not_warned_about(log, append, clock):
    for name, config in {
        "kept": {"retention.ms": -1},
        "soon": {},
        "empty": {"cleanup.policy": "", "local.retention.ms": 0},
    }.items():
        log.topics.create(name, 1, {**ANY_TIME, **config})
        append(HOUR_MS if name == "soon" else DAY_MS, topic=name)
    log.archive()
    assert log.status().warnings == ()
    clock.advance(-1)
    (warning,) = log.status().warnings
    assert warning.topic_partition == TopicPartition("soon", 0)


def test_an_untiered_topic_is_warned_about_too(log, append):
    log.topics.create("t", 1, {**ANY_TIME, "remote.storage.enable": False})
    append(DAY_MS)
    (warning,) = log.status().warnings
    assert ". retention.ms counts from then" in warning.text


def test_a_topic_that_fails_hides_no_other(log, append, tmp_path):
    for name in ("a", "b", "c"):
        log.topics.create(name, 1)
        append(0, topic=name)
        log.archive(name)
    (path,) = (tmp_path / "cold" / "b").iterdir()
    DeltaTable(str(path)).restore(0)

    seen = log.status()

    assert [part.topic_partition.topic for part in seen.partitions] == ["a", "c"]
    (failure,) = seen.failures
    assert (failure.topic, type(failure.error)) == ("b", ContradictionError)
    assert seen.servers


def test_without_a_cold_root_untiered_topics_are_told(log, redis_url):
    log.topics.create("tiered", 1)
    log.topics.create("untiered", 2, {"remote.storage.enable": False})
    with Lakelog.connect(redis_url) as rootless:
        seen = rootless.status()
    assert [part.topic_partition.topic for part in seen.partitions] == ["untiered"] * 2
    (failure,) = seen.failures
    assert (failure.topic, type(failure.error)) == ("tiered", InvalidArgumentError)


def test_redis_is_asked_once_a_topic(log, append):
    asked = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            return getattr(log.hot, name)

        def segments(self, topic_partitions: Any, **more: Any) -> Any:
            asked.append(list(topic_partitions))
            return log.hot.segments(asked[-1], **more)

    topic = log.topics.create("t", 3)
    append(0, 0)
    counted = Counted()
    seen = status(counted, [topic], log._table, redis=counted)
    assert seen.partitions == log.status().partitions  # servers say how much memory they use
    assert asked == [topic.topic_partitions()]


def test_a_wrong_cold_root_is_told_and_warned_about(log, append, redis_url, tmp_path, clock):
    log.topics.create("t", 1, {"local.retention.ms": 0})
    append(0, 0, 0)
    log.archive()
    append(0)
    assert log.status().warnings == ()
    with Lakelog.connect(redis_url, tmp_path / "other", engine="inline", clock=clock) as wrong:
        (failure,) = wrong.status().failures
        assert isinstance(failure.error, ArchivedElsewhereError)
        wrong.archiver("t").adopt()
        (warning,) = wrong.status().warnings
    assert warning.topic_partition == T_0
    assert warning.text.startswith("the cold tier of t-0 ends at 0, but Redis holds records only")
