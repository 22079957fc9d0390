"""What a subscription reads: all partitions of its topics, or this member's share of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Protocol

from ..base.metrics import of_process as m
from ..base.metrics.of_process import COUNTS
from ..errors import UnknownTopicIdError, UnknownTopicOrPartitionError
from ..groups.membership import Membership, Owner
from ..hot.waits import Waker
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .assigned_partitions import AssignedPartitions
from .cursor import Cursor
from .group_offsets import GroupOffsets
from .subscription import SeenTopics, Subscription, tell_missing
from .topic_log import TopicLog

logger = logging.getLogger(__name__)

#: A member that reads looks at least this often whether its group shares out anew, or whether the
#: others have come for whom it waits. It is woken for news.
ATTEND_S = 0.5


class Following(Protocol):
    """Gives a consumer its partitions and takes them."""

    subscription: Subscription

    def subscribe(self, subscription: Subscription) -> None:
        """Follow other topics from now on."""
        ...

    def follow(self, timeout_ms: int) -> None:
        """Give and take; wait no longer than that, and only if there is nothing to read."""
        ...

    @property
    def due_s(self) -> float:
        """When to call `follow` again at the latest; monotonic."""
        ...

    def are_gone(self, cursors: Iterable[Cursor]) -> bool:
        """Whether those that failed did so since their topics were deleted; they are left then."""
        ...

    def end(self) -> None:
        """Give all up."""
        ...


class _Topics:
    """The topics there are, looked at now and then, and their logs."""

    def __init__(self, seen: SeenTopics, logs: Callable[[str], TopicLog], max_age_ms: int) -> None:
        self._seen = seen
        self._logs = logs
        self._max_age_s = max_age_ms / 1000
        self._due_s = -inf
        self.now: Mapping[str, Topic] = {}
        self._missing: set[str] = set()  # that the log was told of

    @property
    def due_s(self) -> float:
        return self._due_s

    def look_again(self) -> None:
        self._due_s = -inf

    def look(self) -> bool:
        """Whether it was time to look."""
        if time.monotonic() < self._due_s:
            return False
        self.now = {topic.name: topic for topic in self._seen.now()}
        self._due_s = time.monotonic() + self._max_age_s
        return True

    def tell_missing(self, names: Iterable[str]) -> None:
        """Warns, once each time it goes, of a topic that is subscribed to and not there."""
        self._missing = tell_missing(names, self.now, self._missing)

    def logs(self, names: Iterable[str], known: Mapping[str, TopicLog]) -> dict[str, TopicLog]:
        """The logs of those that are there; one that is known is not opened again."""
        found = {}
        for name in names:
            topic, log = self.now.get(name), known.get(name)
            if (
                topic is not None
                and log is not None
                and log.topic.topic_id == topic.topic_id
                and log.topic.partitions >= topic.partitions
            ):
                found[name] = log
                continue
            try:
                found[name] = self._logs(name)
            except UnknownTopicOrPartitionError:
                continue  # deleted since
        return found


class FollowsAll:
    """Reads all partitions of its topics, and shares them with nobody.

    Args:
        seen: which topics there are.
        logs: opens one.
        reading: what is given and taken.
        max_age_ms: how often it looks.
    """

    def __init__(
        self,
        subscription: Subscription,
        seen: SeenTopics,
        logs: Callable[[str], TopicLog],
        reading: AssignedPartitions,
        max_age_ms: int,
    ) -> None:
        self.subscription = subscription
        self._topics = _Topics(seen, logs, max_age_ms)
        self._reading = reading

    def subscribe(self, subscription: Subscription) -> None:
        """See `Following.subscribe`."""
        self.subscription = subscription
        self._topics.look_again()

    @property
    def due_s(self) -> float:
        return self._topics.due_s

    def follow(self, timeout_ms: int) -> None:
        """See `Following.follow`."""
        if not self._topics.look():
            return
        self._topics.tell_missing(self.subscription.names)
        names = [topic.name for topic in self.subscription.of_these(self._topics.now.values())]
        wanted = {
            TopicPartition(name, number): log
            for name, log in self._topics.logs(names, self._reading.logs()).items()
            for number in range(log.topic.partitions)
        }
        revoked = self._reading.gone(wanted)
        assigned = wanted.keys() - (self._reading.partitions() - revoked)
        self.subscription.tell_revoked(revoked)
        self._reading.replace(wanted)
        if assigned:
            self.subscription.tell_assigned(assigned)

    def are_gone(self, cursors: Iterable[Cursor]) -> bool:
        """See `Following.are_gone`."""
        failed = [one for one in cursors if isinstance(one.failure, UnknownTopicIdError)]
        if not failed:
            return False
        self._topics.look_again()
        self.follow(0)
        return not any(one.is_assigned for one in failed)

    def end(self) -> None:
        """See `Following.end`."""
        self.subscription.tell_revoked(self._reading.partitions())
        self._reading.replace({})


class FollowsGroup(Owner):
    """Reads what its group assigns it.

    Args:
        join: makes the membership, of its owner, of what tells the partitions of topics, and of
            what is called when there is something to do.
        offsets: the group's, committed before partitions go.
        waker: ends the consumer's wait when there is something to do.
        seen, logs, reading, max_age_ms: see `FollowsAll`.
    """

    def __init__(
        self,
        subscription: Subscription,
        seen: SeenTopics,
        logs: Callable[[str], TopicLog],
        reading: AssignedPartitions,
        max_age_ms: int,
        join: Callable[[Owner, Callable[[], Mapping[str, int]], Callable[[], None]], Membership],
        offsets: GroupOffsets,
        waker: Waker,
    ) -> None:
        self.subscription = subscription
        self._topics = _Topics(seen, logs, max_age_ms)
        self._reading = reading
        self._offsets = offsets
        self._attended_s = -inf
        self._is_waiting = False  # for the others of the group
        self.waker = waker
        self.membership = join(self, self._partition_counts, self.waker.set)

    def subscribe(self, subscription: Subscription) -> None:
        """See `Following.subscribe`."""
        self.subscription = subscription
        self._topics.look_again()
        self._attended_s = -inf

    @property
    def due_s(self) -> float:
        if self.waker.is_set or (self._is_waiting and not len(self._reading)):
            return 0.0  # long ago
        return min(self._topics.due_s, self._attended_s + ATTEND_S)

    def follow(self, timeout_ms: int) -> None:
        """See `Following.follow`."""
        if self._topics.look():
            self._look()
        # What is kept is read on, while the others are waited for.
        wait_ms = 0 if len(self._reading) else self._until_look_ms(timeout_ms)
        self.waker.clear()  # what is heard from here on is for the next time
        # No longer at once, since nothing but the others ends that wait: not even closing.
        self._is_waiting = not self.membership.attend(min(wait_ms, round(ATTEND_S * 1000)))
        self._attended_s = time.monotonic()

    def are_gone(self, cursors: Iterable[Cursor]) -> bool:
        """See `Following.are_gone`."""
        failed = [one for one in cursors if isinstance(one.failure, UnknownTopicIdError)]
        if not failed:
            return False
        self._topics.look_again()
        self.follow(0)
        for one in failed:
            topic = self._topics.now.get(one.topic_partition.topic)
            if one.is_assigned and (topic is None or topic.topic_id != one.log.topic.topic_id):
                self._reading.remove([one.topic_partition])
        return not any(one.is_assigned for one in failed)

    def end(self) -> None:
        """See `Following.end`: leaves the group."""
        self.membership.leave()

    # -- as the owner of a membership ----------------------------------------------------------

    def revoked(self, partitions: set[TopicPartition]) -> None:
        """See `Owner.revoked`."""
        try:
            self._offsets.auto_commit()
            self.subscription.tell_revoked(partitions)
        finally:
            self._reading.remove(partitions)

    def lost(self, partitions: set[TopicPartition]) -> None:
        """See `Owner.lost`."""
        try:
            self.subscription.tell_lost(partitions)
        finally:
            self._reading.remove(partitions)

    def assigned(self, partitions: set[TopicPartition]) -> None:
        """See `Owner.assigned`."""
        COUNTS.add(m.REBALANCES, 1, self.membership.group_id)
        self._add(partitions)
        self.subscription.tell_assigned(partitions)

    # -- how -----------------------------------------------------------------------------------

    def _partition_counts(self) -> Mapping[str, int]:
        return {name: topic.partitions for name, topic in self._topics.now.items()}

    def _until_look_ms(self, timeout_ms: int) -> int:
        left_s = self._topics.due_s - time.monotonic()
        return max(0, min(timeout_ms, round(left_s * 1000)))

    def _look(self) -> None:
        """Asks for what a pattern finds now, and begins anew in topics that were made again."""
        names = self.subscription.names
        self._topics.tell_missing(names)
        if self.subscription.pattern is not None:
            found = self.subscription.of_these(self._topics.now.values())
            names = frozenset(topic.name for topic in found)
        self.membership.subscribe(names)
        made_again = [
            cursor.topic_partition
            for cursor in self._reading
            if cursor.topic_partition.topic in self._topics.now
            and self._topics.now[cursor.topic_partition.topic].topic_id != cursor.log.topic.topic_id
        ]
        self._reading.remove(made_again)
        self._add(self.membership.partitions - self._reading.partitions())

    def _add(self, partitions: Iterable[TopicPartition]) -> None:
        """Those whose topics are there; of the others, the leader will hear."""
        logs = self._topics.logs({tp.topic for tp in partitions}, self._reading.logs())
        self._reading.add(
            {
                tp: logs[tp.topic]
                for tp in sorted(partitions)
                if tp.topic in logs and tp.partition < logs[tp.topic].topic.partitions
            }
        )
