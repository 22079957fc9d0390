"""One DataFrame over both tiers: cold through Spark's own Delta reader, the tail out of Redis.

The ranges are fixed when the frame is made, by one look at both tiers, and so is where cold ends
and hot begins: the rows are the same at each evaluation, whatever is appended, archived, trimmed,
compacted or expires meanwhile. The cold part is the table at that look's version. The hot part's
tasks read what was archived since as it was archived (see `AsArchived`).

Runs on: driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, reduce
from itertools import starmap
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..base import compute as pc
from ..base.clock import Clock, SystemClock
from ..codec.encryption.of_topic import check_tasks_have_key
from ..codec.value_columns import value_schema
from ..cold.by_name.names import quoted
from ..cold.catalogue import topic_by_name
from ..cold.segment import SegmentIndex
from ..cold.table import ColdSnapshot, ColdTable
from ..errors import InvalidArgumentError
from ..place import LogPlace
from ..read.hot_tier import NothingHot
from ..read.tiers import Look, Tiers, Values
from ..values.config import DATA_KEYS, MIB
from ..values.offset_ranges import merged
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from ..values.value_ddl import VALUE_ERROR
from .kafka_columns import COLUMNS, HEADERS, source_schema
from .offsets_json import StreamOffset
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


# -- decrypted values --------------------------------------------------------------------------

#: What decrypting a value asks for, and what names it in an error.
_ASKED = ("key", "value", "partition", "offset")


def opened_values(frame: DataFrame, topic: Topic) -> DataFrame:
    """The frame with its values as they were given, decrypted by Spark's tasks.

    Where Spark has functions over Arrow columns (4.1 and later), only the value is such a
    function's: filters on all else are still pushed down to Delta, and a query that does not ask
    for values decrypts none. Older ones hand over whole rows.

    Args:
        frame: with the columns of `kafka_columns.COLUMNS`.
        topic: as it is now, with all of its data keys.
    """
    from pyspark.sql import functions

    arrow_udf: Callable[..., Any] | None = getattr(functions, "arrow_udf", None)
    if arrow_udf is None:
        return frame.mapInArrow(partial(_opened_rows, topic), frame.schema)

    def opened(key: pa.Array, value: pa.Array, partition: pa.Array, offset: pa.Array) -> pa.Array:
        return _opened(topic, key, value, partition, offset)

    # Spark reads the types of its arguments off the function.
    opened.__annotations__ = dict.fromkeys((*_ASKED, "return"), pa.Array)
    columns = [functions.col(name) for name in _ASKED]
    return frame.withColumn("value", arrow_udf(opened, "binary")(*columns))


def _opened_rows(topic: Topic, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs on: executor."""
    for batch in batches:
        place = batch.schema.get_field_index("value")
        values = _opened(topic, *(batch.column(name) for name in _ASKED))
        yield batch.set_column(place, batch.schema.field(place), values)


def _opened(
    topic: Topic, key: pa.Array, value: pa.Array, partition: pa.Array, offset: pa.Array
) -> pa.Array:
    """Runs on: executor."""
    return Values(topic, lambda one: one).of_columns(
        key.cast(pa.binary()),
        value.cast(pa.binary()),
        lambda row: (TopicPartition(topic.name, partition[row].as_py()), offset[row].as_py()),
    )


# -- which rows of a range come from which tier -----------------------------------------------

# Pure: told by one look. A condition holds for the rows of that look's version of the table and of
# no other: what somebody adds to a segment later is not in that version.

NO_ROWS = "false"

#: Ranges by partition; as many as a partition has several.
Parts = list[dict[int, OffsetRange]]


