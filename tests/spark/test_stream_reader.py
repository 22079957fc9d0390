"""The stream reader as Spark calls it, at moments that Spark alone does not show."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from spark_log import EPOCH_MS, SparkLog

from lakelog.base.back_off import ASK_AGAIN
from lakelog.base.clock import Clock, ManualClock
from lakelog.errors import (
    HotTierUnavailableError,
    InvalidArgumentError,
    OffsetOutOfRangeError,
    UnknownTopicIdError,
)
from lakelog.hot import TopicRegistry
from lakelog.spark import datasource
from lakelog.spark.datasource import InputTask, LakelogStreamReader
from lakelog.spark.options import parse
from tests.support.servers import RedisServer


class Limit(NamedTuple):
    """As one of Spark 4.2's limits; older ones have none."""

    most: int = 0


@pytest.fixture
def limits(monkeypatch) -> None:
    """Limits as of Spark 4.2, with any Spark."""
    monkeypatch.setattr(datasource, "HAS_READ_LIMITS", True)
    for name in ("ReadMaxRows", "ReadMaxBytes", "ReadMinRows"):
        monkeypatch.setattr(datasource, name, Limit)
    if datasource.ReadAllAvailable is None:
        monkeypatch.setattr(datasource, "ReadAllAvailable", type("ReadAllAvailable", (), {}))


def reader(log: SparkLog, clock: Clock | None = None, **options: Any) -> LakelogStreamReader:
    """A new one, as a query that starts has it."""
    return LakelogStreamReader(parse(log.options(**options), streaming=True), clock)


def ranges(tasks: list[InputTask]) -> list[tuple[int, int, int]]:
    """What the tasks read, one after the other."""
    return [(one.partition, *one[2:]) for task in tasks for one in task.ranges]


def logged(offset: Any) -> Any:
    """As it comes back from a checkpoint."""
    return json.loads(json.dumps(offset))


@pytest.mark.parametrize("says_start", [True, False], ids=["Spark 4.2", "Spark 4.0, 4.1"])
def test_a_first_batch_that_died_begins_where_it_began(make_log, says_start) -> None:
    log = make_log()
    log.append(10)
    first = reader(log)  # from the latest on
    if says_start:
        start = first.initialOffset()
        log.append(5)
        end = first.latestOffset(start, None)
    else:  # asked for the end first
        assert first.latestOffset()["orders"] == {"0": 10}
        log.append(5)
        end = first.latestOffset()
        start = first.initialOffset()
    assert end["orders"] == {"0": 15}
    # The end is in the checkpoint; then the process dies, and more is appended.
    log.append(100)
    again = reader(log)
    assert ranges(again.partitions(again.initialOffset(), logged(end))) == [(0, 10, 15)]
    # The next batch, also after another restart, begins where that one ended.
    once_more = reader(log)
    then = once_more.latestOffset(logged(end), None) if says_start else once_more.latestOffset()
    assert ranges(once_more.partitions(logged(end), logged(then))) == [(0, 15, 115)]


def test_nothing_new_is_the_same_text(make_log) -> None:
    log = make_log()
    log.append(10)
    for start in (reader(log, startingOffsets="earliest").initialOffset(), None):
        one = reader(log, startingOffsets="earliest")
        end = one.latestOffset(start, None)
        if start is None:
            assert json.dumps(one.latestOffset()) == json.dumps(end)
        else:
            assert json.dumps(one.latestOffset(logged(end), None)) == json.dumps(end)
            assert "@since orders" in end
            log.append(1)
            assert "@since orders" not in one.latestOffset(logged(end), None)


def test_available_now_ends_where_the_log_ended(make_log, limits) -> None:
    log = make_log(2)
    log.append(10)
    one = reader(log, startingOffsets="earliest", maxOffsetsPerTrigger=4, minOffsetsPerTrigger=3)
    one.prepareForTriggerAvailableNow()
    log.append(10)
    log.append(5, 1)
    log.lakelog.topics.add_partitions("orders", 3)
    log.append(5, 2)
    offset = one.initialOffset()
    seen = []
    while (then := one.latestOffset(logged(offset), Limit())) != logged(offset):
        seen.append(then["orders"])
        offset = then
    assert {**seen[-1], "2": 0} == {"0": 10, "1": 0, "2": 0}
    assert [one["0"] for one in seen] == [4, 8, 10]


