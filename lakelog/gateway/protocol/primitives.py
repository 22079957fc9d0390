"""What Kafka's messages are made of, read from and written to bytes.

| type | bytes |
|---|---|
| numbers, uuid | big-endian, of a fixed size; a run of them is one `struct.Struct` |
| string | int16 length, UTF-8; compact: unsigned varint of length + 1 |
| bytes, records, array | int32 length or count; compact: unsigned varint of that + 1 |
| null | length -1; compact: 0 |
| nullable struct | int8, -1 for null |
| tagged fields | unsigned varint count, then each: tag, size (both unsigned varints), value |

A reader takes the bytes and a position, and gives the value and the position behind it. It raises
`MalformedRequestError`, or IndexError and `struct.error` past the end, which `ApiMessage.decode`
turns into the former. Nothing is allocated for a length or count before it is known to fit into
the bytes that are left.

Source: https://kafka.apache.org/protocol (types); KIP-482 (compact types, tagged fields).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from msgspec import Struct

from ...errors import LakelogError

if TYPE_CHECKING:
    from typing_extensions import Self

_T = TypeVar("_T")

Buffer: TypeAlias = "bytes | bytearray | memoryview"
Reader: TypeAlias = "Callable[[Buffer, int], tuple[_T, int]]"
Write: TypeAlias = "Callable[[Buffer], object]"

#: No tagged fields.
NO_TAGS = b"\0"
ZERO_UUID = UUID(int=0)

_NO_TAGS_READ: Mapping[int, Buffer] = {}
_MAX_VARINT_BYTES = 5  # of 32 bits, 7 a byte
_ONE_BYTE = [bytes((number,)) for number in range(128)]
_SIZES = {letter: struct.calcsize(f">{letter}") for letter in "?bhHiIqd"}
_int16, _int32 = struct.Struct(">h"), struct.Struct(">i")
_read_int16, _read_int32 = _int16.unpack_from, _int32.unpack_from
_pack_int16, _pack_int32 = _int16.pack, _int32.pack


class MalformedRequestError(LakelogError, ValueError):
    """Bytes that are no message of the version that they claim to be.

    Kafka's brokers close the connection on which such a request came.
    """


class Pieces:
    """Records that lie in several buffers, which are sent as they are, without a copy."""

    __slots__ = ("buffers", "size_bytes")

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = buffers
        self.size_bytes = sum(map(len, buffers))

    def __len__(self) -> int:
        return self.size_bytes


Records: TypeAlias = "Buffer | Pieces"


class Message(Struct):
    """A struct of a message. Fields that a version lacks are left out of its bytes.

    Raises:
        TypeError: from writing, for None in a field that the version does not let be null.
    """


class ApiMessage(Message):
    """A request or a response, without its header."""

    readers: ClassVar[Mapping[int, Reader[Any]]]
    writers: ClassVar[Mapping[int, Callable[[Write, Any], None]]]

    @classmethod
    def decode(cls, version: int, data: Buffer, position: int = 0) -> Self:
        """The message that the bytes from a position on begin with.

        Records are views of ``data``, which they keep in memory.

        Raises:
            MalformedRequestError: they are not one of this version.
            KeyError: the version is not in ``readers``.
        """
        read = cls.readers[version]
        try:
            message, _ = read(data, position)
        except (IndexError, struct.error) as error:
            raise MalformedRequestError(
                f"{cls.__name__} of version {version}: the {len(data)} bytes end within it"
            ) from error
        except ValueError as error:
            raise MalformedRequestError(f"{cls.__name__} of version {version}: {error}") from error
        # Bytes behind it are nobody's: librdkafka sends three behind Metadata, and brokers look at
        # none.
        return message  # type: ignore[no-any-return]

    def write(self, version: int, write: Write) -> None:
        """Hands the message's bytes to ``write``, records as the buffers that they are.

        Raises:
            KeyError: the version is not in ``writers``.
        """
        self.writers[version](write, self)

    def encode(self, version: int) -> bytes:
        """The message's bytes."""
        written: list[Buffer] = []
        self.writers[version](written.append, self)
        return b"".join(written)


class Api(NamedTuple):
    """A kind of request, and the versions that are served."""

    key: int
    name: str
    request: type[ApiMessage]
    response: type[ApiMessage]
    min_version: int
    max_version: int
    flexible_from: int | None  # the first version with compact types and tagged fields; None: none

    def is_flexible(self, version: int) -> bool:
        """Whether the version has compact types and tagged fields, in its headers too."""
        return self.flexible_from is not None and version >= self.flexible_from


