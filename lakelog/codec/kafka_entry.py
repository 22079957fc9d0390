"""The kafka entry: one Kafka record batch of format v2, kept as its producer sent it.

| field | value                                                                              |
|-------|------------------------------------------------------------------------------------|
| ``__v`` | 3: an older lakelog says that a newer one wrote it, and leaves it alone          |
| ``k`` | the batch (`kafka_batch`); its CRC-32C is the entry's                              |
| ``d`` | only of a compressed batch: the bytes of its records, decompressed, as decimal digits |
| ``t`` | only under LogAppendTime: the append time in ms, for all records                   |

The id says where the batch lies. The base offset and the leader epoch in its first bytes are those
that were sent and mean nothing, as they do to a broker, which writes others there. ``d`` lies
outside the CRC: whoever decodes the entry finds out whether it is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from ..errors import (
    CorruptRecordError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
)
from ..values.config import INT32_MAX, KIB, Compression
from ..values.record import (
    NO_TIMESTAMP_MS,
    TimestampType,
    header_tuples,
    objects,
    produced_batch,
)
from .arrow_entry import TARGET_ENTRY_BYTES, timestamp_bounds, too_large
from .decoded_size import decoded_length
from .entry import (
    BATCH_FIELD,
    DECODED_FIELD,
    KAFKA_VERSION,
    MAX_TIMESTAMP_MS,
    VERSION_FIELD,
    Entry,
    EntryId,
    append_time_ms,
    corrupt,
)
from .fields_entry import Row
from .kafka_batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    TooLargeError,
    batch_of,
    compressed,
    crc_of,
    decompressed,
    with_max_timestamp,
)
from .kafka_records import RecordBytes, parse_records
from .kafka_rows import FEW_RECORDS, RecordFlawError, Section, parse_rows, rows_section

#: What an entry begins with in this format, and in no other.
KAFKA_BEGINNING = [VERSION_FIELD, KAFKA_VERSION]

#: A client's record has no more: each costs a reader many times its two bytes.
MAX_HEADERS = 100_000

_FEW_BYTES = 256 * KIB  # more are read side by side, however few records they are
_PLAIN_FIELDS = 4  # names and values, without ``d`` and ``t``

#: What surrounds the records of an entry: a header, and ``d`` of up to ten digits.
_OVERHEAD_BYTES = HEADER_BYTES + 10 + len(b"".join((*KAFKA_BEGINNING, BATCH_FIELD, DECODED_FIELD)))


def check_batch(batch: bytes, max_decoded_bytes: int = INT32_MAX) -> BatchHeader:
    """The header of a batch that a producer sent, if it can be stored as it is.

    Its largest timestamp may be wrong: `kafka_entry` puts that right, as Kafka's brokers do.

    Args:
        max_decoded_bytes: see `kafka_entry`.

    Raises:
        CorruptRecordError, InvalidRecordError, InvalidTimestampError, RecordTooLargeError: see
            `kafka_entry`.
    """
    return _checked(batch, max_decoded_bytes)[0]


def kafka_entry(batch: bytes, max_decoded_bytes: int = INT32_MAX) -> Entry:
    """The entry of a batch that a producer sent, once all of it was checked.

    Args:
        batch: exactly one.
        max_decoded_bytes: bound on `Entry.decoded_bytes`; no more is decompressed.

    Raises:
        CorruptRecordError: the bytes are not what was sent: their length or CRC is another. (Kafka
            says CORRUPT_MESSAGE.)
        InvalidRecordError: they are no batch of format v2, belong to a transaction, or do not hold
            what they say; ``index`` is that of the record. (INVALID_RECORD.)
        InvalidTimestampError: a timestamp is below -1 or beyond what can be stored, or the batch
            claims to have the log's. (INVALID_TIMESTAMP.)
        RecordTooLargeError: decompressed, it is larger than allowed. (MESSAGE_TOO_LARGE.)
    """
    header, sent = _checked(batch, max_decoded_bytes)
    bounds_ms = timestamp_bounds(sent.times_ms)
    if header.max_timestamp_ms != bounds_ms[1]:
        batch = with_max_timestamp(batch, bounds_ms[1])
    entry = _entry(batch, header.record_count, sent.decoded_bytes, bounds_ms, sent.first_keyless)
    if entry.decoded_bytes > max_decoded_bytes:
        _refuse_size(batch, entry.decoded_bytes, max_decoded_bytes)
    return entry


def encode_kafka(
    records: pa.RecordBatch,
    compression: Compression,
    max_entry_bytes: int,
    max_decoded_bytes: int,
    first_index: int = 0,
) -> list[Entry]:
    """The records as kafka entries, in order, each within both bounds.

    Args:
        records: ``PRODUCED``, checked by the caller.
        compression: of each batch, where that makes it smaller.
        max_entry_bytes: bound on `Entry.size_bytes`.
        max_decoded_bytes: bound on `Entry.decoded_bytes`.
        first_index: the first record's index in errors.

    Raises:
        RecordTooLargeError: a record exceeds a bound on its own; ``index`` says which.
    """
    times_ms = records.column(0).to_numpy()
    made = RecordBytes(times_ms, np.arange(records.num_rows), *records.columns[1:])
    room = min(TARGET_ENTRY_BYTES, max_entry_bytes, max_decoded_bytes) - _OVERHEAD_BYTES
    entries = []
    for (start, end), section in made.sections(made.spans([0, records.num_rows], room)):
        entry = _entry_of(
            section,
            compression,
            int(times_ms[start]),
            timestamp_bounds(times_ms[start:end]),
            end - start,
            made.first_keyless(start, end),
        )
        if entry.size_bytes > max_entry_bytes or entry.decoded_bytes > max_decoded_bytes:
            raise too_large(entry, first_index + start, max_entry_bytes, max_decoded_bytes)
        entries.append(entry)
    return entries


def encode_few(
    rows: Sequence[Row], compression: Compression, max_entry_bytes: int, max_decoded_bytes: int
) -> Entry | None:
    """One or a few records as one kafka entry, as `encode_kafka` makes it; None if there would be
    several, or a record is too large.
    """
    section = rows_section(rows)
    if len(section) > min(TARGET_ENTRY_BYTES, max_entry_bytes, max_decoded_bytes) - _OVERHEAD_BYTES:
        return None
    times_ms = [row[0] for row in rows]
    return _entry_of(
        section,
        compression,
        times_ms[0],
        timestamp_bounds(np.array(times_ms, np.int64)),
        len(rows),
        next((index for index, row in enumerate(rows) if row[1] is None), None),
    )


def _entry_of(
    section: bytes | memoryview,
    compression: Compression,
    base_timestamp_ms: int,
    bounds_ms: tuple[int, int],
    record_count: int,
    first_keyless: int | None,
) -> Entry:
    stored, attributes = compressed(section, compression)
    batch = batch_of(
        stored,
        record_count=record_count,
        last_offset_delta=record_count - 1,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=bounds_ms[1],
        attributes=attributes,
    )
    decoded_bytes = len(section) if attributes else None
    return _entry(batch, record_count, decoded_bytes, bounds_ms, first_keyless)


def batches_of(
    records: pa.RecordBatch,
    compression: Compression = Compression.NONE,
    *,
    max_bytes: int = TARGET_ENTRY_BYTES,
) -> list[bytes]:
    """Records of a log as Kafka's batches, for whoever reads batches.

    Offsets may be missing between two records, as after compaction; none is made up for them. A
    batch has one kind of timestamp, and under LogAppendTime one append time, so that records of
    several take as many batches.

    Args:
        records: ``RECORDS``.
        compression: of each batch, where that makes it smaller.
        max_bytes: bound on a batch of more than one record, before it is compressed.
    """
    offsets = np.asarray(records.column("offset"))
    times_ms = np.asarray(records.column("timestamp").view(pa.int64())) // 1000
    kinds = np.asarray(records.column("timestampType"))
    edges = [0, records.num_rows]
    appended = kinds == TimestampType.LOG_APPEND_TIME
    if appended.any():
        others = (kinds[1:] != kinds[:-1]) | (appended[1:] & (times_ms[1:] != times_ms[:-1]))
        edges[1:1] = (np.flatnonzero(others) + 1).tolist()
    columns = [records.column(name) for name in ("key", "value", "headers")]
    room = max_bytes - HEADER_BYTES
    sections: Iterable[tuple[tuple[int, int], bytes | memoryview]] | None = None
    if 0 < len(offsets) < FEW_RECORDS and offsets[-1] - offsets[0] <= INT32_MAX:
        sections = _few_sections(times_ms, offsets, columns, edges, room)
    if sections is None:
        made = RecordBytes(times_ms, offsets, *columns)
        sections = made.sections(made.spans(edges, room))
    batches = []
    for (start, end), section in sections:
        stored, attributes = compressed(section, compression)
        base_offset = int(offsets[start])
        batches.append(
            batch_of(
                stored,
                record_count=end - start,
                last_offset_delta=int(offsets[end - 1]) - base_offset,
                base_timestamp_ms=int(times_ms[start]),
                max_timestamp_ms=int(times_ms[start:end].max()),
                base_offset=base_offset,
                attributes=attributes | (LOG_APPEND_TIME if appended[start] else 0),
            )
        )
    return batches


def _few_sections(
    times_ms: np.ndarray,
    offsets: np.ndarray,
    columns: Sequence[pa.Array],
    edges: Sequence[int],
    room: int,
) -> list[tuple[tuple[int, int], bytes]] | None:
    """The records between each two edges, written one by one; None if some need more room."""
    keys, values, headers = columns
    rows = list(
        zip(times_ms.tolist(), objects(keys), objects(values), header_tuples(headers), strict=True)
    )
    numbers = offsets.tolist()
    sections = []
    for start, end in pairwise(edges):
        section = rows_section(rows[start:end], numbers[start:end])
        if len(section) > room and end > start + 1:
            return None
        sections.append(((start, end), section))
    return sections


def _entry(
    batch: bytes,
    record_count: int,
    decoded_bytes: int | None,
    bounds_ms: tuple[int, int],
    first_keyless: int | None,
) -> Entry:
    """The entry of a sound batch.

    Args:
        decoded_bytes: of its records, if they are compressed.
    """
    fields = [*KAFKA_BEGINNING, BATCH_FIELD, batch]
    if decoded_bytes is not None:
        fields += (DECODED_FIELD, b"%d" % decoded_bytes)
    size_bytes = sum(map(len, fields))
    saved = 0 if decoded_bytes is None else decoded_bytes - (len(batch) - HEADER_BYTES)
    return Entry(
        record_count=record_count,
        fields=fields,
        size_bytes=size_bytes,
        decoded_bytes=size_bytes + saved,
        min_timestamp_ms=bounds_ms[0],
        max_timestamp_ms=bounds_ms[1],
        first_keyless=first_keyless,
    )


# -- decoding ----------------------------------------------------------------------------------


class StoredBatch(NamedTuple):
    """The batch of an entry, whose bytes are those that were written."""

    entry_id: EntryId
    header: BatchHeader
    data: bytes  # where its records end, decompressed
    start: int  # where they begin


def is_kafka(fields: Sequence[bytes]) -> bool:
    """Whether an entry of those fields holds a record batch."""
    return len(fields) >= _PLAIN_FIELDS and fields[:3] == [*KAFKA_BEGINNING, BATCH_FIELD]


def stored_batch(entry_id: EntryId, fields: Sequence[bytes]) -> tuple[bytes, int | None]:
    """The batch of a kafka entry as it was sent, unchecked, and its append time if it has one.

    Raises:
        CorruptRecordError: the fields behind the batch are not what was written.
    """
    tail = fields[_PLAIN_FIELDS:]
    if tail and tail[0] == DECODED_FIELD:
        tail = tail[2:]
    return fields[3], append_time_ms(entry_id, tail)


def open_batch(entry_id: EntryId, fields: Sequence[bytes]) -> tuple[StoredBatch, int | None]:
    """The batch of a kafka entry, decompressed, and its append time if it has one.

    Raises:
        CorruptRecordError: its bytes are not what was written.
    """
    if not is_kafka(fields):
        raise corrupt(entry_id, f"it is of format 3, and has no record batch ({BATCH_FIELD!r})")
    batch, time_ms = stored_batch(entry_id, fields)
    try:
        header = BatchHeader.parse(batch)
    except ValueError as error:
        raise corrupt(entry_id, str(error)) from None
    if header.magic != MAGIC or header.length != len(batch) - 12:
        raise corrupt(entry_id, "its first bytes are not those of its record batch")
    if crc_of(batch) != header.crc:
        raise corrupt(entry_id, f"its CRC-32C is {crc_of(batch):08x}, stored is {header.crc:08x}")
    flaw = _count_flaw(header)
    if flaw or header.record_count != entry_id.record_count:
        flaw = f"it holds {header.record_count} records, its id says {entry_id.record_count}"
        raise corrupt(entry_id, flaw)
    said = decoded_length(fields)
    if header.codec == "none":
        if said is not None or fields[4:5] == [DECODED_FIELD]:
            raise corrupt(entry_id, "it says how long its records are, and they are not compressed")
        return StoredBatch(entry_id, header, batch, HEADER_BYTES), time_ms
    if said is None:
        raise corrupt(entry_id, "it does not say how long its records are, decompressed")
    try:
        data = decompressed(batch, header.codec, said)
    except ValueError as error:
        raise corrupt(entry_id, str(error)) from error
    if len(data) != said:
        raise corrupt(entry_id, f"its records take {len(data)} bytes, and it says {said}")
    return StoredBatch(entry_id, header, data, 0), time_ms


def decode_batches(batches: Sequence[StoredBatch]) -> list[pa.RecordBatch]:
    """The records of batches as ``PRODUCED``, all side by side.

    Raises:
        CorruptRecordError: a batch does not hold records; ``entry_id`` says which.
    """
    if (
        sum(one.header.record_count for one in batches) < FEW_RECORDS
        and sum(len(one.data) for one in batches) < _FEW_BYTES
    ):
        return [produced_batch(row for one in batches for row in _rows(one))]
    if len(batches) == 1:
        data, start = batches[0].data, batches[0].start
    else:
        pieces = [memoryview(one.data)[one.start :] for one in batches]
        data, start = b"".join((*pieces, b"\0")), 0  # behind which parsing need not copy them
    sections = []
    for one in batches:
        end = start + len(one.data) - one.start
        sections.append(Section(start, end, one.header.record_count, one.header.base_timestamp_ms))
        start = end
    try:
        return [part.columns() for part in parse_records(data, sections)]
    except RecordFlawError as error:
        if len(batches) > 1:
            for one in batches:  # one of them raises, by its own name
                decode_batches([one])
        raise corrupt(batches[0].entry_id, f"of its records, {error}") from error


class _Sent(NamedTuple):
    """What append must know of the records of a batch."""

    times_ms: np.ndarray
    first_keyless: int | None
    decoded_bytes: int | None  # of them all; None: they are not compressed


def _checked(batch: bytes, max_decoded_bytes: int) -> tuple[BatchHeader, _Sent]:
    try:
        header = BatchHeader.parse(batch)
    except ValueError as error:
        raise CorruptRecordError(f"the bytes are no record batch: {error}; send it again") from None
    if header.magic < MAGIC:
        _refuse(
            f"it is in message format v{header.magic}, which is not supported: only v2 is, of "
            "Kafka 0.11 and later; use a newer client"
        )
    if header.magic > MAGIC:
        _refuse(f"its magic is {header.magic}, and that of the one format known is {MAGIC}")
    _check_length(header, batch)
    if crc_of(batch) != header.crc:
        raise CorruptRecordError(
            f"the CRC-32C of the record batch is {crc_of(batch):08x}, and it says "
            f"{header.crc:08x}: it was damaged on its way; send it again"
        )
    if header.attributes & (CONTROL | TRANSACTIONAL):
        _refuse("it belongs to a transaction, which lakelog does not have; send without one")
    if header.attributes & LOG_APPEND_TIME:
        raise InvalidTimestampError(
            "the record batch says that its timestamps are the log's append time, which only the "
            "log can say; send it with CreateTime"
        )
    flaw = _count_flaw(header)
    if flaw:
        _refuse(flaw)
    try:
        sent = _sent(batch, header, max_decoded_bytes)
    except TooLargeError:
        _refuse_size(batch, None, max_decoded_bytes)
    except RecordFlawError as error:
        _refuse(f"of its records, {error}", error.index)
    except ValueError as error:
        _refuse(str(error))
    _check_times(sent.times_ms)
    return header, sent


def _check_length(header: BatchHeader, batch: bytes) -> None:
    length = len(batch) - 12
    if header.length > length:
        raise CorruptRecordError(
            f"the record batch says that {header.length} bytes follow its length, and {length} do: "
            "it is cut off; send it again"
        )
    if header.length < length:
        _refuse(
            f"{length - header.length} bytes follow it; a partition takes one record batch a call"
        )


def _count_flaw(header: BatchHeader) -> str | None:
    """Why no batch can have that count of records; None if one can."""
    if header.record_count < 1:
        return f"it has {header.record_count} records, and takes at least one"
    if header.record_count != header.last_offset_delta + 1:
        return (
            f"it has {header.record_count} records, and its last offset delta is "
            f"{header.last_offset_delta}, not {header.record_count - 1}"
        )
    return None


def _sent(batch: bytes, header: BatchHeader, max_bytes: int) -> _Sent:
    """What a look at the records finds.

    Raises:
        TooLargeError: they are more bytes, once decompressed.
        RecordFlawError, ValueError: they are no records.
    """
    data, start, decoded_bytes = batch, HEADER_BYTES, None
    if header.codec != "none":
        data, start = decompressed(batch, header.codec, max_bytes), 0
        decoded_bytes = len(data)
    elif len(batch) - HEADER_BYTES > max_bytes:
        raise TooLargeError
    section = Section(start, len(data), header.record_count, header.base_timestamp_ms)
    if header.record_count < FEW_RECORDS and len(data) < _FEW_BYTES:
        rows = parse_rows(data, section, MAX_HEADERS)
        times_ms = np.array([row[0] for row in rows], np.int64)
        first_keyless = next((index for index, row in enumerate(rows) if row[1] is None), None)
        return _Sent(times_ms, first_keyless, decoded_bytes)
    times, first_keyless, before = [], None, 0
    for part in parse_records(data, [section], MAX_HEADERS):
        times.append(part.timestamps_ms)
        if first_keyless is None and part.first_keyless is not None:
            first_keyless = before + part.first_keyless
        before += len(part.timestamps_ms)
    times_ms = times[0] if len(times) == 1 else np.concatenate(times)
    return _Sent(times_ms, first_keyless, decoded_bytes)


def _check_times(timestamps_ms: np.ndarray) -> None:
    if timestamps_ms.min() >= NO_TIMESTAMP_MS and timestamps_ms.max() <= MAX_TIMESTAMP_MS:
        return
    reason = f"a timestamp is -1 (none) or lies in 0..{MAX_TIMESTAMP_MS}"
    odd = np.flatnonzero((timestamps_ms < NO_TIMESTAMP_MS) | (timestamps_ms > MAX_TIMESTAMP_MS))
    errors = [(int(index), int(timestamps_ms[index]), reason) for index in odd]
    index, timestamp_ms, _ = errors[0]
    raise InvalidTimestampError(
        f"timestamp {timestamp_ms} of record {index} of the batch cannot be stored: {reason}; give "
        "milliseconds since 1970-01-01 UTC. None of its records was stored",
        record_errors=errors,
    )


def _refuse(flaw: str, index: int = 0) -> NoReturn:
    raise InvalidRecordError(f"the record batch cannot be stored: {flaw}", index=index)


def _refuse_size(batch: bytes, decoded_bytes: int | None, max_decoded_bytes: int) -> NoReturn:
    raise RecordTooLargeError(
        f"the record batch of {len(batch)} bytes takes more than {max_decoded_bytes} once "
        "decompressed, which every reader must hold at once; send smaller ones, or raise "
        "lakelog.max.decoded.bytes of the topic",
        index=0,
        size_bytes=len(batch),
        decoded_bytes=decoded_bytes,
        max_decoded_bytes=max_decoded_bytes,
    )


def _rows(batch: StoredBatch) -> list[Row]:
    header = batch.header
    section = Section(batch.start, len(batch.data), header.record_count, header.base_timestamp_ms)
    try:
        return parse_rows(batch.data, section)
    except RecordFlawError as error:
        raise corrupt(batch.entry_id, f"of its records, {error}") from error
