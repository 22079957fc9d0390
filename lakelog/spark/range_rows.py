"""The rows of one range of offsets, as a Spark task reads them.

Runs on: executor.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa

from ..back_off import Tries
from ..codec.value_columns import columns_of
from ..cold.as_archived import AsArchived
from ..errors import LakelogError, OffsetOutOfRangeError
from ..read.fetch import fetches
from ..read.tiers import Tiers
from ..record import TopicPartition
from ..topic import Topic
from .kafka_columns import HEADERS, source_schema
from .place import LogPlace

logger = logging.getLogger(__name__)


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
) -> Iterator[pa.RecordBatch]:
    """The records of [start, end), from whichever tier holds them, as `RECORDS` batches.

    A tier that does not answer is asked again for `back_off.PATIENCE_S`, and the read goes on
    where it was.

    Args:
        fail_on_data_loss: if not, records below the log start are passed over with a warning.
        as_of_version: read what was archived after that table version as it was archived, even if
            compaction or retention removed it since.
        stored_values: give encrypted values as they are stored.

    Raises:
        OffsetOutOfRangeError: the log does not cover the range (any more).
        UnknownTopicIdError: the topic was deleted, or deleted and created again.
        HotTierUnavailableError, ColdTierError: a tier does not answer.
        EncryptionKeyError, DecryptionError: values cannot be decrypted.
    """
    topic_partition = topic.partition(partition)
    tiers, archived = _tiers(place, topic, partition, start, end, as_of_version, stored_values)
    tries = Tries(f"reading {topic_partition}")
    at = start
    while at < end:
        try:
            for step in fetches(tiers, topic_partition, at, end):
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