def since(last: int, first_versions: Mapping[int, _T]) -> dict[int, _T]:
    """What holds for each version up to the last, told by the first that each holds for."""
    found: dict[int, _T] = {}
    for version in range(min(first_versions), last + 1):
        found[version] = first_versions.get(version) or found[version - 1]
    return found


# -- lengths -----------------------------------------------------------------------------------


def read_uvarint(b: Buffer, p: int) -> tuple[int, int]:
    """An unsigned varint of up to 32 bits."""
    number = b[p]
    if number < 128:
        return number, p + 1
    number &= 127
    for place in range(1, _MAX_VARINT_BYTES):
        byte = b[p + place]
        number |= (byte & 127) << (7 * place)
        if byte < 128:
            return number, p + place + 1
    raise MalformedRequestError(f"the varint at byte {p} is longer than {_MAX_VARINT_BYTES} bytes")


def pack_uvarint(number: int) -> bytes:
    """A number that is not negative as a varint."""
    if number < 128:
        return _ONE_BYTE[number]
    packed = bytearray()
    while number > 127:
        packed.append(number & 127 | 128)
        number >>= 7
    packed.append(number)
    return bytes(packed)


def _misfit(what: str, length: int, p: int, b: Buffer) -> MalformedRequestError:
    if length < 0:
        return MalformedRequestError(f"the {what} before byte {p} is null, which it may not be")
    return MalformedRequestError(
        f"the {what} at byte {p} has the length {length}, and {len(b) - p} bytes are left"
    )


# -- strings -----------------------------------------------------------------------------------


def read_string(b: Buffer, p: int) -> tuple[str, int]:
    (length,) = _read_int16(b, p)
    p += 2
    end = p + length
    if length < 0 or end > len(b):
        raise _misfit("string", length, p, b)
    return str(b[p:end], "utf-8"), end


def read_nullable_string(b: Buffer, p: int) -> tuple[str | None, int]:
    return (None, p + 2) if _read_int16(b, p)[0] < 0 else read_string(b, p)


def read_compact_string(b: Buffer, p: int) -> tuple[str, int]:
    length = b[p]
    if length < 128:
        p += 1
    else:
        length, p = read_uvarint(b, p)
    end = p + length - 1
    if length < 1 or end > len(b):
        raise _misfit("string", length - 1, p, b)
    return str(b[p:end], "utf-8"), end


def read_compact_nullable_string(b: Buffer, p: int) -> tuple[str | None, int]:
    return read_compact_string(b, p) if b[p] else (None, p + 1)


