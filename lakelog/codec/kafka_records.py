"""The records of Kafka record batches ⇄ Arrow columns, all of them side by side.

`kafka_rows` has their format. One loop in Python finds where each record begins, as only the record
before it says so. The rest is NumPy's: the first varint of all records, then the second, and so on.
Keys and values are then taken out of one Arrow array over the same bytes, of which every other
element is what lies between them. So no record costs a Python object, and a batch of one record
costs little where many are read at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..base.arrow_columns import numbers
from ..values.config import INT32_MAX, MIB
from ..values.record import HEADERS_TYPE, PRODUCED, no_headers, value_ends
from .kafka_rows import (
    BEYOND,
    BEYOND_TIME,
    LEAST_RECORD_BYTES,
    OTHER_LENGTH,
    OTHER_OFFSET,
    TIME_BOUND,
    VARINT,
    VARLONG,
    RecordFlawError,
    Section,
    check_headers,
    read_varint,
)

#: Records are read and written side by side until they come to so much, which stays in the cache of
#: a processor: small ones, and small headers, take many times their bytes on the way.
_BYTES_AT_ONCE = 4 * MIB
_RECORDS_AT_ONCE = 1 << 16

#: Headers of so few records are read one by one: a call of NumPy takes as long.
_FEW = 16


class ParsedRecords(NamedTuple):
    """Where the parts of records lie in ``data``: arrays of int64, a number a record or header."""

    data: bytes
    timestamps_ms: np.ndarray
    key_starts: np.ndarray
    key_lengths: np.ndarray  # negative: null
    value_starts: np.ndarray
    value_lengths: np.ndarray  # likewise
    header_counts: np.ndarray
    header_keys: pa.Array  # strings, valid ones
    header_values: pa.Array

    @property
    def first_keyless(self) -> int | None:
        """The index of the first record without a key."""
        return first_null(self.key_lengths)

    def columns(self) -> pa.RecordBatch:
        """The records as ``PRODUCED``, copied out of ``data``."""
        data = pa.py_buffer(self.data)
        count = len(self.timestamps_ms)
        if len(self.header_keys):
            ends = np.zeros(count + 1, np.int32)
            np.cumsum(self.header_counts, out=ends[1:])
            pairs = pa.StructArray.from_arrays(
                [self.header_keys, self.header_values], fields=list(HEADERS_TYPE.value_type)
            )
            headers = pa.Array.from_buffers(
                HEADERS_TYPE, count, [None, pa.py_buffer(ends)], children=[pairs]
            )
        else:
            headers = no_headers(count)
        return pa.RecordBatch.from_arrays(
            [
                numbers(pa.int64(), self.timestamps_ms),
                _taken(data, self.key_starts, self.key_lengths),
                _taken(data, self.value_starts, self.value_lengths),
                headers,
            ],
            schema=PRODUCED,
        )


def first_null(lengths: np.ndarray) -> int | None:
    """The index of the first negative length."""
    nulls = np.flatnonzero(lengths < 0)
    return int(nulls[0]) if len(nulls) else None


# -- bytes to columns --------------------------------------------------------------------------


def parse_records(
    data: bytes, sections: Sequence[Section], max_headers: int | None = None
) -> Iterator[ParsedRecords]:
    """The records of batches, in the order of their sections, in parts that take little memory.

    Args:
        data: copied unless it goes on behind the last section.
        max_headers: bound on the headers of a record.

    Raises:
        RecordFlawError: a section does not hold its records and nothing else, their offset deltas
            are not 0, 1, 2 …, or a header's key is no UTF-8. Its index counts those of the sections
            before.
    """
    before, words = 0, _words(data, sections[-1].end)
    for part in _parts(data, sections):
        try:
            yield _parsed(data, words, part, max_headers)
        except RecordFlawError as error:
            raise RecordFlawError(before + error.index, error.flaw) from None
        before += len(part.starts)


class _Run(NamedTuple):
    """Records of one batch that follow each other."""

    base_timestamp_ms: int
    first_offset_delta: int
    record_count: int


class _Part(NamedTuple):
    """Some records, and where they lie."""

    starts: list[int]
    ends: list[int]
    runs: list[_Run]


def _parts(data: bytes, sections: Sequence[Section]) -> Iterator[_Part]:
    """Where each record begins and ends, by what the records say of their lengths."""
    part, before = _Part([], [], []), 0
    for start, end, count, base_ms in sections:
        if count * LEAST_RECORD_BYTES > end - start:
            raise RecordFlawError(before, f"and the others of {count} are not in {end} bytes")
        at, done = start, 0
        while done < count:
            first = len(part.starts)
            at = _walk(data, at, min(count - done, _RECORDS_AT_ONCE - first), part.starts)
            walked = len(part.starts) - first
            if at > end or not walked:
                raise RecordFlawError(before + done + max(walked - 1, 0), BEYOND)
            part.ends.extend(part.starts[first + 1 :])
            part.ends.append(at)
            part.runs.append(_Run(base_ms, done, walked))
            done += walked
            if at - part.starts[0] >= _BYTES_AT_ONCE or len(part.starts) >= _RECORDS_AT_ONCE:
                yield part
                part = _Part([], [], [])
        if at != end:
            flaw = f"is the last, and {end - at} bytes follow it"
            raise RecordFlawError(before + count - 1, flaw)
        before += count
    if part.starts:
        yield part


def _walk(data: bytes, at: int, count: int, starts: list[int]) -> int:
    """Adds where so many records begin, or fewer if they are large; returns where they end."""
    add, far = starts.append, at + _BYTES_AT_ONCE
    try:
        for _ in range(count):
            add(at)
            size = data[at]
            if size < 0x80:  # all of the length
                at += 1 + (size >> 1)
            elif (second := data[at + 1]) < 0x80:
                at += (size >> 1) + (second << 6) - 62
            else:
                length, at = read_varint(data, at)
                at += max(length, 0)
                if at > far:
                    break
    except (IndexError, ValueError):
        return len(data) + 1
    return at


def _parsed(data: bytes, words: np.ndarray, part: _Part, max_headers: int | None) -> ParsedRecords:
    at, ends = np.array(part.starts, np.int64), np.array(part.ends, np.int64)
    lengths, at = _varints(words, at, VARINT)
    _refuse_unless(at + lengths == ends, OTHER_LENGTH)
    time_deltas, at = _varints(words, at + 1, VARLONG)  # behind the attributes
    offset_deltas, at = _varints(words, at, VARINT)
    key_lengths, key_starts = _varints(words, at, VARINT)
    value_lengths, value_starts = _varints(words, _behind(key_starts, key_lengths), VARINT)
    header_counts, at = _varints(words, _behind(value_starts, value_lengths), VARINT)
    _refuse_unless((at <= ends) & (header_counts >= 0), OTHER_LENGTH)
    header_keys, header_values = _headers(data, words, at, ends, header_counts, max_headers)
    _refuse_unless(offset_deltas == _offset_deltas(part.runs), OTHER_OFFSET)
    return ParsedRecords(
        data,
        _timestamps(time_deltas, part.runs),
        key_starts,
        key_lengths,
        value_starts,
        value_lengths,
        header_counts,
        header_keys,
        header_values,
    )


def _words(data: bytes, end: int) -> np.ndarray:
    """Each byte of the data up to there with the next one, as a number."""
    padded = data if end < len(data) else data + b"\0"
    return np.ndarray((len(padded) - 1,), "<u2", padded, strides=(1,))


def _varints(words: np.ndarray, at: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The varints that begin there, of at most so many bytes, and where each ends."""
    try:
        word = words[at]
    except IndexError:
        raise RecordFlawError(int((at >= len(words)).argmax()), BEYOND) from None
    values, sizes = (table.take(word) for table in _of_two_bytes())
    ends = at + sizes
    if sizes.max() > 2:
        more = np.flatnonzero(sizes > 2)
        values[more], ends[more] = _longer(words, at[more], most, more)
    return values, ends


