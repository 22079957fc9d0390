"""Moving a group's offsets, by the scenarios of ``kafka-consumer-groups --reset-offsets``.

What the log holds and what the group has committed is looked up first; deciding is pure. Whatever a
scenario asks for, an offset lands within [log start, log end], and a warning says so where that
changed it.

| scenario | offset |
|---|---|
| `ToEarliest`, `ToLatest` | the log start, the log end |
| `ToCurrent` | the committed one; where there is none, the log end |
| `ToOffset` | that one |
| `ShiftBy` | the committed one, so many further or back; there must be one |
| `ToDatetime`, `ByDuration` | the first record at or after that time; without one, the log end |
| `FromFile` | what a file says, see `reset_csv` |

Source: Kafka's ``ConsumerGroupCommand`` and ``ResetConsumerGroupOffsetTest``; KIP-122.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import (
    InvalidArgumentError,
    NonEmptyGroupError,
    NoOffsetForPartitionError,
    UnknownTopicOrPartitionError,
)
from ..values.arguments import checked_duration, checked_partition, whole
from ..values.offsets import AtTimestamp
from ..values.topic_partition import TopicPartition
from .group_values import GroupDescription, GroupState

_MS = timedelta(milliseconds=1)


def _whole(value: object) -> int:
    """A number of offsets; one outside the log is brought into it when it is known."""
    number = whole(value)
    if number is None:
        raise InvalidArgumentError(f"{value!r:.200} is not a whole number of offsets", value=value)
    return number


class Scenario(Struct, frozen=True):
    """Where to go."""


class ToEarliest(Scenario, frozen=True):
    """The log start."""


class ToLatest(Scenario, frozen=True):
    """The log end."""


class ToCurrent(Scenario, frozen=True):
    """What is committed; to export it, or to commit the log end where nothing is."""


class ToOffset(Scenario, frozen=True):
    """One offset for all partitions."""

    offset: int

    def __post_init__(self) -> None:
        force_setattr(self, "offset", _whole(self.offset))


class ShiftBy(Scenario, frozen=True):
    """So many offsets further; a negative number goes back."""

    by: int

    def __post_init__(self) -> None:
        force_setattr(self, "by", _whole(self.by))


class ToDatetime(Scenario, frozen=True):
    """The first record at or after a time."""

    timestamp_ms: int  # UTC epoch; made of a time, if it is given one

    def __post_init__(self) -> None:
        force_setattr(self, "timestamp_ms", AtTimestamp(self.timestamp_ms).timestamp_ms)


class ByDuration(Scenario, frozen=True):
    """The first record at or after so long ago."""

    duration: timedelta

    def __post_init__(self) -> None:
        force_setattr(self, "duration", checked_duration("duration", self.duration))


class FromFile(Scenario, frozen=True):
    """What a file says, of the partitions that it names."""

    offsets: Mapping[TopicPartition, int]

    def __post_init__(self) -> None:
        if not isinstance(self.offsets, Mapping):
            raise InvalidArgumentError(
                f"{self.offsets!r:.200} is no dict of offsets by partition, such as "
                "{TopicPartition('orders', 0): 42}"
            )
        offsets = {checked_partition(tp): _whole(one) for tp, one in self.offsets.items()}
        force_setattr(self, "offsets", offsets)


class PartitionFacts(Struct, frozen=True):
    """What is known of one partition before its offset is moved."""

    log_start: int
    log_end: int
    committed: int | None = None
    at_target: int | None = None  # the offset that `target_ms` finds, if a record is that young


class ResetOffset(Struct, frozen=True):
    """Where one partition goes."""

    topic_partition: TopicPartition
    offset: int
    committed: int | None = None  # where it was
    warning: str | None = None  # why it does not go where it was asked to


def target_ms(scenario: Scenario, now_ms: int) -> int | None:
    """The time whose first record has to be looked up; None: the scenario needs none."""
    if isinstance(scenario, ToDatetime):
        return scenario.timestamp_ms
    if isinstance(scenario, ByDuration):
        return max(0, now_ms - scenario.duration // _MS)
    return None


def plan_reset(
    scenario: Scenario, facts: Mapping[TopicPartition, PartitionFacts]
) -> tuple[ResetOffset, ...]:
    """Where each partition goes, by topic and number. Nothing is done.

    Args:
        facts: of the partitions that were asked for; of a file, of all that it names.

    Raises:
        NoOffsetForPartitionError: a shift of a partition of which nothing is committed.
        UnknownTopicOrPartitionError: the file names a partition that there is not.
    """
    asked = facts.keys()
    if isinstance(scenario, FromFile):
        asked = scenario.offsets.keys()
        for partition in sorted(asked - facts.keys()):
            raise UnknownTopicOrPartitionError(
                f"the file names {partition}, which there is not; nothing was changed",
                topic=partition.topic,
                partition=partition.partition,
            )
    if isinstance(scenario, ShiftBy):
        _check_committed(facts)
    return tuple(_planned(scenario, partition, facts[partition]) for partition in sorted(asked))


def check_inactive(group: GroupDescription) -> None:
    """Raises unless the offsets of the group may be moved.

    Raises:
        NonEmptyGroupError: it has members, which go by what they read and would commit over it.
    """
    if group.state in (GroupState.EMPTY, GroupState.DEAD):
        return
    named = [f"{one.client_id} on {one.client_host or 'a host unknown'}" for one in group.members]
    raise NonEmptyGroupError(
        f"offsets of group {group.group_id!r} can be moved only while it has no members, and it is "
        f"{group.state.value} with {len(named)}: {', '.join(named[:5])}"
        f"{', …' if len(named) > 5 else ''}. Stop them first; nothing was changed",
        group_id=group.group_id,
        members=tuple(one.member_id for one in group.members),
    )


def _check_committed(facts: Mapping[TopicPartition, PartitionFacts]) -> None:
    missing = sorted(tp for tp, known in facts.items() if known.committed is None)
    if missing:
        shown = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise NoOffsetForPartitionError(
            f"there is nothing to shift: the group has committed no offset of {shown}. Give an "
            "offset, a time, or earliest or latest; nothing was changed",
            topic_partition=missing[0],
        )


def _planned(scenario: Scenario, partition: TopicPartition, known: PartitionFacts) -> ResetOffset:
    wanted, warning = _wanted(scenario, partition, known)
    offset = min(max(wanted, known.log_start), known.log_end)
    if offset != wanted:
        side, end = ("below", "start") if offset > wanted else ("beyond", "end")
        warning = f"{wanted} of {partition} lies {side} the log {end}; it goes to {offset}"
    return ResetOffset(partition, offset, known.committed, warning)


def _wanted(
    scenario: Scenario, partition: TopicPartition, known: PartitionFacts
) -> tuple[int, str | None]:
    """The offset that is asked for, and what is to be said of it."""
    match scenario:
        case ToEarliest():
            return known.log_start, None
        case ToOffset(offset):
            return offset, None
        case FromFile(offsets):
            return offsets[partition], None
        case ShiftBy(by):
            assert known.committed is not None
            return known.committed + by, None
        case ToCurrent():
            return known.log_end if known.committed is None else known.committed, None
        case ToDatetime() | ByDuration():
            if known.at_target is None:
                warning = f"{partition} has no record at or after that time; it goes to its end"
                return known.log_end, warning
            return known.at_target, None
        case ToLatest():
            return known.log_end, None
    raise AssertionError(f"{scenario} is no scenario")
