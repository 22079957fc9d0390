"""Frames written to topics: columns, what is refused, and how calls are cut."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row
from pyspark.sql.types import StructType
from spark_log import SparkLog

from lakelog.errors import InvalidArgumentError, UnknownTopicOrPartitionError
from lakelog.hot import Acks, HotLog
from lakelog.ingest.partitioner import partition_of_key
from lakelog.spark import register
from lakelog.spark.options import WRITE, parse_write
from lakelog.spark.sink import COLUMNS, check_columns, rows_as_batches
from lakelog.spark.sink_rows import PIECE_BYTES, TaskRows
from lakelog.values.config import KIB
from lakelog.values.record import PRODUCED, Record, to_records
from lakelog.values.topic import Topic

TIME = datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=timezone.utc)
ROW = "key string, value string"


@pytest.fixture
def lakelog_spark(spark: Any) -> Any:
    register(spark)
    return spark


def write(frame: Any, log: SparkLog, mode: str = "append", **options: Any) -> None:
    given = {"redis": log.url, "topic": log.name, **options}
    named = {name: str(value) for name, value in given.items() if value is not None}
    frame.write.format("lakelog").options(**named).mode(mode).save()


def records(hot: HotLog, topic: Topic) -> list[Record]:
    return [
        record
        for tp in topic.topic_partitions()
        for step in hot.read(tp, 0, topic_id=topic.topic_id)
        for record in to_records(tp, step.records)
    ]


def held(log: SparkLog, name: str | None = None) -> list[Record]:
    return records(log.lakelog.hot, log.lakelog.topics.get(name or log.name))


def test_a_write_without_a_mode_is_refused_by_spark_itself(lakelog_spark, make_log) -> None:
    """Its default, errorifexists, is none that it lets Python sources have."""
    log = make_log()
    frame = lakelog_spark.createDataFrame([("k", "v")], ROW)
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        write(frame, log, mode="errorifexists")
    assert held(log) == []


# -- what is written ---------------------------------------------------------------------------


def test_every_column_arrives_byte_for_byte(lakelog_spark, make_log) -> None:
    log = make_log(2)
    rows = [
        (b"k\0", b"\xff\0", [("h", b"1"), ("h", None)], 1, TIME),
        (None, None, None, 0, TIME),
        (b"", b"", [], 0, TIME),
    ]
    columns = (
        "key binary, value binary, headers array<struct<key:string,value:binary>>, "
        "partition int, timestamp timestamp"
    )
    write(lakelog_spark.createDataFrame(rows, columns).coalesce(1), log)
    time_ms = int(TIME.timestamp() * 1000)
    assert held(log) == [
        Record("orders", 0, 0, time_ms, None, None, ()),
        Record("orders", 0, 1, time_ms, b"", b"", ()),
        Record("orders", 1, 0, time_ms, b"k\0", b"\xff\0", (("h", b"1"), ("h", None))),
    ]


def test_headers_are_left_behind_if_they_are_not_wanted(lakelog_spark, make_log) -> None:
    log = make_log()
    columns = "value string, headers array<struct<key:string,value:binary>>"
    frame = lakelog_spark.createDataFrame([("v", [("h", b"1")])], columns)
    write(frame, log, includeHeaders=False)
    (record,) = held(log)
    assert (record.value, record.headers) == (b"v", ())


def test_keys_go_where_kafkas_producers_send_them_and_other_columns_stay_behind(
    lakelog_spark, make_log
) -> None:
    log = make_log(3)
    frame = lakelog_spark.range(500).selectExpr(
        "concat('k', id % 50) key", "concat('v', id) value", "id offset", "'x' other"
    )
    before_ms = log.lakelog.hot.now_ms()
    write(frame, log)
    found = held(log)
    assert sorted(int(r.value[1:]) for r in found) == list(range(500))
    assert all(r.partition == partition_of_key(r.key, 3) for r in found)
    assert all(before_ms - 1000 <= r.timestamp_ms <= before_ms + 600_000 for r in found)


@pytest.mark.slow
def test_an_hour_that_the_sessions_clock_shows_twice_is_written_and_streamed_on_as_two(
    lakelog_spark, make_log, tmp_path
) -> None:
    log = make_log(1, name="one")
    log.lakelog.topics.create("two", 1)
    times_ms = [1_729_987_200_000 + 600_123 * number for number in range(12)]
    zone = lakelog_spark.conf.get("spark.sql.session.timeZone")
    lakelog_spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frame = lakelog_spark.createDataFrame(
            [(f"v{t}", t) for t in times_ms], "value string, t long"
        )
        write(frame.selectExpr("value", "timestamp_millis(t) timestamp").coalesce(1), log)
        reader = lakelog_spark.readStream.format("lakelog").options(
            **log.options(startingOffsets="earliest")
        )
        writer = reader.load().writeStream.format("lakelog").trigger(availableNow=True)
        writer = writer.options(
            redis=log.url, topic="two", checkpointLocation=str(tmp_path / "two")
        )
        writer.start().awaitTermination()
    finally:
        lakelog_spark.conf.set("spark.sql.session.timeZone", zone)
    for name in ("one", "two"):
        assert sorted(record.timestamp_ms for record in held(log, name)) == times_ms


def test_the_topic_column_says_where_unless_the_option_does(lakelog_spark, make_log) -> None:
    log = make_log(1, name="one")
    log.lakelog.topics.create("two", 1)
    rows = [("a", "one"), ("b", "two"), ("c", "one")]
    frame = lakelog_spark.createDataFrame(rows, "value string, topic string").coalesce(1)
    write(frame, log, topic=None)
    assert [r.value for r in held(log, "one")] == [b"a", b"c"]
    assert [r.value for r in held(log, "two")] == [b"b"]
    write(frame, log, topic="two")
    assert [r.value for r in held(log, "two")] == [b"b", b"a", b"b", b"c"]


def test_a_frame_read_from_a_topic_can_be_written_to_another_as_it_is(
    lakelog_spark, make_log
) -> None:
    log = make_log(2, name="one")
    log.append(30)
    log.append(20, 1)
    log.archive()
    log.lakelog.topics.create("two", 2)
    reader = lakelog_spark.read.format("lakelog").options(**log.options(includeHeaders=True))
    write(reader.load(), log, topic="two", cold=str(log.cold))
    copied = [(r.partition, r.offset, r.key, r.value) for r in held(log, "two")]
    assert copied == log.expected()


def test_rows_that_spark_hands_over_one_by_one_become_the_same_columns(lakelog_spark) -> None:
    schema = StructType.fromDDL(
        "key binary, other array<int>, headers array<struct<key:string,value:binary>>, "
        "value string, timestamp timestamp"
    )
    header = Row(key="h", value=bytearray(b"x"))
    naive = TIME.astimezone().replace(tzinfo=None)  # as Spark's rows have it
    rows = [(bytearray(b"k"), [1], [header], "v", naive), (None, None, None, None, None)]
    (batch,) = rows_as_batches(iter(rows), schema)
    assert batch.to_pylist() == [
        {
            "key": b"k",
            "headers": [{"key": "h", "value": b"x"}],
            "value": "v",
            "timestamp": TIME,
        },
        {"key": None, "headers": None, "value": None, "timestamp": None},
    ]


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("key string", "Required attribute 'value' not found"),
        ("value int", "value attribute unsupported type int"),
        ("value string, key bigint", "key attribute unsupported type bigint"),
        ("value string, partition bigint", "partition attribute unsupported type bigint"),
        ("value string, topic int", "topic attribute unsupported type int"),
        ("value string, headers map<string,binary>", "headers attribute unsupported type map"),
        ("value string, timestamp bigint", "timestamp attribute unsupported type bigint"),
    ],
)
def test_columns_of_other_types_are_refused(lakelog_spark, columns, said) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        check_columns(StructType.fromDDL(columns), "orders")


def test_a_column_that_is_there_twice_is_refused() -> None:
    for name, (kind, *_) in COLUMNS.items():
        schema = StructType.fromDDL(f"value binary, topic string, `{name}` {kind}")
        twice = (
            schema if name in {"value", "topic"} else StructType(schema.fields + schema.fields[2:])
        )
        with pytest.raises(InvalidArgumentError, match=f"2 columns '{name}'"):
            check_columns(twice, None)


def test_a_topic_must_be_named_somewhere(lakelog_spark) -> None:
    with pytest.raises(InvalidArgumentError, match="topic option required"):
        check_columns(StructType.fromDDL(ROW), None)
    check_columns(StructType.fromDDL(", ".join(f"{n} {k[0]}" for n, k in COLUMNS.items())), None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Spark gave no options"),
        ({"topic": "x"}, "'redis' is missing"),
        ({"redis": "redis://h", "tpoic": "x"}, "no option 'tpoic'; did you mean topic"),
        ({"redis": "redis://h", "zzz": "x"}, f"legal: {', '.join(WRITE)}"),
        ({"redis": "redis://h", "kafka.acks": "all"}, "setting of a Kafka client"),
        ({"redis": "redis://h", "kafka.group.id": "g"}, "groupId names a group that is told"),
        ({"redis": "redis://h", "groupIdPrefix": "g"}, "groupId names a group that is told"),
        ({"redis": "redis://:secret@h"}, "passwordRef=env:NAME"),
        ({"redis": "redis://h", "acks": "all"}, "acks='all' is not legal"),
        ({"redis": "redis://h", "topic": "a/b"}, "'a/b' is not a legal topic name"),
        ({"redis": "redis://h", "idempotent": "maybe"}, "idempotent='maybe' is not true or false"),
    ],
)
def test_unknown_and_illegal_options_are_refused_by_name(options, said) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        parse_write(options)


def test_options_are_known_in_any_case_and_spark_keeps_its_own() -> None:
    given = {"REDIS": "redis://h", "Topic": "orders", "checkpointlocation": "/x", "ACKS": "fsync"}
    options = parse_write(given)
    assert (options.topic, options.acks, options.idempotent) == ("orders", Acks(fsync=True), True)


def test_what_cannot_be_written_fails_where_it_is_planned_and_writes_nothing(
    lakelog_spark, make_log
) -> None:
    log = make_log(1)
    frame = lakelog_spark.createDataFrame([("k", "v")], ROW)
    for said, change in (
        ("there is no topic 'absent'", {"topic": "absent"}),
        ("save mode overwrite is not allowed", {"mode": "overwrite"}),
        ('cannot be written in the "Ignore" mode', {"mode": "ignore"}),
        ("there is no option 'tpoic'", {"tpoic": "x"}),
    ):
        with pytest.raises(Exception, match=said):
            write(frame, log, **change)
    assert held(log) == []


@pytest.mark.parametrize(
    ("row", "columns", "topic", "said"),
    [
        (("v", 7), "value string, partition int", "orders", "has no partition 7"),
        (("v", -1), "value string, partition int", "orders", "has no partition -1"),
        (("v", "absent"), "value string, topic string", None, "there is no topic 'absent'"),
        (("v", None), "value string, topic string", None, "null topic present in the data"),
        (("v" * 3000,), "value string", "orders", "max.message.bytes"),
    ],
)
def test_a_row_that_no_topic_can_take_fails_its_task(
    lakelog_spark, make_log, row, columns, topic, said
) -> None:
    log = make_log(1, max_message_bytes=2 * KIB)
    # Incompressible, so that no entry can hold it.
    noise = random.Random(1)
    row = tuple(
        "".join(chr(noise.randrange(33, 120)) for _ in x) if x == "v" * 3000 else x for x in row
    )
    with pytest.raises(Exception, match=said):
        write(lakelog_spark.createDataFrame([row], columns), log, topic=topic)
    assert held(log) == []


# -- how calls are cut -------------------------------------------------------------------------


@pytest.fixture
def topic(redis_url: str) -> Topic:
    hot = HotLog.connect(redis_url)
    return hot.topics().create("cut", 4)


def table(count: int, *, seed: int = 1, most_bytes: int = 900, keyless: float = 0.3) -> pa.Table:
    chance = random.Random(seed)
    keys = [
        None if chance.random() < keyless else b"%d" % chance.randrange(1000) for _ in range(count)
    ]
    values = [chance.randbytes(chance.randrange(most_bytes)) for _ in range(count)]
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


def cut(topic: Topic, batches: list[pa.RecordBatch], first: int = 0) -> list[tuple[int, Any]]:
    rows = TaskRows(lambda name: topic, topic, first)
    return [(call.partition, call.records) for calls in rows.calls(batches) for call in calls]


def test_calls_do_not_depend_on_how_the_rows_arrive(topic) -> None:
    whole = table(40_000)
    assert whole.nbytes > 2 * PIECE_BYTES
    one = cut(topic, whole.combine_chunks().to_batches())
    for rows in (1_000, 7_777):
        assert cut(topic, whole.to_batches(rows)) == one
    assert sum(records.num_rows for _, records in one) == 40_000
    assert len(one) > 20


def test_rows_of_a_partition_keep_their_order_and_keyless_ones_take_turns(topic) -> None:
    whole = table(20_000)
    calls = cut(topic, whole.to_batches(3_000), first=2)
    assert all(records.schema == PRODUCED for _, records in calls)
    rows = list(zip(whole["key"].to_pylist(), whole["value"].to_pylist(), strict=True))
    for partition in range(4):
        got = [
            (key, value)
            for number, records in calls
            if number == partition
            for key, value in zip(
                records["key"].to_pylist(), records["value"].to_pylist(), strict=True
            )
        ]
        keyed = [row for row in got if row[0] is not None]
        assert keyed == [
            r for r in rows if r[0] is not None and partition_of_key(r[0], 4) == partition
        ]
        keyless = iter(row for row in rows if row[0] is None)
        assert all(row in keyless for row in got if row[0] is None)  # a subsequence
        assert len(got) > len(keyed)
    first_keyless = next(value for key, value in rows if key is None)
    where = [n for n, records in calls if first_keyless in records["value"].to_pylist()]
    assert where == [2]


def test_partitions_asked_for_come_first(topic) -> None:
    batch = pa.record_batch(
        {
            "key": pa.array([b"k", b"k", None], pa.binary()),
            "value": pa.array([b"1", b"2", b"3"], pa.binary()),
            "partition": pa.array([3, None, 2], pa.int32()),
        }
    )
    found = {n: records["value"].to_pylist() for n, records in cut(topic, [batch])}
    assert found == {partition_of_key(b"k", 4): [b"2"], 2: [b"3"], 3: [b"1"]}
    with pytest.raises(UnknownTopicOrPartitionError, match="no partition 4"):
        cut(topic, [batch.set_column(2, "partition", pa.array([4, None, 2], pa.int32()))])
