"""What partitions may take of a keyspace's quotas, so that an append asks nobody but its partition.

A partition is allowed some bytes at a time: to hold, of ``lakelog.quota.hot.bytes``, and to append,
of ``lakelog.quota.producer.byte.rate``. When that is used up, the append is refused, and more is
asked for here, for all that follows. What all partitions together are allowed to hold never exceeds
the quota, on however many servers they are. See ``quota.lua``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct

from ..base.clock import Clock
from ..errors import (
    HotTierAccessError,
    LakelogError,
    OutOfOrderSequenceError,
    QuotaExceededError,
    ThrottlingQuotaExceededError,
    UnknownProducerError,
)
from ..values.config import QUOTA_BYTE_RATE, QUOTA_COLD_BYTES, QUOTA_HOT_BYTES
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .append import AllowanceUsedUpError, AppendCall, AppendResult
from .connection import Servers, by_server, call_script
from .keys import Keys
from .refusals import translate

Answer = AppendResult | LakelogError

#: How often more is asked for in one append: a producer has five calls under way, each of which may
#: need some, and others may use it up before it comes back.
TRIES = 6

#: What a call answers when the one before it, sent along with it, was refused.
_NOT_YET = (AllowanceUsedUpError, OutOfOrderSequenceError, UnknownProducerError)


class Allowances(Struct, frozen=True):
    """Asks for more of the quotas of a keyspace.

    Args:
        topics: all that share the quotas.
        clock: None: Redis's own.
    """

    servers: Servers
    keys: Keys
    topics: Callable[[], Sequence[Topic]]
    clock: Clock | None = None

    def append_refused(
        self,
        calls: Sequence[AppendCall],
        answers: list[Answer],
        send: Callable[[Sequence[AppendCall]], list[Answer]],
    ) -> list[Answer]:
        """Has partitions whose allowance was used up take more, and sends those calls again.

        Args:
            answers: to all of the calls.

        Returns:
            The answers by now.
        """
        for _ in range(TRIES):
            again: list[int] = []
            for indexes in _refused(calls, answers).values():
                first = answers[indexes[0]]
                assert isinstance(first, AllowanceUsedUpError)
                try:
                    self._take_for([calls[index] for index in indexes], first)
                except LakelogError as error:
                    answers[indexes[0]] = error  # those behind it are out of order, as any other's
                    for index in indexes[1:]:
                        answers[index] = _behind(answers[index], error)
                else:
                    again += indexes
            if not again:
                break
            again.sort()
            for index, answer in zip(again, send([calls[i] for i in again]), strict=True):
                answers[index] = answer
        return [_used_up(one) if isinstance(one, AllowanceUsedUpError) else one for one in answers]

    def count_anew(self) -> None:
        """Counts what all partitions hold, as after a change of the quota."""
        self._recall(is_forced=True)

    # -- how -----------------------------------------------------------------------------------

    def _take_for(self, calls: Sequence[AppendCall], refused: AllowanceUsedUpError) -> None:
        """Has a partition take calls; if it may not take all of them, the first.

        Raises: see `_take`.
        """
        sizes = [call.batch.size_bytes for call in calls]
        try:
            self._take(calls[0], refused, sum(sizes))
        except QuotaExceededError:
            if len(calls) == 1:
                raise
            self._take(calls[0], refused, sizes[0])

    def _take(self, call: AppendCall, refused: AllowanceUsedUpError, size_bytes: int) -> None:
        """Has a partition take calls of so many bytes.

        Raises:
            QuotaExceededError, ThrottlingQuotaExceededError: it may not.
            LakelogError: Redis does not answer.
        """
        partition = _spelled(call.topic_id, call.topic_partition.partition)
        arguments = (
            partition,
            refused.held_bytes,
            refused.version,
            refused.append_bytes,
            size_bytes,
        )
        answer = self._ask("take", *arguments)
        if answer[0] in (b"RECALL", b"HOT_BYTES"):
            # What was trimmed since is free again, once it is counted.
            self._recall(is_forced=answer[0] == b"RECALL")
            answer = self._ask("take", *arguments)
        if answer[0] != b"OK":
            raise self._refusal(call.topic_partition, answer)
        held, version, append = (int(value) for value in answer[1:])
        granted = [str(call.topic_id), "grant", held, version, append]
        call_script(self.servers, "allow", self._keys_of(call.topic_partition), granted)

    def _refusal(self, tp: TopicPartition, answer: Sequence[Any]) -> LakelogError:
        keyspace = self.keys.keyspace
        if answer[0] == b"RATE":
            wait_ms, limit = int(answer[1]), int(answer[2])
            return ThrottlingQuotaExceededError(
                f"more than {QUOTA_BYTE_RATE}={limit} was appended to keyspace {keyspace!r}; "
                f"nothing of the call to {tp} was written. Send it again in {wait_ms} ms, or have "
                "the quota raised",
                quota=QUOTA_BYTE_RATE,
                limit=limit,
                throttle_time_ms=wait_ms,
                topic=tp.topic,
            )
        if answer[0] == b"HOT_BYTES":
            used, limit = int(answer[1]), int(answer[2])
            return QuotaExceededError(
                f"the topics of keyspace {keyspace!r} hold {used} bytes in Redis, and "
                f"{QUOTA_HOT_BYTES}={limit} leaves no room for a call to {tp}; nothing of it was "
                "written. Archive and trim (lakelog archive), shorten local.retention.ms, delete "
                "topics, or have the quota raised",
                quota=QUOTA_HOT_BYTES,
                used=used,
                limit=limit,
                topic=tp.topic,
            )
        return QuotaExceededError(
            f"{QUOTA_HOT_BYTES} of keyspace {keyspace!r} is being changed; nothing of a call to "
            f"{tp} was written. Send it again",
            quota=QUOTA_HOT_BYTES,
            used=0,
            limit=0,
            topic=tp.topic,
        )

    def _recall(self, *, is_forced: bool) -> None:
        """Has each partition hold no more than it holds, and counts that."""
        partitions: Mapping[str, tuple[TopicPartition, UUID]] = {
            _spelled(topic.topic_id, tp.partition): (tp, topic.topic_id)
            for topic in self.topics()
            for tp in topic.topic_partitions()
        }
        versions = self._ask("recall", int(is_forced), *partitions)
        if not versions and partitions:
            return  # it was done just now
        found: list[object] = []
        asked = zip(partitions, map(int, versions), strict=True)
        grouped = by_server(
            self.servers, asked, lambda one: self.keys.stream(partitions[one[0]][0])
        )
        for server, group in grouped:
            scripts = [
                (
                    "allow",
                    self._keys_of(partitions[name][0]),
                    _lowered(partitions[name][1], recalled),
                )
                for name, recalled in group
            ]
            _, replies = server.run_scripts(scripts)
            for (name, recalled), reply in zip(group, replies, strict=True):
                if isinstance(reply, Exception):
                    error = translate(reply, server.name, self.keys.quotas)
                    if not isinstance(error, HotTierAccessError):
                        raise error from reply
                    found += (name, -1, 0, 0)  # not ours to look at: what it may hold stays
                    continue
                held, version = reply
                if held >= 0:
                    found += (name, recalled, int(version), int(held))
        self._ask("settle", *found)

    def _keys_of(self, tp: TopicPartition) -> tuple[str, ...]:
        return self.keys.partition(tp).all()

    def _ask(self, verb: str, *arguments: object) -> Any:
        now = "" if self.clock is None else self.clock.now_ms()
        return call_script(self.servers, "quota", [self.keys.quotas], [verb, now, *arguments])


def _lowered(topic_id: UUID, recalled: int) -> list[object]:
    return [str(topic_id), "lower", recalled]


def _used_up(refused: AllowanceUsedUpError) -> LakelogError:
    tp = refused.topic_partition
    return ThrottlingQuotaExceededError(
        f"others used up what {tp} may take of the keyspace's quotas, each time that it was given "
        "more; nothing of the call was written. Send it again",
        quota=QUOTA_BYTE_RATE,
        throttle_time_ms=1,
        topic=tp.topic,
    )


def _spelled(topic_id: UUID, partition: int) -> str:
    return f"{topic_id}:{partition}"


def _refused(
    calls: Sequence[AppendCall], answers: Sequence[Answer]
) -> dict[TopicPartition, list[int]]:
    """The calls of each partition from the first on whose allowance was used up."""
    found: dict[TopicPartition, list[int]] = {}
    for index, (call, answer) in enumerate(zip(calls, answers, strict=True)):
        if isinstance(answer, AllowanceUsedUpError):
            found.setdefault(call.topic_partition, []).append(index)
        elif call.topic_partition in found and isinstance(answer, _NOT_YET):
            found[call.topic_partition].append(index)
    return found


def _behind(answer: Answer, error: LakelogError) -> Answer:
    return error if isinstance(answer, AllowanceUsedUpError) else answer


class ColdQuota(Struct, frozen=True):
    """What the tables of a keyspace take, and may take."""

    servers: Servers
    keys: Keys

    def told(self, topic: Topic, size_bytes: int) -> int:
        """Notes how large a topic's table is; the bytes of all tables.

        Raises:
            HotTierUnavailableError: Redis does not answer.
        """
        return self._call("tell", str(topic.topic_id), size_bytes)

    def retain(self, topic_ids: Iterable[UUID]) -> int:
        """Forgets the tables of all other topics; the bytes of those that are left."""
        return self._call("retain", *map(str, topic_ids))

    def check(self, topic: Topic, size_bytes: int) -> None:
        """Notes how large a topic's table is, and that it may grow.

        Nothing is asked where there is no quota.

        Raises:
            QuotaExceededError: all tables together are as large as they may be.
            HotTierUnavailableError: Redis does not answer.
        """
        limit = topic.config.quota(QUOTA_COLD_BYTES)
        if limit is None:
            return
        used = self.told(topic, size_bytes)
        if used >= limit:
            raise QuotaExceededError(
                f"the tables of keyspace {self.keys.keyspace!r} take {used} bytes, and "
                f"{QUOTA_COLD_BYTES}={limit}: no more of topic {topic.name!r} is archived, and "
                "Redis keeps it. Shorten retention.ms and run a cleanup, delete and purge topics, "
                "or have the quota raised",
                quota=QUOTA_COLD_BYTES,
                used=used,
                limit=limit,
                topic=topic.name,
            )

    def _call(self, *arguments: object) -> int:
        answer = call_script(self.servers, "cold_bytes", [self.keys.quotas], arguments)
        return int(answer)