def pack_string(text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    return _pack_int16(len(raw)) + raw


def pack_nullable_string(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else pack_string(text)


def pack_compact_string(text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    length = len(raw) + 1
    return (_ONE_BYTE[length] if length < 128 else pack_uvarint(length)) + raw


def pack_compact_nullable_string(text: str | None) -> bytes:
    return b"\0" if text is None else pack_compact_string(text)


# -- bytes and records -------------------------------------------------------------------------


def read_bytes(b: Buffer, p: int) -> tuple[bytes, int]:
    records, p = read_records(b, p)
    return bytes(records), p


def read_nullable_bytes(b: Buffer, p: int) -> tuple[bytes | None, int]:
    return (None, p + 4) if _read_int32(b, p)[0] < 0 else read_bytes(b, p)


def read_compact_bytes(b: Buffer, p: int) -> tuple[bytes, int]:
    records, p = read_compact_records(b, p)
    return bytes(records), p


def read_compact_nullable_bytes(b: Buffer, p: int) -> tuple[bytes | None, int]:
    return read_compact_bytes(b, p) if b[p] else (None, p + 1)


def read_records(b: Buffer, p: int) -> tuple[memoryview, int]:
    """A view of the bytes, of a length told by an int32."""
    (length,) = _read_int32(b, p)
    p += 4
    end = p + length
    if length < 0 or end > len(b):
        raise _misfit("bytes", length, p, b)
    return memoryview(b)[p:end], end


def read_nullable_records(b: Buffer, p: int) -> tuple[memoryview | None, int]:
    return (None, p + 4) if _read_int32(b, p)[0] < 0 else read_records(b, p)


def read_compact_records(b: Buffer, p: int) -> tuple[memoryview, int]:
    """A view of the bytes, of a length told by a varint."""
    length, p = read_uvarint(b, p)
    end = p + length - 1
    if length < 1 or end > len(b):
        raise _misfit("bytes", length - 1, p, b)
    return memoryview(b)[p:end], end


def read_compact_nullable_records(b: Buffer, p: int) -> tuple[memoryview | None, int]:
    return read_compact_records(b, p) if b[p] else (None, p + 1)


def pack_bytes(raw: Buffer) -> bytes:
    return _pack_int32(len(raw)) + raw


def pack_nullable_bytes(raw: Buffer | None) -> bytes:
    return b"\xff\xff\xff\xff" if raw is None else pack_bytes(raw)


def pack_compact_bytes(raw: Buffer) -> bytes:
    return pack_uvarint(len(raw) + 1) + raw


def pack_compact_nullable_bytes(raw: Buffer | None) -> bytes:
    return b"\0" if raw is None else pack_compact_bytes(raw)


def write_records(w: Write, records: Records) -> None:
    w(_pack_int32(len(records)))
    _write_buffers(w, records)


def write_nullable_records(w: Write, records: Records | None) -> None:
    if records is None:
        w(b"\xff\xff\xff\xff")
    else:
        write_records(w, records)


def write_compact_records(w: Write, records: Records) -> None:
    w(pack_uvarint(len(records) + 1))
    _write_buffers(w, records)


def write_compact_nullable_records(w: Write, records: Records | None) -> None:
    if records is None:
        w(b"\0")
    else:
        write_compact_records(w, records)


def _write_buffers(w: Write, records: Records) -> None:
    if isinstance(records, Pieces):
        for buffer in records.buffers:
            w(buffer)
    else:
        w(records)


# -- numbers and ids ---------------------------------------------------------------------------


def read_number(b: Buffer, p: int, letter: str) -> tuple[Any, int]:
    """A number of a `struct` letter."""
    return struct.unpack_from(f">{letter}", b, p)[0], p + _SIZES[letter]


def pack_number(letter: str, number: Any) -> bytes:
    return struct.pack(f">{letter}", number)


@lru_cache(4096)  # topics have ids, which come again and again
def uuid_of(raw: bytes) -> UUID:
    return UUID(bytes=raw)


def read_uuid(b: Buffer, p: int) -> tuple[UUID, int]:
    end = p + 16
    return uuid_of(bytes(b[p:end])), end  # which refuses fewer bytes than 16


def pack_uuid(uuid: UUID) -> bytes:
    return uuid.bytes


# -- arrays ------------------------------------------------------------------------------------


def _read_items(
    b: Buffer, p: int, count: int, min_size_bytes: int, read: Reader[_T]
) -> tuple[list[_T], int]:
    if not 0 <= count * min_size_bytes <= len(b) - p:
        raise _misfit("array", count, p, b)
    items = []
    for _ in range(count):
        item, p = read(b, p)
        items.append(item)
    return items, p


def read_array(b: Buffer, p: int, min_size_bytes: int, read: Reader[_T]) -> tuple[list[_T], int]:
    """An array of what ``read`` reads, each item of at least so many bytes."""
    return _read_items(b, p + 4, _read_int32(b, p)[0], min_size_bytes, read)


def read_nullable_array(
    b: Buffer, p: int, min_size_bytes: int, read: Reader[_T]
) -> tuple[list[_T] | None, int]:
    if _read_int32(b, p)[0] < 0:
        return None, p + 4
    return read_array(b, p, min_size_bytes, read)


def read_compact_array(
    b: Buffer, p: int, min_size_bytes: int, read: Reader[_T]
) -> tuple[list[_T], int]:
    count, p = read_uvarint(b, p)
    return _read_items(b, p, count - 1, min_size_bytes, read)


def read_compact_nullable_array(
    b: Buffer, p: int, min_size_bytes: int, read: Reader[_T]
) -> tuple[list[_T] | None, int]:
    return read_compact_array(b, p, min_size_bytes, read) if b[p] else (None, p + 1)


def _read_numbers(b: Buffer, p: int, count: int, letter: str) -> tuple[list[Any], int]:
    size_bytes = count * _SIZES[letter]
    if not 0 <= size_bytes <= len(b) - p:
        raise _misfit("array", count, p, b)
    return list(struct.unpack_from(f">{count}{letter}", b, p)), p + size_bytes


def read_numbers(b: Buffer, p: int, letter: str) -> tuple[list[Any], int]:
    """An array of numbers of a `struct` letter."""
    return _read_numbers(b, p + 4, _read_int32(b, p)[0], letter)


def read_nullable_numbers(b: Buffer, p: int, letter: str) -> tuple[list[Any] | None, int]:
    return (None, p + 4) if _read_int32(b, p)[0] < 0 else read_numbers(b, p, letter)


def read_compact_numbers(b: Buffer, p: int, letter: str) -> tuple[list[Any], int]:
    count, p = read_uvarint(b, p)
    return _read_numbers(b, p, count - 1, letter)


def read_compact_nullable_numbers(b: Buffer, p: int, letter: str) -> tuple[list[Any] | None, int]:
    return read_compact_numbers(b, p, letter) if b[p] else (None, p + 1)


def pack_array(items: Collection[_T], pack: Callable[[_T], bytes]) -> bytes:
    return _pack_int32(len(items)) + b"".join(map(pack, items))


def pack_nullable_array(items: Collection[_T] | None, pack: Callable[[_T], bytes]) -> bytes:
    return b"\xff\xff\xff\xff" if items is None else pack_array(items, pack)


def pack_compact_array(items: Collection[_T], pack: Callable[[_T], bytes]) -> bytes:
    return pack_uvarint(len(items) + 1) + b"".join(map(pack, items))


def pack_compact_nullable_array(items: Collection[_T] | None, pack: Callable[[_T], bytes]) -> bytes:
    return b"\0" if items is None else pack_compact_array(items, pack)


def pack_numbers(numbers: Collection[Any], letter: str) -> bytes:
    return struct.pack(f">i{len(numbers)}{letter}", len(numbers), *numbers)


def pack_nullable_numbers(numbers: Collection[Any] | None, letter: str) -> bytes:
    return b"\xff\xff\xff\xff" if numbers is None else pack_numbers(numbers, letter)


def pack_compact_numbers(numbers: Collection[Any], letter: str) -> bytes:
    return pack_uvarint(len(numbers) + 1) + struct.pack(f">{len(numbers)}{letter}", *numbers)


def pack_compact_nullable_numbers(numbers: Collection[Any] | None, letter: str) -> bytes:
    return b"\0" if numbers is None else pack_compact_numbers(numbers, letter)


def write_array(w: Write, items: Collection[_T], write: Callable[[Write, _T], None]) -> None:
    w(_pack_int32(len(items)))
    for item in items:
        write(w, item)


def write_nullable_array(
    w: Write, items: Collection[_T] | None, write: Callable[[Write, _T], None]
) -> None:
    if items is None:
        w(b"\xff\xff\xff\xff")
    else:
        write_array(w, items, write)


def write_compact_array(
    w: Write, items: Collection[_T], write: Callable[[Write, _T], None]
) -> None:
    w(pack_uvarint(len(items) + 1))
    for item in items:
        write(w, item)


def write_compact_nullable_array(
    w: Write, items: Collection[_T] | None, write: Callable[[Write, _T], None]
) -> None:
    if items is None:
        w(b"\0")
    else:
        write_compact_array(w, items, write)


# -- structs and tagged fields -----------------------------------------------------------------


def read_nullable_struct(b: Buffer, p: int, read: Reader[_T]) -> tuple[_T | None, int]:
    return (None, p + 1) if b[p] > 127 else read(b, p + 1)


def write_nullable_struct(w: Write, value: _T | None, write: Callable[[Write, _T], None]) -> None:
    if value is None:
        w(b"\xff")
    else:
        w(b"\x01")
        write(w, value)


def read_tags(b: Buffer, p: int) -> tuple[Mapping[int, Buffer], int]:
    """The bytes of each tagged field, by its tag."""
    if b[p] == 0:
        return _NO_TAGS_READ, p + 1
    count, p = read_uvarint(b, p)
    tags = {}
    for _ in range(count):
        tag, p = read_uvarint(b, p)
        size_bytes, p = read_uvarint(b, p)
        end = p + size_bytes
        if end > len(b):
            raise _misfit("tagged field", size_bytes, p, b)
        tags[tag] = b[p:end]
        p = end
    return tags, p


def skip_tags(b: Buffer, p: int) -> int:
    """Where tagged fields end of which none is known."""
    return p + 1 if b[p] == 0 else read_tags(b, p)[1]


def read_tag(value: Buffer, read: Callable[..., tuple[_T, int]], *arguments: Any) -> _T:
    """The value of a tagged field, which is all of its bytes."""
    found, end = read(value, 0, *arguments)
    if end != len(value):
        raise MalformedRequestError(
            f"a tagged field's value ends after {end} of its {len(value)} bytes"
        )
    return found


def pack_tags(tags: Iterable[tuple[int, bytes]]) -> bytes:
    """Tagged fields, given by ascending tags."""
    packed = [pack_uvarint(tag) + pack_uvarint(len(value)) + value for tag, value in tags]
    return pack_uvarint(len(packed)) + b"".join(packed)


def written(write: Callable[..., None], *arguments: Any) -> bytes:
    """The bytes that a writer writes."""
    buffers: list[Buffer] = []
    write(buffers.append, *arguments)
    return b"".join(buffers)