def test_the_limit_is_shared_and_reported(make_log, limits) -> None:
    log = make_log(2)
    log.append(90)
    log.append(10, 1)
    one = reader(log, startingOffsets="earliest", maxOffsetsPerTrigger=20)
    assert one.getDefaultReadLimit() == Limit(20)
    assert one.reportLatestOffset() is None
    end = one.latestOffset(one.initialOffset(), one.getDefaultReadLimit())
    assert end["orders"] == {"0": 18, "1": 2}
    reported = one.reportLatestOffset()
    assert reported["orders"] == {"0": 90, "1": 10}
    assert reported.keys() == end.keys()


def micro_batch(one: LakelogStreamReader, offset: Any, limit: Any = Limit()) -> Any:  # noqa: B008
    """Where the next one ends; None: there is none now."""
    then = one.latestOffset(logged(offset), limit)
    return None if then == logged(offset) else then


def test_few_records_wait_until_they_are_enough_or_for_so_long(make_log, limits) -> None:
    log = make_log()
    log.append(1)
    clock = ManualClock()
    options = {"minOffsetsPerTrigger": 10, "maxTriggerDelay": "30s", "maxOffsetsPerTrigger": 12}
    one = reader(log, clock, startingOffsets="earliest", **options)
    first = micro_batch(one, one.initialOffset())  # a query that starts does not wait
    assert first["orders"] == {"0": 1}

    log.append(9)
    clock.advance(29_999)
    assert micro_batch(one, first) is None
    assert micro_batch(one, first, datasource.ReadAllAvailable())["orders"] == {"0": 10}
    log.append(5)
    second = micro_batch(one, first)
    assert second["orders"] == {"0": 13}  # limited from above too

    clock.advance(29_999)
    assert micro_batch(one, second) is None  # two are left
    clock.advance(1)
    assert micro_batch(one, second)["orders"] == {"0": 15}
    again = reader(log, clock, startingOffsets="earliest", **options)
    assert micro_batch(again, second)["orders"] == {"0": 15}


def test_bytes_are_a_soft_limit_in_proportion(make_log, limits) -> None:
    log = make_log(3)
    log.append(100, 0, padding=os.urandom(1000), batch=10)
    log.append(100, 1, padding=os.urandom(1000), batch=10)
    log.append(1, 2)
    look = log.lakelog.log("orders").offsets()
    assert {number: one.log_end for number, one in look.items()} == {0: 100, 1: 100, 2: 1}
    one = reader(log, startingOffsets="earliest", maxBytesPerTrigger="50k")
    end = micro_batch(one, one.initialOffset())["orders"]
    assert end["0"] == end["1"]
    assert 15 <= end["0"] <= 30
    assert end["2"] == 1
    tiny = reader(log, startingOffsets="earliest", maxBytesPerTrigger=1)
    end = micro_batch(tiny, tiny.initialOffset())
    assert end["orders"] == {"0": 1, "1": 1, "2": 1}
    offset, batches = tiny.initialOffset(), 0
    while (then := micro_batch(tiny, offset)) is not None:
        offset, batches = then, batches + 1
    assert (offset["orders"], batches) == ({"0": 100, "1": 100, "2": 1}, 100)


def test_older_sparks_refuse_a_limit_they_cannot_keep(make_log, monkeypatch) -> None:
    log = make_log()
    monkeypatch.setattr(datasource, "HAS_READ_LIMITS", False)
    source = datasource.LakelogDataSource(log.options(maxOffsetsPerTrigger=5))
    with pytest.raises(InvalidArgumentError, match=r"maxOffsetsPerTrigger needs Spark 4\.2"):
        source.streamReader(source.schema())


def test_where_a_stream_begins(make_log) -> None:
    log = make_log(2)
    for partition in (0, 1):
        log.append(50, partition)
    begin = {
        "earliest": {"0": 0, "1": 0},
        "latest": {"0": 50, "1": 50},
        '{"orders": {"0": 7, "1": -1}}': {"0": 7, "1": 50},
        f"@{EPOCH_MS + 20_000}": {"0": 20, "1": 20},
    }
    for text, offsets in begin.items():
        assert reader(log, startingOffsets=text).initialOffset()["orders"] == offsets
    with pytest.raises(OffsetOutOfRangeError, match="offset 51 of orders-1"):
        reader(log, startingOffsets='{"orders": {"0": 7, "1": 51}}').initialOffset()
    with pytest.raises(InvalidArgumentError, match="has no record at or after"):
        reader(log, startingTimestamp=EPOCH_MS + 10**7).initialOffset()


