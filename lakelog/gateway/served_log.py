"""The log that a gateway serves, as the handlers of requests use it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar
from uuid import UUID

from ..groups.consumer_groups import ConsumerGroups
from ..groups.coordinator import GroupCoordinator
from ..groups.settings import KeyspaceGroupSettings, ShareGroupSettings
from ..groups.share.share_partitions import SharePartitions
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .entry_sizes import EntrySizes

if TYPE_CHECKING:
    from ..groups.admin import GroupAdmin, ShareGroupAdmin
    from ..hot import HotLog, TopicRegistry
    from ..read.topic_log import TopicLog

P = ParamSpec("P")
T = TypeVar("T")

#: For so long, topics count as they were seen: the age of a client's own metadata is 5 minutes.
_TOPICS_S = 1.0


class Log(Protocol):
    """What is served: a `Lakelog` with a Redis."""

    @property
    def hot(self) -> HotLog: ...
    @property
    def topics(self) -> TopicRegistry: ...
    @property
    def groups(self) -> GroupAdmin: ...
    @property
    def share_groups(self) -> ShareGroupAdmin: ...
    def log(self, topic: str | Topic) -> TopicLog: ...
    def as_user(self, user: str, password: str) -> Log: ...
    def close(self) -> None: ...


class ServedLog:
    """One log, as the connections of one user have it. Used on one event loop.

    Args:
        lake: closed by whoever opened it.
        threads: run what waits for Redis or the cold tier.
    """

    def __init__(self, lake: Log, threads: Executor) -> None:
        self.lake = lake
        self.hot = lake.hot.asynchronous()
        self.groups = GroupCoordinator(lake.hot.connections, lake.hot.keyspace)
        self.consumer_groups = ConsumerGroups(lake.hot.connections, lake.hot.keyspace)
        self.group_settings = KeyspaceGroupSettings(lake.hot.topics().keyspace_defaults)
        self._threads = threads
        self._topics: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._version: tuple[int, int] | None = None
        self._seen_s = 0.0
        self._looking: asyncio.Task[None] | None = None
        self._logs: dict[UUID, tuple[int, TopicLog]] = {}
        self._ends: dict[TopicPartition, int] = {}
        self.entry_sizes = EntrySizes()
        self._recovering: dict[TopicPartition, asyncio.Task[None]] = {}

    def of(self, lake: Log) -> ServedLog:
        """The same log as another user has it; what clients of both were told counts for both."""
        other = ServedLog(lake, self._threads)
        other._ends, other.entry_sizes = self._ends, self.entry_sizes
        return other

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function gives that waits, in one of the threads."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(function, *args, **kwargs))

    def shares(self, group_id: str) -> SharePartitions:
        """A share group, as clients of Kafka are its members; for `run`.

        Raises:
            InvalidArgumentError: not an id.
            LakelogError: Redis does not answer.
        """
        settings = self.group_settings()
        return SharePartitions(
            self.lake.hot.connections,
            group_id,
            self.lake.hot.keyspace,
            ShareGroupSettings(
                record_lock_duration_ms=settings.share_record_lock_duration_ms,
                delivery_count_limit=settings.share_delivery_count_limit,
            ),
        )

    # -- topics ------------------------------------------------------------------------------------

    async def topics(self, *, fresh: bool = False) -> Mapping[str, Topic]:
        """The topics by name, at most a second old.

        Args:
            fresh: as they are now.

        Raises:
            LakelogError: Redis does not answer.
        """
        if fresh or time.monotonic() - self._seen_s > _TOPICS_S:
            if self._looking is None:
                self._looking = asyncio.ensure_future(self._look())
                self._looking.add_done_callback(self._looked)
            await asyncio.shield(self._looking)
        return self._topics

    @property
    def topics_version(self) -> tuple[int, int]:
        """Of the topics that were seen last, see `TopicRegistry.version`."""
        return self._version or (0, 0)

    async def topic(self, name: str) -> Topic | None:
        """The topic of that name, if there is one by now."""
        return (await self.topics()).get(name) or (await self.topics(fresh=True)).get(name)

    async def topic_of_id(self, topic_id: UUID) -> Topic | None:
        """The topic of that id, if there is one by now."""
        await self.topics()
        if topic_id not in self._by_id:
            await self.topics(fresh=True)
        return self._by_id.get(topic_id)

    async def _look(self) -> None:
        registry = self.lake.hot.topics()
        began_s = time.monotonic()
        version = await self.run(registry.version)
        if version != self._version:
            listed = await self.run(registry.list)
            self._topics = {topic.name: topic for topic in listed}
            self._by_id = {topic.topic_id: topic for topic in listed}
            self._logs = {key: log for key, log in self._logs.items() if key in self._by_id}
            self._version = version
        self._seen_s = began_s

    def _looked(self, done: asyncio.Task[None]) -> None:
        self._looking = None
        _settled(done)

    # -- one topic's log ---------------------------------------------------------------------------

    def log(self, topic: Topic) -> TopicLog:
        """The log of a topic, over both tiers; for `run`."""
        version, found = self._logs.get(topic.topic_id, (None, None))
        if found is None or version != topic.config_version:
            found = self.lake.log(topic)
            self._logs[topic.topic_id] = (topic.config_version, found)
        return found

    def told(self, topic_partition: TopicPartition, log_end: int) -> None:
        """Takes note of a log end that a client was told of; see `recover`."""
        if log_end > self._ends.get(topic_partition, 0):
            self._ends[topic_partition] = log_end

    def told_end(self, topic_partition: TopicPartition) -> int:
        """The highest log end that a client was told of here."""
        return self._ends.get(topic_partition, 0)

    async def recover(self, topic: Topic, partition: int, timeout_s: float) -> None:
        """Makes a partition writable again after its server may have lost its tail, once for all
        who wait for it. It goes on where the time is over before.

        Raises:
            LakelogError: it cannot be now, see `TopicLog.recover`.
            asyncio.TimeoutError: it takes longer.
        """
        tp = topic.partition(partition)
        task = self._recovering.get(tp)
        if task is None:
            log, at_least = self.log(topic), self.told_end(tp)
            task = asyncio.ensure_future(self.run(log.recover, partition, at_least, waits=False))
            self._recovering[tp] = task
            task.add_done_callback(lambda done: self._recovered(tp, done))
        await asyncio.wait_for(asyncio.shield(task), timeout_s)

    def recover_soon(self, topic: Topic, partition: int) -> None:
        """As `recover`, for whoever does not wait."""
        if topic.partition(partition) not in self._recovering:
            task = asyncio.ensure_future(self.recover(topic, partition, 120.0))
            task.add_done_callback(_settled)

    def _recovered(self, topic_partition: TopicPartition, done: asyncio.Task[None]) -> None:
        self._recovering.pop(topic_partition, None)
        _settled(done)

    def close(self) -> None:
        """Ends the connections of this event loop."""
        for task in (self._looking, *self._recovering.values()):
            if task is not None:
                task.cancel()
        self.hot.close()


def _settled(done: asyncio.Task[None]) -> None:
    """Its error is told to whoever waits for it, if anybody does."""
    if not done.cancelled():
        done.exception()
