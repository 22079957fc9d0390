"""One DataFrame over both tiers: the rows of the range, the same each time, few files touched."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from spark_log import EPOCH_MS, SparkLog, files_read, rows_of

from lakelog.errors import InvalidArgumentError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from lakelog.spark import read
from lakelog.values.record import Record, TimestampType


def test_the_columns_are_the_kafka_sources_and_every_byte_comes_back(make_log, spark) -> None:
    log = make_log()
    records = [
        Record("orders", 0, 0, EPOCH_MS, None, b""),
        Record("orders", 0, 1, EPOCH_MS + 1, b"", None, (("a", b"\x00\xff"), ("a", None))),
        Record("orders", 0, 2, EPOCH_MS - 1, b"\x80", b"v", (("", b""),)),
    ]
    log.send(*records)
    log.archive()
    log.send(*records)

    frame = log.lakelog.dataframe("orders")

    assert frame.dtypes == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]
    found = [
        Record(
            row["topic"],
            row["partition"],
            row["offset"],
            round(row["timestamp"].replace(tzinfo=timezone.utc).timestamp() * 1000),
            None if row["key"] is None else bytes(row["key"]),
            None if row["value"] is None else bytes(row["value"]),
            tuple((h["key"], h["value"] and bytes(h["value"])) for h in row["headers"]),
            TimestampType(row["timestampType"]),
        )
        for row in frame.orderBy("offset").collect()
    ]
    assert [r.offset for r in found] == list(range(6))
    wanted = [r for p in [log.lakelog.log("orders").read(0)] for r in p.records()]
    assert [_told(r) for r in found] == [_told(r) for r in wanted]


def _told(record: Record) -> tuple[object, ...]:
    headers = tuple((name, value or None) for name, value in record.headers)
    return (record.offset, record.timestamp_ms, record.key, record.value, headers)


def test_numbers_and_times_of_numpy_are_taken(make_log, spark) -> None:
    log = make_log(2)
    log.append(10, 0)
    lake, zero = log.lakelog, np.int64(0)
    asked = lake.dataframe("orders", {zero: np.int64(2)}, {zero: np.int64(5)}, partitions=[zero])
    assert [row["offset"] for row in asked.orderBy("offset").collect()] == [2, 3, 4]
    since = lake.log("orders").read(0).to_arrow()["timestamp"][7]
    for time in (since, np.datetime64(since.value, "us")):
        assert lake.dataframe("orders", time, partitions=zero).count() == 3
    with pytest.raises(InvalidArgumentError, match="is no list of whole numbers"):
        lake.dataframe("orders", partitions="0")


@pytest.mark.parametrize("archived", ["none", "part", "all"])
def test_ranges_by_offset_time_and_partition(make_log, spark, archived) -> None:
    log = make_log(2)
    for partition in (0, 1):
        log.append(60, partition)
    if archived != "none":
        log.archive()
    for partition in (0, 1):
        log.append(40, partition)
    if archived == "all":
        log.archive()
    orders = log.lakelog.log("orders")
    at_50 = datetime.fromtimestamp(EPOCH_MS / 1000, timezone.utc) + timedelta(seconds=50)

    assert rows_of(orders.dataframe(10, 90)) == log.expected(10, 90)
    assert rows_of(orders.dataframe(at_50, f"@{EPOCH_MS + 70_000}")) == log.expected(50, 70)
    assert rows_of(orders.dataframe(at_50 + timedelta(days=1))) == []
    assert rows_of(orders.dataframe("-10m", "latest")) == []
    assert rows_of(orders.dataframe(timedelta(days=36500))) == log.expected()
    assert rows_of(orders.dataframe({0: 95, 1: "earliest"}, {0: "latest", 1: 2})) == [
        *[row for row in log.expected(95) if row[0] == 0],
        *[row for row in log.expected(0, 2) if row[0] == 1],
    ]
    assert rows_of(orders.dataframe(50, 55, partitions=[1])) == [
        row for row in log.expected(50, 55) if row[0] == 1
    ]


def test_what_is_not_covered_fails_unless_it_is_clipped(make_log, spark) -> None:
    log = make_log(2)
    for partition in (0, 1):
        log.append(50, partition)
    log.archive()
    orders = log.lakelog.log("orders")
    orders.raise_log_start(1, 20)

    with pytest.raises(OffsetOutOfRangeError, match=r"offset 10 of orders-1 is out of range"):
        orders.dataframe(10)
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 60 of orders-0 is out of range"):
        orders.dataframe("earliest", 60)
    clipped = orders.dataframe(10, 60, clip=True)
    assert rows_of(clipped) == [
        *[row for row in log.expected(10) if row[0] == 0],
        *[row for row in log.expected(20) if row[0] == 1],
    ]
    assert rows_of(orders.dataframe(70, 80, clip=True)) == []


def test_ranges_that_make_no_sense_are_refused(make_log, spark) -> None:
    orders = make_log(2).lakelog.log("orders")
    with pytest.raises(InvalidArgumentError, match="ends before it begins"):
        orders.dataframe(5, 2, clip=True)
    with pytest.raises(InvalidArgumentError, match="name the same partitions"):
        orders.dataframe({0: 5}, {1: 7})
    with pytest.raises(UnknownTopicOrPartitionError, match="no partition 2"):
        orders.dataframe(partitions=[2])
    with pytest.raises(InvalidArgumentError, match="does not know how executors would open it"):
        type(orders)(orders.topic, orders.hot, orders.table).dataframe()


@pytest.mark.slow
def test_an_hour_of_a_month_touches_only_its_files(make_log, spark) -> None:
    hours = 30 * 24
    log = make_log(2, segment_ms=24 * 3600 * 1000)
    for partition in (0, 1):
        log.append(hours, partition, step_ms=3600 * 1000, batch=12)
    log.archive()
    orders = log.lakelog.log("orders")
    snapshot = orders.table.snapshot()
    assert len(snapshot.files) >= 50

    everything = orders.dataframe()
    assert files_read(everything) == len(snapshot.files)
    start_ms = EPOCH_MS + 500 * 3600 * 1000
    hour = orders.dataframe(f"@{start_ms}", f"@{start_ms + 3600 * 1000}")
    assert rows_of(hour) == log.expected(500, 501)
    assert files_read(hour) == 2
    uneven = orders.dataframe({0: 10, 1: 700}, {0: 11, 1: 701})
    assert files_read(uneven) == 2
    by_offset = everything.where("partition = 0 AND offset = 77")
    assert (files_read(by_offset), by_offset.count()) == (1, 1)
    by_time = everything.where(f"timestamp = timestamp_millis({start_ms})")
    assert (files_read(by_time), by_time.count()) == (2, 2)


def test_a_count_of_whole_segments_reads_no_column_and_one_of_all_no_file(make_log, spark) -> None:
    """However many files the segments have."""
    log = make_log(segment_ms=10_000)
    for _ in range(6):
        log.append(5, batch=5)
        log.archive()
    orders = log.lakelog.log("orders")
    first, *_, last = orders.table.snapshot().files.segments(0)
    assert len(first.files) > 1

    def counting(start: int, end: int) -> str:
        frame = orders.dataframe(start, end)
        assert frame.count() == end - start
        plan = frame.groupBy().count()._jdf.queryExecution().executedPlan().toString()
        return str(plan)

    assert counting(0, 30).startswith("LocalTableScan")
    for start in (0, first.end_offset):
        assert "ReadSchema: struct<>" in counting(start, last.start_offset)
    assert "ReadSchema: struct<offset:bigint>" in counting(1, last.start_offset)


def test_the_rows_are_the_same_whatever_happens_meanwhile(make_log, spark) -> None:
    log = make_log(
        2,
        cleanup_policy="compact,delete",
        segment_ms=10_000,
        min_cleanable_dirty_ratio=0.01,
    )
    for partition in (0, 1):
        log.append(60, partition, batch=5)
    log.archive()
    for partition in (0, 1):
        log.append(60, partition, batch=5)
    orders = log.lakelog.log("orders")
    frame = orders.dataframe(spark=spark)
    wanted = log.expected()
    assert rows_of(frame) == wanted

    for partition in (0, 1):
        log.append(25, partition, batch=5)
    log.archive()
    assert orders.offsets()[0].local_log_start == 145
    assert rows_of(frame) == wanted
    (report,) = log.lakelog.cleanup("orders")
    assert report.compacted
    assert rows_of(frame) == wanted
    log.lakelog.topics.alter("orders", {"retention.bytes": 1})
    (report,) = log.lakelog.cleanup("orders")
    assert report.retained
    orders.raise_log_start(1, 145)
    log.lakelog.cleanup("orders")
    assert [orders.offsets()[number].log_start > 110 for number in (0, 1)] == [True, True]
    assert rows_of(frame) == wanted
    assert len(rows_of(orders.dataframe())) < len(wanted)


def test_what_was_vacuumed_is_missed_loudly(make_log, spark) -> None:
    log = make_log(cleanup_policy="compact", segment_ms=5_000, min_cleanable_dirty_ratio=0.01)
    log.append(60, batch=5)
    frame = log.lakelog.dataframe("orders")
    log.archive()
    log.lakelog.cleanup("orders")
    orders = log.lakelog.log("orders")
    removed = {path.name for path in log.cold.rglob("archive-*.parquet")} - {
        Path(file.path).name for file in orders.table.snapshot().files
    }
    assert removed
    for path in log.cold.rglob("archive-*.parquet"):
        if path.name in removed:
            path.unlink()
    with pytest.raises(Exception, match=r"can no longer be read as it was.*vacuumed"):
        frame.collect()


def test_records_that_are_hot_although_compaction_removed_them_cold_are_in_the_frame(
    make_log, spark
) -> None:
    log = make_log(
        cleanup_policy="compact",
        segment_ms=5_000,
        min_cleanable_dirty_ratio=0.01,
        local_retention_ms=-1,
    )
    log.append(60, batch=5)
    log.archive()
    (report,) = log.lakelog.cleanup("orders")
    assert report.compacted
    orders = log.lakelog.log("orders")
    assert orders.offsets()[0].local_log_start == 0

    frame = orders.dataframe()
    assert rows_of(frame) == log.expected()
    assert [row[1] for row in rows_of(frame)] == orders.read(0).to_arrow()["offset"].to_pylist()
    orders.hot.trim(orders.topic.partition(0), 60)
    assert rows_of(frame) == log.expected()


def test_an_untiered_topic_and_an_empty_one(make_log, spark) -> None:
    log = make_log(remote_storage_enable=False, local_retention_ms=-2)
    assert rows_of(log.lakelog.dataframe("orders")) == []
    log.append(30)
    assert rows_of(log.lakelog.dataframe("orders", 3)) == log.expected(3)
    other = make_log(name="empty")
    assert other.lakelog.dataframe("empty").dtypes == log.lakelog.dataframe("orders").dtypes


def test_what_is_archived_is_read_without_redis(make_redis, tmp_path, spark) -> None:
    server = make_redis()
    cold = tmp_path / "cold"
    log = SparkLog(server.url, cold).create(2)
    log.append(50)
    log.append(30, 1)
    log.archive()
    archived = log.expected()
    log.append(5)
    assert rows_of(read(spark, server.url, str(cold), "orders")) == log.expected()
    cold_only = log.lakelog.dataframe("orders", "earliest", {0: 50, 1: 30}, partitions=[0, 1])
    server.kill()

    assert rows_of(cold_only) == archived
    assert rows_of(read(spark, None, str(cold), "orders")) == archived
    at_20 = f"@{EPOCH_MS + 20_000}"
    assert rows_of(read(spark, None, str(cold), "orders", at_20, 25)) == log.expected(20, 25)
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 51 of orders-0"):
        read(spark, None, str(cold), "orders", 51, partitions=[0])
    with pytest.raises(UnknownTopicOrPartitionError, match="there are orders"):
        read(spark, None, str(cold), "nothing")
    with pytest.raises(InvalidArgumentError, match="there is nothing to read"):
        read(spark, None, None, "orders")


def test_a_frame_of_a_topic_that_was_made_again_fails_and_names_both(make_log, spark) -> None:
    log = make_log()
    log.append(10)
    frame = log.lakelog.dataframe("orders")
    first = log.lakelog.topics.get("orders").topic_id
    log.lakelog.topics.delete("orders")
    log.create().append(10)
    second = log.lakelog.topics.get("orders").topic_id
    with pytest.raises(Exception, match=f"creation {first}, and it is {second} now"):
        frame.collect()