def test_offsets_of_another_creation_are_refused_wherever_they_come_from(make_log) -> None:
    log = make_log()
    log.append(10)
    end = reader(log, startingOffsets="earliest").initialOffset()
    until = reader(log).latestOffset(end, None)
    log.lakelog.topics.delete("orders")
    with pytest.raises(UnknownTopicIdError, match=r"'orders' \(id .*was deleted under the stream"):
        reader(log).latestOffset(end, None)
    with pytest.raises(UnknownTopicIdError, match="was deleted under the stream"):
        reader(log).partitions(end, until)
    lenient = reader(log, failOnDataLoss="false")
    assert lenient.latestOffset(until, None) == until
    assert lenient.partitions(end, until) == []
    log.create().append(20)
    for one in (reader(log), lenient):
        with pytest.raises(UnknownTopicIdError, match="deleted and created again"):
            one.latestOffset(until, None)
        with pytest.raises(UnknownTopicIdError, match="deleted and created again"):
            one.partitions(end, until)
    with pytest.raises(UnknownTopicIdError, match="deleted and created again"):
        reader(log, startingOffsets=json.dumps(until)).initialOffset()


def test_a_subscription_that_leaves_a_topic_out_is_not_taken_for_its_deletion(make_log) -> None:
    log = make_log()
    log.lakelog.topics.create("more")
    start = reader(log, subscribe="orders,more", startingOffsets="earliest").initialOffset()
    with pytest.raises(UnknownTopicIdError, match="its subscription leaves it out now"):
        reader(log, subscribe="orders").latestOffset(start, None)
    lenient = reader(log, subscribe="orders", failOnDataLoss="false")
    assert lenient.latestOffset(start, None) == start


def test_partitions_that_are_defined_but_not_made_yet_come_later(make_log, monkeypatch) -> None:
    log = make_log()
    log.append(10)
    end = reader(log, startingOffsets="earliest").initialOffset()
    with monkeypatch.context() as patched:
        patched.setattr(TopicRegistry, "repair", lambda *_, **__: None)  # the maker died here
        log.lakelog.topics.add_partitions("orders", 3)
    then = reader(log).latestOffset(end, None)
    assert then["orders"] == {"0": 10}
    log.lakelog.topics.repair(log.lakelog.topics.get("orders"))
    assert reader(log).latestOffset(then, None)["orders"] == {"0": 10, "1": 0, "2": 0}


def test_a_partition_that_is_gone_is_missed(make_log, redis_client) -> None:
    log = make_log(2)
    end = reader(log).initialOffset()
    redis_client.delete("{lakelog:stream:orders:1}:state")
    with pytest.raises(UnknownTopicIdError):
        reader(log).latestOffset(end, None)


def test_a_stream_ahead_of_a_log_that_was_put_back_fails(make_log) -> None:
    log = make_log()
    log.append(10)
    end = reader(log).initialOffset()
    ahead = {**end, "orders": {"0": 99}}
    with pytest.raises(OffsetOutOfRangeError, match="offset 99 of orders-0 is out of range"):
        reader(log).latestOffset(ahead, None)


def test_an_offset_nobody_wrote_is_refused(make_log) -> None:
    with pytest.raises(InvalidArgumentError, match="a stream's offset should be JSON such as"):
        reader(make_log()).latestOffset({"orders": 5}, None)


def test_a_micro_batch_is_cut_as_before_when_its_records_moved(make_log) -> None:
    log = make_log(2)
    log.append(40, 0, padding=b"x" * 5000)
    log.append(60, 1)
    options = {"startingOffsets": "earliest", "minPartitions": 7}
    first = reader(log, **options)
    start = first.initialOffset()
    end = first.latestOffset(start, None)
    before = ranges(first.partitions(start, logged(end)))
    assert len(before) >= 7
    log.archive()  # compressed there, and no longer in Redis
    log.append(500, 1)
    again = reader(log, **options)
    assert ranges(again.partitions(again.initialOffset(), logged(end))) == before


