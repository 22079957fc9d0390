"""How far a stream is behind, and what listeners find in its progress."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from spark_log import EPOCH_MS, limited

from lakelog.spark.progress import Behind, LagListener, behind
from lakelog.testing.eventually import eventually
from lakelog.values.topic_partition import TopicPartition


@pytest.fixture
def start(spark: Any, tmp_path: Path) -> Iterator[Any]:
    """``start(options)``: a query that reads what there is, and goes on where it was."""

    def start(options: Mapping[str, str], **trigger: Any) -> Any:
        frame = spark.readStream.format("lakelog").options(**options).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", tmp_path / "c")
        query = writer.trigger(**(trigger or {"availableNow": True})).start()
        query.awaitTermination()
        return query

    yield start
    for query in spark.streams.active:
        query.stop()


def counts(found: list[Behind]) -> dict[int, tuple[int, int]]:
    return {one.topic_partition.partition: (one.offset, one.records) for one in found}


def test_records_and_time_are_told_of_each_partition(make_log, start) -> None:
    log = make_log(3)
    log.append(10)
    log.append(4, 1)
    query = start(log.options(startingOffsets="earliest"))
    assert counts(behind(log.lakelog, query.lastProgress)) == {0: (10, 0), 1: (4, 0), 2: (0, 0)}

    log.skip()  # a gap of an hour is billions of offsets wide
    log.append(7)
    log.archive()
    log.append(2)
    clock = log.lakelog.place.clock()
    before_ms = clock.now_ms()
    found = behind(log.lakelog, query.lastProgress)
    after_ms = clock.now_ms()
    assert counts(found) == {0: (10, 9), 1: (4, 0), 2: (0, 0)}
    first, second, _ = found
    assert before_ms <= EPOCH_MS + 10_000 + first.milliseconds <= after_ms  # of the eleventh
    assert first.topic_partition == TopicPartition("orders", 0)
    assert first.log_end == log.rows[-1][1] + 1
    assert second.milliseconds == 0
    assert str(second) == "orders-1: 0 records, 0 ms behind"


def test_of_a_topic_that_is_gone_or_another_now_nothing_is_told(make_log, start) -> None:
    log = make_log()
    log.append(5)
    query = start(log.options(startingOffsets="earliest"))
    log.lakelog.topics.delete("orders")
    assert behind(log.lakelog, query.lastProgress) == []
    log.create()
    log.append(9)
    assert behind(log.lakelog, query.lastProgress) == []


def test_what_expired_is_not_waited_for(make_log, start) -> None:
    log = make_log()
    log.append(5)
    query = start(log.options(startingOffsets="earliest"))
    log.append(15)
    log.lakelog.log("orders").raise_log_start(0, 12)
    assert counts(behind(log.lakelog, query.lastProgress)) == {0: (5, 8)}


def test_a_query_over_something_else_is_behind_nothing(make_log, spark, tmp_path) -> None:
    frame = spark.readStream.format("rate").load()
    query = frame.writeStream.format("noop").option("checkpointLocation", tmp_path / "r").start()
    eventually(lambda: query.lastProgress)
    query.stop()
    assert behind(make_log().lakelog, query.lastProgress) == []


def test_a_listener_tells_after_each_micro_batch_and_walks_over_offsets_as_over_kafka_s(
    make_log, spark, start
) -> None:
    log = make_log(2)
    log.append(30)
    log.append(30, 1)
    told: list[tuple[Any, list[Behind]]] = []
    listener = LagListener(log.lakelog, lambda progress, found: told.append((progress, found)))
    spark.streams.addListener(listener)
    try:
        query = start(log.options(startingOffsets="earliest", **limited(20)))
        batches = len([one for one in query.recentProgress if one["numInputRows"]])
        eventually(lambda: len(told) >= batches)
    finally:
        spark.streams.removeListener(listener)
    assert {one.records for one in told[-1][1]} == {0}
    for source in (source for progress, _ in told for source in progress["sources"]):
        end, latest = json.loads(source["endOffset"]), json.loads(source["latestOffset"])
        lag = 0
        for topic, partitions in (latest or {}).items():  # Spark before 4.2 does not ask for it
            for partition, offset in partitions.items():
                lag += offset - end[topic][partition]
        assert lag == (60 - sum(end["orders"].values()) if latest else 0)
