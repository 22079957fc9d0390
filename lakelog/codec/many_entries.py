"""Very many small entries to one `RECORDS` batch, much faster than entry by entry.

The messages of arrow entries follow each other as they would in a stream, so Arrow reads them as
one; the records of fields entries become columns once, wherever they stand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..errors import LakelogError
from ..values.record import (
    NO_TIMESTAMP_MS,
    PRODUCED,
    RECORDS,
    TimestampType,
    empty_records,
    produced_batch,
)
from .arrow_entry import CRC_FIELD, decode_messages, misplaced_null, timestamp_bounds
from .crc import crc32c
from .decoded_size import MESSAGE_FIELD
from .entry import MAX_TIMESTAMP_MS, EntryId, append_time_ms
from .fields_entry import TIMESTAMP_FIELD, Row, decode_fields

_OWN_TIME = -1


def decode_together(entries: Sequence[tuple[EntryId, list[bytes]]]) -> pa.RecordBatch | None:
    """As `decode`, of entries that may be of any partitions.

    Returns:
        ``RECORDS``. None: one of them is not sound, or has no records; `decode` says which.
    """
    if not entries:
        return empty_records()
    try:
        return _decoded(entries)
    except (LakelogError, pa.ArrowException, EOFError, OSError, ValueError, StopIteration):
        return None


def _decoded(entries: Sequence[tuple[EntryId, list[bytes]]]) -> pa.RecordBatch | None:
    messages: list[bytes] = []
    counts: list[int] = []  # of records, of each message
    rows: list[Row] = []
    append_times: list[int] = []  # of each entry
    for entry_id, fields in entries:
        entry_id.checked()
        time_ms: int | None
        name = fields[0] if fields else b""
        if name == TIMESTAMP_FIELD:
            row, time_ms = decode_fields(entry_id, fields)
            rows.append(row)
        elif name == MESSAGE_FIELD and len(fields) >= 4 and fields[2] == CRC_FIELD:
            if crc32c(fields[1]) != fields[3]:
                return None
            messages.append(fields[1])
            counts.append(entry_id.record_count)
            time_ms = append_time_ms(entry_id, fields[4:])
        else:
            return None
        append_times.append(_OWN_TIME if time_ms is None else time_ms)
    batches = decode_messages(messages, counts) if messages else []
    if batches is None:
        return None
    produced = pa.Table.from_batches([*batches, *([produced_batch(rows)] if rows else [])])
    # One array each, and not as `combine_chunks` of a table: that may leave several.
    timestamps, keys, values, headers = (
        pa.concat_arrays(column.chunks) for column in produced.columns
    )
    whole = pa.RecordBatch.from_arrays([timestamps, keys, values, headers], schema=PRODUCED)
    if misplaced_null(whole) is not None:
        return None
    low, high = timestamp_bounds(timestamps)
    if low < NO_TIMESTAMP_MS or high > MAX_TIMESTAMP_MS:
        return None
    records = np.array([entry_id.record_count for entry_id, _ in entries])
    bases = np.array([entry_id.base_offset for entry_id, _ in entries])
    first = np.cumsum(records) - records  # rows before each entry
    offsets = np.arange(int(records.sum())) + np.repeat(bases - first, records)
    own = np.asarray(timestamps)
    columns = [keys, values, headers]
    if messages and rows:
        is_row = np.repeat([fields[0] == TIMESTAMP_FIELD for _, fields in entries], records)
        order = np.empty(len(is_row), np.int64)
        order[~is_row] = np.arange(len(is_row) - len(rows))
        order[is_row] = np.arange(len(is_row) - len(rows), len(is_row))
        own = own[order]
        columns = [column.take(pa.array(order)) for column in columns]
    appended = np.repeat(np.array(append_times), records)
    is_own = appended == _OWN_TIME
    micros = pa.array(np.where(is_own, own, appended) * 1000)
    kinds = np.where(is_own, int(TimestampType.CREATE_TIME), int(TimestampType.LOG_APPEND_TIME))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(offsets),
            micros.view(RECORDS.field("timestamp").type),
            pa.array(kinds.astype(np.int32)),
            *columns,
        ],
        schema=RECORDS,
    )
