"""What a subscription reads: all partitions of its topics, or this member's share of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from math import inf

from ..base import metrics as m
from ..errors import UnknownTopicIdError
from ..groups.membership import Membership, Owner
from ..hot.waits import Waker
from ..values.topic_partition import TopicPartition
from .assigned_partitions import AssignedPartitions
from .cursor import Cursor
from .group_offsets import GroupOffsets
from .subscription import FollowedTopics, Subscription

#: A member that reads looks at least this often whether its group shares out anew, or whether the
#: others have come for whom it waits. It is woken for news.
ATTEND_S = 0.5

#: Makes a membership, of its owner, of what tells the partitions of topics, and of what is called
#: when there is something to do.
Join = Callable[[Owner, Callable[[], Mapping[str, int]], Callable[[], None]], Membership]


class Following(Owner):
    """Gives a consumer its partitions and takes them, as topics come and go.

    Args:
        topics: which there are.
        reading: what is given and taken.
        waker: ends the consumer's wait when there is something to do.
        join: joins the group that shares them out; None: it reads all.
        offsets: the group's, committed before partitions go.
    """

    def __init__(
        self,
        subscription: Subscription,
        topics: FollowedTopics,
        reading: AssignedPartitions,
        waker: Waker,
        join: Join | None = None,
        offsets: GroupOffsets | None = None,
    ) -> None:
        self.subscription = subscription
        self._topics = topics
        self._reading = reading
        self._waker = waker
        self._offsets = offsets
        self._attended_s = -inf
        self._is_waiting = False  # for the others of the group
        self.membership = (
            None if join is None else join(self, self._topics.partition_counts, waker.set)
        )

    def subscribe(self, subscription: Subscription) -> None:
        """Follow other topics from now on."""
        self.subscription = subscription
        self._topics.look_again()
        self._attended_s = -inf

    @property
    def due_s(self) -> float:
        """When to call `follow` again at the latest; monotonic."""
        if self.membership is None:
            return self._topics.due_s
        if self._waker.is_set or (self._is_waiting and not len(self._reading)):
            return 0.0  # long ago
        return min(self._topics.due_s, self._attended_s + ATTEND_S)

    def follow(self, timeout_ms: int) -> None:
        """Give and take; wait for the group no longer than that, and only with nothing to read."""
        if self._topics.look():
            self._look()
        if self.membership is None:
            return
        left_ms = round((self._topics.due_s - time.monotonic()) * 1000)
        # What is kept is read on, while the others are waited for.
        wait_ms = 0 if len(self._reading) else max(0, min(timeout_ms, left_ms))
        self._waker.clear()  # what is heard from here on is for the next time
        # No longer at once, since nothing but the others ends that wait: not even closing.
        self._is_waiting = not self.membership.attend(min(wait_ms, round(ATTEND_S * 1000)))
        self._attended_s = time.monotonic()

    def are_gone(self, cursors: Iterable[Cursor]) -> bool:
        """Whether those that failed did so since their topics were deleted; they are left then."""
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
        """Give all up, and leave the group."""
        if self.membership is not None:
            self.membership.leave()
            return
        self.subscription.tell_revoked(self._reading.partitions())
        self._reading.replace({})

    # -- as the owner of a membership ----------------------------------------------------------

    def revoked(self, partitions: set[TopicPartition]) -> None:
        """See `Owner.revoked`."""
        try:
            if self._offsets is not None:
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
        assert self.membership is not None  # it tells this
        m.COUNTS.add(m.REBALANCES, 1, self.membership.group_id)
        self._add(partitions)
        self.subscription.tell_assigned(partitions)

    # -- how -----------------------------------------------------------------------------------

    def _look(self) -> None:
        """Goes by the topics that there are now."""
        now = self._topics.now
        self._topics.tell_missing(self.subscription.names)
        found = [topic.name for topic in self.subscription.of_these(now.values())]
        if self.membership is None:
            self._read_all(found)
            return
        # Names that are not there yet are asked for, too: the leader may know them first.
        self.membership.subscribe(self.subscription.names or found)
        made_again = [
            cursor.topic_partition
            for cursor in self._reading
            if (topic := now.get(cursor.topic_partition.topic)) is not None
            and topic.topic_id != cursor.log.topic.topic_id
        ]
        self._reading.remove(made_again)
        self._add(self.membership.partitions - self._reading.partitions())

    def _read_all(self, names: Iterable[str]) -> None:
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
