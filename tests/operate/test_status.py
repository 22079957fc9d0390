"""The state of a log in one look: sizes, lag, what will not go away by itself, and what fails."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable

from lakelog.base.clock import ManualClock
from lakelog.cold.by_path.path_table import PathTable
from lakelog.errors import (
    ArchivedElsewhereError,
    ColdTierUnavailableError,
    ContradictionError,
)
from lakelog.explore.charts.segment_map import segment_rows
from lakelog.lakelog import Lakelog
from lakelog.operate import status as of_status
from lakelog.operate.metrics import cold_looks
from lakelog.operate.metrics.cold_looks import ColdLooks
from lakelog.operate.segments import segments
from lakelog.operate.status import PartitionWarning, status
from lakelog.testing.eventually import eventually
from lakelog.values.config import DAY_MS, HOUR_MS
from lakelog.values.topic_partition import TopicPartition

ANY_TIME = {"message.timestamp.after.max.ms": 2**63 - 1}
T_0 = TopicPartition("t", 0)
EXPIRED = "2023-11-07T22:13:20.000+00:00"  # a week, retention.ms, before the clock


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


def sizes_in_redis(log: Lakelog) -> list[float]:
    """As status, the metrics, the list of segments, and the segment map's rows have it."""
    (one,) = log.status("t").partitions
    metrics = log.metrics("t").to_pylist()
    (measured,) = [row["value"] for row in metrics if row["metric"] == "lakelog_log_size_bytes"]
    topic = log.log("t")
    listed = sum(row.size_bytes for row in segments(topic, tiers=["hot"]))
    drawn = [row for row in segment_rows(topic).to_pylist() if row["tier"] == "hot"]
    return [one.hot_size_bytes, measured, listed, sum(row["size_bytes"] for row in drawn)]


def stored_bytes(log: Lakelog) -> int:
    """By the entries that Redis holds."""
    topic = log.topics.get("t")
    pages = log.hot.inspection().pages(T_0, topic.topic_id)
    return sum(entry.size_bytes for page in pages for entry in page.entries)


@pytest.mark.parametrize("segment_bytes", [50, 130, 2**20])
def test_the_size_in_redis_leaves_out_what_was_trimmed(log, append, segment_bytes):
    log.topics.create("t", 1, {"internal.segment.bytes": segment_bytes, "local.retention.ms": 0})
    append(*[0] * 7)
    assert sizes_in_redis(log) == [stored_bytes(log)] * 4 != [0] * 4
    log.archive()
    assert sizes_in_redis(log) == [stored_bytes(log)] * 4 == [0] * 4
    append(0, 0)
    assert sizes_in_redis(log) == [stored_bytes(log)] * 4 != [0] * 4


