"""Appends, reads and waits of a hot log on an event loop, for whoever serves many connections.

What is rare is left to a thread of the loop's executor, which asks as everybody does: a server that
lost its scripts, stepped down or no longer has the partition, and quotas that are used up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from msgspec import Struct
from redis.exceptions import NoScriptError, ReadOnlyError

from ..base.clock import Clock
from ..errors import LakelogError
from ..values.topic_partition import TopicPartition
from .append import AllowanceUsedUpError, AppendCall, AppendResult, check_call
from .appender import Appender
from .connection import Command, Server, Servers
from .declared import check_topic_id, hole
from .fetch import EntriesStep, Fetcher
from .foreign import foreign_if_illegible
from .keys import Keys
from .news import Follower, News
from .pipelines import Pipelines
from .refusals import moved, translate

T = TypeVar("T")

Answer = AppendResult | LakelogError

_Begun = tuple[TopicPartition, int, int]  # producer id and epoch
_MAX_BEGUN = 100_000


class Ask(Struct, frozen=True):
    """The entries that are wanted of a partition."""

    topic_partition: TopicPartition
    topic_id: UUID
    offset: int
    count: int  # at most so many entries


class LogEnds(Struct, frozen=True):
    """Where a partition begins and ends."""

    log_start: int
    local_log_start: int
    log_end: int


class AsyncHotLog:
    """A hot log on the event loop that runs when it is first used.

    An append counts as done when Redis has it (`MEMORY`).
    """

    def __init__(
        self,
        servers: Servers,
        keys: Keys,
        clock: Clock | None,
        appender: Appender,
        fetcher: Fetcher,
    ) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock
        self._appender = appender
        self._fetcher = fetcher
        self._begun: set[_Begun] = set()  # producers that have been sent something
        self._pipelines = Pipelines()
        self._news = News(servers, self._pipelines)

    async def append_all(self, calls: Sequence[AppendCall]) -> list[Answer]:
        """As `HotLog.append_all`: calls in order, in one round trip for each server.

        The first calls of a Kafka client to a partition go there one after the other: if one were
        refused for now, the next would be taken for its beginning.
        """
        answers: dict[int, Answer] = {}
        left = list(range(len(calls)))
        while left:
            now, left = self._not_overtaking(calls, left)
            groups, unknown = self._by_server(now, lambda i: calls[i].topic_partition)
            answers.update(unknown)
            done = await _together(
                [self._append_on(server, [calls[i] for i in own]) for server, own in groups]
            )
            for (_, own), found in zip(groups, done, strict=True):
                answers.update(zip(own, found, strict=True))
        return [answers[i] for i in range(len(calls))]

    def _not_overtaking(
        self, calls: Sequence[AppendCall], indexes: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """The calls that may be sent together, and those that wait for them."""
        now: list[int] = []
        later: list[int] = []
        begun: set[_Begun] = set()
        for i in indexes:
            call = calls[i]
            if call.is_kafka and call.batch.producer_id >= 0:
                one = (call.topic_partition, call.batch.producer_id, call.batch.epoch)
                if one in begun:
                    later.append(i)
                    continue
                if one not in self._begun:
                    begun.add(one)
            now.append(i)
        if len(self._begun) + len(begun) > _MAX_BEGUN:
            self._begun.clear()
        self._begun |= begun
        return now, later

    async def _append_on(self, server: Server, calls: list[AppendCall]) -> list[Answer]:
        now_ms = None if self._clock is None else self._clock.now_ms()
        try:
            for call in calls:
                check_call(call)
            pipeline = await self._pipelines.of(server)
            scripts = self._appender.scripts(calls, now_ms)
            look = self._appender.looks.begin(server, sum(call.batch.size_bytes for call in calls))
            asked = [*(pipeline.script(*one) for one in scripts), *look]
            replies = await pipeline.exchange(asked)
        except LakelogError as error:
            return [error] * len(calls)
        memory = self._appender.looks.end(server, replies[len(scripts) :])
        replies = replies[: len(scripts)]
        answers = self._appender.answers(server, calls, replies, pipeline.run.run_id, memory)
        again = [
            i
            for i, reply in enumerate(replies)
            if isinstance(reply, (NoScriptError, ReadOnlyError)) or moved(reply)
        ]
        if again:
            found = await _in_thread(self._appender.append_all, [calls[i] for i in again])
            for i, answer in zip(again, found, strict=True):
                answers[i] = answer
        if any(isinstance(answer, AllowanceUsedUpError) for answer in answers):
            return list(await _in_thread(self._appender.settled, calls, answers))
        return answers

    async def entries(self, asks: Sequence[Ask]) -> list[EntriesStep | LakelogError]:
        """The stored entries from the one that holds each offset; one round trip for each server.

        Of an offset below the hot tier, the step says where that begins; at the log end, it has no
        entries.

        Returns:
            In their order; an error in place, as `HotLog.read` raises it.
        """
        found = await self._entries(asks)
        behind = [i for i, step in enumerate(found) if _is_behind(asks[i], step)]
        if behind:  # the state was read later, after a trim or an append
            again = await self._entries([asks[i] for i in behind])
            for i, step in zip(behind, again, strict=True):
                found[i] = step
                if isinstance(step, EntriesStep) and _is_behind(asks[i], step):
                    found[i] = hole(asks[i].topic_partition, asks[i].offset, step.declared.log_end)
        return found

    async def _entries(self, asks: Sequence[Ask]) -> list[EntriesStep | LakelogError]:
        def step(index: int, run_id: str, replies: Sequence[Any]) -> EntriesStep:
            ask = asks[index]
            return self._fetcher.step(ask.topic_partition, None, run_id, replies, ask.topic_id)

        commands = [self._fetcher.commands(a.topic_partition, a.offset, a.count) for a in asks]
        return await self._exchanged([ask.topic_partition for ask in asks], commands, step)

    async def ends(
        self, topic_partitions: Sequence[TopicPartition]
    ) -> list[LogEnds | LakelogError]:
        """Where partitions begin and end; an error in place."""

        def ends(index: int, run_id: str, replies: Sequence[Any]) -> LogEnds:
            (reply,) = replies
            tp = topic_partitions[index]
            if isinstance(reply, Exception):
                raise translate(reply, "the hot tier", self._keys.stream(tp))
            check_topic_id(tp, reply[0], None)
            with foreign_if_illegible(reply, f"state of {tp}"):
                return LogEnds(*map(int, reply[1:]))

        names = ("topic_id", "log_start", "local_log_start", "log_end")
        commands = [[("HMGET", self._keys.partition(tp).state, *names)] for tp in topic_partitions]
        return await self._exchanged(topic_partitions, commands, ends)

    async def wait(
        self, positions: Mapping[TopicPartition, int], timeout_s: float
    ) -> set[TopicPartition]:
        """As `PartitionFollower.wait`, of somebody who does not come back."""
        follower = self.follower()
        try:
            return await follower.wait(positions, timeout_s)
        finally:
            follower.close()

    def follower(self) -> PartitionFollower:
        """Somebody who waits for partitions again and again."""
        return PartitionFollower(self._news, self._keys)

    async def wait_for_group(self, group_id: str, version: int, timeout_s: float) -> None:
        """As `wait`, for a version of a group above that one."""
        await self._news.wait({self._keys.group(group_id).news: version + 1}, timeout_s)

    def close(self) -> None:
        """Ends the connections of this event loop."""
        self._news.close()
        self._pipelines.close()

    async def _exchanged(
        self,
        topic_partitions: Sequence[TopicPartition],
        commands: Sequence[Sequence[Command]],
        parse: Callable[[int, str, Sequence[Any]], Any],
    ) -> list[Any]:
        """Asks each partition's server all at once, and parses what it replied, errors in place."""
        groups, left = self._by_server(range(len(topic_partitions)), lambda i: topic_partitions[i])
        found: dict[int, Any] = dict(left)

        async def ask(server: Server, own: list[int]) -> None:
            try:
                pipeline = await self._pipelines.of(server)
                replies = await pipeline.exchange([one for i in own for one in commands[i]])
            except LakelogError as error:
                found.update(dict.fromkeys(own, error))
                return
            if any(map(moved, replies)):
                await _in_thread(self._servers.refresh)
            at = 0
            for i in own:
                count = len(commands[i])
                try:
                    found[i] = parse(i, pipeline.run.run_id, replies[at : at + count])
                except LakelogError as error:
                    found[i] = error
                at += count

        await _together([ask(server, own) for server, own in groups])
        return [found[i] for i in range(len(topic_partitions))]

    def _by_server(
        self, indexes: Sequence[int], partition_of: Callable[[int], TopicPartition]
    ) -> tuple[list[tuple[Server, list[int]]], dict[int, LakelogError]]:
        """The indexes of each server; and those of partitions whose server is not known."""
        groups: dict[int, tuple[Server, list[int]]] = {}
        unknown: dict[int, LakelogError] = {}
        for i in indexes:
            try:
                server = self._servers.for_key(self._keys.stream(partition_of(i)))
            except LakelogError as error:
                unknown[i] = error
            else:
                groups.setdefault(id(server), (server, []))[1].append(i)
        return list(groups.values()), unknown


