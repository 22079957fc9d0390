"""A stream that tells a consumer group how far it is (``groupId``)."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from redis import Redis
from spark_log import SparkLog

from lakelog import TopicPartition
from lakelog.base.clock import ManualClock
from lakelog.errors import InvalidArgumentError, InvalidGroupIdError
from lakelog.spark.datasource import LakelogStreamReader
from lakelog.spark.options import parse

GROUP = "nightly"


def logged(offset: Any) -> Any:
    """As it comes back from a checkpoint."""
    return json.loads(json.dumps(offset))


class Stream:
    """As Spark drives one, micro-batch by micro-batch."""

    def __init__(self, log: SparkLog, clock: ManualClock | None = None, at: Any = None) -> None:
        options = log.options(groupId=GROUP, startingOffsets="earliest")
        self.reader = LakelogStreamReader(parse(options, streaming=True), clock)
        self.at = self.reader.initialOffset() if at is None else at

    def asks(self) -> Any:
        """For the end of the next micro-batch, the last one being done; None: there is none."""
        then = logged(self.reader.latestOffset(self.at, None))
        return None if then == self.at else then

    def runs(self) -> None:
        self.at = self.asks()


def committed(log: SparkLog, group: str = GROUP) -> dict[str, int]:
    tp = {p: TopicPartition("orders", p) for p in range(4)}
    with log.lakelog.consumer(group_id=group) as consumer:
        found = {p: consumer.committed(one) for p, one in tp.items()}
    return {str(p): offset for p, offset in found.items() if offset is not None}


def test_a_micro_batch_is_committed_once_the_next_is_asked_for(make_log) -> None:
    log = make_log(2)
    log.append(10)
    stream = Stream(log)
    stream.runs()
    assert committed(log) == {}  # planned, and not done
    log.append(5, 1)
    planned = stream.asks()
    assert committed(log) == {"0": 10, "1": 0}
    stream.at = planned
    assert stream.asks() is None
    assert committed(log) == {"0": 10, "1": 5}
    (group,) = log.lakelog.groups.list()
    assert (group.group_id, group.state.value) == (GROUP, "Empty")


def test_spark_40_and_41_say_what_is_done_by_commit(make_log) -> None:
    log = make_log()
    log.append(10)
    stream = Stream(log)
    stream.reader.commit(stream.at)  # nothing is read there
    assert committed(log) == {}
    stream.reader.commit(logged(stream.reader.latestOffset()))
    assert committed(log) == {"0": 10}


def test_a_stream_that_waits_keeps_its_group(make_log, redis_client) -> None:
    """Offsets expire some time after their commit, as in Kafka."""
    log = make_log()
    log.append(10)
    clock = ManualClock()
    stream = Stream(log, clock)
    stream.runs()
    stream.asks()
    log.lakelog.groups.delete_offsets(GROUP, [TopicPartition("orders", 0)])
    clock.advance(19_999)
    stream.asks()
    assert committed(log) == {}
    clock.advance(1)
    stream.asks()
    assert committed(log) == {"0": 10}


def test_a_group_with_members_stops_no_stream(make_log, caplog) -> None:
    log = make_log()
    log.append(10)
    stream = Stream(log)
    stream.runs()
    caplog.set_level(logging.WARNING, "lakelog.spark.group_progress")
    settings = {"group_id": GROUP, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with log.lakelog.consumer("orders", **settings) as consumer:
        consumer.poll(timeout_ms=20_000)
        for _ in range(3):
            assert stream.asks() is None
        (said,) = caplog.messages
        assert "the group has members" in said
        assert "groupId of its own" in said
    assert stream.asks() is None
    assert committed(log) == {"0": 10}


def test_a_group_in_redis_that_is_not_one_stops_no_stream(
    make_log, redis_client: Redis, caplog
) -> None:
    log = make_log()
    log.append(10)
    stream = Stream(log)
    stream.runs()
    stream.asks()
    keys = [key for key in redis_client.scan_iter("*") if GROUP.encode() in key]
    assert keys
    for key in keys:
        redis_client.delete(key)
        redis_client.set(key, "somebody's")
    caplog.set_level(logging.WARNING, "lakelog.spark.group_progress")
    log.append(5)
    stream.runs()
    assert stream.asks() is None
    assert len(caplog.messages) == 1
    assert stream.at["orders"] == {"0": 15}


def test_only_a_stream_has_one_and_its_id_is_legal(make_log) -> None:
    log = make_log()
    with pytest.raises(InvalidArgumentError, match="groupId is for streams"):
        parse(log.options(groupId=GROUP), streaming=False)
    with pytest.raises(InvalidGroupIdError, match="not the id of a group"):
        parse(log.options(groupId=""), streaming=True)
    assert parse(log.options(), streaming=True).group_id is None


@pytest.mark.slow
def test_its_lag_is_there_with_the_others(make_log, spark, tmp_path) -> None:
    log = make_log(2)
    log.append(10)
    options = log.options(groupId=GROUP, startingOffsets="earliest")
    frame = spark.readStream.format("lakelog").options(**options).load()
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert committed(log) == {"0": 10, "1": 0}
    log.append(7, 1)
    behind = log.lakelog.log("orders").lag(1, committed(log)["1"])
    assert behind.records.records == 7
    writer.trigger(availableNow=True).start().awaitTermination()
    assert committed(log) == {"0": 10, "1": 7}
