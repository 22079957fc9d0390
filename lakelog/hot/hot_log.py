"""The hot tier: a Redis Stream per topic-partition, composed of append, fetch, search and trim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from msgspec import Struct

from ..base.clock import Clock
from ..base.once_a_process import OnceAProcess
from ..base.secret_reference import resolve_secret
from ..codec import EntryId, ProducedBatch
from ..codec.entry import GAP_FIELD
from ..errors import (
    HotTierAccessError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    NotEnoughReplicasAfterAppendError,
    OffsetOutOfRangeError,
    RecoveryNeededError,
    TrimmedError,
)
from ..values.config import MIB
from ..values.offsets import HotOffsets, HotSegments, check_offset
from ..values.record import Fetched, OffsetAndTimestamp
from ..values.topic import STATUS_TABLE, Topic
from ..values.topic_partition import TopicPartition
from . import time_index
from .allowance import Allowances
from .append import (
    MEMORY,
    Acks,
    AppendCall,
    AppendResult,
    append_arguments,
    check_call,
    read_answer,
)
from .append_looks import AppendLooks
from .archived_into import ArchivedIntoRegister, OpenedTable, check_own
from .beats import Beats
from .cleanups import Cleanups
from .clock_skew import time_ms
from .cold_quota import ColdQuota
from .connection import (
    Command,
    Server,
    Servers,
    by_server,
    call_script,
    connect,
    mask,
    translate,
)
from .fetch import Fetcher, check_topic_id, unknown_partition
from .glance import Glancer
from .inspection import Inspection
from .keys import DEFAULT_KEYSPACE, Keys
from .lock import Lock
from .memory_use import COMMAND, MemoryUse
from .mending import Mending
from .persistence import Persistence, rewrite_persistence
from .rebuilding import Rebuilding
from .recovery import Recovery, Reserve
from .registry import Copies, TopicRegistry
from .segments_look import SegmentsLook
from .server_info import ServerInfo, server_info
from .skip import HotSkips
from .stream_nodes import StreamNodes
from .waits import Waits
from .waker import Waker

READ_STEP_BYTES = 8 * MIB
REPLICA_TIMEOUT_MS = 5_000


class HotLog:
    """Appends to, reads and trims the streams of one keyspace.

    Thread-safe. Every error of Redis comes out as one of lakelog's; see `connection.translate`.

    Args:
        servers: from `connection.connect`.
        keyspace: what the keys begin with.
        clock: only for tests; without one the scripts ask Redis for the time.
    """

    def __init__(
        self, servers: Servers, keyspace: str = DEFAULT_KEYSPACE, clock: Clock | None = None
    ) -> None:
        self._servers = servers
        self._keys = Keys(keyspace)
        self._clock = clock
        self._fetcher = Fetcher(servers, self._keys)
        self._segments_look = SegmentsLook(servers, self._keys, clock)
        self._recovery = Recovery(servers, self._keys, clock)
        self._allowances = Allowances(servers, self._keys, self.topics().list, clock)
        self._looks = AppendLooks()
        self._fsync_checked: set[int] = set()
        self._waits = Waits(servers, self._keys, self._ahead)

    @classmethod
    def connect(
        cls,
        url: str,
        keyspace: str = DEFAULT_KEYSPACE,
        *,
        password: str | None = None,
        clock: Clock | None = None,
    ) -> HotLog:
        """A hot log on the server or cluster behind a URL (see `connection.connect`)."""
        return cls(connect(url, password), keyspace, clock)

    @property
    def keyspace(self) -> str:
        return self._keys.keyspace

    @property
    def connections(self) -> Servers:
        """The servers it goes by, for what has scripts of its own there."""
        return self._servers

    def topics(self, copies: Copies | None = None) -> TopicRegistry:
        """The topics of this keyspace.

        Args:
            copies: see `TopicRegistry`.
        """
        return TopicRegistry(self._servers, self._keys, self._clock, copies)

    def renewed(self, topic: Topic) -> Topic:
        """See `TopicRegistry.renewed`."""
        return self.topics().renewed(topic)

    def skips(self, topic_partition: TopicPartition, topic_id: UUID) -> HotSkips:
        """The entries of a partition that were skipped, and the way to do it."""
        return HotSkips(self._servers, self._keys, topic_partition, topic_id)

    def inspection(self) -> Inspection:
        """What the keys hold, sound or damaged."""
        return Inspection(self._servers, self._keys)

    def mending(self) -> Mending:
        """Rights what the keys say of the entries; see `lakelog.operate.check`."""
        return Mending(self._servers, self._keys)

    def rebuilding(self) -> Rebuilding:
        """Rebuilds what the keys say of the entries, where a key is gone."""
        return Rebuilding(self._servers, self._keys)

    # -- append --------------------------------------------------------------------------------

    def append(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        batch: ProducedBatch,
        *,
        sent_under: str | None = None,
        acks: Acks = MEMORY,
    ) -> AppendResult:
        """Appends one produced batch and returns where it went.

        Raises:
            LakelogError: see `append_all`.
        """
        (result,) = self.append_all(
            [AppendCall(topic_partition, topic_id, batch, sent_under)], acks
        )
        if isinstance(result, LakelogError):
            raise result
        return result

    def append_all(
        self, calls: Sequence[AppendCall], acks: Acks = MEMORY
    ) -> list[AppendResult | LakelogError]:
        """Appends calls in order, pipelined: one round trip for each server.

        An error stands in its call's place and stops no other call, but later calls of the same
        partition will then be out of order. Unless the error is `HotTierUnavailableError` with
        ``sent=True`` or `NotEnoughReplicasAfterAppendError`, nothing of its call was written.

        Under quotas of the keyspace, the trip is still one while a partition's allowance lasts; see
        `allowance`.
        """
        return self._allowances.append(calls, lambda chosen: self._append_all(chosen, acks))

    def _append_all(
        self, calls: Sequence[AppendCall], acks: Acks
    ) -> list[AppendResult | LakelogError]:
        now_ms = None if self._clock is None else self._clock.now_ms()
        results: dict[int, AppendResult | LakelogError] = {}
        left = list(range(len(calls)))
        for attempt in range(3):
            of_server: dict[int, tuple[Server, list[int]]] = {}
            for index in left:
                try:
                    check_call(calls[index])
                    stream = self._keys.partition(calls[index].topic_partition).stream
                    server = self._servers.for_key(stream)
                except LakelogError as error:
                    results[index] = error
                else:
                    of_server.setdefault(id(server), (server, []))[1].append(index)
            for server, indexes in of_server.values():
                answers = self._append_on(server, [calls[i] for i in indexes], acks, now_ms)
                results.update(zip(indexes, answers, strict=True))
            # A slot that moved to another server takes all later calls of a partition with it, so
            # asking there keeps their order.
            left = [i for i in left if getattr(results[i], "moved", False)]
            if not left or attempt == 2 or not self._refreshed():
                break
        return [results[index] for index in range(len(calls))]

    def _refreshed(self) -> bool:
        try:
            self._servers.refresh()
        except HotTierUnavailableError:
            return False
        return True

    def _append_on(
        self, server: Server, calls: Sequence[AppendCall], acks: Acks, now_ms: int | None
    ) -> list[AppendResult | LakelogError]:
        confirm: list[Command] = []
        wait_ms = 0
        if acks.replicas:
            wait_ms = server.block_ms(REPLICA_TIMEOUT_MS)
            # WAIT covers the writes of its own connection, so it follows them on the same one.
            confirm.append(("WAIT", acks.replicas, wait_ms))
        elif acks.fsync:
            confirm.append(
                ("CONFIG", "GET", "appendfsync")
            )  # whether it still holds for these writes
        try:
            if acks.fsync:
                self._check_fsync(server)
            scripts = [
                (
                    "append",
                    self._keys.partition(call.topic_partition).all(),
                    append_arguments(call, now_ms, acks.replicas),
                )
                for call in calls
            ]
            look = self._looks.begin(server, sum(call.batch.size_bytes for call in calls))
            run_id, replies = server.run_scripts(scripts, [*confirm, *look.commands])
        except LakelogError as error:
            return [error] * len(calls)
        then = replies[len(scripts) :]
        confirmation = then[0] if confirm else None
        self._looks.end(server, look, then[len(confirm) :])
        memory = self._looks.memory(server)
        results: list[AppendResult | LakelogError] = []
        for call, reply in zip(calls, replies[: len(scripts)], strict=True):
            try:
                if isinstance(reply, Exception):
                    stream = self._keys.partition(call.topic_partition).stream
                    raise translate(reply, server.name, stream)
                result = read_answer(call, reply, run_id, memory)
                if acks.replicas:
                    _check_replicas(result, confirmation, acks, call.topic_partition, wait_ms)
                elif acks.fsync and not _says(confirmation, b"always"):
                    self._fsync_checked.discard(id(server))
                    raise _not_synced(result, call.topic_partition)
                results.append(result)
            except LakelogError as error:
                if isinstance(error, RecoveryNeededError) and error.reserved_end is not None:
                    self._recovery.refused(call.topic_partition, call.batch.record_count)
                results.append(error)
        return results

    def _check_fsync(self, server: Server) -> None:
        if id(server) in self._fsync_checked:
            return
        needed = {
            "appendonly": b"yes",
            "appendfsync": b"always",
            "no-appendfsync-on-rewrite": b"no",
        }
        try:
            replies = server.call(*(("CONFIG", "GET", name) for name in needed))
        except (HotTierUnavailableError, HotTierAccessError):
            raise
        except LakelogError as error:
            raise InvalidArgumentError(
                f"acks='fsync' asks for settings of {server.name}, which tells none, as where "
                f"somebody else runs it ({error.message}); use acks='memory' or 'replicas=N'"
            ) from error
        if not all(map(_says, replies, needed.values())):
            raise InvalidArgumentError(
                "acks='fsync' needs appendonly yes, appendfsync always and "
                f"no-appendfsync-on-rewrite no on {server.name}; set them, or use acks='memory' or "
                "'replicas=N'"
            )
        self._fsync_checked.add(id(server))

    # -- look ----------------------------------------------------------------------------------

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
            use = MemoryUse.of(server.call(COMMAND)[0])
            found |= dict.fromkeys(group, 0.0 if use is None else use.percent)
        return found

    def rewrite_persistence(self) -> list[Persistence]:
        """Has each server write its files on disk anew, without what was trimmed.

        Raises:
            HotTierUnavailableError: one does not answer.
        """
        return [rewrite_persistence(server) for server in self._servers.all()]

    def holds_entries(self, topic_partition: TopicPartition) -> bool:
        """Whether the stream has any entry, be it only one that stands for a gap.

        Raises:
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
        """
        return bool(self._first_entry(topic_partition, "-", "+"))

    def holds_unread(self, topic_partition: TopicPartition, seen: HotOffsets) -> bool:
        """Whether the stream holds records that no reader is given: of its oldest entry, which goes
        when all of it may, or what half a transaction left in a gap.

        Args:
            seen: where the records begin that readers are given, and the gaps.

        Raises:
            ForeignEntryError: the oldest entry is none of lakelog's.
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
        """
        oldest = self._first_entry(topic_partition, "-", "+")
        if oldest and EntryId.parse(oldest[0].decode()).base_offset < seen.local_log_start:
            return True
        # A gap's own entry is its last.
        ranges = [(gap.start, gap.end - 1) for gap in seen.gaps if gap.end > seen.local_log_start]
        firsts = (self._first_entry(topic_partition, *ends) for ends in ranges)
        return any(entry and entry[1][0] != GAP_FIELD for entry in firsts)

    def nodes(self, topic_partition: TopicPartition) -> StreamNodes | None:
        """The nodes in which Redis keeps the entries; None: it does not tell.

        Raises:
            HotTierUnavailableError: Redis does not answer.
        """
        stream = self._keys.partition(topic_partition).stream
        try:
            reply = self._servers.for_key(stream).call(("XINFO", "STREAM", stream))[0]
            if not isinstance(reply, dict):  # a flat list, in the older of redis-py's protocols
                reply = dict(zip(reply[::2], reply[1::2], strict=True))
            return StreamNodes.of(reply)
        except HotTierUnavailableError:
            raise
        except (LakelogError, KeyError):  # no rights to it, no such command, or not these fields
            return StreamNodes() if not self.holds_entries(topic_partition) else None

    def end_of_first(self, topic_partition: TopicPartition, entries: int) -> int:
        """The offset at which so many of the oldest entries end; 0: there are none.

        Raises:
            ForeignEntryError: the last of them is none of lakelog's.
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
        """
        stream = self._keys.partition(topic_partition).stream
        command = ("XRANGE", stream, "-", "+", "COUNT", entries)
        found = self._servers.for_key(stream).call(command)[0]
        return EntryId.parse(found[-1][0].decode()).last_offset + 1 if found else 0

    def _first_entry(
        self, topic_partition: TopicPartition, start: int | str, end: int | str
    ) -> Any | None:
        stream = self._keys.partition(topic_partition).stream
        command = ("XRANGE", stream, start, end, "COUNT", 1)
        found = self._servers.for_key(stream).call(command)[0]
        return found[0] if found else None

    def glancers(self) -> list[Glancer]:
        """One for each server, to look at many partitions again and again."""
        return [
            Glancer(self._servers, server, self._keys, self._clock)
            for server in self._servers.all()
        ]

    @contextmanager
    def naming(self, topic: Topic) -> Iterator[None]:
        """To be held while a topic's table or views are made in a catalog.

        Not every catalog refuses the second of two names that are made at once: open-source Unity
        Catalog then has both, and answers no question about either any more. And who planned to
        make the table of a topic that was purged meanwhile would take the name from the next one.

        Raises:
            UnknownTopicIdError: on entry: it was deleted, and perhaps created again.
        """
        what = f"making the table or the views of topic {topic.name!r}"
        with Lock(self._servers, self._keys.naming_lock(topic.topic_id), what):
            self.topics().renewed(topic)
            yield

    def naming_status(self) -> Lock:
        """As `naming`, of the table of job runs."""
        return Lock(self._servers, self._keys.naming_lock(STATUS_TABLE), f"making {STATUS_TABLE}")

    def archived_into(self) -> ArchivedIntoRegister:
        """Which tables topics are archived into."""
        return ArchivedIntoRegister(self._servers, self._keys)

    def check_own(self, topic: Topic, table: OpenedTable) -> None:
        """Refuses a table that is not the topic's own. Changes nothing.

        Raises:
            ArchivedElsewhereError: the topic is archived into another one.
            UnknownTopicIdError, UnknownTopicOrPartitionError: the topic was dropped.
            ColdTierError: from the table.
        """
        first = topic.partition(0)
        seen = self.offsets([first], topic_id=topic.topic_id)[first]
        check_own(topic, table, seen.archived_into)

    def cold_quota(self) -> ColdQuota:
        """What the tables of the topics take together, and may take."""
        return ColdQuota(self._servers, self._keys)

    def beats(self) -> Beats:
        """What live archivers say of themselves."""
        return Beats(self._servers, self._keys)

    def cleanups(self) -> Cleanups:
        """What cleanups have counted."""
        return Cleanups(self._servers, self._keys)

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
        return self._segments_look.offsets(topic_partitions, topic_id, calls)

    def segments(
        self,
        topic_partitions: Iterable[TopicPartition],
        *,
        start: Mapping[TopicPartition, int] | None = None,
        oldest: int = 0,
        topic_id: UUID | Mapping[str, UUID] | None = None,
        calls: int = 0,
    ) -> dict[TopicPartition, HotSegments]:
        """As `offsets`, with the partitions' segments: all, or those that are asked for.

        Up to `segments_look.PAGE` of a partition take a round trip for each server.

        Args:
            start: an offset of each partition, to leave out segments that lie wholly below.
            oldest: so many of those below, the oldest, are told all the same.
            topic_id, calls: as for `offsets`.

        Raises: as `offsets`.
        """
        return self._segments_look.segments(topic_partitions, start, oldest, topic_id, calls)

    def read(
        self,
        topic_partition: TopicPartition,
        start_offset: int,
        end_offset: int | None = None,
        *,
        max_bytes: int = READ_STEP_BYTES,
        lead_bytes: int | None = None,
        topic_id: UUID | None = None,
        before_large: Callable[[], None] = lambda: None,
    ) -> Iterator[Fetched]:
        """Reads from ``start_offset`` to the log end, or to ``end_offset`` if that comes first.

        Args:
            max_bytes: how many decoded bytes a step may bring, and about how many stored ones a
                round trip; at least one entry.
            lead_bytes: as `max_bytes`, of the steps of the first round trip: less for who wants
                little, as each is decoded when it is asked for. Default: the same.
            topic_id: refuse to read another creation of the topic.
            before_large: called before an entry is decoded that alone is more than `max_bytes`.

        Yields:
            Steps that follow each other; their records are `RECORDS`.

        Raises:
            TrimmedError: the next offset was trimmed, perhaps since the step before.
            CorruptRecordError: an entry is damaged, missing or not ours; names topic-partition and
                entry.
            UnknownTopicIdError: the topic was dropped.
        """
        return self._fetcher.read(
            topic_partition,
            start_offset,
            end_offset,
            max_bytes=max_bytes,
            lead_bytes=lead_bytes,
            topic_id=topic_id,
            before_large=before_large,
        )

    def offset_for_timestamp(
        self, topic_partition: TopicPartition, timestamp_ms: int, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        """The earliest hot offset whose timestamp is at or after the target, or None."""
        keys = self._keys.partition(topic_partition)
        after = ""
        while True:  # as often as the segments take
            arguments = time_index.arguments(timestamp_ms, topic_id, after)
            answer = call_script(self._servers, "find_timestamp", keys.all(), arguments)
            if answer[0] != b"MORE":
                break
            after = answer[1].decode()
        if answer[0] == b"UNKNOWN_TOPIC_ID":
            check_topic_id(topic_partition, answer[1], topic_id)
        if answer[0] == b"NONE":
            return None
        try:
            return time_index.first_at_or_after(
                lambda offset: self.read(
                    topic_partition, offset, max_bytes=MIB, lead_bytes=1, topic_id=topic_id
                ),
                answer[1],
                timestamp_ms,
            )
        except TrimmedError:  # between the two looks; the log start only grows, so this ends
            return self.offset_for_timestamp(topic_partition, timestamp_ms, topic_id=topic_id)

    def max_timestamp(
        self, topic_partition: TopicPartition, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        """The first of the hot records that carry the largest timestamp, None if there are none."""
        offsets = self.offsets([topic_partition], topic_id=topic_id)[topic_partition]
        if offsets.local_log_start >= offsets.log_end:
            return None
        for top in self._largest_timestamps(topic_partition, offsets, topic_id):
            found = self.offset_for_timestamp(topic_partition, max(top, 0), topic_id=topic_id)
            if found is not None:
                return found
        try:
            # The largest was in a trimmed part of a segment, or no record has a timestamp.
            return time_index.largest(
                lambda offset: self.read(topic_partition, offset, topic_id=topic_id),
                offsets.local_log_start,
            )
        except TrimmedError:  # as above
            return self.max_timestamp(topic_partition, topic_id=topic_id)

    def _largest_timestamps(
        self, topic_partition: TopicPartition, offsets: HotOffsets, topic_id: UUID | None
    ) -> Iterator[int]:
        """The largest timestamp of all, and if that one was trimmed, the largest there is."""
        yield offsets.max_timestamp_ms
        seen = self.segments([topic_partition], topic_id=topic_id)[topic_partition]
        yield max(segment.max_timestamp_ms for segment in seen.segments)

    def wait(
        self,
        positions: Mapping[TopicPartition, int],
        timeout_ms: int,
        waker: Waker | None = None,
    ) -> set[TopicPartition]:
        """Blocks until a partition has something at or above its position, or the time is over.

        Args:
            waker: ends the wait as well.

        Returns:
            The partitions that have; empty when the time is over.
        """
        return self._waits.wait(positions, timeout_ms, waker)

    def _ahead(self, positions: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        found = self.offsets(positions)
        return {tp for tp, offsets in found.items() if offsets.log_end > positions[tp]}

    # -- change --------------------------------------------------------------------------------

    def trim(
        self,
        topic_partition: TopicPartition,
        before_offset: int,
        *,
        archived_end: int | None = None,
        planned_at_ms: int | None = None,
        drop_unread: bool = False,
        topic_id: UUID | None = None,
    ) -> None:
        """Drops hot records below an offset; the local log start only grows.

        The caller guarantees that the cold tier holds them, or that they lie below the log
        start. A partition that is untiered by now is left as it is.

        Args:
            archived_end: below it nothing is left to archive, noted for the flush policy; see
                `HotOffsets.settled_end`.
            planned_at_ms: the server's time before which everything appended is now archived.
            drop_unread: also what half a transaction left in gaps above; see `holds_unread`.

        Raises:
            UnknownTopicIdError: the topic was dropped; nothing was trimmed.
            OffsetOutOfRangeError: above the log end of a server that lost nothing.
        """
        how = (archived_end, planned_at_ms, "1" if drop_unread else None)
        self._trim(topic_partition, topic_id, before_offset, None, *how)

    def raise_log_start(
        self, topic_partition: TopicPartition, offset: int, *, topic_id: UUID | None = None
    ) -> None:
        """Makes ``offset`` the log start of an untiered partition and drops what lies below.

        Raises:
            UnknownTopicIdError: the topic was dropped; nothing was changed.
            OffsetOutOfRangeError: above the log end.
        """
        self._trim(topic_partition, topic_id, offset, offset, None, None, None)

    def _trim(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID | None,
        before_offset: int,
        *more: object,
    ) -> None:
        keys = self._keys.partition(topic_partition)
        arguments: list[Any] = [
            "" if value is None else value
            for value in (None if topic_id is None else str(topic_id), before_offset, *more)
        ]
        while True:  # as often as the segments take
            answer = call_script(self._servers, "trim", keys.all(), arguments)
            if answer[0] != b"MORE":
                break
        if answer[0] == b"UNKNOWN_TOPIC_ID":
            check_topic_id(topic_partition, answer[1], topic_id)
        if answer[0] == b"OUT_OF_RANGE":
            local_log_start, log_end = answer[1:]
            raise OffsetOutOfRangeError(
                f"{topic_partition} cannot be trimmed to offset {before_offset}: the hot tier "
                f"holds [{local_log_start}, {log_end}), and what is appended next would lie below "
                f"its start. Trim to {log_end} at most",
                topic_partition=topic_partition,
                offset=before_offset,
                log_start=local_log_start,
                log_end=log_end,
            )

    def roll(self, topic_partition: TopicPartition, log_end: int, topic_id: UUID) -> bool:
        """Begins a new segment after retention deleted all of the open one.

        Returns:
            False if something was appended since, or there is nothing to roll.
        """
        keys = self._keys.partition(topic_partition)
        now = "" if self._clock is None else self._clock.now_ms()
        arguments = [str(topic_id), log_end, now]
        return bool(call_script(self._servers, "roll", keys.all(), arguments))

    def retain(self, topic_partition: TopicPartition, *, when_due: bool = False) -> int:
        """Applies write-time retention to an untiered partition that is idle, or in a full Redis.

        Args:
            when_due: what is older than ``retention.ms`` goes only if
                ``log.retention.check.interval.ms`` have passed since the last check, as in an
                append; otherwise at once.

        Returns:
            The log start. A tiered partition is left as it is.
        """
        keys = self._keys.partition(topic_partition)
        now = "" if self._clock is None else self._clock.now_ms()
        while True:
            arguments = [now, int(when_due)]
            log_start, has_more = call_script(self._servers, "retain", keys.all(), arguments)
            if log_start < 0:
                raise unknown_partition(topic_partition)
            if not has_more:
                return int(log_start)

    def recover(
        self,
        topic_partition: TopicPartition,
        at_least: int,
        reserve: Reserve | None = None,
        *,
        topic_id: UUID | None = None,
        waits: bool = True,
    ) -> HotOffsets:
        """`recover_all` of one partition; returns its offsets."""
        self.recover_all({topic_partition: at_least}, reserve, topic_id=topic_id, waits=waits)
        return self.offsets([topic_partition])[topic_partition]

    def recover_all(
        self,
        at_least: Mapping[TopicPartition, int],
        reserve: Reserve | None = None,
        *,
        topic_id: UUID | None = None,
        waits: bool = True,
    ) -> None:
        """Settles partitions whose server may have lost its tail, or that ran out of offsets.

        Nothing happens to one that this run of the server has written already, whose log end is at
        or above ``at_least`` and which has offsets left. After a clean stop it goes on where it
        was. Otherwise a gap entry spans every offset that may have been handed out, so that none
        names two records.

        Args:
            at_least: one past the highest offset the caller knows to have been used (its own
                appends, the archived end), by partition.
            reserve: reserves offsets in the cold tier, at or above one for each partition, and
                raises if it cannot; see `lakelog.reservation`. None: there is no cold tier, so that
                the time since the last append bounds what may have been handed out.
            topic_id: refuse to settle another creation of the topic.
            waits: whether to wait, two minutes at most, while somebody else takes the server over.

        Raises:
            ConcurrentChangeError: somebody else takes it over; some partitions may be settled.
            UnknownTopicIdError: the topic was dropped; nothing was changed.
        """
        ends = {tp: check_offset(offset) for tp, offset in at_least.items()}
        self._recovery.recover(ends, reserve, topic_id, waits=waits)

    def reserve_more(
        self, topic_partition: TopicPartition, reserve: Reserve, topic_id: UUID
    ) -> None:
        """Reserves offsets in the cold tier although enough are left.

        What archivers have copied of the partition so far can no longer be committed (see
        `cold.planned`).

        Args:
            reserve: as for `recover_all`.
            topic_id: that of the topic's creation.

        Raises:
            UnknownTopicIdError: the topic was dropped.
        """
        seen = self.offsets([topic_partition], topic_id=topic_id)[topic_partition]
        wanted = seen.wanted()
        self._recovery.reserve_more(topic_partition, seen.reserved_end, wanted, reserve, topic_id)

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Refuses appends and marks the partitions clean, before a planned stop of the server.

        Raises:
            RecoveryNeededError: one has not been recovered since the last stop; all others were
                paused.
        """
        self._recovery.pause(topic_partitions)

    def pause_each(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LakelogError]:
        """As `pause`, and returns the partitions that were not paused, with the reason."""
        return self._recovery.pause_each(topic_partitions)

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> bool:
        """Accepts appends again, after a clean stop or instead of one.

        Returns:
            False if the server does not let us make sure of its disk (``CONFIG SET appendfsync``
            and an append-only file); the partitions are then left to `recover`, with a gap.

        Raises:
            RecoveryNeededError: one has no clean mark; all others go on.
        """
        return self._recovery.resume(topic_partitions)

    def resume_each(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LakelogError | None]:
        """As `resume`, and returns the partitions that do not go on.

        With the reason each; None: the server does not let us make sure of its disk.
        """
        return self._recovery.resume_each(topic_partitions)

    def close(self) -> None:
        """Closes the connections."""
        self._servers.close()


