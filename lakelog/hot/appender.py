"""Appends produced batches: pipelined, each call where its partition lives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID

from ..base.clock import Clock
from ..codec import ProducedBatch
from ..errors import (
    HotTierAccessError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    NotEnoughReplicasAfterAppendError,
    RecoveryNeededError,
)
from ..values.topic_partition import TopicPartition
from .append import (
    MEMORY,
    Acks,
    AllowanceUsedUpError,
    AppendCall,
    AppendResult,
    append_arguments,
    check_call,
    read_answer,
)
from .connection import Command, Server, Servers
from .keys import Keys
from .quotas import Allowances
from .recovery import Recovery
from .refusals import translate
from .server_info import AppendLooks, MemoryUse

REPLICA_TIMEOUT_MS = 5_000


class Appender:
    """Appends to the streams of one keyspace.

    Args:
        allowances: of the keyspace's quotas.
        recovery: is told of calls for which too few offsets were reserved.
    """

    def __init__(
        self,
        servers: Servers,
        keys: Keys,
        clock: Clock | None,
        allowances: Allowances,
        recovery: Recovery,
    ) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock
        self._allowances = allowances
        self._recovery = recovery
        self.looks = AppendLooks()
        self._fsync_checked: set[int] = set()

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
        `quotas`.
        """
        return self.settled(calls, self._send(calls, acks), acks)

    def settled(
        self,
        calls: Sequence[AppendCall],
        answers: list[AppendResult | LakelogError],
        acks: Acks = MEMORY,
    ) -> list[AppendResult | LakelogError]:
        """The answers by now, after those whose allowance was used up were sent again."""
        if any(isinstance(answer, AllowanceUsedUpError) for answer in answers):
            send = partial(self._send, acks=acks)
            return self._allowances.append_refused(calls, answers, send)
        return answers

    def _send(self, calls: Sequence[AppendCall], acks: Acks) -> list[AppendResult | LakelogError]:
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
            scripts = self.scripts(calls, now_ms, acks.replicas)
            look = self.looks.begin(server, sum(call.batch.size_bytes for call in calls))
            run_id, replies = server.run_scripts(scripts, [*confirm, *look])
        except LakelogError as error:
            return [error] * len(calls)
        then = replies[len(scripts) :]
        confirmation = then[0] if confirm else None
        memory = self.looks.end(server, then[len(confirm) :])
        results: list[AppendResult | LakelogError] = []
        answers = self.answers(server, calls, replies[: len(scripts)], run_id, memory)
        for call, result in zip(calls, answers, strict=True):
            try:
                if isinstance(result, LakelogError):
                    raise result
                if acks.replicas:
                    _check_replicas(result, confirmation, acks, call.topic_partition, wait_ms)
                elif acks.fsync and not _says(confirmation, b"always"):
                    self._fsync_checked.discard(id(server))
                    raise _not_synced(result, call.topic_partition)
                results.append(result)
            except LakelogError as error:
                results.append(error)
        return results

    # -- the parts of an exchange, for `asynchronous` as well ----------------------------------

    def scripts(
        self, calls: Sequence[AppendCall], now_ms: int | None, replicas: int = 0
    ) -> list[tuple[str, Sequence[str], Sequence[Any]]]:
        """What runs the calls on the server that has their partitions."""
        return [
            (
                "append",
                self._keys.partition(call.topic_partition).all(),
                append_arguments(call, now_ms, replicas),
            )
            for call in calls
        ]

    def answers(
        self,
        server: Server,
        calls: Sequence[AppendCall],
        replies: Sequence[Any],
        run_id: str,
        memory: MemoryUse | None = None,
    ) -> list[AppendResult | LakelogError]:
        """What the scripts replied."""
        results: list[AppendResult | LakelogError] = []
        for call, reply in zip(calls, replies, strict=True):
            try:
                if isinstance(reply, Exception):
                    stream = self._keys.partition(call.topic_partition).stream
                    raise translate(reply, server.name, stream)
                results.append(read_answer(call, reply, run_id, memory))
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
