"""Looks at partitions: where they begin and end, and their segments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from msgspec import Struct

from ..base.clock import Clock
from ..errors import ForeignEntryError
from ..values.offsets import HotOffsets, HotSegment, HotSegments
from ..values.producer_calls import ProducerCall
from ..values.topic_partition import TopicPartition
from .connection import Server, Servers, by_server
from .declared import Declared, check_topic_id, parse_gaps, unknown_partition
from .foreign import ILLEGIBLE, illegible
from .keys import Keys
from .refusals import moved, translate
from .server_info import MEMORY_INFO, MemoryUse, ServerInfo, server_info, time_ms


class Looks:
    """Looks at the partitions of one keyspace, and at the servers that have them."""

    def __init__(self, servers: Servers, keys: Keys, clock: Clock | None) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock

    def offsets(
        self,
        topic_partitions: Iterable[TopicPartition],
        *,
        topic_id: UUID | Mapping[str, UUID] | None = None,
        calls: int = 0,
    ) -> dict[TopicPartition, HotOffsets]:
        """Where the partitions begin and end: one round trip for each server.

        Args:
            topic_id: refuse to look at another creation of the topic; of several, by name.
            calls: how many of the last calls of each producer with checksums to tell: none, the
                newest, or all that Redis remembers. It takes Redis a microsecond for each producer
                of a partition, if any with checksums ever wrote to it.

        Raises:
            UnknownTopicOrPartitionError: one is not in the hot tier.
            UnknownTopicIdError: one belongs to another creation of the topic than ``topic_id``.
        """
        replies = self._ask(topic_partitions, topic_id, calls, "")
        return {tp: reply.offsets(tp) for tp, reply in replies.items()}

    def segments(
        self,
        topic_partitions: Iterable[TopicPartition],
        *,
        topic_id: UUID | Mapping[str, UUID] | None = None,
        calls: int = 0,
    ) -> dict[TopicPartition, HotSegments]:
        """As `offsets`, with the partitions' segments."""
        replies = self._ask(topic_partitions, topic_id, calls, "1")
        return {tp: reply.segments(tp) for tp, reply in replies.items()}

    def now_ms(self) -> int:
        """The time the scripts go by: Redis's clock, or the one given."""
        if self._clock is not None:
            return self._clock.now_ms()
        return time_ms(self._servers.for_key(self._keys.topics).call(("TIME",))[0])

    def memory_bytes(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The memory that the partitions take in Redis, including indexes and state."""
        found = {}
        for tp in topic_partitions:
            keys = self._keys.partition(tp)
            server = self._servers.for_key(keys.stream)
            # SAMPLES 0 looks at every element: the default guesses from five
            sizes = server.call(*(("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys.all()))
            found[tp] = sum(size or 0 for size in sizes)
        return found

    def servers(self) -> list[ServerInfo]:
        """What each server says of its version, memory and persistence."""
        return [server_info(server) for server in self._servers.all()]

    def server_name(self, topic_partition: TopicPartition) -> str:
        """The address of the server that has the partition, without a password."""
        return self._servers.for_key(self._keys.partition(topic_partition).stream).name

    def server_names(self, topic_partitions: Iterable[TopicPartition]) -> set[str]:
        """The addresses of the servers that have them, without passwords."""
        groups = by_server(self._servers, topic_partitions, self._keys.stream)
        return {server.name for server, _ in groups}

    def memory_percent(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, float]:
        """How much of its server's ``maxmemory`` is used, for each; 0 where nothing tells.

        One round trip a server.
        """
        found: dict[TopicPartition, float] = {}
        for server, group in by_server(self._servers, topic_partitions, self._keys.stream):
            use = MemoryUse.of(server.call(MEMORY_INFO)[0])
            found |= dict.fromkeys(group, 0.0 if use is None else use.percent)
        return found

    def server_looks(self) -> list[ServerLooks]:
        """One for each server, to look at many partitions again and again."""
        return [
            ServerLooks(self._servers, server, self._keys, self._clock)
            for server in self._servers.all()
        ]

    def _now(self) -> object:
        return "" if self._clock is None else self._clock.now_ms()

    def _ask(
        self,
        topic_partitions: Iterable[TopicPartition],
        topic_id: UUID | Mapping[str, UUID] | None,
        calls: int,
        with_segments: str,
    ) -> dict[TopicPartition, _Reply]:

        def id_of(topic: str) -> UUID | None:
            return topic_id.get(topic) if isinstance(topic_id, Mapping) else topic_id

        wanted = list(topic_partitions)
        arguments = (calls, self._now(), with_segments)
        found: dict[TopicPartition, _Reply] = {}
        checked: dict[str, bytes] = {}  # the ids that were found to be right, by topic
        for attempt in range(3):
            left = [tp for tp in wanted if tp not in found]
            if not left:
                break
            for server, group in by_server(self._servers, left, self._keys.stream):
                run_id, replies = server.run_scripts(
                    [("offsets", self._keys.partition(tp).all(), arguments) for tp in group]
                )
                for tp, reply in zip(group, replies, strict=True):
                    if isinstance(reply, Exception):
                        if moved(reply) and attempt < 2:
                            self._servers.refresh()
                            continue
                        stream = self._keys.partition(tp).stream
                        raise translate(reply, server.name, stream) from reply
                    seen_id = reply[0][0]
                    if seen_id is None or checked.get(tp.topic) != seen_id:
                        check_topic_id(tp, seen_id, id_of(tp.topic))
                        checked[tp.topic] = seen_id
                    found[tp] = _Reply.of(tp, reply, run_id)
        return {tp: found[tp] for tp in wanted}


class _Reply(Struct, frozen=True, gc=False):
    """One look, and what it told of the closed segments."""

    run_id: str
    state: Sequence[Any]
    count: int  # of closed segments
    closed: tuple[HotSegment, ...]  # if they were asked for
    producers: Sequence[bytes]

    @classmethod
    def of(cls, topic_partition: TopicPartition, reply: Any, run_id: str) -> _Reply:
        if reply[0][0] is None:
            raise unknown_partition(topic_partition)
        try:
            state, count, texts, producers = reply
            closed = tuple([HotSegment(*map(int, text.split())) for text in texts])
            return cls(run_id, state, count, closed, producers)
        except ILLEGIBLE as error:
            raise _illegible(topic_partition, reply, error) from error

    @property
    def declared(self) -> Declared:
        return Declared(int(self.state[2]), parse_gaps(self.state[9], self.state[13]))

    @property
    def open_segment(self) -> HotSegment:
        base, size, first, largest, created, modified = map(int, self.state[5].split())
        return HotSegment(base, int(self.state[2]), size, first, largest, created, modified)

    def offsets(self, topic_partition: TopicPartition) -> HotOffsets:
        """All but the segments."""
        try:
            return HotOffsets(**self.figures(self.declared, self.open_segment))
        except ILLEGIBLE as error:
            raise _illegible(topic_partition, self.state, error) from error

    def segments(self, topic_partition: TopicPartition) -> HotSegments:
        try:
            declared, open_segment = self.declared, self.open_segment
            figures = self.figures(declared, open_segment)
            segments = (*declared.segments(self.closed, open_segment.base_offset), open_segment)
            return HotSegments(**figures, segments=segments)
        except ILLEGIBLE as error:
            raise _illegible(topic_partition, self.state, error) from error

    def figures(self, declared: Declared, open_segment: HotSegment) -> dict[str, Any]:
        """By the names of `HotOffsets`; of what it says in `declared` and `open_segment`."""
        state = self.state
        appended, appended_bytes = map(int, (state[17] or b"0 0").split())
        return {
            "local_log_start": int(state[4]),
            "log_end": declared.log_end,
            "max_timestamp_ms": int(state[6].split()[2]),
            "size_bytes": int(state[7]) + open_segment.size_bytes,
            "recovered": state[1].decode() == self.run_id,
            "gaps": declared.gaps,
            "unarchived_since_ms": None if state[8] is None else int(state[8]),
            "log_start": int(state[3]),
            "paused": state[10] is not None,
            "reserved_end": None if state[12] is None else int(state[12]),
            "lost_from": None if state[14] is None else int(state[14]),
            "tiered": _says_tiered(state[15]),
            "appended": appended,
            "appended_bytes": appended_bytes,
            "calls": self.calls() if self.producers else (),
            "segment_count": self.count + 1,
            "archived_into": None if state[18] is None else state[18].decode(),
        }

    def calls(self) -> tuple[ProducerCall, ...]:
        """The last calls of producers."""
        return tuple(
            call
            for producer, value in zip(self.producers[::2], self.producers[1::2], strict=True)
            for call in parse_calls(producer, value)
        )


_CALL = re.compile(rb"\|(\d+) (\d+) (\d+) (-?\d+)(?: (\w+))?")


def parse_calls(producer: bytes, value: bytes) -> list[ProducerCall]:
    """The calls that a field of ``:producers`` tells, the newest first; none if it is foreign."""
    epoch = value.partition(b" ")[0]
    if not (producer.isdigit() and epoch.isdigit()):
        return []
    calls = []
    for *numbers, checksum in _CALL.findall(value):
        first, last, base, append_time_ms = map(int, numbers)
        said = checksum.decode("latin-1")
        calls.append(
            ProducerCall(int(producer), int(epoch), first, last, base, append_time_ms, said)
        )
    return calls


@lru_cache(maxsize=256)  # most partitions have the settings of others
def _says_tiered(settings: bytes) -> bool:
    return settings.split()[9] == b"1"


def _illegible(topic_partition: TopicPartition, found: Any, error: Exception) -> ForeignEntryError:
    return illegible(found, f"state of {topic_partition}, with its segments", error)


# -- cheap looks at many partitions, to see which need a closer one --------------------------------

#: No script, and no segments: 1,000 partitions take one round trip and a few milliseconds.
_GLANCE = ("topic_id", "run_id", "log_end", "unarchived_since")


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


class ServerLooks(Struct, frozen=True):
    """Looks at the partitions that one server holds."""

    servers: Servers
    server: Server
    keys: Keys
    clock: Clock | None

    @property
    def name(self) -> str:
        """The server's address, without a password."""
        return self.server.name

    def holds(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition is on this server, as far as is known."""
        return self.servers.for_key(self.keys.stream(topic_partition)) is self.server

    def look(self, topic_partitions: Iterable[TopicPartition]) -> ServerLook:
        """One round trip.

        Raises:
            HotTierUnavailableError: the server does not answer, or no longer holds one of them;
                then `holds` tells which server does.
            HotTierAccessError: it does not answer us.
        """
        wanted = list(topic_partitions)
        commands = [("HMGET", self.keys.partition(tp).state, *_GLANCE) for tp in wanted]
        with self.server.wire() as wire:
            time, memory, *replies = wire.exchange([("TIME",), MEMORY_INFO, *commands])
            run_id = wire.run_id
        if isinstance(time, Exception):
            raise translate(time, self.server.name)
        seen: dict[TopicPartition, PartitionLook | None] = {}
        for tp, reply in zip(wanted, replies, strict=True):
            if isinstance(reply, Exception):
                if moved(reply):
                    self.servers.refresh()
                refusal = translate(reply, self.server.name, self.keys.stream(tp))
                if not isinstance(refusal, ForeignEntryError):
                    raise refusal
            seen[tp] = _look_of(reply, run_id)
        now_ms = time_ms(time) if self.clock is None else self.clock.now_ms()
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
