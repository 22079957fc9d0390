"""Waiting until something is appended, in streams of any servers, or until one is woken."""

from __future__ import annotations

import contextlib
import math
import os
import select
import selectors
import threading
import time
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from ..errors import LakelogError
from ..values.topic_partition import TopicPartition
from .connection import BlockedCommands, Command, Servers
from .keys import Keys
from .looks import Looks
from .refusals import moved, translate

#: Blocking reads ask for less than the socket time-out and go around again.
MAX_BLOCK_MS = 4_000
#: How often log ends are looked at where no blocking read tells of news.
POLL_MS = 50
#: A blocking read takes keys of one slot and holds a connection. Beyond so many, log ends are
#: looked at now and then instead.
MAX_READS = 64
#: An idle server answers what is over up to 100 ms late (its hz). One that has not by then hangs.
LATE_S = 1.0

#: What came with a wait counts for so long. It can end no read: one that came to the log end asks
#: once more.
FRESH_S = 0.1
#: Entries that come with a wait for one partition.
_CAME_COUNT = 4

#: What of a partition's ``:state`` a read goes by.
STATE_OF_READS = (
    "topic_id",
    "local_log_start",
    "log_end",
    "largest_entry",
    "run_id",
    "gaps",
    "quarantined",
    "log_start",
)

#: The streams of one blocking read, each with the id behind which something is news.
_Streams = tuple[tuple[str, str], ...]


