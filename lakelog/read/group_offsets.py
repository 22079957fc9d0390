"""How far a consumer's group has come: what it commits, and where its partitions begin."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from typing import Any

from ..base.back_off import ASK_AGAIN, PATIENCE_S, patiently
from ..errors import (
    CommitFailedError,
    InvalidArgumentError,
    LakelogError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from ..groups.coordinator import GroupCoordinator
from ..groups.membership import MemberGeneration, Membership
from ..tracing.switch import tracer
from ..values.arguments import check_callback, checked_partition, whole
from ..values.offsets import check_offset
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .cursor import Cursor
from .topic_log import TopicLog

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
#: Called with what was committed, and why it was not; None: it was.
OnCommit = Callable[[dict[TopicPartition, OffsetAndMetadata], Exception | None], object]

logger = logging.getLogger(__name__)


class GroupOffsets:
    """The committed offsets of one consumer's group.

    They carry the id of the topic's creation: one that was deleted and made again begins anew.

    Args:
        logs: gives the log of a topic, as it is read or as it is now.
        check_there: raises unless there is such a partition now.
        auto_commit_interval_ms: how often what was read is committed by itself; None: never.
        consumed: the positions of what is read.
    """

    def __init__(
        self,
        coordinator: GroupCoordinator,
        group_id: str,
        logs: Callable[[str], TopicLog],
        check_there: Callable[[TopicPartition], object],
        auto_commit_interval_ms: int | None,
        consumed: Callable[[], dict[TopicPartition, OffsetAndMetadata]],
    ) -> None:
        self.group_id = group_id
        #: Who commits; None: somebody who assigns partitions by hand.
        self.membership: Membership | None = None
        self._coordinator = coordinator
        self._logs = logs
        self._check_there = check_there
        self._consumed = consumed
        self._tracer = tracer()
        self._interval_s = inf if auto_commit_interval_ms is None else auto_commit_interval_ms / 1e3
        self._due_s = time.monotonic() + self._interval_s
        self._worker: ThreadPoolExecutor | None = None
        self._under_way: list[Future[None]] = []
        self._ended: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()

    # -- commits -------------------------------------------------------------------------------

    def commit(self, offsets: Offsets | None, timeout_ms: int | None = None) -> None:
        """See `Consumer.commit`."""
        self.settle()
        self._commit(self._checked(offsets), timeout_ms, self._generation())

    def commit_async(self, offsets: Offsets | None, callback: OnCommit | None) -> Future[None]:
        """See `Consumer.commit_async`."""
        self.tell()
        check_callback(callback)
        chosen = self._checked(offsets)
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, f"lakelog-commits-{self.group_id}")
        future = self._worker.submit(self._commit, chosen, None, self._generation())
        self._under_way = [one for one in self._under_way if not one.done()] + [future]
        if callback is not None:
            future.add_done_callback(
                lambda done: self._ended.put(lambda: callback(chosen, _failure(done)))
            )
        return future

    def tell(self) -> None:
        """Calls the callbacks of commits that have ended, in the caller's thread."""
        while True:
            try:
                call = self._ended.get_nowait()
            except queue.Empty:
                return
            call()

    def settle(self) -> None:
        """Waits for the commits that are under way, so that none comes after a later one."""
        for future in self._under_way:
            future.exception()
        self._under_way = []
        self.tell()

    @property
    def due_s(self) -> float:
        """When `auto_commit_if_due` does something; monotonic."""
        return self._due_s

    def auto_commit_if_due(self) -> None:
        """Commits what was read, if it is time."""
        if time.monotonic() >= self._due_s:
            self.auto_commit()

    def auto_commit(self) -> None:
        """Commits what was read, unless the consumer does that itself. What fails is logged."""
        if self._interval_s == inf:
            return
        self._due_s = time.monotonic() + self._interval_s
        self.settle()
        offsets = self._consumed()
        if not offsets:
            return
        try:
            self._commit_once(offsets, self._generation())
        except LakelogError as error:
            shown = ", ".join(f"{tp} at {one.offset}" for tp, one in sorted(offsets.items())[:5])
            logger.warning(
                "group %r: what was read (%s%s) was not committed: %s",
                self.group_id,
                shown,
                ", …" if len(offsets) > 5 else "",
                error,
            )

    def stop_auto_commit(self) -> None:
        """What was read since the last commit may not be done."""
        self._interval_s = self._due_s = inf

    def close(self) -> None:
        """Waits for the commits that are under way."""
        self.settle()
        if self._worker is not None:
            self._worker.shutdown()
            self._worker = None
        self.tell()

    # -- what is committed ---------------------------------------------------------------------

    def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed of these topics as they are now."""
        self.settle()
        return self._committed({tp: self._topic_id(tp) for tp in partitions})

    def find_starts(self, cursors: Collection[Cursor]) -> None:
        """Moves cursors to what the group has committed; the others go by ``auto_offset_reset``."""
        self.settle()
        ids = {cursor.topic_partition: cursor.log.topic.topic_id for cursor in cursors}
        found = self._committed(ids)
        for cursor in cursors:
            committed = found.get(cursor.topic_partition)
            cursor.start_at(None if committed is None else committed.offset)

    def _committed(
        self, topic_ids: Mapping[TopicPartition, object]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        found = self._coordinator.committed(self.group_id, topic_ids)
        return {
            tp: one.committed
            for tp, one in found.items()
            if one.topic_id is None or one.topic_id == topic_ids[tp]
        }

    # -- how -----------------------------------------------------------------------------------

    def _generation(self) -> MemberGeneration | None:
        return None if self.membership is None else self.membership.generation()

    def _commit(
        self, offsets: Offsets, timeout_ms: int | None, generation: MemberGeneration | None
    ) -> None:
        """Again while Redis is away, for so long."""
        within_s = PATIENCE_S if timeout_ms is None else timeout_ms / 1000

        def once() -> RebalanceInProgressError | None:
            try:
                self._commit_once(offsets, generation)
            except RebalanceInProgressError as error:  # only a poll ends it
                return error
            return None

        stopped = patiently(
            f"committing of group {self.group_id!r}", once, ASK_AGAIN.within(within_s)
        )
        if stopped is not None:
            raise stopped

    def _commit_once(self, offsets: Offsets, generation: MemberGeneration | None) -> None:
        if self._tracer is None:
            self._commit_now(offsets, generation)
            return
        with self._tracer.settle("commit", self.group_id, offsets.keys()):
            self._commit_now(offsets, generation)

    def _commit_now(self, offsets: Offsets, generation: MemberGeneration | None) -> None:
        topics = {tp.topic: tp for tp in offsets}
        ids = {topic: self._topic_id(tp) for topic, tp in topics.items()}
        known = {topic: id_ for topic, id_ in ids.items() if id_ is not None}
        if self.membership is not None:
            self.membership.commit(offsets, known, generation)
            return
        try:
            self._coordinator.commit(self.group_id, offsets, topic_ids=known)
        except UnknownMemberIdError as error:
            raise CommitFailedError(
                f"nothing was committed: group {self.group_id!r} has members, which share its "
                "topics, and this consumer is none of them. Subscribe instead of assigning "
                "partitions, or use another group_id",
                group_id=self.group_id,
            ) from error

    def _topic_id(self, partition: TopicPartition) -> Any:
        """None: there is no such topic."""
        try:
            return self._logs(partition.topic).topic.topic_id
        except UnknownTopicOrPartitionError:
            return None

    def _checked(self, offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata]:
        if offsets is None:
            return self._consumed()
        if not isinstance(offsets, Mapping):
            raise InvalidArgumentError(
                f"offsets={offsets!r} is no dict of TopicPartition to OffsetAndMetadata"
            )
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for tp, given in offsets.items():
            if not isinstance(given, tuple) or not 1 <= len(given) <= 3:
                raise InvalidArgumentError(
                    f"offsets[{tp}]={given!r} is no OffsetAndMetadata; commit "
                    "{TopicPartition('flights', 0): OffsetAndMetadata(42)}"
                )
            one = OffsetAndMetadata(*given)
            metadata, epoch = one.metadata or "", whole(one.leader_epoch)
            if not isinstance(metadata, str) or epoch is None:
                raise InvalidArgumentError(
                    f"offsets[{tp}]={given!r}: metadata is text, and leader_epoch a whole number, "
                    "-1 for none"
                )
            found[checked_partition(tp)] = OffsetAndMetadata(
                check_offset(one.offset), metadata, epoch
            )
        # An offset of a topic that is not there would be taken for one of whoever is made later.
        for tp in found.keys() - self._consumed().keys():
            self._check_there(tp)
        return found


def _failure(future: Future[None]) -> Exception | None:
    error = future.exception()
    return error if isinstance(error, Exception) else None
