"""The few types of Kafka's wire format that members of a group exchange, big-endian.

| type | bytes |
|---|---|
| int16, int32 | 2, 4; signed |
| string | int16 length, UTF-8 |
| nullable string, nullable bytes | as string (int16), as bytes (int32 length); length -1 is null |
| array | int32 count, the elements |

Source: Kafka's protocol guide, "Protocol Primitive Types", the types without compact lengths.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..errors import InvalidArgumentError, SchemaError
from ..values.topic_partition import TopicPartition

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
