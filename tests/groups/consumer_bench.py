"""Members by Kafka's consumer protocol as their clients are, on a real server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lakelog import Lakelog
from lakelog.groups.consumer_groups import ConsumerGroups
from lakelog.groups.consumer_values import (
    JOINS,
    LEAVES,
    ConsumerHeartbeat,
    ConsumerTold,
    TopicIdPartition,
    spelled_owned,
)

GROUP = "g"


class Client:
    """What a client of Kafka keeps: where it is, what it was told, and what it thinks it may read.

    As clients do, it says what it owns once it did as it was told, and all it has to say if it does
    not know whether its last heartbeat arrived.
    """

    def __init__(
        self,
        groups: ConsumerGroups,
        lake: Lakelog,
        member_id: str,
        *,
        topics: Iterable[str] = ("orders",),
        **said: Any,
    ) -> None:
        self._groups = groups
        self._lake = lake
        self.member_id = member_id
        self.epoch = JOINS
        self.owned: frozenset[TopicIdPartition] = frozenset()
        self.told: frozenset[TopicIdPartition] = frozenset()
        self._says_all = True
        self._says_owned = True
        self._all = {"topics": tuple(topics), "rebalance_timeout_ms": 60_000, **said}

    @property
    def topics(self) -> tuple[str, ...]:
        topics: tuple[str, ...] = self._all["topics"]
        return topics

    @property
    def instance_id(self) -> str | None:
        instance_id: str | None = self._all.get("instance_id")
        return instance_id

    def subscribe(self, topics: Iterable[str]) -> None:
        """The next heartbeat says so."""
        self._all["topics"] = tuple(topics)
        self._says_all = True

    @property
    def partitions(self) -> list[str]:
        return sorted(str(one.topic_partition) for one in self.owned)

    def say(self, *, is_lost: bool = False, **said: Any) -> ConsumerTold:
        """A heartbeat.

        Args:
            is_lost: its answer is.
        """
        given = self._all if self._says_all else {}
        owned = _spelled(self.owned) if self._says_all or self._says_owned else None
        fields = {"instance_id": self.instance_id, "owned": owned, **given, **said}
        heartbeat = ConsumerHeartbeat(member_id=self.member_id, member_epoch=self.epoch, **fields)
        told = self._groups.heartbeat(GROUP, heartbeat, self._lake.hot.topics().version())
        if is_lost:
            self._says_all = True
            return told
        self._says_all = self._says_owned = False
        self.epoch = told.member_epoch
        if told.partitions is not None:
            self.told = frozenset(told.partitions)
        return told

    def obey(self) -> None:
        """Gives up and takes what it was told, and will say so, even if nothing changes by it."""
        self.owned, self._says_owned = self.told, True

    def forget(self) -> None:
        """It was fenced, or left: it has nothing."""
        self.epoch, self.owned, self.told = JOINS, frozenset(), frozenset()
        self._says_all = True

    def leave(self, epoch: int = LEAVES) -> None:
        self.epoch = epoch
        self.say()
        self.forget()


def _spelled(owned: frozenset[TopicIdPartition]) -> tuple[str, ...]:
    by_topic: dict[Any, list[int]] = {}
    for one in sorted(owned):
        by_topic.setdefault(one.topic_id, []).append(one.topic_partition.partition)
    return spelled_owned(by_topic)


def settle(*clients: Client, rounds: int = 6) -> None:
    """Everybody says and does what is due, in turns."""
    for _ in range(rounds):
        for client in clients:
            client.say()
            client.obey()
