"""One cheap look at many partitions, to see which need a closer look.

Four fields of each partition's ``:state`` and no script: 1,000 partitions take one round trip and a
few milliseconds, where `HotLog.offsets` builds every segment of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from ..base.clock import Clock
from ..errors import ForeignEntryError
from ..values.topic_partition import TopicPartition
from .connection import Server, Servers
from .foreign import ILLEGIBLE
from .keys import Keys
from .refusals import moved, translate
from .server_info import MEMORY_INFO, MemoryUse, time_ms

_FIELDS = ("topic_id", "run_id", "log_end", "unarchived_since")


class PartitionLook(Struct, frozen=True):
    """The part of a partition's state that says whether it needs a closer look."""

    topic_id: str
    recovered: bool  # this run of the server has written it
    log_end: int
    unarchived_since_ms: int | None  # when the oldest unarchived append was; None: not known


class ServerLook(Struct, frozen=True):
    """What one server said in one look."""

    now_ms: int  # the server's clock, before the rest was read
    # None: the server has no such partition, or a damaged one, whose damage a closer look names. It
    # must not hide the others.
    partitions: Mapping[TopicPartition, PartitionLook | None]
    memory: MemoryUse | None  # None: it does not tell us


class ServerLooks:
    """Looks at the partitions that one server holds."""

    def __init__(self, servers: Servers, server: Server, keys: Keys, clock: Clock | None) -> None:
        self._servers = servers
        self._server = server
        self._keys = keys
        self._clock = clock

    @property
    def name(self) -> str:
        """The server's address, without a password."""
        return self._server.name

    def holds(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition is on this server, as far as is known."""
        stream = self._keys.partition(topic_partition).stream
        return self._servers.for_key(stream) is self._server

    def look(self, topic_partitions: Iterable[TopicPartition]) -> ServerLook:
        """One round trip.

        Raises:
            HotTierUnavailableError: the server does not answer, or no longer holds one of them;
                then `holds` tells which server does.
            HotTierAccessError: it does not answer us.
        """
        wanted = list(topic_partitions)
        commands = [("HMGET", self._keys.partition(tp).state, *_FIELDS) for tp in wanted]
        with self._server.wire() as wire:
            time, memory, *replies = wire.exchange([("TIME",), MEMORY_INFO, *commands])
            run_id = wire.run_id
        if isinstance(time, Exception):
            raise translate(time, self._server.name)
        seen: dict[TopicPartition, PartitionLook | None] = {}
        for tp, reply in zip(wanted, replies, strict=True):
            if isinstance(reply, Exception):
                if moved(reply):
                    self._servers.refresh()
                refusal = translate(reply, self._server.name, self._keys.partition(tp).stream)
                if not isinstance(refusal, ForeignEntryError):
                    raise refusal
            seen[tp] = _look_of(reply, run_id)
        now_ms = time_ms(time) if self._clock is None else self._clock.now_ms()
        return ServerLook(now_ms, seen, MemoryUse.of(memory))


def _look_of(reply: Any, run_id: str) -> PartitionLook | None:
    try:
        topic_id, written_by, log_end, since = reply
        if topic_id is None or log_end is None:
            return None
        return PartitionLook(
            topic_id.decode(),
            written_by is not None and written_by.decode() == run_id,
            int(log_end),
            None if since is None else int(since),
        )
    except ILLEGIBLE:
        return None