def _check_replicas(
    result: AppendResult,
    replicas: Any,
    acks: Acks,
    topic_partition: TopicPartition,
    wait_ms: int,
) -> None:
    if not isinstance(replicas, int) or replicas < acks.replicas:
        got = replicas if isinstance(replicas, int) else 0
        raise NotEnoughReplicasAfterAppendError(
            f"{topic_partition}: written at offset {result.base_offset}, but {got} of "
            f"{acks.replicas} replicas confirmed it within {wait_ms} ms; whether it "
            "survives a failover is unknown. Resend it to ask again, or check the replicas",
            result=result,
            replicas=got,
        )


def _not_synced(
    result: AppendResult, topic_partition: TopicPartition
) -> NotEnoughReplicasAfterAppendError:
    return NotEnoughReplicasAfterAppendError(
        f"{topic_partition}: written at offset {result.base_offset}, but the server no longer runs "
        "with appendfsync always, so whether it is on disk is unknown. Set it and resend the call",
        result=result,
        replicas=0,
    )


def _says(reply: Any, value: bytes) -> bool:
    """Whether a reply of CONFIG GET (a list, or a map under RESP3) gives that value."""
    values = list(reply.values()) if isinstance(reply, dict) else reply[1:] if reply else []
    return values == [value]


class HotSource(Struct, frozen=True):
    """How to open a hot log elsewhere: what travels to Spark's executors.

    ``password_ref`` names where the password is, so that it need not travel (see
    `secret_reference`): the process that opens reads it. The URL is shown without its password.
    """

    url: str
    keyspace: str = DEFAULT_KEYSPACE
    password_ref: str | None = None

    def open(self) -> HotLog:
        """The hot log; each process has one for each source.

        Raises:
            InvalidArgumentError, MissingExtraError: the reference names nothing that can be read.
        """
        return _OPEN.get(self, self.connect)

    def connect(self, clock: Clock | None = None) -> HotLog:
        """A new hot log for the caller alone; see `HotLog`."""
        return HotLog.connect(self.url, self.keyspace, password=self.password(), clock=clock)

    def password(self) -> str | None:
        """The password that the reference names, as this process sees it; None without one.

        Raises:
            InvalidArgumentError, MissingExtraError: see `resolve_secret`.
        """
        if self.password_ref is None:
            return None
        return resolve_secret(self.password_ref, "password_ref")

    def __str__(self) -> str:
        return mask(self.url)

    def __repr__(self) -> str:
        return f"HotSource({str(self)!r}, {self.keyspace!r}, {self.password_ref!r})"


_OPEN: OnceAProcess[HotSource, HotLog] = OnceAProcess()
