"""What members that speak Kafka's consumer protocol say, are told, and look like (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .protocol import PROTOCOL_TYPE

T = TypeVar("T")

#: Member epochs with which a member comes and goes; above are those it was given.
JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2


class ConsumerHeartbeat(Struct, frozen=True, kw_only=True):
    """What a member says. None: as it said before."""

    member_id: str
    member_epoch: int  # that it was told last; or one of those above
    instance_id: str | None = None
    rack_id: str | None = None  # plays no part
    rebalance_timeout_ms: int | None = None  # how long it may take to give partitions up
    topics: tuple[str, ...] | None = None  # that it subscribes to, by name
    regex: str | None = None  # and those whose whole name matches; RE2's syntax; empty: none
    assignor: str | None = None  # that it would have; of `ASSIGNORS`
    owned: tuple[str, ...] | None = None  # what it has, as `spelled_owned`
    protocol_type: str = PROTOCOL_TYPE  # or `SHARE_PROTOCOL_TYPE`
    client_id: str = ""
    client_host: str = ""


class ConsumerTold(Struct, frozen=True):
    """What a member is told."""

    member_epoch: int
    heartbeat_interval_ms: int
    partitions: tuple[TopicIdPartition, ...] | None  # that it may read; None: as before


class TopicIdPartition(NamedTuple):
    """A partition of one creation of a topic."""

    topic_id: UUID
    topic_partition: TopicPartition

    def spelled(self) -> str:
        """As the script has it."""
        topic, partition = self.topic_partition
        return f"{self.topic_id.hex}:{partition}:{topic}"

    @classmethod
    def of(cls, text: str) -> TopicIdPartition:
        topic_id, partition, topic = text.split(":", 2)
        return cls(UUID(topic_id), TopicPartition(topic, int(partition)))

    def is_of(self, topic: Topic | None) -> bool:
        """Whether it is one of the topic's as it is now."""
        return (
            topic is not None
            and topic.topic_id == self.topic_id
            and self.topic_partition.partition < topic.partitions
        )


def spelled_owned(owned: Mapping[UUID, Sequence[int]]) -> tuple[str, ...]:
    """The partitions that a member says it has, by topic id, as the script compares them."""
    return tuple(f"{topic.hex}:{one}" for topic, numbers in owned.items() for one in numbers)


class ConsumerMember(Struct, frozen=True, kw_only=True):
    """A member as it lies in Redis, see `consumer` in ``group.lua``."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int = 0
    topics: tuple[str, ...] = ()
    regex: str = ""  # empty: none
    assignor: str = ""  # empty: it leaves it to others
    member_epoch: int = 0
    is_settled: bool = True  # in its epoch it waits for nobody, and nobody for it
    assigned: tuple[TopicIdPartition, ...] = ()  # what it may read
    target: tuple[TopicIdPartition, ...] = ()  # what it is to have


class _Record(Struct, array_like=True):
    instance: str
    client: str
    host: str
    session_ms: int
    rebalance_ms: int
    protocols: Any
    rack: str
    names: list[str]
    regex: str
    assignor: str
    epoch: int
    previous: int
    state: str
    assigned: list[str]
    revoking: list[str]


_RECORDS = msgspec.msgpack.Decoder(_Record)
_TEXTS = msgspec.msgpack.Decoder(list[str])


def _read(decoder: msgspec.msgpack.Decoder[T], packed: bytes) -> T:
    try:
        return decoder.decode(packed)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error  # as what else is illegible


def parse_partitions(packed: bytes) -> tuple[TopicIdPartition, ...]:
    return tuple(TopicIdPartition.of(text) for text in _read(_TEXTS, packed))


def pack_partitions(partitions: Sequence[TopicIdPartition]) -> bytes:
    return msgspec.msgpack.encode([one.spelled() for one in partitions])


def parse_consumers(parts: Sequence[bytes]) -> list[ConsumerMember]:
    """The members, from their ids, records and targets; by id."""
    found = []
    for member_id, packed, target in zip(*[iter(parts)] * 3, strict=True):
        record = _read(_RECORDS, packed)
        found.append(
            ConsumerMember(
                member_id=member_id.decode(),
                instance_id=record.instance or None,
                rack_id=record.rack or None,
                client_id=record.client,
                client_host=record.host,
                session_timeout_ms=record.session_ms,
                topics=tuple(record.names),
                regex=record.regex,
                assignor=record.assignor,
                member_epoch=record.epoch,
                is_settled=record.state == "stable",
                assigned=tuple(TopicIdPartition.of(text) for text in record.assigned),
                target=parse_partitions(target),
            )
        )
    return sorted(found, key=lambda one: one.member_id)
