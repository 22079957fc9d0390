"""Whether what groups have committed can be read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from msgspec import Struct

from ...groups.recorded_offset import GroupType, RecordedOffset
from ...values.record import MAX_OFFSET
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from .finding import HOT, Finding, Kind


class LogRange(Struct, frozen=True):
    """What a partition held after the groups were looked at."""

    log_start: int
    log_end: int


def judged(
    committed: Iterable[RecordedOffset],
    topics: Mapping[str, Topic],
    ranges: Mapping[tuple[str, int], LogRange],
    deleted: Iterable[UUID],
) -> Iterator[tuple[Finding, bool]]:
    """What is to be said of each offset, and whether it is a fault.

    A fault is what no client can commit: an offset that cannot be, or of a partition that the topic
    never had. The others are legal, as in Kafka, and told, since a group that goes on from there
    goes elsewhere than it may think: offsets above the log end or below the log start, and those of
    topics that are gone.

    Args:
        topics: those that are there, by name.
        ranges: of the partitions that were checked, by topic and partition.
        deleted: ids of topics that were deleted and are kept: they may come back.
    """
    kept = set(deleted)
    for one in committed:
        topic = topics.get(one.topic_partition.topic)
        if topic is None or one.topic_id not in (None, topic.topic_id):
            if one.topic_id not in kept:
                is_other = topic is not None
                gone = (
                    "of an earlier topic of that name" if is_other else "of no topic that is there"
                )
                yield _finding(one, f"is {gone}: it expires, or reset-offsets --delete"), False
            continue
        partition = one.topic_partition.partition
        if not 0 <= partition < topic.partitions:
            yield (
                _finding(one, f"is of a partition that was never there: {topic.partitions} are"),
                True,
            )
            continue
        if not 0 <= one.committed.offset <= MAX_OFFSET:
            yield _finding(one, "is no offset"), True
            continue
        held = ranges.get((topic.name, partition))
        if held is None:
            continue
        if one.committed.offset > held.log_end:
            yield _finding(one, f"lies above the log end {held.log_end}"), False
        elif one.committed.offset < held.log_start and one.group_type is not GroupType.SHARE:
            yield (
                _finding(
                    one,
                    f"lies below the log start {held.log_start}: the records up to there are "
                    "gone, and the group goes on by its auto_offset_reset",
                ),
                False,
            )


def _finding(one: RecordedOffset, what: str) -> Finding:
    offset = one.committed.offset
    kind = "share group" if one.group_type is GroupType.SHARE else "group"
    topic, partition = one.topic_partition
    return Finding(
        Kind.GROUP_OFFSET,
        HOT,
        topic,
        partition,
        f"{kind} {one.group_id!r}",
        f"offset {offset} {what}",
        (OffsetRange(offset, offset + 1),),
    )
