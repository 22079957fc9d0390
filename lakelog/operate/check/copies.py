"""Whether copies of a topic's settings are right, and whether groups' offsets can be read. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from uuid import UUID

from ...groups.recorded_offset import GroupType, RecordedOffset
from ...hot.inspection import HotLook
from ...hot.mending import Mend
from ...hot.topic_definition import settings_text
from ...values.offsets import LogOffsets
from ...values.record import MAX_OFFSET
from ...values.topic import Topic


def partition_flaw(topic: Topic, look: HotLook) -> str | None:
    """How a partition's settings in Redis differ from the topic's; None: they do not."""
    version = look.number("config_version")
    if version != topic.config_version:
        return (
            f"has the settings of config version {version}, but the topic is at "
            f"{topic.config_version}: a change was cut short"
        )
    if settings_mend(topic, look) is not None:
        return f"has other settings than the topic's config version {version} says"
    return None


def settings_mend(topic: Topic, look: HotLook) -> Mend | None:
    """What rights settings that are not those of their version; None: they are."""
    said, held = look.state.get("settings", b"").decode("latin-1"), settings_text(topic.config)
    # An older lakelog knew fewer of them; what it left out has a meaning of its own.
    if said and (held == said or held.startswith(f"{said} ")):
        return None
    return Mend("settings", said, f"{topic.config_version} {held}")


def table_flaws(topic: Topic, mirrored: Topic) -> Iterator[str]:
    """How a table's description of its topic differs from the topic."""
    if mirrored.deleted_ms is not None:
        yield "say that the topic was deleted"
    for name, said, holds in (
        ("config version", mirrored.config_version, topic.config_version),
        ("partitions", mirrored.partitions, topic.partitions),
        ("keyspace", mirrored.keyspace, topic.keyspace),
        ("keyspace id", mirrored.keyspace_id, topic.keyspace_id),
        ("settings", mirrored.config.to_json(), topic.config.to_json()),
    ):
        if said != holds:
            yield f"say {name} {said}, but the topic has {name} {holds}"


def offset_flaw(
    one: RecordedOffset, topic: Topic | None, held: LogOffsets | None, kept: Collection[UUID]
) -> tuple[str, bool] | None:
    """What is to be said of an offset that a group has committed, and whether it is a fault.

    A fault is what no client can commit: an offset that cannot be, or of a partition that the topic
    never had. The others are legal, as in Kafka, and told, since a group that goes on from there
    goes elsewhere than it may think: offsets above the log end or below the log start, and those of
    topics that are gone.

    Args:
        topic: None: there is none of that name.
        held: where the partition began and ended after the groups were looked at; None: not known.
        kept: ids of topics that were deleted and are kept: they may come back.
    """
    offset, partition = one.committed.offset, one.topic_partition.partition
    if topic is None or one.topic_id not in (None, topic.topic_id):
        if one.topic_id in kept:
            return None
        gone = "of no topic that is there" if topic is None else "of an earlier topic of that name"
        return f"is {gone}: it expires, or reset-offsets --delete", False
    if not topic.has(partition):
        return f"is of a partition that was never there: {topic.partitions} are", True
    if not 0 <= offset <= MAX_OFFSET:
        return "is no offset", True
    if held is None:
        return None
    if offset > held.log_end:
        return f"lies above the log end {held.log_end}", False
    if offset < held.log_start and one.group_type is not GroupType.SHARE:
        what = (
            f"lies below the log start {held.log_start}: the records up to there are gone, and the "
            "group goes on by its auto_offset_reset"
        )
        return what, False
    return None
