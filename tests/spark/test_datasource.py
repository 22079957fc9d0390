"""``format("lakelog")`` through Spark: batches and streams, and how they fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from spark_log import EPOCH_MS, limited, rows_of

from lakelog.spark.kafka_columns import COLUMNS
from lakelog.testing.eventually import eventually
from lakelog.values.record import Record


def batch(spark: Any, options: dict[str, str]) -> Any:
    return spark.read.format("lakelog").options(**options).load()


class Stream:
    """A query from a log into a Delta table, with a checkpoint."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.checkpoint = folder / "checkpoint"
        self.sink = str(folder / "sink")

    def start(self, options: dict[str, str], **trigger: Any) -> Any:
        frame = self.spark.readStream.format("lakelog").options(**options).load()
        writer = frame.writeStream.format("delta").option("checkpointLocation", self.checkpoint)
        return writer.trigger(**(trigger or {"availableNow": True})).start(self.sink)

    def drain(self, options: dict[str, str]) -> list[int]:
        """Read all that is there; how many rows each micro-batch had."""
        query = self.start(options)
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return [progress["numInputRows"] for progress in query.recentProgress]

    def rows(self) -> list[Any]:
        return rows_of(self.spark.read.format("delta").load(self.sink))

    def offsets(self) -> dict[str, Any]:
        """The newest in the checkpoint."""
        files = [path for path in (self.checkpoint / "offsets").iterdir() if path.name.isdigit()]
        newest = max(files, key=lambda path: int(path.name))
        found: dict[str, Any] = json.loads(newest.read_text().splitlines()[-1])
        return found


@pytest.fixture
def stream(spark: Any, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path / "stream")


# -- batches -----------------------------------------------------------------------------------


def test_a_batch_has_the_kafka_sources_columns(make_log, spark) -> None:
    log = make_log()
    log.send(Record("orders", 0, 0, EPOCH_MS, b"k", None, (("h", b"1"), ("h", None))))
    frame = batch(spark, log.options())
    assert frame.columns == COLUMNS.names
    (row,) = batch(spark, log.options(includeHeaders=True)).collect()
    assert (bytes(row["key"]), row["value"], row["topic"], row["offset"]) == (
        b"k",
        None,
        "orders",
        0,
    )
    assert row["timestamp"].isoformat() == "2023-11-14T22:13:20"
    assert row["timestampType"] == 0
    assert [(h["key"], h["value"]) for h in row["headers"]] == [("h", b"1"), ("h", None)]