class Waits:
    """Waits for what is appended. Thread-safe.

    On one server a single read covers all partitions. On a Redis Cluster there is one for each
    slot, side by side; those that had no news when the wait ended are kept, since the next wait
    asks most of them again. A wait for one partition brings its first entries, for who reads them
    next: that spares a round trip.
    """

    def __init__(self, servers: Servers, keys: Keys, looks: Looks) -> None:
        self._servers = servers
        self._keys = keys
        self._looks = looks
        self._woken: dict[TopicPartition, int] = {}  # the position at which a wait ended last
        self._lock = threading.Lock()
        self._kept: dict[_Streams, list[_Read]] = defaultdict(list)
        self._process = os.getpid()
        self._came: dict[TopicPartition, _Came] = {}

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
        deadline_s = time.monotonic() + timeout_ms / 1000
        while positions and not (waker is not None and waker.is_set):
            left_ms = max(0, int((deadline_s - time.monotonic()) * 1000))
            groups = self._groups(positions)
            if len(groups) == 1 or (left_ms and len(groups) <= MAX_READS):
                ready = self._first(groups, min(left_ms, MAX_BLOCK_MS), waker)
                if waker is not None and waker.is_set:
                    return ready
                if not ready and left_ms:  # what was appended may have been trimmed at once
                    ready = self._ahead(positions)
                ready = self._woken_for_something(positions, ready, left_ms)
            else:
                ready = self._ahead(positions)
                if not ready:
                    _sleep(min(left_ms, POLL_MS) / 1000, waker)
            if ready or left_ms == 0:
                return ready
        return set()

    def taken(
        self, topic_partition: TopicPartition, position: int, topic_id: UUID | None
    ) -> tuple[str, Sequence[Any]] | None:
        """What came with a wait at that position just now, once: as `connection.exchange` has it.

        The entries from there on, and `STATE_OF_READS`, read in that order; not of another
        creation of the topic than `topic_id`.
        """
        came = self._came.pop(topic_partition, None)
        if came is None or came.position != position or came.until_s < time.monotonic():
            return None
        if topic_id is not None and came.replies[1][0] != str(topic_id).encode():
            return None
        return came.run_id, came.replies

    def _ahead(self, positions: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        """Which have something at or above their position; asks every server once."""
        found = self._looks.offsets(positions)
        return {tp for tp, offsets in found.items() if offsets.log_end > positions[tp]}

    def _groups(self, positions: Mapping[TopicPartition, int]) -> list[_Group]:
        """What one read each can wait for: streams of one slot."""
        by_slot: dict[int, _Group] = {}
        for tp, position in positions.items():
            stream = self._keys.partition(tp).stream
            group = by_slot.setdefault(self._servers.slot(stream), _Group({}, []))
            group.partitions[stream] = tp
            # Behind the largest id that ends below the position; 0-0 is before every id.
            after = f"{position - 1}-{2**64 - 1}" if position else "0-0"
            group.streams.append((stream, after))
        if len(positions) == 1:
            (group,) = by_slot.values()
            group.position = position
        return list(by_slot.values())

    def _first(
        self,
        groups: Sequence[_Group],
        block_ms: int,
        waker: Waker | None,
    ) -> set[TopicPartition]:
        """The partitions that have news first; none if there is no news in that time."""
        self._let_go_of_old_ones()
        end_s = time.monotonic() + block_ms / 1000
        open_reads: list[tuple[_Read, _Group]] = []
        found: set[TopicPartition] = set()
        is_one = len(groups) == 1 and (waker is None or block_ms == 0)
        try:
            for group in groups:
                streams = tuple(group.streams)
                # Its answer is waited for, so it is none that blocks for longer than was asked.
                # Those that are kept may as well block for as long as they can.
                kept = None if is_one else self._take_kept(streams)
                if kept is not None and _answered([kept], 0):
                    group.position = None  # what it brings may be seconds old
                read = kept or self._begun(group, block_ms if is_one else MAX_BLOCK_MS)
                open_reads.append((read, group))
            if is_one:
                return self._news(*open_reads[0], open_reads)
            reads = [read for read, _ in open_reads]
            for read in _answered(reads, end_s - time.monotonic(), waker):
                group = next(group for one, group in open_reads if one is read)
                found |= self._news(read, group, open_reads)
        finally:
            self._keep([read for read, _ in open_reads])
        return found

    def _news(
        self,
        read: _Read,
        group: _Group,
        open_reads: list[tuple[_Read, _Group]],
    ) -> set[TopicPartition]:
        open_reads.remove((read, group))
        run_id, (reply, *state) = read.answer()
        if moved(reply):
            self._servers.refresh()
            return set()
        if isinstance(reply, Exception):
            raise translate(reply, read.where, group.streams[0][0]) from reply
        streams = reply if isinstance(reply, dict) else dict(reply or ())
        position = group.position if state else None  # begun for several, it brings no state
        if streams and position is not None and _is_ahead(state[0], position):
            (entries,) = streams.values()
            until_s = time.monotonic() + FRESH_S
            (tp,) = group.partitions.values()
            self._came[tp] = _Came(position, until_s, run_id, (entries, state[0]))
        return {group.partitions[stream.decode()] for stream in streams}

    # -- reads under way -----------------------------------------------------------------------

    def _take_kept(self, streams: _Streams) -> _Read | None:
        now_s = time.monotonic()
        with self._lock:
            for number, read in enumerate(self._kept.get(streams, ())):
                if read.ends_s > now_s:
                    return self._kept[streams].pop(number)
        return None

    def _begun(self, group: _Group, block_ms: int) -> _Read:
        streams = tuple(group.streams)
        server = self._servers.for_key(streams[0][0])
        names, after = zip(*streams, strict=True)
        asked_ms = server.block_ms(block_ms)
        block: Sequence[Any] = ("BLOCK", asked_ms) if block_ms else ()
        count = 1 if group.position is None else _CAME_COUNT
        commands: list[Command] = [("XREAD", "COUNT", count, *block, "STREAMS", *names, *after)]
        if group.position is not None:
            (tp,) = group.partitions.values()
            commands.append(("HMGET", self._keys.partition(tp).state, *STATE_OF_READS))
        ends_s = time.monotonic() + asked_ms / 1e3
        return _Read(streams, server.begin(commands), server.name, ends_s)

    def _keep(self, reads: Sequence[_Read]) -> None:
        with self._lock:
            for read in reads:
                self._kept[read.streams].append(read)

    def _let_go_of_old_ones(self) -> None:
        """Takes the answers of kept reads whose time is over: nobody asked for them again."""
        now_s = time.monotonic()
        with self._lock:
            if os.getpid() != self._process:  # forked: the connections are the parent's
                self._kept.clear()
                self._process = os.getpid()
            over = [one for reads in self._kept.values() for one in reads if one.ends_s <= now_s]
            gone = [*_answered(over, 0), *(one for one in over if one.ends_s + LATE_S <= now_s)]
            for read in gone:
                if read in self._kept[read.streams]:
                    self._kept[read.streams].remove(read)
            for streams in [streams for streams, reads in self._kept.items() if not reads]:
                del self._kept[streams]
        for read in dict.fromkeys(gone):
            if read.ends_s + LATE_S <= now_s:
                read.drop()
                continue
            with contextlib.suppress(LakelogError):  # whoever asks that server next will hear of it
                read.answer()

    def _woken_for_something(
        self, positions: Mapping[TopicPartition, int], ready: set[TopicPartition], left_ms: int
    ) -> set[TopicPartition]:
        """Leaves out those that an entry past the log end wakes again and again: half a
        transaction, until the partition is recovered, or an entry that somebody else added.
        """
        again = {tp: positions[tp] for tp in ready if self._woken.get(tp) == positions[tp]}
        self._woken.update((tp, positions[tp]) for tp in ready)
        if again:
            ready = ready - (again.keys() - self._ahead(again))
            if not ready:
                time.sleep(min(left_ms, POLL_MS) / 1000)
        return ready


class _Group:
    """Streams of one slot, and whose they are."""

    def __init__(
        self, partitions: dict[str, TopicPartition], streams: list[tuple[str, str]]
    ) -> None:
        self.partitions = partitions
        self.streams = streams
        self.position: int | None = None  # of one partition alone, whose entries come along


def _is_ahead(state: Any, position: int) -> bool:
    """Whether a reply to `STATE_OF_READS` says that the log ends above a position."""
    end = None if isinstance(state, Exception) else state[2]
    return end is not None and end.isdigit() and int(end) > position


class _Came(NamedTuple):
    """What a wait for one partition brought."""

    position: int
    until_s: float  # it counts
    run_id: str
    replies: Sequence[Any]


class _Read:
    """A blocking read under way."""

    def __init__(
        self, streams: _Streams, command: BlockedCommands, where: str, ends_s: float
    ) -> None:
        self.streams = streams
        self.where = where
        self.ends_s = ends_s  # answered by then, monotonic
        self._command = command

    def fileno(self) -> int:
        return self._command.fileno()

    def answer(self) -> tuple[str, list[Any]]:
        return self._command.answer()

    def drop(self) -> None:
        self._command.drop()


def _sleep(seconds: float, waker: Waker | None) -> None:
    if waker is None:
        time.sleep(seconds)
    else:
        waker.wait(seconds)


def _answered(reads: Sequence[_Read], within_s: float, waker: Waker | None = None) -> list[_Read]:
    """Those that have an answer, as soon as one has; none if none has in that time, or if woken."""
    closed = [read for read in reads if read.fileno() < 0]
    if closed or not reads:
        return closed
    with selectors.DefaultSelector() as selector:
        for number, read in enumerate(reads):
            selector.register(read, selectors.EVENT_READ, number)
        if waker is not None:
            selector.register(waker, selectors.EVENT_READ, None)
        ready = selector.select(max(0.0, within_s))
        return [reads[key.data] for key, _ in ready if key.data is not None]


class Waker:
    """Set from any thread, it ends the wait of the one who waits with it, now or next time."""

    def __init__(self) -> None:
        self._reads, self._writes = os.pipe()
        for end in (self._reads, self._writes):
            os.set_blocking(end, False)
        self.is_set = False
        # Not when the process ends: a heartbeat that still runs may set it until its last moment.
        weakref.finalize(self, _close, self._reads, self._writes).atexit = False

    def set(self) -> None:
        """End the wait."""
        self.is_set = True
        with contextlib.suppress(BlockingIOError):  # it is full of what was not taken note of
            os.write(self._writes, b"!")

    def clear(self) -> None:
        """To be called before acting on the news, so that none is missed."""
        self.is_set = False
        with contextlib.suppress(BlockingIOError):
            os.read(self._reads, 4096)

    def wait(self, timeout_s: float) -> None:
        """Return when it is set, or the time is over."""
        poll = select.poll()  # `select.select` takes none of a process's files beyond 1,024
        poll.register(self, select.POLLIN)
        poll.poll(math.ceil(1000 * max(0.0, timeout_s)))

    def fileno(self) -> int:
        """What becomes readable when it is set."""
        return self._reads


def _close(*ends: int) -> None:
    for end in ends:
        os.close(end)
