"""What a change of server means: recover a lost tail, or hand over after a planned stop.

A partition's ``:state`` names the run of the server under which it was last written. Another run
may have lost the tail, so its first append is refused until `recover` has settled the partition:
by a gap entry over every offset that may have been handed out, or, when the last run left a clean
mark, by taking the partition over as it is.

The clean mark must be gone *from disk* before anything is appended. Otherwise a crash could bring
the mark back without the records, and their offsets would be used twice. Only ``appendfsync
always`` promises that a reply means "on disk" (WAITAOF was seen to answer before), so the server is
switched to it for that moment, under a lock. Where that is not allowed, the gap it is.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable

from ..clock import Clock
from ..errors import LakelogError, UnknownTopicOrPartitionError
from ..record import TopicPartition
from .append import recovery_needed
from .connection import Server, Servers, call_script
from .keys import Keys

_LOCK_MS = 30_000


class Recovery:
    """Settles partitions after the server changed, and prepares planned stops."""

    def __init__(self, servers: Servers, keys: Keys, clock: Clock | None) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock

    def recover(self, topic_partition: TopicPartition, at_least: int) -> None:
        """Makes the partition writable again; see `HotLog.recover`."""
        if self._recover(topic_partition, at_least) == b"CLEAN" and not self.resume(
            [topic_partition]
        ):
            # Not allowed to make sure of the disk: take the mark away in memory and leave a gap.
            self._step(topic_partition, "unmark")
            self._recover(topic_partition, max(at_least, self._log_end(topic_partition) + 1))

    def pause(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Refuses appends and leaves the clean mark, for a planned stop of the server.

        Raises:
            RecoveryNeededError: a partition has not been recovered since the last stop.
        """
        for topic_partition in topic_partitions:
            self._step(topic_partition, "pause")

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> bool:
        """Takes partitions over after a clean stop (or ends a pause) without a gap.

        Returns:
            False if the server does not let us make sure that its disk has the change; the
            partitions then stay as they are.

        Raises:
            RecoveryNeededError: a partition has no clean mark.
        """
        by_server: dict[int, tuple[Server, list[TopicPartition]]] = {}
        for topic_partition in topic_partitions:
            server = self._servers.for_key(self._keys.partition(topic_partition).stream)
            by_server.setdefault(id(server), (server, []))[1].append(topic_partition)
        done = [self._resume(*group) for group in by_server.values()]
        return all(done)

    def _resume(self, server: Server, topic_partitions: list[TopicPartition]) -> bool:
        with _Lock(server, self._keys.resume_lock(topic_partitions[0])):
            try:
                fsync = _text(server.call(("CONFIG", "GET", "appendfsync"))[0])
                if fsync != "always":
                    server.call(("CONFIG", "SET", "appendfsync", "always"))
            except LakelogError:
                return False
            try:
                if not _has_append_only_file(server):
                    return False
                for topic_partition in topic_partitions:
                    self._step(topic_partition, "unmark")
            finally:
                if fsync != "always":
                    server.call(("CONFIG", "SET", "appendfsync", fsync))
            for topic_partition in topic_partitions:
                self._step(topic_partition, "resume")
        return True

    def _recover(self, topic_partition: TopicPartition, at_least: int) -> bytes:
        keys = self._keys.partition(topic_partition)
        now = "" if self._clock is None else self._clock.now_ms()
        answer: bytes = call_script(self._servers, "recover", keys.all(), [at_least, now])[0]
        if answer == b"UNKNOWN_TOPIC_OR_PARTITION":
            raise _unknown(topic_partition)
        return answer

    def _step(self, topic_partition: TopicPartition, verb: str) -> None:
        keys = self._keys.partition(topic_partition)
        answer = call_script(self._servers, "pause", keys.all(), [verb])[0]
        if answer == b"UNKNOWN_TOPIC_OR_PARTITION":
            raise _unknown(topic_partition)
        if answer == b"RECOVERY_NEEDED":
            raise recovery_needed(topic_partition)

    def _log_end(self, topic_partition: TopicPartition) -> int:
        keys = self._keys.partition(topic_partition)
        return int(self._servers.for_key(keys.stream).call(("HGET", keys.state, "log_end"))[0])


class _Lock:
    """One at a time switches a server's fsync policy back and forth."""

    def __init__(self, server: Server, key: str) -> None:
        self._server = server
        self._key = key
        self._token = uuid.uuid4().hex

    def __enter__(self) -> None:
        deadline = time.monotonic() + 2 * _LOCK_MS / 1000
        while self._server.call(("SET", self._key, self._token, "NX", "PX", _LOCK_MS))[0] is None:
            if time.monotonic() > deadline:
                raise LakelogError(
                    f"somebody else has been resuming {self._server.name} for "
                    f"{2 * _LOCK_MS // 1000} s; try again"
                )
            time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        if self._server.call(("GET", self._key))[0] == self._token.encode():
            self._server.call(("DEL", self._key))


def _has_append_only_file(server: Server) -> bool:
    return _text(server.call(("CONFIG", "GET", "appendonly"))[0]) == "yes"


def _text(reply: object) -> str:
    """The value in a reply of CONFIG GET (a list, or a map under RESP3)."""
    value = next(iter(reply.values())) if isinstance(reply, dict) else reply[1]  # type: ignore[index]
    return value.decode() if isinstance(value, bytes) else str(value)


def _unknown(topic_partition: TopicPartition) -> UnknownTopicOrPartitionError:
    return UnknownTopicOrPartitionError(
        f"{topic_partition} is not in the hot tier; create the topic",
        topic=topic_partition.topic,
        partition=topic_partition.partition,
    )