def test_which_topics_and_which_offsets(make_log, spark) -> None:
    log = make_log(2)
    for partition in (0, 1):
        log.append(50, partition)
    log.archive()
    for partition in (0, 1):
        log.append(50, partition)
    other = make_log(name="order-lines")
    other.append(3)

    def read(**options: Any) -> list[Any]:
        return rows_of(batch(spark, log.options(**options)))

    assert read() == log.expected()
    assert len(read(subscribePattern="order.*")) == 203
    assert read(subscribePattern="nothing.*") == []
    assert len(read(subscribe="orders, order-lines")) == 203
    assert read(assign='{"orders": [1]}') == [row for row in log.expected() if row[0] == 1]
    assert read(
        startingOffsets='{"orders": {"0": 90, "1": -2}}',
        endingOffsets='{"orders": {"0": -1, "1": 3}}',
    ) == [row for row in log.expected() if (row[1] >= 90 if row[0] == 0 else row[1] < 3)]
    assert read(startingTimestamp=EPOCH_MS + 40_000, endingOffsets=60) == log.expected(40, 60)
    assert read(
        startingOffsetsByTimestamp=json.dumps({"orders": {"0": EPOCH_MS, "1": EPOCH_MS + 99_000}}),
        endingTimestamp=EPOCH_MS + 1_000_000,
    ) == [row for row in log.expected() if row[0] == 0 or row[1] == 99]
    late = {"startingTimestamp": EPOCH_MS + 1_000_000}
    assert read(**late, startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(Exception, match="orders-0 has no record at or after 1700001000000"):
        read(**late)
    with pytest.raises(Exception, match="startingOffsets lacks orders-1"):
        read(startingOffsets='{"orders": {"0": 90}}')
    with pytest.raises(Exception, match="there is no topic 'nothing' in keyspace 'lakelog'"):
        read(subscribe="nothing")
    with pytest.raises(Exception, match="offset 500 of orders-0 is out of range"):
        read(endingOffsets=500)


def test_what_is_wrong_is_said_when_the_frame_is_made(make_log, spark) -> None:
    log = make_log()
    with pytest.raises(Exception, match="no option 'startingoffset'; did you mean startingOffsets"):
        batch(spark, log.options(startingOffset="earliest"))
    with pytest.raises(Exception, match="assign and subscribe contradict each other"):
        batch(spark, {**log.options(assign='{"orders": [0]}'), "subscribe": "orders"})
    with pytest.raises(Exception, match="lakelog's columns are fixed"):
        spark.read.format("lakelog").schema("a int").options(**log.options()).load().collect()
    without = {name: value for name, value in log.options().items() if name != "cold"}
    with pytest.raises(Exception, match="'orders' is tiered, but no cold root was given"):
        batch(spark, without).collect()


@pytest.mark.slow
def test_a_session_that_nobody_told_knows_it(make_log, spark) -> None:
    log = make_log()
    log.send(Record("orders", 0, 0, EPOCH_MS, b"k", b"v", ()))
    assert batch(spark.newSession(), log.options()).count() == 1


@pytest.mark.slow
def test_a_view_is_read_and_inserted_into(make_log, spark) -> None:
    log = make_log()
    log.send(Record("orders", 0, 0, EPOCH_MS, b"k", b"v", ()))
    options = ", ".join(f"{name} '{value}'" for name, value in log.options().items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW orders_log USING lakelog OPTIONS ({options})")
    spark.sql("INSERT INTO orders_log (key, value) VALUES (cast('k2' AS binary), null)")
    found = spark.sql("SELECT key, value, topic FROM orders_log ORDER BY key").collect()
    assert [(bytes(row.key), row.value and bytes(row.value), row.topic) for row in found] == [
        (b"k", b"v", "orders"),
        (b"k2", None, "orders"),
    ]
    spark.sql("DROP VIEW orders_log")


def test_a_table_of_sql_can_be_made_and_not_read(make_log, spark) -> None:
    """As the README says: Spark has no tables of sources in Python."""
    options = ", ".join(f"{name} '{value}'" for name, value in make_log().options().items())
    try:
        spark.sql(f"CREATE TABLE orders_table USING lakelog OPTIONS ({options})")
        with pytest.raises(Exception, match="not a valid Spark SQL Data Source"):
            spark.sql("SELECT * FROM orders_table").collect()
    finally:
        spark.sql("DROP TABLE IF EXISTS orders_table")


def test_one_large_partition_is_read_by_many_tasks(make_log, spark) -> None:
    log = make_log(2)
    log.append(1000)
    log.append(10, 1)
    assert batch(spark, log.options()).rdd.getNumPartitions() == 1  # both are small
    cut = batch(spark, log.options(minPartitions=8))
    assert cut.rdd.getNumPartitions() == 9
    assert rows_of(cut) == log.expected()


def test_a_batch_below_the_log_start_fails_or_goes_on(make_log, spark) -> None:
    log = make_log()
    log.append(100)
    log.archive()
    log.lakelog.log("orders").raise_log_start(0, 40)
    wanted = {"startingOffsets": '{"orders": {"0": 10}}'}
    with pytest.raises(Exception, match=r"offset 10 .*\[40, 100\).*failOnDataLoss=false"):
        batch(spark, log.options(**wanted)).collect()
    kept = batch(spark, log.options(**wanted, failOnDataLoss="false"))
    assert rows_of(kept) == log.expected(40)


# -- streams -----------------------------------------------------------------------------------


def test_a_stream_catches_up_from_cold_and_goes_on_hot(make_log, stream) -> None:
    log = make_log(2)
    for partition in (0, 1):
        log.append(100, partition)
    log.archive()
    log.append(30)
    options = log.options(startingOffsets="earliest", **limited(60))

    batches = stream.drain(options)

    assert stream.rows() == log.expected()
    assert sum(batches) == 230
    assert max(batches) <= limited(60).get("maxOffsetsPerTrigger", 230)
    # Spark before 4.2 knows no limits: the first micro-batch is the last, and says where it began.
    began = {} if limited(60) else {"@since orders": {"0": 0, "1": 0}}
    found = stream.offsets()
    words = found.pop("@id orders")
    topic_id = log.lakelog.topics.get("orders").topic_id
    assert b"".join(words[n].to_bytes(4, "big") for n in "0123") == topic_id.bytes
    assert found == {"orders": {"0": 130, "1": 100}, **began}
    log.append(25, 1)
    log.archive()
    log.append(5)
    assert sum(stream.drain(options)) == 30
    assert stream.rows() == log.expected()
    assert sum(stream.drain(options)) == 0


@pytest.mark.slow
def test_new_partitions_and_new_topics_are_picked_up(make_log, stream) -> None:
    log = make_log()
    log.append(10)
    options = log.options(subscribePattern="orders.*", startingOffsets="earliest")
    query = stream.start(options, processingTime="0 seconds")
    try:
        eventually(lambda: query.lastProgress and query.lastProgress["batchId"] >= 0)
        log.lakelog.topics.add_partitions("orders", 3)
        log.append(7, 2)
        more = make_log(2, name="orders-more")
        more.append(4, 1)
        eventually(lambda: len(stream.rows()) >= 21 or query.exception() is not None)
    finally:
        query.stop()
    assert stream.rows() == sorted([*log.expected(), *more.expected()])


@pytest.mark.slow
def test_what_expired_before_a_stream_read_it(make_log, stream) -> None:
    log = make_log()
    log.append(10)
    options = log.options(startingOffsets="earliest")
    stream.drain(options)
    log.append(60)
    log.archive()
    log.lakelog.log("orders").raise_log_start(0, 40)
    with pytest.raises(StreamingQueryException, match=r"\[10, 70\) of orders-0 is no longer cover"):
        stream.drain(options)
    stream.drain({**options, "failOnDataLoss": "false"})
    assert stream.rows() == [*log.expected(0, 10), *log.expected(40)]
