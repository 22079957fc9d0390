"""What members of a group tell each other, in the bytes of Kafka's consumer protocol.

The coordinator stores these bytes and never reads them, so clients of Kafka could share a group.

| version | adds to a subscription |
|---|---|
| 0 | topics, user data |
| 1 | the partitions the member owns |
| 2 | the generation in which it got them |
| 3 | its rack |

An assignment is the same in all of them. A newer version is read as version 3: versions only ever
append fields.

Source: Kafka's ``ConsumerProtocolSubscription.json`` and ``ConsumerProtocolAssignment.json``;
KIP-429 (version 1), KIP-792 (2), KIP-881 (3).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from ..errors import InvalidArgumentError, SchemaError
from ..values.topic_partition import TopicPartition

PROTOCOL_TYPE = "consumer"
#: Of share groups.
SHARE_PROTOCOL_TYPE = "share"
NEWEST_VERSION = 3
NO_GENERATION = -1


class Subscription(Struct, frozen=True):
    """What a member asks for when it joins."""

    topics: tuple[str, ...]  # sorted as bytes
    user_data: bytes | None = None  # of the assignor
    owned_partitions: tuple[TopicPartition, ...] = ()  # sorted as bytes
    generation_id: int = NO_GENERATION  # in which it got them
    rack_id: str | None = None

    def encode(self, version: int = NEWEST_VERSION) -> bytes:
        """The bytes; what the version does not have is left out."""
        writer = _writer(version)
        writer.array(sorted(self.topics), writer.string)
        writer.nullable_bytes(self.user_data)
        if version >= 1:
            writer.topic_partitions(self.owned_partitions)
        if version >= 2:
            writer.int32(self.generation_id)
        if version >= 3:
            writer.nullable_string(self.rack_id)
        return writer.taken()

    @property
    def asked_bytes(self) -> int:
        """How many of the first bytes are the version and the topics."""
        writer = _writer(NEWEST_VERSION)
        writer.array(sorted(self.topics), writer.string)
        return len(writer.taken())

    @classmethod
    def decode(cls, data: bytes) -> Subscription:
        """What the bytes say.

        Raises:
            SchemaError: they are not a subscription.
        """
        reader, version = _reader(data, "a member's subscription")
        return cls(
            topics=tuple(reader.array(reader.string)),
            user_data=reader.nullable_bytes(),
            owned_partitions=reader.topic_partitions() if version >= 1 else (),
            generation_id=reader.int32() if version >= 2 else NO_GENERATION,
            rack_id=reader.nullable_string() if version >= 3 else None,
        )


class Assignment(Struct, frozen=True):
    """What a member is to read from now on."""

    partitions: tuple[TopicPartition, ...] = ()  # sorted as bytes
    user_data: bytes | None = None  # of the assignor

    def encode(self, version: int = NEWEST_VERSION) -> bytes:
        writer = _writer(version)
        writer.topic_partitions(self.partitions)
        writer.nullable_bytes(self.user_data)
        return writer.taken()

    @classmethod
    def decode(cls, data: bytes) -> Assignment:
        """What the bytes say; no bytes are an empty assignment, as in Kafka.

        Raises:
            SchemaError: they are not an assignment.
        """
        if not data:
            return cls()
        reader, _ = _reader(data, "a member's assignment")
        return cls(partitions=reader.topic_partitions(), user_data=reader.nullable_bytes())


def _writer(version: int) -> Writer:
    if not 0 <= version <= NEWEST_VERSION:
        raise InvalidArgumentError(
            f"{version} is not a version of the consumer protocol: give 0 to {NEWEST_VERSION}",
            name="version",
            value=version,
        )
    writer = Writer()
    writer.int16(version)
    return writer


def _reader(data: bytes, what: str) -> tuple[Reader, int]:
    reader = Reader(data, what)
    version = reader.int16()
    if version < 0:
        raise reader.error(f"version {version} is negative")
    return reader, version


Element = TypeVar("Element")

MAX_STRING_BYTES = 32_767


class Writer:
    """Appends values; `taken` gives the bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def taken(self) -> bytes:
        return b"".join(self._parts)

    def int16(self, value: int) -> None:
        self._parts.append(struct.pack(">h", value))

    def int32(self, value: int) -> None:
        self._parts.append(struct.pack(">i", value))

    def string(self, text: str) -> None:
        encoded = text.encode()
        if len(encoded) > MAX_STRING_BYTES:
            raise InvalidArgumentError(
                f"{text[:40]!r}… has {len(encoded)} bytes; Kafka's strings hold {MAX_STRING_BYTES}"
            )
        self.int16(len(encoded))
        self._parts.append(encoded)

    def nullable_string(self, text: str | None) -> None:
        if text is None:
            self.int16(-1)
        else:
            self.string(text)

    def nullable_bytes(self, value: bytes | None) -> None:
        self.int32(-1 if value is None else len(value))
        self._parts.append(value or b"")

    def array(self, elements: Sequence[Element], write: Callable[[Element], None]) -> None:
        self.int32(len(elements))
        for element in elements:
            write(element)

    def topic_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Grouped by topic; both sorted."""
        by_topic: dict[str, list[int]] = defaultdict(list)
        for topic, partition in partitions:
            by_topic[topic].append(partition)

        def write(topic: str) -> None:
            self.string(topic)
            self.array(sorted(by_topic[topic]), self.int32)

        self.array(sorted(by_topic), write)


class Reader:
    """Takes values off the front of some bytes.

    Args:
        what: the bytes are, for errors: "a member's subscription".

    Raises:
        SchemaError: by each call: the bytes end too early, or are not what they must be.
    """

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._at = 0
        self._what = what

    def int16(self) -> int:
        value: int = struct.unpack(">h", self._take(2))[0]
        return value

    def int32(self) -> int:
        value: int = struct.unpack(">i", self._take(4))[0]
        return value

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise self.error("a text that must be there is null")
        return text

    def nullable_string(self) -> str | None:
        length = self.int16()
        if length == -1:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise self.error("a text is not UTF-8") from None

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self._take(length)

    def array(self, read: Callable[[], Element]) -> list[Element]:
        count = self.int32()
        if not 0 <= count <= len(self._data) - self._at:  # an element takes a byte at least
            raise self.error(f"an array says that it has {count} elements")
        return [read() for _ in range(count)]

    def topic_partitions(self) -> tuple[TopicPartition, ...]:
        def read() -> list[TopicPartition]:
            topic = self.string()
            return [TopicPartition(topic, partition) for partition in self.array(self.int32)]

        return tuple(partition for topic in self.array(read) for partition in topic)

    def error(self, why: str) -> SchemaError:
        return SchemaError(
            f"{self._what} of {len(self._data)} bytes is not in Kafka's consumer protocol: {why} "
            f"before byte {self._at}. Find out which client wrote it",
            size_bytes=len(self._data),
        )

    def _take(self, length: int) -> bytes:
        if not 0 <= length <= len(self._data) - self._at:
            raise self.error(f"a value says that it has {length} bytes")
        self._at += length
        return self._data[self._at - length : self._at]
