"""A stream's progress as the committed offsets of a consumer group, so that its lag is seen there.

Runs on: driver.
"""

from __future__ import annotations

import logging

from ..base.clock import Clock
from ..errors import LakelogError, UnknownMemberIdError
from ..groups.coordinator import GroupCoordinator
from ..place import LogPlace
from ..values.config import SECOND_MS
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .offsets_json import StreamOffset

logger = logging.getLogger(__name__)

#: What a group has committed expires, after a minute at the earliest: a stream that waits says it
#: again.
_AGAIN_MS = 20 * SECOND_MS


class GroupProgress:
    """Commits for a group how far one stream has come.

    The stream goes by its checkpoint, and never by this: what cannot be committed is logged once,
    and tried with the next micro-batch.
    """

    def __init__(self, place: LogPlace, group_id: str, clock: Clock) -> None:
        self._place = place
        self._coordinator: GroupCoordinator | None = None
        self._group_id = group_id
        self._clock = clock
        self._committed: dict[TopicPartition, int] = {}
        self._all_at_ms: int | None = None  # when all of it was committed last
        self._said: str | None = None  # why it was not

    def reached(self, position: StreamOffset) -> None:
        """All that comes before the position has been taken by the stream's sink."""
        if position.initial:
            return  # where it will begin: nothing is read yet
        now_ms = self._clock.now_ms()
        again = self._all_at_ms is None or now_ms - self._all_at_ms >= _AGAIN_MS
        offsets = {
            tp: OffsetAndMetadata(offset)
            for tp, offset in position.offsets.items()
            if again or self._committed.get(tp) != offset
        }
        if not offsets:
            return
        try:
            if self._coordinator is None:
                hot = self._place.open_hot()
                self._coordinator = GroupCoordinator(hot.connections, hot.keyspace)
            self._coordinator.commit(self._group_id, offsets, topic_ids=position.topic_ids)
        except LakelogError as error:
            self._not_committed(error)
            return
        self._committed.update({tp: one.offset for tp, one in offsets.items()})
        if again:
            self._all_at_ms = now_ms
        self._said = None

    def _not_committed(self, error: LakelogError) -> None:
        why = str(error)
        if isinstance(error, UnknownMemberIdError):
            why = (
                "the group has members, which share its topics among them, and a stream is none. "
                "Give the stream a groupId of its own"
            )
        if why != self._said:
            logger.warning(
                "group %r is not told how far the stream is, which goes on: %s", self._group_id, why
            )
            self._said = why
