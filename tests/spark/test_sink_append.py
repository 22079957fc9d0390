"""A task's rows are appended once, whoever repeats it and whatever happens to Redis meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import redis
from pyspark.sql.types import BinaryType, StringType, StructField, StructType
from sink_attempts import (
    COUNT,
    TASK,
    Attempts,
    expected,
    flat,
    is_in_order,
    rows,
)

from lakelog.base import back_off
from lakelog.base.back_off import ASK_AGAIN
from lakelog.codec.encryption.of_topic import opening
from lakelog.errors import (
    HotTierFullError,
    HotTierPausedError,
    HotTierUnavailableError,
    LakelogError,
    ProducerFencedError,
    RecoveryNeededError,
    RepeatDiffersError,
    UnknownProducerError,
    UnknownTopicIdError,
)
from lakelog.hot import Acks
from lakelog.spark import sink
from lakelog.spark.options import parse_write
from lakelog.spark.sink import LakelogWriter, append_rows
from lakelog.spark.sink_append import TaskAppend, TaskIdentity, _extended
from lakelog.spark.sink_rows import TaskRows
from lakelog.values.config import ENCRYPTION_KEY
from lakelog.values.record import NO_TIMESTAMP_MS, produced_batch


@pytest.fixture
def attempts(redis_url: str) -> Attempts:
    return Attempts(redis_url)


@pytest.fixture
def away(make_redis: Callable[..., Any]) -> tuple[Any, Attempts]:
    """A server that can go away."""
    server = make_redis(appendfsync="always")
    return server, Attempts(f"{server.url}?socket_timeout=2")


# -- repeats -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_after", [1, 2, 5, 7, 9])
def test_a_repeat_appends_what_the_attempt_before_did_not(attempts, stop_after) -> None:
    table = rows()
    attempts.begin(table, stop_after)
    before = attempts.values()
    assert 0 < len(flat(before)) < COUNT
    assert attempts.append(table, arriving=37) == COUNT
    assert attempts.append(table, arriving=500) == COUNT
    after = attempts.values()
    assert flat(after) == expected(table)
    assert is_in_order(after)
    assert [of_one[: len(b)] for of_one, b in zip(after, before, strict=True)] == before


def test_copies_of_a_task_that_run_at_once_append_each_row_once(attempts, redis_url) -> None:
    table = rows(240)
    failures: list[Exception] = []
    start = threading.Barrier(3)

    def copy(arriving: int) -> None:
        try:
            start.wait()
            attempts.append(table, arriving=arriving, patience_s=30)
        except Exception as error:
            failures.append(error)

    copies = [threading.Thread(target=copy, args=(arriving,)) for arriving in (10, 33, 240)]
    for one in copies:
        one.start()
    for one in copies:
        one.join()
    assert failures == []
    assert flat(attempts.values()) == expected(table)
    assert is_in_order(attempts.values())


def test_tasks_and_micro_batches_do_not_pass_for_each_other(attempts) -> None:
    table = rows(40)
    for identity in (TASK, TaskIdentity("query", 4, 5), TaskIdentity("other", 3, 5)):
        attempts.append(table, identity)
    attempts.append(table, TaskIdentity("query", 3, 6))
    assert flat(attempts.values()) == sorted(4 * expected(table))
    with pytest.raises(ProducerFencedError, match=r"micro-batch 5 of query query .* micro-batch 6"):
        attempts.append(table, TASK)
    assert len(flat(attempts.values())) == 160


# -- repeats that are none ---------------------------------------------------------------------


def swapped(table: pa.Table, one: int, other: int) -> pa.Table:
    order = list(range(len(table)))
    order[one], order[other] = order[other], order[one]
    return table.take(order)


def test_a_repeat_is_known_although_it_encrypts_anew_and_its_checksum_tells_nothing(
    redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_KEY", "77" * 32)
    attempts = Attempts(redis_url, **{ENCRYPTION_KEY: "env:LAKE_KEY"})
    table = rows(40)
    attempts.begin(table, 2)
    lake = attempts.lakelog
    attempts.topic = lake.topics.rotate_key("orders")
    assert attempts.append(table) == 40
    assert attempts.append(table) == 40
    with pytest.raises(RepeatDiffersError):
        attempts.append(rows(40, seed=2))
    held = [lake.log("orders").read(number).to_arrow() for number in range(2)]
    assert sorted(value for one in held for value in one["value"].to_pylist()) == expected(table)
    # A single short value would be told by its checksum.
    attempts.append(pa.table({"key": [b"k"], "value": [b"yes"]}), TaskIdentity("short", 0))
    alone = produced_batch([(NO_TIMESTAMP_MS, b"k", b"yes", ())])
    plain = f"{_extended(0, alone):08x}".encode()
    hashes = [key for key in redis_client.scan_iter() if redis_client.type(key) == b"hash"]
    kept = b" ".join(value for key in hashes for value in redis_client.hvals(key))
    values = opening(attempts.topic)
    assert values is not None
    assert values.check_of(_extended(0, alone)).encode() in kept
    assert plain not in kept


@pytest.mark.parametrize("begun", ["in the clear", "encrypted"])
def test_a_repeat_is_known_although_encryption_was_switched_meanwhile(
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    begun: str,
) -> None:
    monkeypatch.setenv("LAKE_KEY", "77" * 32)
    attempts = Attempts(redis_url)
    lake, table = attempts.lakelog, rows()
    settings = [{ENCRYPTION_KEY: "env:LAKE_KEY"}, {ENCRYPTION_KEY: None}]
    if begun == "encrypted":
        attempts.topic = lake.topics.alter("orders", settings[0])
        settings.reverse()
    attempts.begin(table, 3)
    attempts.topic = lake.topics.alter("orders", settings[0])
    attempts.begin(table, 5)
    attempts.topic = lake.topics.alter("orders", settings[1])
    assert attempts.append(table) == COUNT
    attempts.topic = lake.topics.alter("orders", settings[0])
    assert attempts.append(table, arriving=37) == COUNT
    with pytest.raises(RepeatDiffersError):
        attempts.append(rows(seed=2))
    held = [lake.log("orders").read(number).to_arrow() for number in range(2)]
    assert sorted(value for one in held for value in one["value"].to_pylist()) == expected(table)


def test_what_is_appended_behind_values_in_the_clear_has_a_checksum_that_tells_nothing(
    redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_KEY", "77" * 32)
    attempts = Attempts(redis_url)
    table = pa.table({"key": [b"k"] * 3, "value": [b"yes" * 300_000] * 2 + [b"no"]})
    attempts.begin(table, 1)
    attempts.topic = attempts.lakelog.topics.alter("orders", {ENCRYPTION_KEY: "env:LAKE_KEY"})
    assert attempts.append(table) == 3
    records = [(NO_TIMESTAMP_MS, b"k", value, ()) for value in table["value"].to_pylist()]
    plain = _extended(_extended(0, produced_batch(records[:2])), produced_batch(records[2:]))
    values = opening(attempts.topic)
    assert values is not None
    hashes = [key for key in redis_client.scan_iter() if redis_client.type(key) == b"hash"]
    kept = b" ".join(value for key in hashes for value in redis_client.hvals(key))
    assert values.check_of(plain).encode() in kept
    assert f"{plain:08x}".encode() not in kept


@pytest.mark.parametrize(
    "change",
    [
        lambda table: swapped(table, 0, 150),
        lambda table: swapped(table, 0, 1),
        lambda table: table.take(list(reversed(range(len(table))))),
        lambda table: table.slice(1),
        lambda table: table.slice(0, 20),
        lambda table: rows(seed=2),
        lambda table: pa.concat_tables([rows(1, seed=3), table]),
    ],
    ids=["far", "near", "reversed", "first gone", "shorter", "others", "one before"],
)
def test_other_rows_under_the_same_identity_are_refused_and_none_is_lost(attempts, change) -> None:
    table = rows(width=60_000)
    attempts.begin(table, 6)
    before = attempts.values()
    with pytest.raises(RepeatDiffersError, match="sortWithinPartitions"):
        attempts.append(change(table))
    # What was there stays; of the changed rows none came behind those they differ from.
    after = attempts.values()
    assert [a[: len(b)] for a, b in zip(after, before, strict=True)] == before
    attempts.append(table, TaskIdentity("query again", 3))
    assert set(expected(table)) <= set(flat(attempts.values()))


def test_rows_of_equal_size_that_changed_places_are_refused(attempts) -> None:
    """Boundaries and counts are the same, long before the last five calls: the checksum tells."""
    values = [b"%03d" % n + bytes(99_997) for n in range(160)]
    table = pa.table({"value": pa.array(values), "partition": pa.array([0] * 160, pa.int32())})
    attempts.begin(table, 9)
    held = len(flat(attempts.values()))
    with pytest.raises(RepeatDiffersError):
        attempts.append(swapped(table, 0, 150))
    assert len(flat(attempts.values())) == held
    assert attempts.append(table) == 160
    assert flat(attempts.values()) == expected(table)


# -- what happens to Redis ---------------------------------------------------------------------


def test_a_full_redis_fails_the_task_and_a_repeat_goes_on(make_redis) -> None:
    server = make_redis()
    attempts = Attempts(server.url, **{"remote.storage.enable": True})
    table = rows()
    with server.client() as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 4_000_000)
        with pytest.raises(HotTierFullError, match="Archive and trim"):
            attempts.append(table)
        held = len(flat(attempts.values()))
        assert 0 < held < COUNT
        client.config_set("maxmemory", 0)
    assert attempts.append(table) == COUNT
    assert flat(attempts.values()) == expected(table)


def test_a_redis_that_does_not_answer_fails_the_task_and_a_repeat_goes_on(away) -> None:
    server, attempts = away
    table = rows()
    attempts.begin(table, 4)
    os.kill(server.pid, signal.SIGSTOP)
    try:
        with pytest.raises(HotTierUnavailableError):
            attempts.append(table)
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert attempts.append(table, patience_s=30) == COUNT
    assert flat(attempts.values()) == expected(table)


def test_a_planned_stop_in_the_middle_is_waited_out(away) -> None:
    server, attempts = away
    table = rows()
    attempts.begin(table, 4)
    attempts.lakelog.hot.pause(attempts.topic.topic_partitions())
    with pytest.raises(HotTierPausedError):
        attempts.append(table)
    server.restart()
    assert attempts.append(table, patience_s=30) == COUNT
    assert flat(attempts.values()) == expected(table)


@pytest.mark.parametrize("lost_bytes", [0, 1_500_000])
def test_a_lost_tail_is_appended_again_and_nothing_else(away, lost_bytes) -> None:
    server, attempts = away
    table = rows()
    attempts.begin(table, 8)
    server.cut_append_only_file(drop=lost_bytes)
    server.start()
    survived = len(flat(attempts.values()))
    assert attempts.append(table, patience_s=30) == COUNT
    assert 0 < survived < COUNT
    assert flat(attempts.values()) == expected(table)
    assert is_in_order(attempts.values())


def test_a_tail_lost_under_the_attempt_ends_it_and_the_next_one_completes_it(away) -> None:
    server, attempts = away
    table = rows()

    def lose() -> None:
        server.cut_append_only_file(drop=2_000_000)
        server.start()

    with pytest.raises(UnknownProducerError, match="the next attempt of the task appends"):
        attempts.append(table, patience_s=30, meanwhile={4: lose})
    assert attempts.append(table, patience_s=30) == COUNT
    assert flat(attempts.values()) == expected(table)


def test_a_tiered_topic_on_a_restarted_server_is_written_with_a_look_at_its_cold_tier(
    make_redis, tmp_path
) -> None:
    server = make_redis()
    attempts = Attempts(server.url, **{"remote.storage.enable": True})
    topic = attempts.topic
    attempts.append(rows(20))
    server.restart(clean=False)
    schema = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])

    def append(**options: str) -> None:
        given = {"redis": server.url, "topic": "orders", **options}
        writer = LakelogWriter(parse_write(given), schema, False)
        append = TaskAppend(
            attempts.lakelog.hot,
            TaskIdentity("other", 0),
            Acks(),
            recover=writer._recover,
            repair=writer._repair,
            back_off=ASK_AGAIN.within(0.2 if not options else 30),
        )
        append_rows(append, TaskRows(lambda name: topic, topic, 0), rows(20).to_batches())

    with pytest.raises(RecoveryNeededError, match="set the option 'cold'"):
        append()
    assert flat(attempts.values()) == expected(rows(20))
    append(cold=str(tmp_path / "cold"))
    assert flat(attempts.values()) == sorted(2 * expected(rows(20)))


def test_a_task_looks_its_topics_up_for_as_long_as_it_appends(away, monkeypatch) -> None:
    """Who plans a write is told sooner that Redis is away."""
    monkeypatch.setattr(back_off, "ASK_AGAIN", back_off.ASK_AGAIN.within(0.1))
    context = SimpleNamespace(partitionId=lambda: 0)
    monkeypatch.setattr(sink, "TaskContext", SimpleNamespace(get=lambda: context))
    server, attempts = away
    columns = {"topic": ["orders"], "value": [b"v"]}
    batch = pa.record_batch(columns, pa.schema({"topic": pa.string(), "value": pa.binary()}))
    schema = StructType([StructField("topic", StringType()), StructField("value", BinaryType())])
    by_column = LakelogWriter(parse_write({"redis": server.url}), schema, False)
    server.kill()
    with pytest.raises(HotTierUnavailableError):
        LakelogWriter(parse_write({"redis": server.url, "topic": "orders"}), schema, False)
    comes_back = threading.Timer(1.0, server.start)
    comes_back.start()
    try:
        assert by_column.write(iter([batch])).rows == 1
    finally:
        comes_back.join()
    assert [values for values in attempts.values() if values] == [[b"v"]]


def test_a_topic_made_anew_is_refused_with_both_ids(attempts) -> None:
    table = rows(20)
    old = attempts.topic
    attempts.lakelog.topics.delete("orders")
    attempts.create()
    new, attempts.topic = attempts.topic, old
    with pytest.raises(UnknownTopicIdError) as caught:
        attempts.append(table)
    assert str(old.topic_id) in str(caught.value)
    assert str(new.topic_id) in str(caught.value)
    attempts.topic = new
    assert flat(attempts.values()) == []


def test_errors_survive_the_way_through_spark() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(RepeatDiffersError("why", sequence=3)))
    assert isinstance(error, LakelogError)
    assert (str(error), error.sequence) == ("why", 3)
