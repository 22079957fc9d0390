"""What a change of server means: recover a lost tail, or hand over after a planned stop.

A partition's ``:state`` names the run of the server under which it was last written. Another run
may have lost the tail, so its first append is refused until `recover` has settled the partition:
by a gap entry over every offset that may have been handed out, or, when the last run left a clean
mark, by taking the partition over as it is.

The clean mark must be gone *from disk* before anything is appended. Otherwise a crash could bring
the mark back without the records, and their offsets would be used twice. Only ``appendfsync
always`` promises that a reply means "on disk" (WAITAOF was seen to answer before), so the server is
switched to it for that moment, under a lock. Where that is not allowed, there is a gap instead.

A gap ends where the cold tier reserved offsets for what follows (see `lakelog.reservation`). Where
there is no cold tier, the gap itself is synced to the disk in that same way before anything is
appended after it; where that is not allowed, the log goes on all the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from ..base.clock import Clock
from ..errors import (
    HotTierUnavailableError,
    LakelogError,
    RecoveryNeededError,
    UnknownTopicOrPartitionError,
)
from ..values import reservation
from ..values.offsets import check_offset
from ..values.producer_calls import ProducerCall
from ..values.reservation import Reserved, Wanted
from ..values.topic_partition import TopicPartition
from .append import recovery_needed
from .connection import Server, Servers, by_server, call_script
from .declared import check_topic_id, unknown_partition
from .keys import Keys
from .lock import Lock

#: Reserves offsets for partitions.
Reserve = Callable[[Mapping[TopicPartition, Wanted]], Mapping[TopicPartition, Reserved]]

#: Partitions that take a step of a planned stop in one round trip.
_TOGETHER = 256


class Recovery:
    """Settles partitions after the server changed, and prepares planned stops."""

    def __init__(self, servers: Servers, keys: Keys, clock: Clock | None) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock
        self._refused: dict[TopicPartition, int] = {}

    def refused(self, topic_partition: TopicPartition, records: int) -> None:
        """Notes that a call found too few offsets, so that the next recovery makes room for it."""
        self._refused[topic_partition] = records

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
        for offset in at_least.values():
            check_offset(offset)
        room = reservation.least_room(reservation.FIRST_OFFSETS, 0)
        ask = ("",) if reserve is None else ("ask", room)
        asked = {
            tp: self._settle(tp, end, topic_id, *ask, waits=waits) for tp, end in at_least.items()
        }
        while reserve is not None:
            # Only after each has named its run: the offsets are for that run alone.
            runs = {tp: answer for tp, answer in asked.items() if answer[0] == b"RESERVE"}
            if not runs:
                break
            reserved = reserve(
                {
                    tp: Wanted(int(least), int(offsets) if offsets else None)
                    for tp, (_, least, _, offsets) in runs.items()
                }
            )
            asked = {
                tp: self._settle(
                    tp,
                    at_least[tp],
                    topic_id,
                    *reserved[tp].offsets,
                    run_id,
                    *_archived_calls(reserved[tp].calls),
                    waits=waits,
                )
                for tp, (_, _, run_id, _) in runs.items()
            }
        for tp in at_least:
            self._refused.pop(tp, None)

    def reserve_more(
        self,
        topic_partition: TopicPartition,
        reserved_end: int | None,
        wanted: Wanted,
        reserve: Reserve,
        topic_id: UUID,
    ) -> None:
        """Reserves more although enough is left; see `HotLog.reserve_more`."""
        more = reserve({topic_partition: wanted})[topic_partition].offsets
        if more.start == reserved_end:
            # Asked for without a run, so that it extends the reservation or does nothing.
            self._recover(topic_partition, 0, (str(topic_id), *more, ""), adopt=False)

    def _settle(
        self,
        tp: TopicPartition,
        at_least: int,
        topic_id: UUID | None,
        *more: object,
        waits: bool,
    ) -> list[Any]:
        """One step of a recovery; returns the script's answer."""
        given = ("" if topic_id is None else str(topic_id), *more)
        answer = self._recover(tp, at_least, given, adopt=True)
        if answer[0] == b"CLEAN":
            if self.resume([tp], waits=waits):
                return answer
            answer = self._recover(tp, at_least, given, adopt=False)
        if answer[0] == b"UNSYNCED" and not self.resume([tp], waits=waits):
            self._step(tp, "resume")
        return answer

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Refuses appends and leaves the clean mark, for a planned stop of the server.

        Raises:
            RecoveryNeededError: a partition has not been recovered since the last stop; all others
                were paused.
        """
        for refused in self.pause_each(topic_partitions).values():
            raise refused

    def pause_each(
        self, topic_partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, LakelogError]:
        """As `pause`, and returns the partitions that were not paused, with the reason."""
        refused: dict[TopicPartition, LakelogError] = {}
        for server, group in by_server(self._servers, topic_partitions, self._keys.stream):
            refused |= self._step_each(server, group, "pause")
        return refused

    def resume(self, topic_partitions: Iterable[TopicPartition], *, waits: bool = True) -> bool:
        """Takes partitions over after a clean stop (or ends a pause) without a gap.

        Args:
            waits: while somebody else does this.

        Returns:
            False if the server does not let us make sure that its disk has the change; the
            partitions are then left to `recover`, with a gap.

        Raises:
            ConcurrentChangeError: somebody else does this.
            RecoveryNeededError: a partition has no clean mark; all others go on.
        """
        left = self.resume_each(topic_partitions, waits=waits)
        for refused in left.values():
            if refused is not None:
                raise refused
        return not left

    def resume_each(
        self, topic_partitions: Iterable[TopicPartition], *, waits: bool = True
    ) -> dict[TopicPartition, LakelogError | None]:
        """As `resume`, and returns the partitions that do not go on.

        With the reason each; None: the server does not let us make sure of its disk.
        """
        left: dict[TopicPartition, LakelogError | None] = {}
        for server, group in by_server(self._servers, topic_partitions, self._keys.stream):
            left |= self._resume(server, group, waits=waits)
        return left

    def _resume(
        self, server: Server, topic_partitions: list[TopicPartition], *, waits: bool
    ) -> dict[TopicPartition, LakelogError | None]:
        key, what = self._lock_key(server), f"resuming {server.name}"
        with Lock(self._servers, key, what, waits=waits):
            try:
                fsync = _setting(server, "appendfsync")
                allowed = (
                    _setting(server, "appendonly") == "yes"
                    # else a rewrite of the file would suspend the syncs
                    and _setting(server, "no-appendfsync-on-rewrite") == "no"
                )
                if allowed and fsync != "always":
                    server.call(("CONFIG", "SET", "appendfsync", "always"))
            except HotTierUnavailableError:
                raise
            except LakelogError:
                allowed = False
            if not allowed:
                refused = self._step_each(server, topic_partitions, "unmark")
                return {**dict.fromkeys(topic_partitions), **refused}
            try:
                refused = self._step_each(server, topic_partitions, "unmark")
                # It may have been set back meanwhile (by a holder whose lock expired).
                allowed = _setting(server, "appendfsync") == "always"
            finally:
                if fsync != "always":
                    server.call(("CONFIG", "SET", "appendfsync", fsync))
            unmarked = [tp for tp in topic_partitions if tp not in refused]
            if not allowed:
                return {**dict.fromkeys(unmarked), **refused}
            return {**refused, **self._step_each(server, unmarked, "resume")}

    def _lock_key(self, server: Server) -> str:
        """The key of the server's lock: the same for all callers, and held by that server."""
        return next(
            key
            for key in map(self._keys.resume_lock, itertools.count())
            if self._servers.for_key(key) is server
        )

    def _recover(
        self,
        topic_partition: TopicPartition,
        at_least: int,
        given: tuple[object, ...],
        *,
        adopt: bool,
    ) -> list[Any]:
        keys = self._keys.partition(topic_partition)
        now = "" if self._clock is None else self._clock.now_ms()
        topic_id, *more = given
        cursor: object = 0
        while True:  # as often as the producers take
            few = reservation.FIRST_OFFSETS, self._refused.get(topic_partition, 0)
            arguments = [at_least, int(adopt), now, topic_id, cursor, *few, *more]
            answer: list[Any] = call_script(self._servers, "recover", keys.all(), arguments)
            if answer[0] != b"PRODUCERS":
                break
            cursor = answer[1]
        if answer[0] == b"UNKNOWN_TOPIC_OR_PARTITION":
            raise unknown_partition(topic_partition)
        if answer[0] == b"UNKNOWN_TOPIC_ID":
            check_topic_id(topic_partition, answer[1], UUID(str(given[0])))
        return answer

    def _step_each(
        self, server: Server, topic_partitions: Sequence[TopicPartition], verb: str
    ) -> dict[TopicPartition, LakelogError]:
        """Takes the step where it is possible, and returns the refusals.

        Many partitions at a time: where each write is synced, that syncs them together.
        """
        refused: dict[TopicPartition, LakelogError] = {}
        for start in range(0, len(topic_partitions), _TOGETHER):
            group = topic_partitions[start : start + _TOGETHER]
            calls = [("pause", self._keys.partition(tp).all(), [verb]) for tp in group]
            _, replies = server.run_scripts(calls)
            for topic_partition, reply in zip(group, replies, strict=True):
                try:
                    if isinstance(reply, Exception):  # once more: it may have moved
                        self._step(topic_partition, verb)
                    else:
                        _check_step(topic_partition, reply[0])
                except (RecoveryNeededError, UnknownTopicOrPartitionError) as refusal:
                    refused[topic_partition] = refusal
        return refused

    def _step(self, topic_partition: TopicPartition, verb: str) -> None:
        keys = self._keys.partition(topic_partition)
        _check_step(topic_partition, call_script(self._servers, "pause", keys.all(), [verb])[0])


def _check_step(topic_partition: TopicPartition, answer: bytes) -> None:
    if answer == b"UNKNOWN_TOPIC_OR_PARTITION":
        raise unknown_partition(topic_partition)
    if answer == b"RECOVERY_NEEDED":
        raise recovery_needed(topic_partition)


def _setting(server: Server, name: str) -> str:
    reply = server.call(("CONFIG", "GET", name))[0]  # a list, or a map under RESP3
    value = next(iter(reply.values())) if isinstance(reply, dict) else reply[1]
    return value.decode() if isinstance(value, bytes) else str(value)


def _archived_calls(calls: Iterable[ProducerCall]) -> list[object]:
    """Id of each call's producer, and the call as ``:producers`` has it; the script adds when."""
    return [
        argument
        for one in calls
        for argument in (
            one.producer_id,
            f"{one.epoch}|{one.first_sequence} {one.last_sequence} {one.base_offset} "
            f"{one.append_time_ms} {one.checksum}",
        )
    ]
