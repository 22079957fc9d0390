"""What a member of a share group takes and gives back, and what a share-partition looks like."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum

from msgspec import Struct

from ...values.offsets import appended
from ...values.topic_partition import OffsetRange, TopicPartition


class AcknowledgeType(IntEnum):
    """What a member says of a record, by Kafka's names and numbers."""

    ACCEPT = 1  # done with
    RELEASE = 2  # to be delivered again, to whoever asks next
    REJECT = 3  # never to be delivered again
    RENEW = 4  # still at work: the lock lasts from now


class Outcome(str, Enum):
    """What becomes of a range, as the script spells it."""

    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"
    RENEW = "renew"
    UNREAD = "unread"  # acquired and not handed out: the delivery does not count
    DEAD = "dead"  # it is in the dead-letter topic
    GAP = "gap"  # it holds no records

    @classmethod
    def of(cls, type_: AcknowledgeType) -> Outcome:
        return cls(type_.name.lower())


class RangeState(IntEnum):
    """Kafka's names of the states of a record in a share group."""

    AVAILABLE = 1
    ACQUIRED = 2
    ACKNOWLEDGED = 3
    ARCHIVED = 4
    ARCHIVING = 5  # waits for the dead-letter topic


class AcquiredRange(Struct, frozen=True):
    """Offsets [start, end) that a member holds."""

    start: int
    end: int
    delivery_count: int  # this delivery included; of a dead letter, how often it was delivered
    epoch: int  # of the lock


class Acquisition(Struct, frozen=True):
    """What a member got."""

    delivered: tuple[AcquiredRange, ...]  # in order of offsets
    dead: tuple[AcquiredRange, ...]  # to be written to the dead-letter topic by this member
    end_offset: int  # the first that was never handed out
    log_end: int
    due_in_ms: int | None  # until a lock ends; None: there is none
    is_full: bool  # there are too many ranges: what was never handed out has to wait


#: Of locks, for who does not know theirs: whichever it is, if it is the member's.
ANY_EPOCH = -1


class Acknowledgement(Struct, frozen=True):
    """What became of offsets [start, end) that were acquired under a lock."""

    start: int
    end: int
    epoch: int  # or `ANY_EPOCH`
    outcome: Outcome


class ShareRange(Struct, frozen=True):
    """Offsets [start, end) in one state."""

    start: int
    end: int
    state: RangeState
    delivery_count: int
    member_id: str | None  # who holds it
    locked_until_ms: int | None  # Redis's clock; a lock that is over ends when somebody looks


_DONE = (RangeState.ACKNOWLEDGED, RangeState.ARCHIVED)


class SharePartitionDescription(Struct, frozen=True):
    """Where a share group stands in a partition."""

    topic_partition: TopicPartition
    start_offset: int  # share-partition start offset: all below is done with
    end_offset: int  # the first that was never handed out
    log_end: int | None  # None: the topic was deleted, or made again
    ranges: tuple[ShareRange, ...]  # of [start_offset, end_offset)
    now_ms: int  # Redis's clock

    @property
    def member_ids(self) -> frozenset[str]:
        """Who holds something whose time is not over."""
        return frozenset(
            one.member_id
            for one in self.ranges
            if one.member_id is not None and (one.locked_until_ms or 0) > self.now_ms
        )

    def undone(self, gaps: Iterable[OffsetRange] = ()) -> int | None:
        """How many records are left for it, at most; None: the topic was deleted, or made again.

        Args:
            gaps: offsets that no record has.
        """
        if self.log_end is None:
            return None
        gaps = list(gaps)
        done = (one for one in self.ranges if one.state in _DONE)
        behind = appended(self.start_offset, self.log_end, gaps)
        return max(0, behind - sum(appended(one.start, one.end, gaps) for one in done))

    def held_offsets(self, member_id: str) -> int:
        """How many offsets a member holds whose time is not over."""
        return sum(
            one.end - one.start
            for one in self.ranges
            if one.member_id == member_id and (one.locked_until_ms or 0) > self.now_ms
        )

    def offsets(self, state: RangeState) -> int:
        """How many offsets are in that state; gaps among them count too."""
        return sum(one.end - one.start for one in self.ranges if one.state is state)
