"""The records of a call as entries, as the topic of its queue wants them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow as pa

from ..codec import AUTO_ARROW_RECORDS, Entry, Row, encode
from ..codec.encryption.of_topic import sealing
from ..errors import InvalidRecordError, LakelogError, RecordTooLargeError
from ..hot import TopicRegistry
from ..values.config import Compression
from ..values.record import HEADERS_TYPE, PRODUCED, no_headers
from .accumulator import Accumulator
from .partition_queue import Call, PartitionQueue


def encode_for(queue: PartitionQueue, records: pa.RecordBatch | Sequence[Row]) -> tuple[Entry, ...]:
    """`PRODUCED` records, or rows of them, as entries, as the queue's topic wants them.

    Their values are checked, if it wants that; see `encode_checked`.
    """
    for error in refused_by_columns(queue, records):
        raise error
    return encode_checked(queue, records)


def encode_checked(
    queue: PartitionQueue, records: pa.RecordBatch | Sequence[Row]
) -> tuple[Entry, ...]:
    """As `encode_for`, of records that `refused_by_columns` has none of.

    Their values are encrypted, if the topic wants that; the bounds are those of what is stored.
    """
    if queue.sealing is not None:
        if isinstance(records, pa.RecordBatch):
            records = queue.sealing.seal_records(records)
        else:
            values = queue.sealing.seal_all((row[1], row[2]) for row in records)
            records = [
                (row[0], row[1], value, row[3]) for row, value in zip(records, values, strict=True)
            ]
    adaptive = queue.compression
    compression = adaptive.next()
    try:
        entries = _encoded(queue, records, compression)
    except RecordTooLargeError:
        if compression is adaptive.wanted:
            raise
        compression = adaptive.wanted  # it may fit once it is compressed
        entries = _encoded(queue, records, compression)
    adaptive.learn(compression, entries)
    return entries


def refused_by_columns(
    queue: PartitionQueue, records: pa.RecordBatch | Sequence[Row]
) -> list[InvalidRecordError]:
    """An error for each record that the columns of the topic refuse, with its ``index``."""
    if not queue.enforces_columns:
        return []
    from ..codec.enforced_columns import wrong_values

    if isinstance(records, pa.RecordBatch):
        return wrong_values(records["value"], queue.topic.config)
    values = pa.array([row[2] for row in records], pa.binary())
    return wrong_values(values, queue.topic.config)


def _encoded(
    queue: PartitionQueue, records: pa.RecordBatch | Sequence[Row], compression: Compression
) -> tuple[Entry, ...]:
    return encode(
        records,
        queue.entry_format,
        compression,
        max_entry_bytes=queue.max_entry_bytes,
        max_decoded_bytes=queue.max_decoded_bytes,
        flatten=queue.flatten,
    )


def allows_more(queue: PartitionQueue, topics: TopicRegistry, accumulator: Accumulator) -> bool:
    """Looks the topic up again; whether it now takes larger entries than before."""
    entry_bytes, decoded_bytes = queue.max_entry_bytes, queue.max_decoded_bytes
    try:
        topic = topics.renewed(queue.topic)
        values = sealing(topic)
    except LakelogError:
        return False  # the refusal stands; the next append shows what is wrong
    with accumulator.lock:
        queue.set_topic(topic, values)
    return queue.max_entry_bytes > entry_bytes or queue.max_decoded_bytes > decoded_bytes


def records_of(call: Call) -> pa.RecordBatch | list[Row]:
    """The records of an open call, as columns if they are worth it."""
    few = call.record_count < AUTO_ARROW_RECORDS  # columns of them would take longer to make
    return _rows(call) if few else _produced(call)


def _rows(call: Call) -> list[Row]:
    """The records of an open call."""
    headers = (call.headers.get(index, ()) for index in range(call.record_count))
    return list(zip(call.timestamps_ms, call.keys, call.values, headers, strict=True))


def without(
    records: pa.RecordBatch | list[Row], indexes: Collection[int]
) -> pa.RecordBatch | list[Row]:
    """The records but for those."""
    if isinstance(records, list):
        return [record for row, record in enumerate(records) if row not in indexes]
    others = [row for row in range(records.num_rows) if row not in indexes]
    return records.take(pa.array(others, pa.int64()))


def _produced(call: Call) -> pa.RecordBatch:
    """The records of an open call as columns."""
    count = call.record_count
    if call.headers:
        rows = [call.headers.get(index, ()) for index in range(count)]
        headers = pa.array(rows, HEADERS_TYPE)
    else:
        headers = no_headers(count)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(call.timestamps_ms, pa.int64()),
            pa.array(call.keys, pa.binary()),
            pa.array(call.values, pa.binary()),
            headers,
        ],
        schema=PRODUCED,
    )
