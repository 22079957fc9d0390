"""Drops records of the hot tier, and says which bytes of theirs Redis still has.

Redis keeps up to ``stream-node-max-entries`` entries in one piece of memory. It marks those that
are deleted or trimmed, and frees the piece once all of them are. Until then `DUMP`, a replica and
the files on disk have their bytes, though no reader is given them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec import Struct

from ..base.clock import Clock
from ..codec import EntryId
from ..codec.entry import GAP_FIELD
from ..errors import HotTierUnavailableError, LakelogError, OffsetOutOfRangeError
from ..values.offsets import HotOffsets
from ..values.topic_partition import TopicPartition
from .connection import Servers, by_name, call_script
from .declared import check_topic_id, unknown_partition
from .keys import Keys


class Trimmer:
    """Drops records of one keyspace, by archivers' word or by retention."""

    def __init__(self, servers: Servers, keys: Keys, clock: Clock | None) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock

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
            reply = by_name(reply)
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


class StreamNodes(Struct, frozen=True):
    """What XINFO tells of a stream's nodes."""

    count: int = 0
    has_gone: bool = False  # entries are gone, so that the first node may have some of them
    has_gone_amid: bool = False  # one that was no first one is: any node may

    @classmethod
    def of(cls, fields: Mapping[bytes, Any]) -> StreamNodes:
        """From the answer, by name."""
        first = fields[b"first-entry"]
        if not isinstance(first, (list, tuple)):
            return cls()  # no entries, no nodes
        # Trimming moves the first entry and leaves this id: XDEL alone sets it.
        deleted = fields[b"max-deleted-entry-id"]
        return cls(
            fields[b"radix-tree-keys"],
            fields[b"entries-added"] > fields[b"length"],
            _order(deleted) > _order(first[0]),
        )


def _order(entry_id: bytes) -> tuple[int, ...]:
    return tuple(int(part) for part in entry_id.split(b"-"))
