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
from typing import TYPE_CHECKING

from ..archive.copy import HotRows
from ..clock import Clock, SystemClock
from ..cold.path_table import PathTable
from ..cold.segment import SegmentIndex
from ..cold.storage import Storage
from ..cold.table import ColdSnapshot, ColdTable
from ..config import MIB
from ..engine import InlineEngine
from ..errors import InvalidArgumentError
from ..hot.hot_log import HotSource
from ..hot.keys import DEFAULT_KEYSPACE
from ..read.tiers import Look, Tiers
from ..record import OffsetRange, TopicPartition
from ..topic import Topic
from .cold_alone import cold_tiers, cold_topic
from .offsets_json import StreamOffset
from .ranges import Places, partitions_of, resolve, size_of
from .recipe import LogRecipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: A core is not put to work on a tail for less: its task would take longer to start than to read.
TASK_BYTES = MIB

#: Spark's Kafka source's, with ``includeHeaders``.
COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    "headers",
)


def dataframe(
    recipe: LogRecipe,
    tiers: Tiers,
    clock: Clock,
    start: Places = "earliest",
    end: Places = "latest",
    *,
    spark: SparkSession | None = None,
    partitions: Iterable[int] | None = None,
    clip: bool = False,
) -> DataFrame:
    """See `UnifiedLog.dataframe`.

    Args:
        recipe: how executors open the log that `tiers` are of.
    """
    starts, ends = partitions_of(tiers.topic, start, end, partitions)
    look, ranges = resolve(tiers, starts, ends, clock, clip=clip)
    cold, hot = divide(look, ranges)
    session = _session(spark)
    frames = []
    if any(one.start < one.end for one in cold.values()):
        assert tiers.table is not None  # something is archived
        frames.append(_cold_frame(session, tiers.table, tiers.topic, look.cold, cold))
    if any(one.start < one.end for one in hot.values()):
        frames.append(_hot_frame(session, recipe, tiers.topic, look, hot))
    if not frames:
        frames.append(_no_rows(session))
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


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
    keyspace: str = DEFAULT_KEYSPACE,
    password_ref: str | None = None,
) -> DataFrame:
    """The records of a topic's range as one DataFrame; see `UnifiedLog.dataframe`.

    Args:
        redis_url: None to read what is archived without asking Redis, on a platform that cannot
            reach it: the log then ends at the archived end.
        cold: a folder or an object store's URL; None for an untiered topic.
        password_ref: ``env:NAME``, in the environment of the driver and of every executor.

    Raises:
        UnknownTopicOrPartitionError: no such topic.
        InvalidArgumentError: neither tier is named.
    """
    storage = None if cold is None else Storage(cold)
    if redis_url is None:
        if storage is None:
            raise InvalidArgumentError("give redis_url, or cold, or both: there is nothing to read")
        recipe = LogRecipe(HotSource("", keyspace), storage)
        tiered = cold_topic(storage, topic)
        table = PathTable(tiered, storage, InlineEngine(), HotRows(recipe.source))
        tiers = cold_tiers(tiered, table)
        clock: Clock = SystemClock()
    else:
        recipe = LogRecipe(HotSource(redis_url, keyspace, password_ref), storage)
        tiers = recipe.tiers(recipe.hot().topics().get(topic))
        clock = recipe.clock()
    return dataframe(
        recipe, tiers, clock, start, end, spark=spark, partitions=partitions, clip=clip
    )


def divide(
    look: Look, ranges: Mapping[int, OffsetRange]
) -> tuple[dict[int, OffsetRange], dict[int, OffsetRange]]:
    """What of each range is read from cold, and what, above it, from hot.

    Cold as far as it goes: what both tiers hold are the same bytes, and Delta's reader filters,
    skips and prunes. But where compaction has cleaned records that are still hot, hot begins with
    its first record, so that a frame has the records that every other reader of the log gets.
    """
    cold, hot = {}, {}
    for number, (start, end) in ranges.items():
        offsets = look.offsets[number]
        boundary = offsets.archived_end
        if look.cold.cleaned_end(number) > offsets.local_log_start:
            boundary = min(boundary, offsets.local_log_start)
        boundary = min(max(boundary, start), end)
        cold[number] = OffsetRange(start, boundary)
        hot[number] = OffsetRange(boundary, end)
    return cold, hot


