"""Which partition a record goes to: Kafka's murmur2 of its key, or the sticky one without a key.

Source: Kafka ``Utils.murmur2`` and ``BuiltInPartitioner`` (KIP-794, uniform sticky).
"""

from __future__ import annotations

import random
import struct

import numpy as np
import pyarrow as pa

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF  # Kafka's toPositive

#: A key's format by its number of words; compiling one takes longer than hashing a short key.
_WORDS = [struct.Struct(f"<{count}I") for count in range(17)]

_CACHED_KEY_BYTES = 64  # longer keys are hashed each time, so that the cache stays small
_CACHED_KEYS = (
    2**17
)  # some 25 MB at most; then it begins anew, since to keep track of use takes longer
_COLUMN_KEY_BYTES = 1024  # longer keys are hashed one by one: a NumPy step per word would cost more


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition Kafka's producers choose for a key."""
    return positive_hash(key) % partitions


def positive_hash(key: bytes) -> int:
    """What Kafka's producers take modulo the number of partitions; remembered in `hashes`."""
    positive = hashes.get(key)
    if positive is None:
        positive = murmur2(key) & _POSITIVE
        if len(key) <= _CACHED_KEY_BYTES:
            if len(hashes) >= _CACHED_KEYS:
                hashes.clear()
            hashes[key] = positive
    return positive


def partitions_of_keys(keys: pa.Array, partitions: int) -> np.ndarray:
    """The partition of each key of a binary column; undefined for null keys.

    Returns:
        int32, one for each row.
    """
    positive = murmur2_column(keys) & np.uint32(_POSITIVE)
    return np.asarray(positive % np.uint32(partitions), np.int32)


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 hash, as an unsigned number."""
    length = len(data)
    hashed = _SEED ^ length
    count = length >> 2
    words = _WORDS[count] if count < len(_WORDS) else struct.Struct(f"<{count}I")
    for word in words.unpack_from(data):
        word = word * _M & _MASK
        hashed = (hashed * _M ^ (word ^ word >> 24) * _M) & _MASK
    tail = length & 3
    if tail:
        hashed = (hashed ^ int.from_bytes(data[-tail:], "little")) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15


#: `positive_hash` by key, of those that were asked for of late.
hashes: dict[bytes, int] = {}


def murmur2_column(keys: pa.Array) -> np.ndarray:
    """`murmur2` of each row of a ``pa.binary()`` column, as uint32; a null counts as 0 bytes.

    One NumPy step for each four bytes of the longest key, over the rows that are that long.
    """
    count = len(keys)
    if count == 0:
        return np.empty(0, np.uint32)
    _, offsets_buffer, data_buffer = keys.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, count + 1, keys.offset * 4).astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer else np.empty(0, np.uint8)
    starts, lengths = offsets[:-1], np.diff(offsets)

    m = np.uint32(_M)
    hashed = np.uint32(_SEED) ^ lengths.astype(np.uint32)
    # Rows of the same length stand together, so that each step works on the tail of one array.
    order = np.argsort(lengths, kind="stable")
    starts, lengths, hashed = starts[order], lengths[order], hashed[order]
    long = int(np.searchsorted(lengths, _COLUMN_KEY_BYTES, side="right"))
    one_by_one = [
        murmur2(data[start : start + length].tobytes())
        for start, length in zip(starts[long:], lengths[long:], strict=True)
    ]
    starts, lengths, hashed = starts[:long], lengths[:long], hashed[:long]
    words = lengths >> 2
    for step in range(int(words[-1]) if long else 0):
        rows = slice(int(np.searchsorted(words, step, side="right")), None)
        word = _little_endian(data, starts[rows] + 4 * step, 4) * m
        word = (word ^ (word >> np.uint32(24))) * m
        hashed[rows] = hashed[rows] * m ^ word
    tails = lengths & 3
    for tail in (1, 2, 3):
        (rows_with,) = np.nonzero(tails == tail)
        if len(rows_with):
            last = _little_endian(data, starts[rows_with] + 4 * words[rows_with], tail)
            hashed[rows_with] = (hashed[rows_with] ^ last) * m
    hashed = (hashed ^ (hashed >> np.uint32(13))) * m
    hashed ^= hashed >> np.uint32(15)
    result = np.empty(count, np.uint32)
    result[order[:long]] = hashed
    result[order[long:]] = one_by_one
    return result


def _little_endian(data: np.ndarray, positions: np.ndarray, size: int) -> np.ndarray:
    word: np.ndarray = data[positions].astype(np.uint32)
    for byte in range(1, size):
        word |= data[positions + byte].astype(np.uint32) << np.uint32(8 * byte)
    return word


class StickyPartition:
    """The partition for records without a key: one until it got ``stick_bytes``, then another.

    Not thread-safe; the producer calls it under its lock.
    """

    def __init__(self, partitions: int, stick_bytes: int, choose: random.Random) -> None:
        self._partitions = partitions
        self._stick_bytes = stick_bytes
        self._choose = choose
        self._partition = choose.randrange(partitions)
        self._bytes = 0

    def take(self, size_bytes: int) -> int:
        """The partition for a record (or a run of records) of this size."""
        partition = self._partition
        self._bytes += size_bytes
        if self._bytes >= self._stick_bytes:
            self._bytes = 0
            if self._partitions > 1:  # another one, evenly among the others
                step = self._choose.randrange(1, self._partitions)
                self._partition = (partition + step) % self._partitions
        return partition
