"""A Kafka record batch of format v2: its header, its compression, and where it is placed in a log.

| bytes   | part                                                                           |
|---------|--------------------------------------------------------------------------------|
| 0 … 7   | base offset: of the log; outside the CRC                                       |
| 8 … 11  | length of all that follows                                                     |
| 12 … 15 | partition leader epoch: outside the CRC                                        |
| 16      | magic: 2                                                                       |
| 17 … 20 | CRC-32C of all that follows                                                    |
| 21 … 22 | attributes: codec (3 bits), timestamp type, transactional, control             |
| 23 … 60 | last offset delta, base and largest timestamp, producer (id, epoch, sequence), |
|         | record count                                                                   |
| 61 …    | the records (`kafka_records`), together compressed by the codec                |

Everything is big-endian. Whoever appends a batch gives it its base offset, so that these 8 bytes
and the 4 of the epoch are rewritten without a look at the rest.

Source: Kafka's "Message format" (Record Batch) and ``DefaultRecordBatch``; KIP-98; snappy-java's
``SnappyOutputStream`` for the framing of Java's clients; Kafka's ``Lz4BlockInputStream`` and the
LZ4 frame format.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import google_crc32c
import pyarrow as pa

from ..values.config import INT32_MAX, KIB, Compression

HEADER_BYTES = 61
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08  # the largest timestamp is that of each record
TRANSACTIONAL = 0x10
CONTROL = 0x20

#: A producer id, epoch or sequence that is none.
NO_PRODUCER = -1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_HEAD = struct.Struct(">qiibI")  # up to the CRC
_COVERED = struct.Struct(">hiqqqhii")  # from there to the records
_CRC_START = _HEAD.size
_LENGTH_START = 12  # what the length counts begins here
_MAGIC_START = 16

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_CODEC_OF = {Compression.NONE: 0, Compression.LZ4: 3, Compression.ZSTD: 4}

#: Of a frame of LZ4: its magic; version 1, independent blocks; of 256 KiB at most; and a byte of
#: XXH32 over these two. Kafka's writer has no other checksums, and no lengths but the blocks'.
_LZ4_HEAD = b"\x04\x22\x4d\x18\x60\x50\xfb"
_LZ4_BLOCK_BYTES = 256 * KIB
_LZ4_PLAIN = 1 << 31  # a block's length has this bit where it is not compressed

#: snappy-java puts this before the blocks, then its version and the oldest that reads them.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16


class BatchHeader(NamedTuple):
    """What a batch says of itself."""

    base_offset: int  # as it was sent: mostly 0; in the log, that of the entry's id
    length: int  # of all behind this field, in bytes
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int  # what the records' deltas are of
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @classmethod
    def parse(cls, batch: bytes) -> BatchHeader:
        """The header of bytes that begin with one; nothing is checked.

        Raises:
            ValueError: they are too short.
        """
        try:
            return cls(*_HEADER.unpack_from(batch))
        except struct.error:
            raise ValueError(
                f"it has {len(batch)} bytes, and the header alone takes {HEADER_BYTES}"
            ) from None

    @property
    def codec(self) -> str:
        """How the records are compressed: one of `CODECS`, or the number of an unknown one."""
        number = self.attributes & CODEC_MASK
        return CODECS[number] if number < len(CODECS) else f"codec {number}"


def crc_of(batch: bytes) -> int:
    """The CRC-32C of all that it covers."""
    return int(google_crc32c.value(pa.py_buffer(batch).slice(_CRC_START)))


def batch_of(
    section: bytes | memoryview,
    *,
    record_count: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    base_offset: int = 0,
    attributes: int = 0,
) -> bytes:
    """A batch of no producer.

    Args:
        section: its records, compressed as `attributes` say.
    """
    covered = _COVERED.pack(
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        NO_PRODUCER,
        NO_PRODUCER,
        NO_PRODUCER,
        record_count,
    )
    crc = google_crc32c.extend(google_crc32c.value(covered), pa.py_buffer(section))
    length = HEADER_BYTES - _LENGTH_START + len(section)
    return b"".join((_HEAD.pack(base_offset, length, 0, MAGIC, crc), covered, section))


def empty_batches(start_offset: int, end_offset: int) -> list[bytes]:
    """Batches without records over ``[start_offset, end_offset)``, as compaction leaves them in
    Kafka: a consumer that gets one goes on behind it.

    One spans at most 2^31 - 1 offsets; a wider range takes several.
    """
    return [
        batch_of(
            b"",
            record_count=0,
            last_offset_delta=min(INT32_MAX, end_offset - start) - 1,
            base_timestamp_ms=-1,
            max_timestamp_ms=-1,
            base_offset=start,
        )
        for start in range(start_offset, end_offset, INT32_MAX)
    ]


def placed(
    batch: bytes, base_offset: int, append_time_ms: int | None = None
) -> list[bytes | memoryview]:
    """The batch as it lies in a log, in pieces, so that its records are not copied.

    The leader epoch is 0: there are no leaders.

    Args:
        batch: a sound one.
        append_time_ms: under LogAppendTime, the timestamp of all its records; the CRC is another
            then.
    """
    if append_time_ms is None:
        head = struct.pack(">q4si", base_offset, batch[8:_LENGTH_START], 0)
        return [head, memoryview(batch)[_MAGIC_START:]]
    header = BatchHeader.parse(batch)._replace(
        base_offset=base_offset, leader_epoch=0, max_timestamp_ms=append_time_ms
    )
    header = header._replace(attributes=header.attributes | LOG_APPEND_TIME)
    return [_packed(header, batch), memoryview(batch)[HEADER_BYTES:]]


def with_max_timestamp(batch: bytes, max_timestamp_ms: int) -> bytes:
    """The batch with another largest timestamp, and the CRC that goes with it."""
    header = BatchHeader.parse(batch)._replace(max_timestamp_ms=max_timestamp_ms)
    return b"".join((_packed(header, batch), memoryview(batch)[HEADER_BYTES:]))


def _packed(header: BatchHeader, batch: bytes) -> bytes:
    """The header before the records of that batch, with its CRC anew."""
    covered = _COVERED.pack(*header[5:])
    records = pa.py_buffer(batch).slice(HEADER_BYTES)
    crc = google_crc32c.extend(google_crc32c.value(covered), records)
    return _HEAD.pack(*header[:4], crc) + covered


# -- compression -------------------------------------------------------------------------------


class TooLargeError(ValueError):
    """The records take more than the bytes that were allowed; none of those beyond were made."""


def compressed(section: bytes | memoryview, compression: Compression) -> tuple[bytes, int]:
    """The records compressed, and the attributes that say so; as they are if it does not pay."""
    if compression is not Compression.NONE:
        is_lz4 = compression is Compression.LZ4
        made = _lz4_frame(section) if is_lz4 else pa.compress(section, "zstd", asbytes=True)
        if len(made) < len(section):
            return made, _CODEC_OF[compression]
    return bytes(section), 0


def _lz4_frame(section: bytes | memoryview) -> bytes:
    """A frame of independent blocks: Java's clients read no others, and Arrow writes others."""
    view, codec = memoryview(section), pa.Codec("lz4_raw")
    parts: list[bytes | memoryview] = [_LZ4_HEAD]
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        block = view[start : start + _LZ4_BLOCK_BYTES]
        made = codec.compress(block, asbytes=True)
        if len(made) < len(block):
            parts += (struct.pack("<I", len(made)), made)
        else:
            parts += (struct.pack("<I", len(block) | _LZ4_PLAIN), block)
    parts.append(bytes(4))  # no block more
    return b"".join(parts)


