"""What a task of a batch or micro-batch reads, also if the log changes in the middle of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st
from spark_log import SparkLog

from lakelog.base.back_off import ASK_AGAIN, BackOff
from lakelog.cold.store.storage import Storage
from lakelog.errors import HotTierUnavailableError, UnknownTopicIdError
from lakelog.hot import HotSource
from lakelog.place import LogPlace, PathRoot
from lakelog.spark.datasource import LakelogReader
from lakelog.spark.options import parse
from lakelog.spark.range_rows import (
    TOGETHER_BYTES,
    Looked,
    looked_at,
    range_rows,
    together,
)
from lakelog.values.config import MIB
from tests.support.servers import RedisServer

RECORDS = 60


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis(appendonly="yes", appendfsync="always")


@pytest.fixture
def task(server: RedisServer, tmp_path) -> Iterator[Callable[[int], Iterator[list[int]]]]:
    """``task(start)``: the offsets of what a task reads from there to the end, a step at a time."""
    log = SparkLog(server.url, tmp_path / "cold").create()
    log.append(RECORDS, padding=os.urandom(MIB // 2), batch=1)
    topic = log.lakelog.topics.get("orders")
    place = LogPlace(HotSource(server.url), PathRoot(Storage(str(log.cold))))

    def read(start: int, back_off: BackOff | None = None) -> Iterator[list[int]]:
        for rows in range_rows(
            place, topic, 0, start, RECORDS, fail_on_data_loss=True, back_off=back_off
        ):
            yield rows.column("offset").to_pylist()

    yield read
    log.lakelog.close()


def test_a_redis_that_restarts_is_waited_for_and_no_row_comes_twice(task, server) -> None:
    steps = task(0)
    seen = next(steps)
    assert len(seen) < RECORDS
    server.restart(clean=False)
    assert seen + [offset for step in steps for offset in step] == list(range(RECORDS))


def test_a_redis_that_stays_away_fails_the_task_whose_next_attempt_reads_all(task, server) -> None:
    steps = task(0, ASK_AGAIN.within(0.2))
    seen = next(steps)
    server.kill()
    with pytest.raises(HotTierUnavailableError):
        seen += [offset for step in steps for offset in step]
    assert len(seen) < RECORDS
    server.start()
    assert [offset for step in task(0) for offset in step] == list(range(RECORDS))


# -- several ranges ------------------------------------------------------------------------------

PARTITIONS = 12


class SeveralRanges:
    """A log of partitions that have records in both tiers, and all of it as ranges."""

    def __init__(self, make_log: Callable[..., SparkLog], **settings: object) -> None:
        self.log = log = make_log(PARTITIONS, **settings)
        for partition in range(PARTITIONS):
            log.append(20, partition)
        log.archive()
        for partition in range(PARTITIONS):
            log.append(3, partition)
        topic = log.lakelog.topics.get("orders")
        self.place = LogPlace(HotSource(log.url), PathRoot(Storage(str(log.cold))))
        self.ranges = [(topic, partition, 0, 23) for partition in range(PARTITIONS)]

    def looked(self) -> Looked:
        return looked_at(self.place, self.ranges)[self.ranges[0][0].topic_id]

    def rows(self, looked: Looked | None) -> list[tuple[int, int, bytes, bytes]]:
        return [
            (one[1], *row.values())
            for one in self.ranges
            for rows in range_rows(self.place, *one, fail_on_data_loss=True, looked=looked)
            for row in rows.select(["offset", "key", "value"]).to_pylist()
        ]


def test_ranges_that_share_a_task_ask_redis_together(make_log) -> None:
    """Each by itself is asked for where its first record may be, and again where the rest is."""
    several = SeveralRanges(make_log)
    reader = LakelogReader(parse(several.log.options(), streaming=False))
    (task,) = reader.partitions()
    with redis.Redis.from_url(several.log.url) as client:

        def calls(command: str) -> int:
            return client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"]

        before = calls("xrange")
        assert sum(batch.num_rows for batch in reader.read(task)) == PARTITIONS * 23
        assert calls("xrange") - before == PARTITIONS


def test_a_look_at_several_ranges_gives_what_one_at_a_time_gives(make_log) -> None:
    several = SeveralRanges(make_log)
    assert several.rows(several.looked()) == several.rows(None) == several.log.expected()


def test_what_is_archived_and_trimmed_after_the_look_is_read_where_it_is(make_log) -> None:
    several = SeveralRanges(make_log)
    looked = several.looked()
    several.log.archive()
    assert several.rows(looked) == several.log.expected()


def test_files_that_were_rewritten_after_the_look_are_looked_up_anew(make_log) -> None:
    several = SeveralRanges(make_log)
    several.log.archive()  # each segment is two files now
    lake = several.log.lakelog
    for topic, partition, _, end in several.ranges:
        lake.hot.roll(topic.partition(partition), end, topic.topic_id)
        several.log.append(1, partition)
    several.log.archive()
    looked = several.looked()
    lake.cleanup("orders", steps=["optimize"])
    table = lake.log("orders").table
    gone = {file.path for file in looked.look.cold.files}
    gone -= {file.path for file in table.snapshot().files}
    assert len(gone) == 2 * PARTITIONS
    for path in gone:
        Path(Storage(str(several.log.cold)).table_path(several.ranges[0][0]), path).unlink()
    assert several.rows(looked) == several.log.expected(end=23)


def test_a_topic_that_was_deleted_after_the_look_is_no_more(make_log) -> None:
    several = SeveralRanges(make_log)
    looked = several.looked()
    several.log.lakelog.topics.delete("orders")
    with pytest.raises(UnknownTopicIdError):
        several.rows(looked)


@given(st.lists(st.sampled_from([0, 1, 10, TOGETHER_BYTES // 3, 2 * TOGETHER_BYTES]), max_size=12))
def test_batches_are_put_together_and_their_rows_stay(sizes) -> None:
    batches = [
        pa.record_batch({"value": pa.array([b"x" * size, b"%d" % number])})
        for number, size in enumerate(sizes)
    ]
    found = list(together(batches))
    assert [row for one in found for row in one["value"].to_pylist()] == [
        row for one in batches for row in one["value"].to_pylist()
    ]
    largest = max((one.nbytes for one in batches), default=0)
    assert all(one.nbytes <= max(TOGETHER_BYTES, largest) for one in found)
    assert len(found) <= 1 + 2 * sum(one.nbytes for one in batches) // TOGETHER_BYTES
