"""One DataFrame over both tiers: cold through Spark's own Delta reader, the tail out of Redis.

The ranges are fixed when the frame is made, by one look at both tiers, and so is where cold ends
and hot begins: the rows are the same at each evaluation, whatever is appended, archived, trimmed,
compacted or expires meanwhile. The cold part is the table at that look's version. The hot part's
tasks read what was archived since as it was archived (see `AsArchived`).

Runs on: driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from ..base.clock import Clock, SystemClock
from ..codec.encryption.of_topic import check_tasks_have_key
from ..codec.value_columns import value_schema
from ..cold.by_name.names import quoted
from ..cold.catalogue import topic_by_name
from ..cold.table import ColdSnapshot, ColdTable
from ..errors import InvalidArgumentError
from ..place import LogPlace
from ..read.hot_tier import NothingHot
from ..read.tiers import Look, Tiers
from ..values.config import DATA_KEYS, MIB
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from ..values.value_ddl import VALUE_ERROR
from .frame_parts import NO_ROWS, condition, divide, hot_version
from .kafka_columns import COLUMNS, HEADERS, source_schema
from .offsets_json import StreamOffset
from .opened_values import opened_values
from .ranges import Places, partitions_of, resolve, size_of
from .session import register, session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

#: A core is not put to work on a tail for less: its task would take longer to start than to read.
TASK_BYTES = MIB


def dataframe(
    place: LogPlace,
    tiers: Tiers,
    clock: Clock,
    start: Places = "earliest",
    end: Places = "latest",
    *,
    spark: SparkSession | None = None,
    partitions: Iterable[int] | None = None,
    clip: bool = False,
) -> DataFrame:
    """See `TopicLog.dataframe`.

    Args:
        place: how executors open the log that `tiers` are of.
    """
    starts, ends = partitions_of(tiers.topic, start, end, partitions)
    look, ranges = resolve(tiers, starts, ends, clock, clip=clip)
    cold, hot = divide(look, ranges)
    # After the look: its keys are those of all that was seen.
    topic = tiers.topic if tiers.values.are_stored else tiers.hot.renewed(tiers.topic)
    decrypts = not tiers.values.are_stored and bool(topic.config.text(DATA_KEYS))
    if decrypts:
        check_tasks_have_key(topic)
    spark = spark or session(object_stores=place.object_stores)
    tasks_place = place.for_tasks(spark, tiers) if hot else place
    frames = []
    if cold:
        assert tiers.table is not None  # something is archived
        frames += [
            _cold_frame(spark, place, tiers.table, tiers.topic, look.cold, one)
            for one in cold
            if condition(look.cold.files, one) != NO_ROWS
        ]
        if decrypts:
            frames = [opened_values(frame, topic) for frame in frames]
    frames += [_hot_frame(spark, tasks_place, tiers, look, one) for one in hot]
    if not frames:
        frames.append(_no_rows(spark, tiers.topic))
    return reduce(lambda one, other: one.unionByName(other), frames)


def read(
    spark: SparkSession,
    redis_url: str | None,
    cold: str | None,
    topic: str,
    start: Places = "earliest",
    end: Places = "latest",
    *,
    partitions: Iterable[int] | None = None,
    clip: bool = False,
    location: str | None = None,
    keyspace: str | None = None,
    tenant: str | None = None,
    password_ref: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    stored_values: bool = False,
) -> DataFrame:
    """The records of a topic's range as one DataFrame; see `TopicLog.dataframe`.

    Args:
        redis_url: None to read what is archived without asking Redis, on a platform that cannot
            reach it: the log then ends at the archived end.
        cold: a folder, an object store's URL, or ``catalog.schema``; None for an untiered topic.
        location: where the schema's tables lie, if they are committed to by path.
        tenant: whose topic is meant; see `Lakelog.connect`.
        password_ref: ``env:NAME``, in the environment of the driver and of every executor; see
            `secret_reference`.
        storage_options: what opens an object store; see `Lakelog.connect`.
        stored_values: give encrypted values as they are stored, which takes no key.

    Raises:
        UnknownTopicOrPartitionError: no such topic.
        InvalidArgumentError: neither tier is named, or a location without a schema.
        ForeignTableError: the schema's table is committed to by path, and no location was given.
    """
    place = LogPlace.of(
        redis_url,
        cold,
        location,
        keyspace=keyspace,
        password_ref=password_ref,
        storage_options=storage_options,
        spark=lambda: spark,
    )
    place = place if tenant is None else place.of_tenant(tenant)
    if place.hot is None:
        tiers = _cold_alone(place, topic, stored_values=stored_values)
        clock: Clock = SystemClock()
    else:
        found = place.open_hot().topics().get(topic)
        tiers = place.tiers(found, stored_values=stored_values)
        clock = place.clock()
    return dataframe(place, tiers, clock, start, end, spark=spark, partitions=partitions, clip=clip)


def _cold_alone(place: LogPlace, name: str, *, stored_values: bool) -> Tiers:
    if place.cold is None:
        raise InvalidArgumentError("give redis_url, or cold, or both: there is nothing to read")
    topic = topic_by_name(place.cold, place.keyspace, name)
    table = place.cold.table(topic)
    return Tiers(topic, NothingHot(lambda *_: table), table, stored_values=stored_values)


# -- cold --------------------------------------------------------------------------------------


def _cold_frame(
    spark: SparkSession,
    place: LogPlace,
    table: ColdTable,
    topic: Topic,
    snapshot: ColdSnapshot,
    ranges: Mapping[int, OffsetRange],
) -> DataFrame:
    from pyspark.sql.functions import col, lit

    names = [*COLUMNS.names, HEADERS.name]
    assert place.cold is not None  # the table lies there
    frame = place.cold.frame(spark, table, snapshot.version)
    rows = condition(snapshot.files, ranges)
    if rows is not None:
        frame = frame.where(rows)
    return frame.select(
        *(lit(topic.name).alias(name) if name == "topic" else col(name) for name in names),
        *_value_columns(frame, topic),
    )


def _value_columns(frame: DataFrame, topic: Topic) -> list[Column]:
    """The topic's value columns out of a version of its table, null where it lacks them yet."""
    from pyspark.sql.functions import col, lit

    wanted = {column.name: str(column.type) for column in topic.config["lakelog.value.columns"]}
    if wanted:
        wanted[VALUE_ERROR] = "string"
    return [
        col(quoted(name)) if name in frame.columns else lit(None).cast(type_).alias(name)
        for name, type_ in wanted.items()
    ]


