"""The rows of one range of offsets, as a Spark task reads them.

Runs on: executor.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from uuid import UUID

import pyarrow as pa
from msgspec import Struct

from ..base.back_off import BackOff, Tries, patiently
from ..codec.value_columns import columns_of
from ..cold.as_archived import AsArchived
from ..errors import LakelogError, OffsetOutOfRangeError
from ..place import LogPlace
from ..read.fetch import fetches
from ..read.tiers import Look, Tiers
from ..values.config import MIB
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .kafka_columns import HEADERS, source_schema

logger = logging.getLogger(__name__)

#: Topic, partition, start and end.
Range = tuple[Topic, int, int, int]

#: Batches are put together up to here: each costs Spark some 100 µs, however small it is.
TOGETHER_BYTES = MIB


class Looked(Struct, frozen=True):
    """Both tiers of a topic, and a look at all of its ranges that a task reads."""

    tiers: Tiers
    look: Look


def looked_at(
    place: LogPlace,
    ranges: Sequence[Range],
    *,
    stored_values: bool = False,
    back_off: BackOff | None = None,
) -> dict[UUID, Looked]:
    """One look at each topic of which several ranges are read, by its id.

    Whoever reads a range without a look asks Redis for its first record, then both tiers where it
    is, and then reads: of a few records that is most of the work.

    Raises:
        LakelogError: see `range_rows`.
    """
    found = {}
    for topic_id, topic in {one[0].topic_id: one[0] for one in ranges}.items():
        own = {one[1]: one[2:] for one in ranges if one[0].topic_id == topic_id}
        if len(own) > 1:
            tiers = place.task_tiers(topic, stored_values=stored_values)
            look = patiently(f"looking at {topic.name}", partial(tiers.look, own), back_off)
            found[topic_id] = Looked(tiers, look)
    return found


def range_rows(
    place: LogPlace,
    topic: Topic,
    partition: int,
    start: int,
    end: int,
    *,
    fail_on_data_loss: bool,
    as_of_version: int | None = None,
    stored_values: bool = False,
    looked: Looked | None = None,
    back_off: BackOff | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of [start, end), from whichever tier holds them, as `RECORDS` batches.

    A tier that does not answer is asked again, and the read goes on where it was.

    Args:
        fail_on_data_loss: if not, records below the log start are passed over with a warning.
        as_of_version: read what was archived after that table version as it was archived, even if
            compaction or retention removed it since.
        stored_values: give encrypted values as they are stored.
        looked: of the topic, see `looked_at`. It may be old by now; it is not used with a version.
        back_off: how it is asked again; default `back_off.ASK_AGAIN`.

    Raises:
        OffsetOutOfRangeError: the log does not cover the range (any more).
        UnknownTopicIdError: the topic was deleted, or deleted and created again.
        HotTierUnavailableError, ColdTierError: a tier does not answer.
        EncryptionKeyError, DecryptionError: values cannot be decrypted.
    """
    topic_partition = topic.partition(partition)
    seen: Look | None = None
    if looked is None or as_of_version is not None:
        tiers, archived = _tiers(place, topic, partition, start, end, as_of_version, stored_values)
    else:
        tiers, archived, seen = looked.tiers, None, looked.look
    tries = Tries(f"reading {topic_partition}", back_off)
    at = start
    while at < end:
        try:
            steps = fetches(tiers, topic_partition, at, end, seen=seen)
            seen = None  # another try asks anew
            for step in steps:
                at = step.next_offset
                if archived is not None:
                    archived.at = at
                tries.succeeded()
                if step.records.num_rows:
                    yield step.records
        except OffsetOutOfRangeError as error:
            log_start, log_end = error.log_start, error.log_end
            if log_start is None or log_end is None or log_start <= at:
                raise
            if fail_on_data_loss:
                raise not_covered(
                    topic_partition,
                    at,
                    end,
                    log_start,
                    log_end,
                    of_frame=as_of_version is not None,
                ) from error
            at = min(log_start, end)
            logger.warning(
                "%s: what lay below offset %d is gone; going on there", topic_partition, at
            )
        except LakelogError as error:
            tries.wait(error)


def _tiers(
    place: LogPlace,
    topic: Topic,
    partition: int,
    start: int,
    end: int,
    as_of_version: int | None,
    stored_values: bool,
) -> tuple[Tiers, AsArchived | None]:
    if as_of_version is None:
        return place.task_tiers(topic, stored_values=stored_values), None
    return place.task_tiers_as_archived(
        topic,
        partition,
        since=as_of_version,
        start=start,
        end=end,
        stored_values=stored_values,
    )


def not_covered(
    topic_partition: TopicPartition,
    start: int,
    end: int,
    log_start: int,
    log_end: int,
    *,
    of_frame: bool = False,
) -> OffsetOutOfRangeError:
    """The error of a range that begins below the log start.

    Args:
        of_frame: a frame over both tiers reads it, which has no options.
    """
    else_ = (
        "cut it with clip=True"
        if of_frame
        else "set failOnDataLoss=false to go on with what there is"
    )
    return OffsetOutOfRangeError(
        f"[{start}, {end}) of {topic_partition} is no longer covered: the log holds "
        f"[{log_start}, {log_end}); retention or delete-records removed what lay below. Choose a "
        f"range inside, or {else_}",
        topic_partition=topic_partition,
        offset=start,
        log_start=log_start,
        log_end=log_end,
    )


def together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches, of `TOGETHER_BYTES` at most where they were smaller."""
    held: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        own_bytes = batch.nbytes
        if held and size_bytes + own_bytes > TOGETHER_BYTES:
            yield _as_one(held)
            held, size_bytes = [], 0
        held.append(batch)
        size_bytes += own_bytes
    if held:
        yield _as_one(held)


def _as_one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (found,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return found


def spark_rows(
    records: pa.RecordBatch,
    topic_partition: TopicPartition,
    *,
    headers: bool,
    columns: pa.Schema,
) -> pa.RecordBatch:
    """A `RECORDS` batch as rows of the `source_schema`.

    Args:
        columns: of `value_schema`, to be made of the values besides.
    """
    rows = records.num_rows
    arrays = [
        records.column("key"),
        records.column("value"),
        pa.repeat(pa.scalar(topic_partition.topic, pa.string()), rows),
        pa.repeat(pa.scalar(topic_partition.partition, pa.int32()), rows),
        records.column("offset"),
        records.column("timestamp"),
        records.column("timestampType"),
    ]
    if headers:
        arrays.append(records.column("headers").cast(HEADERS.type))
    if len(columns):
        arrays += columns_of(records.column("value"), columns).columns
    return pa.RecordBatch.from_arrays(arrays, schema=source_schema(columns, headers=headers))
