"""Records to entries and back: which format, and one `RECORDS` batch out of any mix of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..base.arrow_columns import binaries, numbers
from ..errors import (
    ForeignEntryError,
    InvalidArgumentError,
    InvalidRecordError,
    InvalidTimestampError,
)
from ..values.config import INT32_MAX, MIB, Compression, EntryFormat
from ..values.record import (
    HEADERS_TYPE,
    NO_TIMESTAMP_MS,
    PRODUCED,
    RECORDS,
    TimestampType,
    empty_records,
    produced_batch,
)
from .arrow_entry import decode_arrow, encode_arrow, produced_flaw, timestamp_bounds
from .decoded_size import MESSAGE_FIELD
from .entry import (
    MAX_TIMESTAMP_MS,
    VERSION_FIELD,
    Entry,
    EntryId,
    corrupt,
    gap_of,
    newer_entry,
)
from .fields_entry import TIMESTAMP_FIELD, Row, decode_fields, encode_fields
from .kafka_entry import (
    KAFKA_BEGINNING,
    StoredBatch,
    decode_batches,
    encode_few,
    encode_kafka,
    open_batch,
)
from .kafka_rows import FEW_RECORDS

#: ``auto`` writes arrow entries from this many records on; below, an arrow entry's fixed ~600 bytes
#: would weigh more than what columns save.
AUTO_ARROW_RECORDS = 16

#: Kafka's default of max.message.bytes.
DEFAULT_MAX_ENTRY_BYTES = MIB + 12

_EMPTY = empty_records()
_NO_HEADER = pa.nulls(0, HEADERS_TYPE.value_type)


def encode(
    records: pa.RecordBatch | Sequence[Row],
    entry_format: EntryFormat,
    compression: Compression,
    *,
    max_entry_bytes: int = DEFAULT_MAX_ENTRY_BYTES,
    max_decoded_bytes: int = INT32_MAX,
    flatten: bool = False,
) -> tuple[Entry, ...]:
    """The records as entries, in order, each within both bounds.

    A record that a fields entry cannot hold (too many fields, or larger than allowed) becomes an
    arrow entry, whatever the format.

    Args:
        records: ``PRODUCED``; a slice is encoded without the rest of its parent. Or rows of values
            that such columns can hold: where they become fields entries, none are made.
        entry_format: ``auto`` writes fields entries below `AUTO_ARROW_RECORDS` records.
        compression: of arrow and kafka entries; fields entries stay plain.
        max_entry_bytes: bound on `Entry.size_bytes`.
        max_decoded_bytes: bound on `Entry.decoded_bytes`.
        flatten: whether a fields entry shows the members of a JSON object as fields.

    Raises:
        RecordTooLargeError: a record exceeds a bound on its own; ``index`` says which.
        InvalidRecordError: a record cannot be encoded; ``index`` says which.
        InvalidTimestampError: below -1, or beyond what microseconds can count.
        InvalidArgumentError: not ``PRODUCED``.
    """
    columns = records if isinstance(records, pa.RecordBatch) else None
    if columns is not None:
        _check(columns)
    if entry_format is EntryFormat.ARROW or (
        entry_format is EntryFormat.AUTO and len(records) >= AUTO_ARROW_RECORDS
    ):
        columns = produced_batch(records) if columns is None else columns
        entries = encode_arrow(columns, compression, max_entry_bytes, max_decoded_bytes)
    elif entry_format is EntryFormat.KAFKA:
        entry = None
        if 0 < len(records) < FEW_RECORDS:
            rows = records if columns is None else list(_rows(columns))
            entry = encode_few(rows, compression, max_entry_bytes, max_decoded_bytes)
        if entry is not None:
            entries = [entry]
        else:
            columns = produced_batch(records) if columns is None else columns
            entries = encode_kafka(columns, compression, max_entry_bytes, max_decoded_bytes)
    else:
        entries = []
        for index, row in enumerate(records if columns is None else _rows(columns)):
            try:
                entry = encode_fields(row, flatten)
            except Exception as error:  # a defect, about this record and not its neighbours
                raise InvalidRecordError(
                    f"record {index} cannot be encoded: {error!r}. Please report it; until then, "
                    "lakelog.entry.format=arrow or lakelog.fields.flatten=false takes it",
                    index=index,
                ) from error
            if entry is not None and entry.size_bytes <= min(max_entry_bytes, max_decoded_bytes):
                entries.append(entry)
            else:
                entries += encode_arrow(
                    produced_batch([row]),
                    compression,
                    max_entry_bytes,
                    max_decoded_bytes,
                    first_index=index,
                )
    if any(
        entry.min_timestamp_ms < NO_TIMESTAMP_MS or entry.max_timestamp_ms > MAX_TIMESTAMP_MS
        for entry in entries
    ):
        given = [row[0] for row in records] if columns is None else columns.column(0).to_pylist()
        raise _odd_timestamps(given)
    return tuple(entries)


def decode(entries: Iterable[tuple[EntryId, list[bytes]]]) -> pa.RecordBatch:
    """The records of entries of any formats, in order; gap entries contribute none.

    Not promised: more than 2 GiB of keys, values or headers in one call; Arrow's offsets have 32
    bits, so callers hand over what `in_steps` gives them.

    Returns:
        ``RECORDS``. Records of an entry with an append time carry that and type LogAppendTime.

    Raises:
        CorruptRecordError: an entry is not what was written; ``entry_id`` says which.
        ForeignEntryError: an entry was not written by lakelog.
        NewerVersionError: an entry was written by a newer one.
    """
    run = _Run()
    for entry_id, fields in entries:
        entry_id.checked()
        name = fields[0] if fields else b""
        if name == MESSAGE_FIELD:
            run.add_batch(entry_id, *decode_arrow(entry_id, fields))
        elif name == TIMESTAMP_FIELD:
            run.add_row(entry_id, *decode_fields(entry_id, fields))
        elif fields[:2] == KAFKA_BEGINNING:
            run.add_kafka(entry_id, *open_batch(entry_id, fields))
        elif name == VERSION_FIELD:
            version = fields[1][:40] if len(fields) > 1 else b""
            raise newer_entry(entry_id, f"format {version.decode(errors='replace')}")
        elif gap_of(entry_id, fields) is None:
            raise ForeignEntryError(
                f"entry {entry_id} was not written by lakelog: its first field is {name[:40]!r}. "
                "Something else writes to this stream; stop it and delete its entries",
                entry_id=entry_id,
            )
    return run.records()


class _Run:
    """Collects decoded entries as Arrow columns."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []  # PRODUCED
        self._rows: list[Row] = []  # not yet a batch
        self._kafka: list[StoredBatch] = []  # likewise; of these and rows, one is empty
        self._offsets: list[tuple[int, int]] = []  # [start, end) of each dense stretch
        self._times: list[tuple[int | None, int]] = []  # append time, and of how many records
        self._ids: list[EntryId] = []

    def add_batch(self, entry_id: EntryId, batch: pa.RecordBatch, time_ms: int | None) -> None:
        self._flush()
        self._batches.append(batch)
        self._place(entry_id, time_ms)

    def add_row(self, entry_id: EntryId, row: Row, time_ms: int | None) -> None:
        if self._kafka:
            self._flush()
        self._rows.append(row)
        self._place(entry_id, time_ms)

    def add_kafka(self, entry_id: EntryId, batch: StoredBatch, time_ms: int | None) -> None:
        if self._rows:
            self._flush()
        self._kafka.append(batch)
        self._place(entry_id, time_ms)

    def records(self) -> pa.RecordBatch:
        if not (self._batches or self._kafka):
            return self._of_rows() if self._rows else _EMPTY
        self._flush()
        timestamps, keys, values, headers = (
            _concat([batch.column(index) for batch in self._batches])
            for index in range(len(PRODUCED))
        )
        self._check_times(timestamps)
        stamped, kinds = self._stamp(timestamps)
        offsets = _concat([_integers(start, end) for start, end in self._offsets])
        return pa.RecordBatch.from_arrays(
            [offsets, stamped, kinds, keys, values, headers], schema=RECORDS
        )

    def _of_rows(self) -> pa.RecordBatch:
        """The columns when no entry has more than one record: straight from Python values.

        Reading one record is mostly this; by way of a batch it would take three times as long.
        """
        timestamps, keys, values, headers = zip(*self._rows, strict=True)
        times = [time_ms for time_ms, count in self._times for _ in range(count)]
        stamps = [
            (own if time_ms is None else time_ms) * 1000
            for own, time_ms in zip(timestamps, times, strict=True)
        ]
        kinds = [
            TimestampType.CREATE_TIME if time_ms is None else TimestampType.LOG_APPEND_TIME
            for time_ms in times
        ]
        return pa.RecordBatch.from_arrays(
            [
                numbers(pa.int64(), [entry_id.last_offset for entry_id in self._ids]),
                numbers(RECORDS.field("timestamp").type, stamps),
                numbers(pa.int32(), kinds),
                binaries(keys),
                binaries(values),
                _headers(headers),
            ],
            schema=RECORDS,
        )

    def _place(self, entry_id: EntryId, time_ms: int | None) -> None:
        self._ids.append(entry_id)
        start, end = entry_id.base_offset, entry_id.end_offset
        if self._offsets and self._offsets[-1][1] == start:
            self._offsets[-1] = (self._offsets[-1][0], end)
        else:
            self._offsets.append((start, end))
        count = end - start
        if self._times and self._times[-1][0] == time_ms:
            self._times[-1] = (time_ms, self._times[-1][1] + count)
        else:
            self._times.append((time_ms, count))

    def _stamp(self, timestamps: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The timestamp and timestampType columns."""
        times, kinds, position = [], [], 0
        for time_ms, count in self._times:
            if time_ms is None:
                times.append(timestamps.slice(position, count))
                kinds.append(_repeat(TimestampType.CREATE_TIME, count, pa.int32()))
            else:
                times.append(_repeat(time_ms, count, pa.int64()))
                kinds.append(_repeat(TimestampType.LOG_APPEND_TIME, count, pa.int32()))
            position += count
        stamped = pc.multiply(_concat(times), 1000).view(RECORDS.field("timestamp").type)
        return stamped, _concat(kinds)

    def _check_times(self, timestamps: pa.Array) -> None:
        """Checks all entries at once, since none that lakelog wrote fails."""
        low, high = timestamp_bounds(timestamps)
        if low >= NO_TIMESTAMP_MS and high <= MAX_TIMESTAMP_MS:
            return
        row, timestamp_ms, _ = _odd_timestamps(timestamps.to_pylist()).record_errors[0]
        ends = accumulate(entry_id.record_count for entry_id in self._ids)
        entry_id = next(
            entry_id for entry_id, end in zip(self._ids, ends, strict=True) if row < end
        )
        raise corrupt(entry_id, f"it holds a timestamp of {timestamp_ms} ms")

    def _flush(self) -> None:
        if self._rows:
            self._batches.append(produced_batch(self._rows))
            self._rows = []
        if self._kafka:
            self._batches += decode_batches(self._kafka)
            self._kafka = []


def _headers(rows: Sequence[Sequence[tuple[str, bytes | None]]]) -> pa.Array:
    if any(rows):
        items = [[{"key": name, "value": data} for name, data in row] for row in rows]
        return pa.array(items, HEADERS_TYPE)
    no_ends = pa.py_buffer(bytes(4 * (len(rows) + 1)))  # none of the records has any: the usual
    return pa.Array.from_buffers(HEADERS_TYPE, len(rows), [None, no_ends], children=[_NO_HEADER])


def _concat(arrays: list[pa.Array]) -> pa.Array:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _repeat(value: int, count: int, kind: pa.DataType) -> pa.Array:
    # By numpy, as Arrow's own repeat and sums take ten times as long.
    return pa.array(np.full(count, value, kind.to_pandas_dtype()))


def _integers(start: int, end: int) -> pa.Array:
    return pa.array(np.arange(start, end, dtype=np.int64))


def _rows(records: pa.RecordBatch) -> Iterator[Row]:
    timestamps, keys, values, headers = (column.to_pylist() for column in records.columns)
    for timestamp_ms, key, value, items in zip(timestamps, keys, values, headers, strict=True):
        yield timestamp_ms, key, value, [(item["key"], item["value"]) for item in items]


def _check(records: pa.RecordBatch) -> None:
    if not records.schema.equals(PRODUCED):
        raise InvalidArgumentError(
            f"records have the columns {records.schema!s}; encode takes {PRODUCED!s}"
        )
    flaw = produced_flaw(records)
    if flaw is not None:
        raise InvalidArgumentError(f"cannot encode the records: {flaw}")


def _odd_timestamps(timestamps: list[int]) -> InvalidTimestampError:
    reason = f"a timestamp is -1 (none) or lies in 0..{MAX_TIMESTAMP_MS}"
    errors = [
        (index, timestamp_ms, reason)
        for index, timestamp_ms in enumerate(timestamps)
        if not NO_TIMESTAMP_MS <= timestamp_ms <= MAX_TIMESTAMP_MS
    ]
    index, timestamp_ms, _ = errors[0]
    return InvalidTimestampError(
        f"timestamp {timestamp_ms} of record {index} cannot be stored: {reason}; "
        "give milliseconds since 1970-01-01 UTC. None of the records was encoded",
        record_errors=errors,
    )