# -- cold --------------------------------------------------------------------------------------


def _cold_frame(
    spark: SparkSession,
    table: ColdTable,
    topic: Topic,
    snapshot: ColdSnapshot,
    ranges: Mapping[int, OffsetRange],
) -> DataFrame:
    from pyspark.sql.functions import col, lit

    frame = _delta(spark, table, snapshot.version)
    rows = condition(snapshot.files, ranges)
    if rows is not None:
        frame = frame.where(rows)
    return frame.select(
        *(lit(topic.name).alias(name) if name == "topic" else col(name) for name in COLUMNS)
    )


def _delta(spark: SparkSession, table: ColdTable, version: int) -> DataFrame:
    if not isinstance(table, PathTable):
        raise InvalidArgumentError(f"a {type(table).__name__} cannot be read as a DataFrame")
    return spark.read.format("delta").option("versionAsOf", version).load(table.path)


def condition(files: SegmentIndex, ranges: Mapping[int, OffsetRange]) -> str | None:
    """Which of the table's rows lie in the ranges, as SQL; None: all of them.

    A first part speaks of the partition columns alone, so that it decides on files by itself; a
    second one of offsets, for the files at the edges and their row groups. Neither is there where
    it would not leave anything out: a count then needs no file at all.
    """
    by_segments, by_offsets = [], []
    left_out, edges = len(files), False
    for number, (start, end) in ranges.items():
        found = files.files_between(number, start, end) if start < end else []
        if not found:
            continue
        left_out -= len(found)
        every = len(found) == files.rows_of_partition(number).num_rows
        inside = all(start <= file.start_offset and file.end_offset <= end for file in found)
        edges = edges or not inside
        low, high = min(f.segment for f in found), max(f.segment for f in found)
        segments = "" if every else f" AND segment BETWEEN {low} AND {high}"
        by_segments.append(f"(partition = {number}{segments})")
        offsets = "" if inside else f" AND offset >= {start} AND offset < {end}"
        by_offsets.append(f"(partition = {number}{offsets})")
    if not by_segments:
        return "false"
    parts = [f"({' OR '.join(by_segments)})"] if left_out else []
    if edges:
        parts.append(f"({' OR '.join(by_offsets)})")
    return " AND ".join(parts) if parts else None


# -- hot ---------------------------------------------------------------------------------------


def _hot_frame(
    spark: SparkSession,
    recipe: LogRecipe,
    topic: Topic,
    look: Look,
    ranges: Mapping[int, OffsetRange],
) -> DataFrame:
    from .datasource import NAME
    from .session import register

    register(spark)
    wanted = {n: one for n, one in ranges.items() if one.start < one.end}
    ids = {topic.name: topic.topic_id}
    starts = {TopicPartition(topic.name, n): one.start for n, one in wanted.items()}
    ends = {TopicPartition(topic.name, n): one.end for n, one in wanted.items()}
    size_bytes = sum(size_of(look, n, *one) for n, one in wanted.items())
    # Below the archived end, hot is read for what compaction removed: only the version that first
    # held it still has that.
    cleaned = any(one.start < look.offsets[n].archived_end for n, one in wanted.items())
    return (
        spark.read.format(NAME)
        .options(**recipe.options())
        .option("assign", json.dumps({topic.name: sorted(wanted)}))
        .option("startingOffsets", json.dumps(StreamOffset(starts, ids).to_json()))
        .option("endingOffsets", json.dumps(StreamOffset(ends, ids).to_json()))
        .option("readAsOfVersion", 0 if cleaned else look.cold.version)
        .option("includeHeaders", "true")
        .option("minPartitions", max(1, min(_parallelism(spark), int(size_bytes / TASK_BYTES))))
        .load()
    )


def _no_rows(spark: SparkSession) -> DataFrame:
    from .datasource import HEADERS, SCHEMA

    return spark.createDataFrame([], type(SCHEMA)([*SCHEMA, HEADERS]))


def _session(spark: SparkSession | None) -> SparkSession:
    if spark is not None:
        return spark
    from .session import session

    return session()


def _parallelism(spark: SparkSession) -> int:
    from .engine import CORES_UNKNOWN

    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect has no context
        return CORES_UNKNOWN