class PartitionFollower:
    """As `Follower`, of partitions."""

    def __init__(self, news: News, keys: Keys) -> None:
        self._follower = Follower(news)
        self._keys = keys
        self._streams: dict[TopicPartition, str] = {}

    def follows(self, topic_partition: TopicPartition, position: int) -> bool:
        """Whether nothing has been appended there since it was waited for."""
        stream = self._streams.get(topic_partition)
        return stream is not None and self._follower.follows(stream, position)

    async def wait(
        self, positions: Mapping[TopicPartition, int], timeout_s: float
    ) -> set[TopicPartition]:
        """Returns once one of the partitions has something at or above its position, or may have,
        and when the time is over.

        Returns:
            Those that have; none: the time is over.

        Raises:
            LakelogError: a server does not answer.
        """
        known = self._streams
        self._streams = {tp: known.get(tp) or self._keys.stream(tp) for tp in positions}
        streams = {self._streams[tp]: position for tp, position in positions.items()}
        told = await self._follower.wait(streams, timeout_s)
        return {tp for tp, stream in self._streams.items() if stream in told} if told else set()

    def close(self) -> None:
        """Follows nothing any more."""
        self._follower.close()


def _is_behind(ask: Ask, step: EntriesStep | LakelogError) -> bool:
    """Whether the log goes on there, and no entry says how."""
    return (
        isinstance(step, EntriesStep)
        and not step.entries
        and step.local_log_start <= ask.offset < step.declared.log_end
        and step.declared.gap_at(ask.offset) is None
    )


async def _together(works: Sequence[Coroutine[Any, Any, T]]) -> Sequence[T]:
    """What each gives. One alone, as on a server alone, runs at once, and not as a task."""
    return [await works[0]] if len(works) == 1 else await asyncio.gather(*works)


async def _in_thread(function: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, function, *given)
