"""What runs in a client of Spark Connect; `test_connect.py` starts the server and this."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from spark_log import EPOCH_MS, SparkLog, limited, rows_of

from lakelog import Lakelog
from lakelog.errors import TrimmedError
from lakelog.spark import SparkEngine, reach, read, register_topics
from lakelog.values.record import Record


@pytest.fixture(autouse=True)
def _without_a_jvm(spark: Any) -> None:
    assert type(spark).__module__ == "pyspark.sql.connect.session"


def over_spark(log: SparkLog) -> Lakelog:
    """The same log, whose work is done by the session that lakelog finds by itself."""
    return Lakelog.connect(log.url, log.cold, engine="spark")


def test_archive_and_cleanup(make_log) -> None:
    log = make_log(2, cleanup_policy="compact", segment_ms=60_000, min_cleanable_dirty_ratio="0.01")
    for partition in (0, 1):
        log.append(100, partition, keys=7, batch=25)
    with over_spark(log) as lakelog:
        assert lakelog.archive("orders")[0].records == 200
        kept = [one.records_kept for one in lakelog.cleanup("orders")[0].compacted]
        assert kept == [7, 7]  # the last of each key lies in the closed segments
        assert [r.offset for r in lakelog.log("orders").read(0).records()] == [
            *range(68, 75),
            *range(75, 100),
        ]


def test_frames_over_both_tiers(make_log, spark) -> None:
    log = make_log(2)
    for partition in (0, 1):
        log.append(60, partition)
    log.archive()
    for partition in (0, 1):
        log.append(40, partition)
    with over_spark(log) as lakelog:
        assert rows_of(lakelog.dataframe("orders")) == log.expected()
        assert rows_of(lakelog.log("orders").dataframe(50, 70)) == log.expected(50, 70)
    assert rows_of(read(spark, log.url, str(log.cold), "orders", 10)) == log.expected(10)
    assert rows_of(read(spark, None, str(log.cold), "orders")) == log.expected(0, 60)


def test_the_data_source_in_batches_and_as_a_stream(make_log, spark, tmp_path) -> None:
    log = make_log()
    log.append(50)
    log.archive()
    log.append(30)
    options = log.options(startingOffsets="earliest")
    assert rows_of(spark.read.format("lakelog").options(**options).load()) == log.expected()

    def drain() -> list[Any]:
        frame = spark.readStream.format("lakelog").options(**options, **limited(25)).load()
        writer = frame.writeStream.format("delta").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.start(str(tmp_path / "sink")).awaitTermination()
        return rows_of(spark.read.format("delta").load(str(tmp_path / "sink")))

    assert drain() == log.expected()
    log.append(10)
    assert drain() == log.expected()


def test_the_sink_in_batches_and_as_a_stream(make_log, spark, tmp_path) -> None:
    log = make_log(2)
    target = {"redis": log.url, "topic": "orders"}
    files, checkpoint = str(tmp_path / "rows"), str(tmp_path / "checkpoint")

    def rows(*numbers: int) -> Any:
        return spark.createDataFrame(
            [(f"k{n}", f"{n}", n % 2) for n in numbers], "key string, value string, partition int"
        )

    def drain() -> None:
        frame = spark.readStream.format("delta").load(files)
        writer = frame.writeStream.format("lakelog").options(**target).trigger(availableNow=True)
        writer.option("checkpointLocation", checkpoint).start().awaitTermination()

    def appended() -> Counter[tuple[int, bytes]]:
        found = (log.lakelog.log("orders").read(partition).records() for partition in (0, 1))
        return Counter((r.partition, r.value) for records in found for r in records)

    def times(count: int, *numbers: int) -> Counter[tuple[int, bytes]]:
        return Counter({(n % 2, b"%d" % n): count for n in numbers})

    rows(*range(40)).write.format("lakelog").options(**target).mode("append").save()
    assert appended() == times(1, *range(40))
    rows(*range(40)).write.format("delta").save(files)
    drain()
    assert appended() == times(2, *range(40))
    rows(*range(40, 50)).write.format("delta").mode("append").save(files)
    drain()
    assert appended() == times(2, *range(40)) + times(1, *range(40, 50))


def test_tables_by_name_and_their_views(redis_url, schema, spark) -> None:
    log = SparkLog(redis_url, schema)
    log.create(cleanup_policy="compact", segment_ms=60_000, min_cleanable_dirty_ratio="0.01")
    try:
        log.append(100, keys=7, batch=25)
        log.archive()
        log.append(20)
        assert rows_of(log.lakelog.dataframe("orders")) == log.expected()
        assert [one.records_kept for one in log.lakelog.cleanup("orders")[0].compacted] == [7]
        assert log.lakelog.log("orders").seek(0, 90) == 90
    finally:
        log.lakelog.close()
    assert rows_of(read(spark, None, schema, "orders")) == log.expected(68, 100)
    assert rows_of(spark.table(f"{schema}.orders_view")) == log.expected(68, 100)
    assert spark.table(f"{schema}.orders_latest").count() == 7


def test_typed_columns_in_both_tiers_and_names_without_redis(make_log, schema, spark) -> None:
    log = make_log(lakelog_value_columns="n int, at timestamp, tags map<string,bigint>")

    def send(number: int) -> None:
        value = b'{"n": %d, "at": "2013-01-01T05:15:00-05:00", "tags": {"a": %d}}'
        log.send(Record("orders", 0, 0, EPOCH_MS, b"k", value % (number, number)))
        log.send(Record("orders", 0, 0, EPOCH_MS, b"k", b"no JSON"))

    def typed(frame: Any) -> list[tuple[Any, ...]]:
        shown = frame.selectExpr("offset", "n", "hour(at)", "tags['a']", "value_error")
        return sorted(tuple(row) for row in shown.collect())

    no_json = (None, None, None, "not a JSON object")
    send(1)
    log.archive()
    send(2)
    cold = [(0, 1, 10, 1, None), (1, *no_json)]
    assert typed(log.lakelog.dataframe("orders")) == [*cold, (2, 2, 10, 2, None), (3, *no_json)]
    (registered,) = register_topics(spark, str(log.cold), schema)
    assert typed(spark.table(registered.table)) == cold
    assert typed(spark.table(registered.view)) == cold
    assert typed(spark.table(registered.latest)) == cold[1:]


def test_what_the_executors_reach(redis_url, spark, tmp_path) -> None:
    here, there = reach(spark, redis_url, str(tmp_path / "cold"))
    assert (here.role, there.role) == ("driver", "executor")
    for place in (here, there):
        assert [way.passed for way in place.ways] == [("PING",), ("write", "read")]


def test_an_error_of_an_executor_arrives_as_it_was_raised(spark) -> None:
    def fail(number: int) -> None:
        if number == 2:
            raise TrimmedError("it is gone", local_log_start=7)

    with pytest.raises(TrimmedError) as caught:
        list(SparkEngine(spark).map(fail, [1, 2, 3]))
    assert caught.value.local_log_start == 7


def test_an_interrupt_cancels_the_job(spark, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)

    def hang(_: int) -> None:
        with started.open("w"):
            threading.Event().wait()

    def interrupt_once_it_runs() -> None:
        with started.open():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    def on_signal(*_: object) -> None:
        raise SystemExit(15)

    before = signal.signal(signal.SIGTERM, on_signal)
    try:
        waiter = threading.Thread(target=interrupt_once_it_runs)
        waiter.start()
        with pytest.raises(SystemExit):
            list(SparkEngine(spark).map(hang, [1, 2]))
        waiter.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    # The hanging tasks took both slots: were they still there, this would wait for ever.
    assert list(SparkEngine(spark).map(abs, [-1, -2, -3])) == [1, 2, 3]
