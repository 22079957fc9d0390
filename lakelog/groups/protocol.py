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

from msgspec import Struct

from ..errors import InvalidArgumentError
from ..values.topic_partition import TopicPartition
from .wire import Reader, Writer

PROTOCOL_TYPE = "consumer"
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