def divide(look: Look, ranges: Mapping[int, OffsetRange]) -> tuple[Parts, Parts]:
    """What of the ranges is read from cold, and what from hot; no part has an empty range.

    Cold as far as it goes: what both tiers hold are the same bytes, and Delta's reader filters,
    skips and prunes. But where compaction has cleaned records that are still hot, hot begins with
    its first record, so that a frame has the records that every other reader of the log gets. What
    hot lost of those is read as cold has it now: hot has a gap for it or, until the partition is
    recovered, ends below it.
    """
    cold: Parts = []
    hot: Parts = []
    for number, (start, end) in ranges.items():
        offsets = look.offsets[number]
        boundary = offsets.archived_end
        if look.cold.thinned_end(number) > offsets.local_log_start:
            boundary = min(boundary, offsets.local_log_start)
        boundary = min(max(boundary, start), end)
        both = OffsetRange(boundary, min(end, offsets.archived_end))
        tier = look.hot[number]
        known = (*tier.gaps, OffsetRange(tier.log_end, offsets.archived_end))
        lost = merged(
            OffsetRange(max(gap.start, both.start), min(gap.end, both.end)) for gap in known
        )
        _put(cold, number, [OffsetRange(start, boundary), *lost])
        edges = [boundary, *(edge for gap in lost for edge in gap), end]
        _put(hot, number, starmap(OffsetRange, zip(edges[::2], edges[1::2], strict=True)))
    return cold, hot


def _put(parts: Parts, number: int, ranges: Iterable[OffsetRange]) -> None:
    for at, one in enumerate(one for one in ranges if one.start < one.end):
        if at == len(parts):
            parts.append({})
        parts[at][number] = one


def hot_version(look: Look, hot: Mapping[int, OffsetRange]) -> int:
    """As of which table version a hot part's tasks read what is archived by then.

    Below the archived end, hot is read for what compaction removed: only the version that first
    held it still has that.
    """
    cleaned = any(
        one.start < min(one.end, look.offsets[number].archived_end) for number, one in hot.items()
    )
    return 0 if cleaned else look.cold.version


def condition(files: SegmentIndex, ranges: Mapping[int, OffsetRange]) -> str | None:
    """Which of the table's rows lie in the ranges, as SQL; None: all of them.

    A first part speaks of the partition columns alone, so that it decides on files by itself; a
    second one of offsets, for the files at the edges and their row groups. Neither is there where
    it would not leave anything out: a count of whole segments then reads no column, and one of
    everything opens no file.

    Partition columns take a segment as a whole: the offsets of a range may be left unsaid only
    where *every* file of its segments lies inside, those too that the range itself does not touch.
    Between two rolls a segment has many files, and below the log start some are still there.

    Args:
        files: of the version that is read.
    """
    filled = files.columns.filter(pc.not_equal(files.columns["records"], 0))
    by_segments, by_offsets = [], []
    left_out, edges = filled.num_rows, False
    for number, (start, end) in ranges.items():
        mine = filled.filter(pc.equal(filled["partition"], number))
        # By its records, not by its range: that may begin in a gap, and there is no row in it.
        found = mine.filter(
            pc.and_(pc.less(mine["first"], end), pc.greater_equal(mine["last"], start))
        )
        if not found.num_rows or start >= end:
            continue
        chosen = _of_their_segments(mine, found)
        left_out -= chosen.num_rows
        inside = pc.and_(pc.greater_equal(chosen["first"], start), pc.less(chosen["last"], end))
        whole = pc.all(inside).as_py()
        edges = edges or not whole
        segments = ""
        if chosen.num_rows < mine.num_rows:
            low, high = _extremes(found["segment"])
            segments = f" AND segment BETWEEN {low} AND {high}"
        by_segments.append(f"(partition = {number}{segments})")
        offsets = "" if whole else f" AND offset >= {start} AND offset < {end}"
        by_offsets.append(f"(partition = {number}{offsets})")
    if not by_segments:
        return NO_ROWS
    parts = [f"({' OR '.join(by_segments)})"] if left_out else []
    if edges:
        parts.append(f"({' OR '.join(by_offsets)})")
    return " AND ".join(parts) if parts else None


def _of_their_segments(files: pa.Table, found: pa.Table) -> pa.Table:
    """All files of the segments that some of them are of, and of the segments between."""
    low, high = _extremes(found["segment"])
    return files.filter(
        pc.and_(pc.greater_equal(files["segment"], low), pc.less_equal(files["segment"], high))
    )


def _extremes(column: pa.ChunkedArray) -> tuple[int, int]:
    return pc.min(column).as_py(), pc.max(column).as_py()