@cache
def _of_two_bytes() -> tuple[np.ndarray, np.ndarray]:
    """What any two bytes are as a varint, and how many of them it takes; 3: more than there are."""
    pairs = np.arange(1 << 16)
    first, second = pairs & 0xFF, pairs >> 8
    raw = np.where(first < 0x80, first, first & 0x7F | second << 7)
    sizes = np.where(first < 0x80, 1, np.where(second < 0x80, 2, 3)).astype(np.int8)
    return (raw >> 1) ^ -(raw & 1), sizes


def _longer(
    words: np.ndarray, at: np.ndarray, most: int, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The varints of more than two bytes; see `_varints`.

    Args:
        at: where each begins; changed here.
        rows: of which row each is, for the error.
    """
    raw = np.zeros(len(at), np.uint64)
    left = np.arange(len(at))  # those that go on
    for shift in range(0, 7 * most, 7):
        beyond = at[left] >= len(words)
        if beyond.any():
            raise RecordFlawError(int(rows[left][beyond][0]), BEYOND)
        byte = words[at[left]] & 0xFF
        raw[left] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        at[left] += 1
        left = left[byte > 0x7F]
        if not len(left):
            signs = (raw & np.uint64(1)).view(np.int64)
            return (raw >> np.uint64(1)).view(np.int64) ^ -signs, at
    raise RecordFlawError(int(rows[left][0]), f"has a number of more than {most} bytes")


def _behind(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    behind: np.ndarray = starts + np.maximum(lengths, 0)
    return behind


def _offset_deltas(runs: Sequence[_Run]) -> np.ndarray:
    """Those that the records should have."""
    counts = [run.record_count for run in runs]
    deltas = np.arange(sum(counts))
    if len(runs) > 1:
        firsts = np.array([run.first_offset_delta for run in runs])
        deltas -= np.repeat(np.cumsum(counts) - counts - firsts, counts)
    else:
        deltas += runs[0].first_offset_delta
    return deltas


def _timestamps(deltas: np.ndarray, runs: Sequence[_Run]) -> np.ndarray:
    bases = np.array([run.base_timestamp_ms for run in runs])
    if len(runs) > 1:
        bases = np.repeat(bases, [run.record_count for run in runs])
    for one in (bases, deltas):
        if max(-int(one.min()), int(one.max())) >= TIME_BOUND:
            _refuse_unless((one < TIME_BOUND) & (one > -TIME_BOUND), BEYOND_TIME)
    deltas += bases
    return deltas


def _refuse_unless(holds: np.ndarray, flaw: str) -> None:
    if not holds.all():
        raise RecordFlawError(int(holds.argmin()), flaw)


def _headers(
    data: bytes,
    words: np.ndarray,
    at: np.ndarray,
    ends: np.ndarray,
    counts: np.ndarray,
    max_headers: int | None,
) -> tuple[pa.Array, pa.Array]:
    """The keys and values of all headers, which lie between these places."""
    if not counts.any():
        _refuse_unless(at == ends, OTHER_LENGTH)
        return pa.nulls(0, pa.string()), pa.nulls(0, pa.binary())
    _refuse_unless(counts <= (ends - at) // 2, "has another count of headers than it has bytes for")
    index = int(counts.argmax())
    check_headers(index, int(counts[index]), max_headers)
    first = np.cumsum(counts) - counts
    key_starts, key_lengths, value_starts, value_lengths = np.empty((4, int(counts.sum())), int)
    at = at.copy()
    left = np.flatnonzero(counts)  # records with a header more; then their next ones
    number = 0
    while len(left) > _FEW:
        here = first[left] + number
        key_lengths[here], key_starts[here] = _varints(words, at[left], VARINT)
        behind = _behind(key_starts[here], key_lengths[here])
        value_lengths[here], value_starts[here] = _varints(words, behind, VARINT)
        at[left] = _behind(value_starts[here], value_lengths[here])
        _refuse_unless(at <= ends, OTHER_LENGTH)
        number += 1
        left = left[counts[left] > number]
    for index in left.tolist():
        place, end = int(at[index]), int(ends[index])
        for header in range(int(first[index]) + number, int(first[index] + counts[index])):
            try:
                length, place = read_varint(data, place)
                key_lengths[header], key_starts[header] = length, place
                length, place = read_varint(data, place + max(length, 0))
                value_lengths[header], value_starts[header] = length, place
                place += max(length, 0)
            except (IndexError, ValueError):
                place = len(data) + 1
            if place > end:
                raise RecordFlawError(index, OTHER_LENGTH) from None
        at[index] = place
    _refuse_unless(at == ends, OTHER_LENGTH)
    if (key_lengths < 0).any():
        header = int((key_lengths < 0).argmax())
        raise RecordFlawError(_record_of(header, first), "has a header without a key")
    buffer = pa.py_buffer(data)
    keys = _taken(buffer, key_starts, key_lengths)
    try:
        keys = keys.cast(pa.string())
    except pa.ArrowInvalid:
        index = _record_of(_illegible(keys), first)
        raise RecordFlawError(index, "has a header's key that is no UTF-8") from None
    return keys, _taken(buffer, value_starts, value_lengths)


def _record_of(header: int, first: np.ndarray) -> int:
    """The index of the record that has that one of all headers."""
    return int(np.searchsorted(first, header, side="right")) - 1


def _illegible(keys: pa.Array) -> int:
    """The index of the first key that is no UTF-8."""
    for header, key in enumerate(keys):
        try:
            key.as_py().decode()
        except UnicodeDecodeError:
            return header
    return 0


def _taken(data: pa.Buffer, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """The slices as a binary column; null where a length is negative."""
    count = len(starts)
    nulls = lengths < 0
    if nulls.all():
        return pa.nulls(count, pa.binary())
    edges = np.empty(2 * count, np.int32)
    edges[0::2] = starts
    edges[1::2] = _behind(starts, lengths)
    both = pa.Array.from_buffers(  # the slices, and what lies between two of them
        pa.binary(), 2 * count - 1, [None, pa.py_buffer(edges), data]
    )
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
    places = pa.py_buffer(np.arange(0, 2 * count, 2))
    return both.take(pa.Array.from_buffers(pa.int64(), count, [valid, places]))


# -- columns to bytes --------------------------------------------------------------------------


class RecordBytes:
    """Records as Kafka's batches have them, the batches yet to be cut.

    Args:
        timestamps_ms, offsets: int64; offsets ascend.
        keys, values, headers: columns as ``PRODUCED`` has them.
    """

    def __init__(
        self,
        timestamps_ms: np.ndarray,
        offsets: np.ndarray,
        keys: pa.Array,
        values: pa.Array,
        headers: pa.Array,
    ) -> None:
        self._timestamps_ms, self._offsets = timestamps_ms, offsets
        self._keys, self._values = keys, values
        self._key_lengths, self._value_lengths = _lengths(keys), _lengths(values)
        self._header_counts = np.asarray(headers.value_lengths()).astype(np.int64)
        self._headers = _header_bytes(headers, self._header_counts)
        # Of each record all but its length and its deltas, which depend on where its batch begins.
        self._sizes = (
            1  # attributes
            + _varint_sizes(self._key_lengths)
            + np.maximum(self._key_lengths, 0)
            + _varint_sizes(self._value_lengths)
            + np.maximum(self._value_lengths, 0)
            + _varint_sizes(self._header_counts)
            + (0 if self._headers is None else _lengths(self._headers))
        )

    def spans(self, edges: Sequence[int], max_bytes: int) -> list[tuple[int, int]]:
        """Cuts the records into spans of at most so many bytes and 2^31 - 1 offsets, but one record
        may be larger than the bytes.

        Args:
            edges: where spans end in any case, from 0 to the number of records.
        """
        times, offsets = self._timestamps_ms, self._offsets
        if not len(times):
            return []
        deltas = sum(_widest(int(one.max()) - int(one.min())) for one in (times, offsets))
        sizes = self._sizes + deltas
        sizes += _varint_sizes(sizes)
        upto = np.cumsum(sizes)
        found = []
        for low, high in pairwise(edges):
            start = low
            while start < high:
                before = int(upto[start - 1]) if start else 0
                end = int(upto.searchsorted(before + max_bytes, side="right"))
                far = int(offsets.searchsorted(int(offsets[start]) + INT32_MAX))
                end = max(start + 1, min(end, far, high))
                found.append((start, end))
                start = end
        return found

    def first_keyless(self, start: int, end: int) -> int | None:
        """The index, from ``start`` on, of the first record without a key."""
        return first_null(self._key_lengths[start:end])

    def sections(
        self, spans: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, int], memoryview]]:
        """The spans with the bytes of their records, whose deltas are to the first one of each."""
        ahead: list[tuple[int, int]] = []  # written side by side
        room = _BYTES_AT_ONCE
        for span in spans:
            ahead.append(span)
            room -= int(self._sizes[span[0] : span[1]].sum())
            if room <= 0:
                yield from zip(ahead, self._written(ahead), strict=True)
                ahead, room = [], _BYTES_AT_ONCE
        if ahead:
            yield from zip(ahead, self._written(ahead), strict=True)

    def _written(self, spans: Sequence[tuple[int, int]]) -> list[memoryview]:
        start, end = spans[0][0], spans[-1][1]
        firsts = np.array([low for low, _ in spans])
        counts = np.array([high - low for low, high in spans])
        here = slice(start, end)
        times, offsets = (
            column[here] - np.repeat(column[firsts], counts)
            for column in (self._timestamps_ms, self._offsets)
        )
        sizes = self._sizes[here] + _varint_sizes(times) + _varint_sizes(offsets)
        attributes = np.zeros((end - start, 1), np.uint8)
        parts = [
            _packed(
                _varint_bytes(sizes),
                (attributes, attributes == 0),
                _varint_bytes(times),
                _varint_bytes(offsets),
                _varint_bytes(self._key_lengths[here]),
            ),
            self._keys.slice(start, end - start),
            _packed(_varint_bytes(self._value_lengths[here])),
            self._values.slice(start, end - start),
        ]
        if self._headers is None:
            parts.append(pa.scalar(b"\x00", pa.binary()))  # none
        else:
            parts.append(_packed(_varint_bytes(self._header_counts[here])))
            parts.append(self._headers.slice(start, end - start))
        made = _joined(*parts)
        _, _, data = made.buffers()
        view = memoryview(data)
        ends = value_ends(made)
        return [view[ends[low - start] : ends[high - start]] for low, high in spans]


def _header_bytes(headers: pa.Array, counts: np.ndarray) -> pa.Array | None:
    """The headers of each record without their count; None: no record has any."""
    if not counts.any():
        return None
    pairs = headers.flatten()
    keys, values = pairs.field(0).cast(pa.binary()), pairs.field(1)
    each = _joined(
        _packed(_varint_bytes(_lengths(keys))),
        keys,
        _packed(_varint_bytes(_lengths(values))),
        values,
    )
    _, _, data = each.buffers()
    ends = value_ends(each)[np.concatenate(([0], np.cumsum(counts)))]  # of each record's last one
    return pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(ends), data])


def _joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """The parts of each row behind each other; a null takes no bytes."""
    return pc.binary_join_element_wise(
        *parts, pa.scalar(b"", pa.binary()), null_handling="replace", null_replacement=""
    )


def _lengths(column: pa.Array) -> np.ndarray:
    """The bytes of each value, -1 of a null (int64)."""
    lengths = np.diff(value_ends(column)).astype(np.int64)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return lengths


def _zigzag(values: np.ndarray) -> np.ndarray:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def _widest(value: int) -> int:
    """The bytes of the varints of that number and its negative, at most."""
    return 1 + value.bit_length() // 7


def _varint_sizes(values: np.ndarray) -> np.ndarray:
    """How many bytes each number takes as a varint (int64)."""
    raw = _zigzag(values)
    sizes = np.ones(len(raw), np.int64)
    bound, largest = 1 << 7, int(raw.max()) if len(raw) else 0
    while bound <= largest:
        sizes += raw >= np.uint64(bound)
        bound <<= 7
    return sizes


def _varint_bytes(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of each number in a row of a matrix, and which of them it has."""
    raw = _zigzag(values)
    width = max(1, -(-int(raw.max()).bit_length() // 7))
    octets = np.empty((len(raw), width), np.uint8)
    there = np.empty((len(raw), width), bool)
    there[:, 0] = True
    for column in range(width):
        low = raw.astype(np.uint8) & 0x7F
        raw = raw >> np.uint64(7)
        more = raw != 0
        octets[:, column] = low | (more.view(np.uint8) << 7)
        if column + 1 < width:
            there[:, column + 1] = more
    return octets, there


def _packed(*parts: tuple[np.ndarray, np.ndarray]) -> pa.Array:
    """The bytes that are there of each row, as a binary column."""
    octets = np.concatenate([octets for octets, _ in parts], axis=1)
    there = np.concatenate([there for _, there in parts], axis=1)
    ends = np.zeros(len(octets) + 1, np.int32)
    np.cumsum(np.count_nonzero(there, axis=1), out=ends[1:])
    data = octets.ravel() if there.all() else octets[there]
    return pa.Array.from_buffers(
        pa.binary(), len(octets), [None, pa.py_buffer(ends), pa.py_buffer(data)]
    )
