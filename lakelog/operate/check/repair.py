"""Puts right what can be derived. No record, offset or log start ever changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...base.text_table import counted
from ...errors import LakelogError
from ...hot.mending import Mend
from ...values.offset_ranges import Ranges
from ...values.topic import Topic
from ...values.topic_partition import TopicPartition
from .check import Checked
from .copies import settings_mend
from .finding import Finding, Kind, Repair
from .hot_verification import HotVerification
from .time_index import index_mends

#: How often a partition is looked at that somebody appends to or trims meanwhile.
_ROUNDS = 5


def repair(log: Checked, findings: Sequence[Finding], topics: Sequence[Topic]) -> list[Repair]:
    """Puts right what the findings say that can be.

    Args:
        topics: those that the findings are about.
    """
    known = {topic.name: topic for topic in topics}
    done: list[Repair] = []
    for kinds, does in _STEPS:
        for name, partition in dict.fromkeys(
            (one.topic, one.partition) for one in findings if one.kind in kinds
        ):
            topic = known.get(name or "")
            if topic is None:
                continue
            kind = "+".join(
                dict.fromkeys(
                    one.kind.value
                    for one in findings
                    if one.kind in kinds and (one.topic, one.partition) == (name, partition)
                )
            )
            try:
                made = [
                    Repair(kind, topic.name, partition, is_done, what)
                    for is_done, what in does(log, topic, partition)
                ]
            except LakelogError as error:
                made = [Repair(kind, topic.name, partition, False, error.message)]
            done += made
    return done


def _of_registry(log: Checked, topic: Topic, partition: int | None) -> Iterator[tuple[bool, str]]:
    assert log.registry is not None
    assert log.redis is not None
    assert partition is not None
    topic_partition = topic.partition(partition)
    if log.redis.rebuilding().has_entries_alone(topic_partition):
        yield True, _rebuilt(log, topic, topic_partition)
        yield _mended(log, topic, topic_partition)
    log.registry.repair(topic)
    newest = log.registry.renewed(topic)
    look = log.redis.inspection().look(topic_partition, topic.topic_id)
    mend = settings_mend(newest, look)
    is_done = mend is None or all(
        log.redis.mending().apply(topic_partition, topic.topic_id, [mend])
    )
    what = f"the partition has the topic's settings of config version {newest.config_version}"
    if not look.recovered and not look.entries:
        what += (
            "; it was made again, and goes on above every offset that was given out: what only "
            "Redis held of it is lost"
        )
    yield is_done, what if is_done else "somebody changed the settings meanwhile; check again"


def _of_segments(log: Checked, topic: Topic, partition: int | None) -> Iterator[tuple[bool, str]]:
    assert partition is not None
    yield True, _rebuilt(log, topic, topic.partition(partition))
    yield _mended(log, topic, topic.partition(partition))


def _rebuilt(log: Checked, topic: Topic, topic_partition: TopicPartition) -> str:
    """Has the entries say what the keys beside them said, and tells of it."""
    assert log.registry is not None
    assert log.redis is not None
    newest, partition = log.registry.renewed(topic), topic_partition.partition
    cold = log.table_of(newest).snapshot() if topic.config.tiered else None
    found = log.redis.rebuilding().rebuild(
        newest,
        topic_partition,
        cold.archived_end(partition) if cold else 0,
        cold.log_start(partition) if cold else 0,
    )
    what = (
        f"what Redis said of the offsets {found.start_offset}..{found.end_offset - 1} was written "
        "anew, from the entries"
    )
    if found.holes:
        what += f"; {Ranges.of(found.holes)} have no entry, and are declared as skipped"
    if not topic.config.tiered:
        what += (
            "; the log starts with the oldest entry, so that those of its records are back that "
            "were deleted before"
        )
    return what


def _of_properties(log: Checked, topic: Topic, partition: int | None) -> Iterator[tuple[bool, str]]:
    assert log.registry is not None
    newest = log.registry.renewed(topic)
    log.table_of(topic).mirror(newest)
    yield True, f"the table's properties are those of config version {newest.config_version}"


def _of_orphans(log: Checked, topic: Topic, partition: int | None) -> Iterator[tuple[bool, str]]:
    removed = log.table_of(topic).remove_orphans()
    files = f"{len(removed.old):,} file{'' if len(removed.old) == 1 else 's'}"
    yield True, f"removed {files} that no commit names"


def _of_entries(log: Checked, topic: Topic, partition: int | None) -> Iterator[tuple[bool, str]]:
    assert partition is not None
    yield _mended(log, topic, topic.partition(partition))


def _mended(log: Checked, topic: Topic, topic_partition: TopicPartition) -> tuple[bool, str]:
    """Derives sums, statistics and the time index from the entries, and writes what differs."""
    redis = log.redis
    assert redis is not None
    written = 0
    for _ in range(_ROUNDS):
        look = redis.inspection().look(topic_partition, topic.topic_id)
        entries = HotVerification(redis, topic, look)
        for _batch in entries.run():
            pass
        mends: list[Mend] = list(entries.mends)
        if any(one.kind is Kind.TIME_INDEX for one in entries.findings.found):
            mends += index_mends(redis, topic, topic_partition)
        if not mends:
            verb = "was" if written == 1 else "were"
            return True, f"{counted(written, 'value')} {verb} written anew, from the entries"
        written += sum(redis.mending().apply(topic_partition, topic.topic_id, mends))
    return False, "it is appended to faster than it can be looked at; check again later"


_Step = Callable[[Checked, Topic, int | None], Iterator[tuple[bool, str]]]

#: In this order: what is derived from the entries needs a partition with its settings.
_STEPS: tuple[tuple[frozenset[Kind], _Step], ...] = (
    (frozenset({Kind.REGISTRY, Kind.PARTITION}), _of_registry),
    (frozenset({Kind.SEGMENT}), _of_segments),
    (frozenset({Kind.STATISTICS, Kind.TIME_INDEX}), _of_entries),
    (frozenset({Kind.PROPERTIES}), _of_properties),
    (frozenset({Kind.ORPHAN}), _of_orphans),
)