def decompressed(batch: bytes, codec: str, max_bytes: int) -> bytes:
    """The records of a batch, decompressed.

    Args:
        codec: of its header, not ``none``.
        max_bytes: bound on what is returned. What goes beyond is not decompressed, whatever the
            bytes declare.

    Raises:
        TooLargeError: they are more.
        ValueError: they are not what the codec writes, or it is unknown.
    """
    read = _READERS.get(codec)
    if read is None:
        raise ValueError(f"it is compressed by {codec}, which Kafka does not define")
    try:
        return read(pa.py_buffer(batch).slice(HEADER_BYTES), max_bytes)
    except (pa.ArrowException, OSError, struct.error) as error:
        raise ValueError(f"its records cannot be decompressed by {codec} ({error})") from error


def _stream_reader(name: str) -> Callable[[pa.Buffer, int], bytes]:
    def read(data: pa.Buffer, max_bytes: int) -> bytes:
        parts = []
        room, step = max_bytes + 1, max(64 * KIB, 4 * data.size)
        with pa.CompressedInputStream(pa.BufferReader(data), name) as stream:
            while room and (part := stream.read(min(room, step))):
                parts.append(part)
                room -= len(part)
                step *= 2
        if not room:
            raise _too_large(max_bytes)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    return read


def _read_snappy(data: pa.Buffer, max_bytes: int) -> bytes:
    """One raw block, or what Java's clients write: a header, then blocks behind their lengths."""
    view = memoryview(data).cast("B")  # Arrow's octets have a sign
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _snappy_block(data, max_bytes)
    parts = []
    at, room = 0, max_bytes
    while at < len(view):
        if view[at : at + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:  # again where streams are joined
            at += _XERIAL_HEADER_BYTES
            continue
        (size,) = struct.unpack_from(">I", view, at)
        at += 4
        if at + size > len(view):
            raise ValueError("its last block of snappy is cut off")
        parts.append(_snappy_block(data.slice(at, size), room))
        room -= len(parts[-1])
        at += size
    return b"".join(parts)


def _snappy_block(data: pa.Buffer, max_bytes: int) -> bytes:
    size = shift = 0  # which the block declares in front, and must then have
    for byte in memoryview(data)[:5].cast("B"):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise ValueError("a block of snappy does not say how long it is")
    if size > max_bytes:
        raise _too_large(max_bytes)
    return bytes(pa.Codec("snappy").decompress(data, size, asbytes=True))


def _too_large(max_bytes: int) -> TooLargeError:
    return TooLargeError(f"its records take more than {max_bytes} bytes once decompressed")


_READERS: dict[str, Callable[[pa.Buffer, int], bytes]] = {
    "snappy": _read_snappy,
    **{name: _stream_reader(name) for name in ("gzip", "lz4", "zstd")},
}