# -- hot ---------------------------------------------------------------------------------------


def _hot_frame(
    spark: SparkSession,
    place: LogPlace,
    tiers: Tiers,
    look: Look,
    ranges: Mapping[int, OffsetRange],
) -> DataFrame:
    from ..engines.spark import cores
    from .datasource import NAME

    register(spark)
    topic = tiers.topic
    ids = {topic.name: topic.topic_id}
    starts = {TopicPartition(topic.name, n): one.start for n, one in ranges.items()}
    ends = {TopicPartition(topic.name, n): one.end for n, one in ranges.items()}
    size_bytes = sum(size_of(look, n, *one) for n, one in ranges.items())
    return (
        spark.read.format(NAME)
        .options(**place.options())
        .option("assign", json.dumps({topic.name: sorted(ranges)}))
        .option("startingOffsets", json.dumps(StreamOffset(starts, ids).to_json()))
        .option("endingOffsets", json.dumps(StreamOffset(ends, ids).to_json()))
        .option("readAsOfVersion", hot_version(look, ranges))
        .option("includeHeaders", "true")
        .option("valueColumns", topic.config.value_columns)
        .option("storedValues", str(tiers.values.are_stored).lower())
        .option("minPartitions", max(1, min(cores(spark), int(size_bytes / TASK_BYTES))))
        .load()
    )


def _no_rows(spark: SparkSession, topic: Topic) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    columns = source_schema(value_schema(topic.config.value_columns), headers=True)
    return spark.createDataFrame([], from_arrow_schema(columns))