def test_a_timestamp_in_the_future_is_warned_about_until_its_segment_goes(log, append, clock):
    log.topics.create("t", 1, {**ANY_TIME, "local.retention.ms": HOUR_MS})
    append(0, 0, 3 * DAY_MS)
    assert log.status().warnings == (
        PartitionWarning(
            T_0,
            "segment 0 of t-0 holds a record with the timestamp 2023-11-17T22:13:20.000+00:00, "
            "which is yet to come. retention.ms and local.retention.ms count from then, so the "
            "segment and all after it stay; no record is lost by that. `lakelog topics alter t "
            "--config local.retention.ms=0` has the next archive run trim all that is archived "
            "from Redis, and deletes no record; set it back then. `lakelog delete-records t -p 0 "
            f"--before {EXPIRED}` deletes what has expired by now, up to the first record that has "
            "not. If that timestamp is wrong, `--before 3` in its place deletes all records of the "
            "segment and before it, however young. message.timestamp.after.max.ms=3600000 would "
            "refuse such timestamps.",
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


def test_what_is_advised_first_about_a_timestamp_in_the_future_deletes_no_record(
    log, append, clock
):
    """Of a topic that keeps all: Redis alone held it all, and the advice was to delete it."""
    log.topics.create("t", 1, {**ANY_TIME, "retention.ms": -1, "local.retention.ms": HOUR_MS})
    append(30 * DAY_MS, *([-2 * HOUR_MS] * 20))
    log.archive()
    assert log.log("t").offsets()[0].local_log_start == 0
    (warning,) = log.status().warnings
    assert "delete-records" not in warning.text
    assert "`lakelog topics alter t --config local.retention.ms=0`" in warning.text

    log.topics.alter("t", {"local.retention.ms": 0})
    log.archive()

    assert log.log("t").offsets()[0].local_log_start == 21
    assert len(list(log.log("t").read(0).records())) == 21
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


def test_each_table_is_asked_once_with_redis_and_without(log, append, tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        log.topics.create(name, 1)
        append(0, topic=name)
    log.archive()
    asked: Counter[str] = Counter()
    snapshot = PathTable.snapshot

    def counted(table: PathTable, *given: Any) -> Any:
        asked[Path(table.path).parent.name] += 1
        return snapshot(table, *given)

    monkeypatch.setattr(PathTable, "snapshot", counted)
    assert [part.offsets.archived_end for part in log.status().partitions] == [1, 1, 1]
    assert asked == {"a": 1, "b": 1, "c": 1}
    asked.clear()
    with Lakelog.connect(None, tmp_path / "cold", engine="inline") as cold:
        assert [part.offsets.archived_end for part in cold.status("a").partitions] == [1]
    assert asked["a"] == 1


def test_a_table_that_hangs_is_told_and_hides_no_other_and_is_asked_once(log, append, monkeypatch):
    monkeypatch.setattr(of_status, "LOOK_TIMEOUT_S", 2.0)
    topics = []
    for name in ("a", "b"):
        topics.append(log.topics.create(name, 1))
        append(0, topic=name)
    log.archive()
    gate, asked = threading.Event(), []

    def table_of(topic: Any) -> Any:
        if topic.name == "a":
            asked.append(topic)
            gate.wait(300)
        return log._table(topic)

    looks = ColdLooks(table_of)
    try:
        for _ in range(3):
            seen = status(log.hot, topics, table_of, redis=log.hot, looks=looks)
            assert [part.offsets.archived_end for part in seen.partitions] == [1]
            (failure,) = seen.failures
            assert (failure.topic, type(failure.error)) == ("a", ColdTierUnavailableError)
            assert "the table of topic 'a' did not answer within 2 s" in str(failure.error)
        assert len(asked) == 1
    finally:
        gate.set()
    eventually(
        lambda: len(status(log.hot, topics, log._table, redis=log.hot, looks=looks).partitions) == 2
    )


def test_a_table_that_was_given_up_is_not_waited_for_again(log, monkeypatch):
    topic = log.topics.create("a", 1)
    asked, gate, now = threading.Event(), threading.Event(), ManualClock(0)

    def table_of(topic: Any) -> Any:
        asked.set()
        gate.wait(300)
        return log._table(topic)

    monkeypatch.setattr(cold_looks, "time", SimpleNamespace(monotonic=lambda: now.now_ms() / 1000))
    looks, answers = ColdLooks(table_of), []
    first = threading.Thread(target=lambda: answers.append(looks.look([topic], idle_s=60)))
    first.start()
    try:
        assert asked.wait(60)
        now.advance(60_000)
        first.join(60)
        assert len(answers) == 1
        again = threading.Thread(
            target=lambda: answers.append(looks.look([topic], idle_s=60)), daemon=True
        )
        again.start()  # time stands still meanwhile
        again.join(60)
        assert not again.is_alive()
        assert [type(one[topic.topic_id]) for one in answers] == [TimeoutError, TimeoutError]
    finally:
        gate.set()


def test_tables_that_hang_hold_up_no_other_up_to_a_limit(log, append, monkeypatch):
    monkeypatch.setattr(of_status, "LOOK_TIMEOUT_S", 1.0)
    monkeypatch.setattr(cold_looks, "AT_ONCE", 9)
    topics = [log.topics.create(f"t{number:02}", 1) for number in range(11)]
    gate, hanging = threading.Event(), {topic.name for topic in topics[:8]}

    def table_of(topic: Any) -> Any:
        if topic.name in hanging:
            gate.wait(300)
        return log._table(topic)

    try:
        seen = status(log.hot, topics, table_of, redis=log.hot)
        assert [part.topic_partition.topic for part in seen.partitions] == ["t08", "t09", "t10"]
        hanging.update(topic.name for topic in topics)
        seen = status(log.hot, topics, table_of, redis=log.hot)
        assert seen.partitions == ()
        assert "or others kept it from being asked" in str(seen.failures[-1].error)
    finally:
        gate.set()


def test_a_look_that_began_before_redis_was_asked_is_no_answer(log, append):
    """A trim between the two would make the records between them look lost."""
    topic = log.topics.create("t", 1, {"local.retention.ms": 0})
    append(0)
    log.archive()
    gates = [threading.Event(), threading.Event()]
    reached = threading.Semaphore(0)
    tables = iter(gates)

    class Held:
        is_local = False

        def snapshot(self) -> Any:
            seen, gate = log._table(topic).snapshot(), next(tables)
            reached.release()
            gate.wait(300)
            return seen

    looks, answers = ColdLooks(lambda _: Held()), []
    first = threading.Thread(target=lambda: looks.look([topic]), daemon=True)
    first.start()
    assert reached.acquire(timeout=60)
    append(0)
    log.archive()
    later = threading.Thread(
        target=lambda: answers.append(
            status(log.hot, [topic], log._table, redis=log.hot, looks=looks)
        ),
        daemon=True,
    )
    later.start()
    for gate in gates:
        gate.set()
    for thread in (first, later):
        thread.join(300)
        assert not thread.is_alive()
    (part,) = answers[0].partitions
    assert (part.offsets.archived_end, answers[0].warnings) == (2, ())


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