def test_a_micro_batch_of_large_records_is_cut_by_their_size(make_log) -> None:
    log = make_log(8)
    for partition in range(8):
        for _ in range(5):
            log.append(5, partition, padding=random.randbytes(200_000))
    first = reader(log, startingOffsets="earliest")
    start = first.initialOffset()
    end = first.latestOffset(start, None)
    assert end["@bytes orders"] == {"0": 262_144}  # 200 kB, and a little
    before = ranges(first.partitions(start, logged(end)))
    assert len(before) == 8  # of 5 MB each; a task has no more than 4 MiB of several
    log.archive()
    again = reader(log, startingOffsets="earliest")
    assert ranges(again.partitions(again.initialOffset(), logged(end))) == before
    older = {name: member for name, member in logged(end).items() if "@bytes" not in name}
    assert len(again.partitions(start, older)) == 1  # as whoever wrote it cut it
    assert again.latestOffset(logged(end), None) == end  # nothing new, nothing else


# -- over a gap --------------------------------------------------------------------------------


def test_a_micro_batch_over_a_gap_is_cut_as_before_whatever_is_known_of_the_gap_by_then(
    make_log, redis_client
) -> None:
    log = make_log()
    log.append(20)
    log.skip()
    log.append(20)
    options = {"startingOffsets": "earliest", "minPartitions": 4}
    first = reader(log, **options)
    start = first.initialOffset()
    end = first.latestOffset(start, None)
    before = ranges(first.partitions(start, logged(end)))
    assert len(before) == 4
    redis_client.hdel("{lakelog:stream:orders:0}:state", "gaps")
    again = reader(log, **options)
    assert ranges(again.partitions(again.initialOffset(), logged(end))) == before


def test_a_limit_steps_over_a_gap(make_log, limits) -> None:
    log = make_log()
    log.append(20)
    log.skip()
    log.append(20)
    one = reader(log, startingOffsets="earliest", maxOffsetsPerTrigger=15)
    offset, seen = one.initialOffset(), []
    while (then := one.latestOffset(logged(offset), Limit())) != logged(offset):
        seen.append(then["orders"]["0"])
        offset = then
    assert [sum(row[1] < end for row in log.rows) for end in seen] == [15, 30, 40]


@pytest.mark.parametrize(
    "call", ["latestOffset", pytest.param("partitions", marks=pytest.mark.slow)]
)
def test_a_stream_that_runs_outlives_an_outage_of_which_one_that_begins_is_told(
    make_redis: Callable[..., RedisServer], tmp_path, monkeypatch, call: str
) -> None:
    monkeypatch.setattr(datasource, "ASK_AGAIN", ASK_AGAIN.within(0.1))
    server = make_redis(appendonly="yes", appendfsync="always")
    log = SparkLog(server.url, tmp_path / "cold").create()
    log.append(10)
    running, beginning, resumed = (reader(log, startingOffsets="earliest") for _ in range(3))
    start = running.initialOffset()
    end = running.latestOffset(start, None)
    server.kill()
    with pytest.raises(HotTierUnavailableError):
        beginning.initialOffset()
    with pytest.raises(HotTierUnavailableError):
        resumed.latestOffset(end, None)
    comes_back = threading.Timer(1.0, server.start)
    comes_back.start()
    try:
        if call == "latestOffset":
            assert running.latestOffset(start, None) == end
        else:
            assert ranges(running.partitions(start, end)) == [(0, 0, 10)]
    finally:
        comes_back.join()
        log.lakelog.close()


def test_a_stream_that_waits_for_its_first_topic_runs_too(
    make_redis: Callable[..., RedisServer], tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(datasource, "ASK_AGAIN", ASK_AGAIN.within(0.1))
    server = make_redis(appendonly="yes", appendfsync="always")
    options = {"redis": server.url, "cold": str(tmp_path / "cold"), "subscribePattern": "none.*"}
    waiting = LakelogStreamReader(parse(options, streaming=True))
    start = waiting.initialOffset()
    assert waiting.latestOffset(start, None) == start
    server.kill()
    comes_back = threading.Timer(1.0, server.start)
    comes_back.start()
    try:
        assert waiting.latestOffset(start, None) == start
    finally:
        comes_back.join()
