"""Puts right what can be derived. No record, offset or log start ever changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ...base.text_table import counted
from ...errors import LakelogError
from ...hot.hot_log import HotLog
from ...hot.mending import Mend
from ...hot.registry import TopicRegistry
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

#: Whether something was put right, and what was done, or why it was not.
_Done = tuple[bool, str]


def repair(log: Checked, findings: Sequence[Finding], topics: Sequence[Topic]) -> list[Repair]:
    """Puts right what the findings say that can be.

    Args:
        topics: those that the findings are about.
    """
    known = {topic.name: topic for topic in topics}
    done: list[Repair] = []
    for kinds, does in _STEPS:
        found = [one for one in findings if one.kind in kinds]
        for place in dict.fromkeys((one.topic, one.partition) for one in found):
            topic, partition = known.get(place[0] or ""), place[1]
            if topic is None:
                continue
            of_place = [one for one in found if (one.topic, one.partition) == place]
            kind = "+".join(dict.fromkeys(one.kind.value for one in of_place))
            number = 0 if partition is None else partition
            mender = _Mender(log, topic, topic.partition(number))
            try:
                made = list(does(mender))
            except LakelogError as error:
                made = [(False, error.message)]
            done += (Repair(kind, topic.name, partition, *one) for one in made)
    return done


class _Mender(Struct):
    """Puts right one partition, or its topic's table."""

    log: Checked
    topic: Topic
    topic_partition: TopicPartition

    @property
    def _registry(self) -> TopicRegistry:
        assert self.log.registry is not None  # else nothing of it was found
        return self.log.registry

    @property
    def _redis(self) -> HotLog:
        assert self.log.redis is not None
        return self.log.redis

    def registry(self) -> Iterator[_Done]:
        topic, tp, redis = self.topic, self.topic_partition, self._redis
        if redis.rebuilding().has_entries_alone(tp):
            yield from self.segments()
        self._registry.repair(topic)
        newest = self._registry.renewed(topic)
        look = redis.inspection().look(tp, topic.topic_id)
        mend = settings_mend(newest, look)
        is_done = mend is None or all(redis.mending().apply(tp, topic.topic_id, [mend]))
        what = f"the partition has the topic's settings of config version {newest.config_version}"
        if not look.recovered and not look.entries:
            what += (
                "; it was made again, and goes on above every offset that was given out: what only "
                "Redis held of it is lost"
            )
        yield is_done, what if is_done else "somebody changed the settings meanwhile; check again"

    def segments(self) -> Iterator[_Done]:
        """Has the entries say what the keys beside them said."""
        topic, tp = self._registry.renewed(self.topic), self.topic_partition
        tiered = self.topic.config.tiered
        cold = self.log.table_of(topic).snapshot() if tiered else None
        ends = (cold.archived_end(tp.partition), cold.log_start(tp.partition)) if cold else (0, 0)
        found = self._redis.rebuilding().rebuild(topic, tp, *ends)
        what = (
            f"what Redis said of the offsets {found.start_offset}..{found.end_offset - 1} was "
            "written anew, from the entries"
        )
        if found.holes:
            what += f"; {Ranges.of(found.holes)} have no entry, and are declared as skipped"
        if not tiered:
            what += (
                "; the log starts with the oldest entry, so that those of its records are back "
                "that were deleted before"
            )
        yield True, what
        yield from self.entries()

    def entries(self) -> Iterator[_Done]:
        """Derives sums, statistics and the time index from the entries; writes what differs."""
        redis, topic, tp = self._redis, self.topic, self.topic_partition
        written = 0
        for _ in range(_ROUNDS):
            found = HotVerification(redis, topic, redis.inspection().look(tp, topic.topic_id))
            for _batch in found.run():
                pass
            mends: list[Mend] = list(found.mends)
            if any(one.kind is Kind.TIME_INDEX for one in found.findings.found):
                mends += index_mends(redis, topic, tp)
            if not mends:
                verb = "was" if written == 1 else "were"
                yield True, f"{counted(written, 'value')} {verb} written anew, from the entries"
                return
            written += sum(redis.mending().apply(tp, topic.topic_id, mends))
        yield False, "it is appended to faster than it can be looked at; check again later"

    def properties(self) -> Iterator[_Done]:
        newest = self._registry.renewed(self.topic)
        self.log.table_of(self.topic).mirror(newest)
        yield True, f"the table's properties are those of config version {newest.config_version}"

    def orphans(self) -> Iterator[_Done]:
        removed = self.log.table_of(self.topic).remove_orphans()
        yield True, f"removed {counted(len(removed.old), 'file')} that no commit names"


#: In this order: what is derived from the entries needs a partition with its settings.
_STEPS: tuple[tuple[frozenset[Kind], Callable[[_Mender], Iterator[_Done]]], ...] = (
    (frozenset({Kind.REGISTRY, Kind.PARTITION}), _Mender.registry),
    (frozenset({Kind.SEGMENT}), _Mender.segments),
    (frozenset({Kind.STATISTICS, Kind.TIME_INDEX}), _Mender.entries),
    (frozenset({Kind.PROPERTIES}), _Mender.properties),
    (frozenset({Kind.ORPHAN}), _Mender.orphans),
)
