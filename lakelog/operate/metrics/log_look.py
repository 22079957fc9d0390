"""One look at a log for its metrics: both tiers of every partition, the servers, the groups.

All partitions are asked in one round trip to each server, and a table that did not change costs
only a look for its next version. What one topic fails at hides no other.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from uuid import UUID

from msgspec import Struct

from ...archive.report import reported
from ...base import metrics as p
from ...base.metrics import Histogram, Measured, Metric, Sample
from ...cleanup.plan import cleanables
from ...cleanup.report import CleanupReport, figures_of
from ...cold.table import NO_TABLE, ColdSnapshot, ColdTable
from ...errors import HotTierAccessError, LakelogError
from ...groups.group_records import GroupRecords
from ...groups.recorded_offset import SeenGroups
from ...hot import HotLog
from ...hot.activity import Cleanups
from ...hot.archived_into import check_own
from ...read.tiers import join
from ...values.offsets import HotSegments, LogOffsets
from ...values.topic import Topic
from ...values.topic_partition import TopicPartition
from ..group_lag import GroupOffset
from ..headroom import high_water_marks, throttle_ms
from ..status import hot_segments
from . import of_log as m
from .cold_looks import ColdFigures, ColdLooks, Found
from .cold_looks import figures_of as figures_of_files

_NO_FILES = ColdFigures()

#: How dirty a table is grows with time, too: of one that did not change it is reckoned this often.
DIRTY_LASTS_MS = 60_000


class _Dirty(Struct, frozen=True, gc=False):
    """How dirty a compacted topic's partitions were."""

    cold: ColdSnapshot
    at_ms: int
    ratios: Mapping[TopicPartition, float]


class LogLook:
    """Looks at a log again and again; what it saw of tables makes the next look cheap.

    Args:
        hot: the hot tier; None where Redis is not asked, so that only the tables tell.
        table_of: gives a topic's cold tier; None if it has none. Its errors are that topic's.
        groups: None where Redis is not asked.
        now_ms: the time where Redis is not asked.
    """

    def __init__(
        self,
        hot: HotLog | None,
        table_of: Callable[[Topic], ColdTable | None],
        groups: GroupRecords | None,
        now_ms: Callable[[], int],
    ) -> None:
        self._hot = hot
        self._groups = groups
        self._now_ms = now_ms
        self._table_of = table_of
        self.tables = ColdLooks(table_of)
        self._dirty: dict[UUID, _Dirty] = {}

    def look(self, topics: Sequence[Topic], cold_within_s: float = inf) -> list[Measured]:
        """What there is to measure of the topics, and of what is shared.

        Args:
            cold_within_s: how long to wait for tables. What comes later is left out and told by a
                later look.

        Raises:
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
        """
        started_s = time.monotonic()
        found = _Found()
        hot: Mapping[TopicPartition, HotSegments] | None = None
        if self._hot is not None:
            now_ms = self._hot.now_ms()
            # Hot first: a trim between the two looks can then only make the tiers overlap.
            hot = self._hot_offsets(self._hot, topics, found)
        else:
            now_ms = self._now_ms()
        cold = self.tables.look(topics, cold_within_s)
        asked = {topic.topic_id for topic in topics}
        self._dirty = {key: one for key, one in self._dirty.items() if key in asked}
        logs: dict[TopicPartition, LogOffsets] = {}
        for topic in topics:
            seen = self._not_away(topic, hot, cold.get(topic.topic_id))
            logs |= self._topic(topic, hot, seen, now_ms, found)
        if self._hot is not None:
            _servers(self._hot, topics, found)
            _archivers(self._hot, {topic.name for topic in topics}, now_ms, found)
        if self._groups is not None:
            named = {topic.name: topic for topic in topics}
            _of_groups(self._groups.read(), logs, named, found)
        if self._hot is not None:
            found.add(m.UP, (), 1)
        found.add(m.LOOK_SECONDS, (), time.monotonic() - started_s)
        cleanups = [] if self._hot is None else _told_of_cleanups(self._hot.cleanups(), topics)
        return [*found.measured(), *cleanups]

    def _hot_offsets(
        self, hot: HotLog, topics: Sequence[Topic], found: _Found
    ) -> dict[TopicPartition, HotSegments]:
        asked = hot_segments(hot, topics)
        seen: dict[TopicPartition, HotSegments] = {}
        for topic in topics:
            of_topic = asked[topic.topic_id]
            if isinstance(of_topic, LakelogError):  # it is damaged, or was deleted just now
                found.add(m.TOPIC_FAILED, (topic.name, type(of_topic).__name__), 1)
            else:
                seen |= of_topic
        return seen

    def _not_away(
        self,
        topic: Topic,
        hot: Mapping[TopicPartition, HotSegments] | None,
        cold: Found | None,
    ) -> Found | None:
        """What was found of a topic, or why that is not its own table."""
        first = None if hot is None else hot.get(topic.partition(0))
        if not isinstance(cold, ColdSnapshot) or cold.version != NO_TABLE or first is None:
            return cold
        try:
            table = self._table_of(topic)
            if table is not None:
                check_own(topic, table, first.archived_into)
        except LakelogError as error:
            return error
        return cold

    def _topic(
        self,
        topic: Topic,
        hot: Mapping[TopicPartition, HotSegments] | None,
        cold: Found | None,
        now_ms: int,
        found: _Found,
    ) -> dict[TopicPartition, LogOffsets]:
        """Takes note of a topic; gives what is known of where its partitions begin and end."""
        snapshot = cold if isinstance(cold, ColdSnapshot) else None
        if cold is not None and snapshot is None:
            found.add(m.TOPIC_FAILED, (topic.name, type(cold).__name__), 1)
        of_files = {} if snapshot is None else figures_of_files(snapshot.files)
        ratios: Mapping[TopicPartition, float] = {}
        if snapshot is not None and topic.config.compacted:
            ratios = self._dirty_ratios(topic, snapshot, now_ms)
        tiered, logs = topic.config.tiered, {}
        for tp in topic.topic_partitions():
            labels = (topic.name, str(tp.partition))
            seen = None if hot is None else hot.get(tp)
            if seen is not None:
                _hot_samples(labels, seen, found)
            if snapshot is not None and tiered:
                figures = of_files.get(tp.partition, _NO_FILES)
                found.add(m.COLD_SIZE, labels, figures.size_bytes)
                found.add(m.COLD_SEGMENTS, labels, figures.segments)
                found.add(m.COLD_FILES, labels, figures.files)
                found.add(m.MOST_FILES, labels, figures.most_files)
                found.add(m.ARCHIVED_END, labels, snapshot.archived_end(tp.partition))
                if tp in ratios:
                    found.add(m.DIRTY_RATIO, labels, ratios[tp])
            if snapshot is not None and seen is not None:
                offsets = logs[tp] = join(seen, snapshot, tp.partition)
                found.add(m.LOG_START, labels, offsets.log_start)
                if tiered:
                    _lag_samples(labels, seen, offsets, now_ms, found)
            elif snapshot is not None and hot is None:
                found.add(m.LOG_START, labels, snapshot.log_start(tp.partition))
            elif seen is not None:  # where the log begins, the table alone tells
                start = seen.local_log_start
                logs[tp] = LogOffsets(start, start, 0, seen.log_end, gaps=seen.gaps)
        return logs

    def _dirty_ratios(
        self, topic: Topic, cold: ColdSnapshot, now_ms: int
    ) -> Mapping[TopicPartition, float]:
        known = self._dirty.get(topic.topic_id)
        age_ms = inf if known is None or known.cold is not cold else now_ms - known.at_ms
        if known is None or not 0 <= age_ms < DIRTY_LASTS_MS:
            found = cleanables(topic, cold, now_ms)
            ratios = {one.topic_partition: one.dirty_ratio for one in found}
            known = self._dirty[topic.topic_id] = _Dirty(cold, now_ms, ratios)
        return known.ratios


class _Found:
    """The samples of each metric, as they are found."""

    def __init__(self) -> None:
        self._samples: dict[Metric, list[Sample]] = {metric: [] for metric in m.OF_LOG}
        self._append = {metric: found.append for metric, found in self._samples.items()}

    def add(self, metric: Metric, labels: tuple[str, ...], value: float) -> None:
        self._append[metric]((labels, value))

    def measured(self) -> list[Measured]:
        return [Measured(metric, samples) for metric, samples in self._samples.items()]


def _hot_samples(labels: tuple[str, ...], seen: HotSegments, found: _Found) -> None:
    found.add(m.LOG_END, labels, seen.log_end)
    found.add(m.LOCAL_LOG_START, labels, seen.local_log_start)
    found.add(m.RECORDS_IN, labels, seen.appended)
    found.add(m.BYTES_IN, labels, seen.appended_bytes)
    found.add(m.HOT_SIZE, labels, seen.held_bytes)
    found.add(m.HOT_SEGMENTS, labels, seen.segment_count)
    found.add(m.RECOVERY_NEEDED, labels, not seen.recovered)


def _lag_samples(
    labels: tuple[str, ...], seen: HotSegments, offsets: LogOffsets, now_ms: int, found: _Found
) -> None:
    records = offsets.unarchived
    since_ms = seen.unarchived_since_ms
    waited_ms = max(0, now_ms - since_ms) if records and since_ms is not None else 0
    found.add(m.LAG_RECORDS, labels, records)
    found.add(m.LAG_BYTES, labels, seen.bytes_from(offsets.archived_end) if records else 0)
    found.add(m.LAG_SECONDS, labels, waited_ms / 1000)


def _servers(hot: HotLog, topics: Sequence[Topic], found: _Found) -> None:
    servers = hot.servers()
    throttles = throttle_ms(servers, high_water_marks(hot, topics, servers))
    for server in servers:
        labels = (server.name,)
        found.add(m.REDIS_THROTTLE, labels, throttles.get(server.name, 0) / 1000)
        found.add(m.REDIS_SKEW, labels, server.clock_skew_ms / 1000)
        found.add(m.REDIS_USED, labels, server.used_memory_bytes)
        if server.memory_headroom_bytes is not None:
            found.add(m.REDIS_MAX, labels, server.max_memory_bytes)
            found.add(m.REDIS_HEADROOM, labels, server.memory_headroom_bytes)


def _archivers(hot: HotLog, topics: set[str], now_ms: int, found: _Found) -> None:
    beats = hot.beats().alive()
    found.add(m.ARCHIVERS, (), len(beats))
    since_ms: dict[str, int] = {}
    for trouble in reported(beats.values()):
        if trouble.topic in topics or not trouble.topic:
            known_ms = since_ms.get(trouble.topic, trouble.since_ms)
            since_ms[trouble.topic] = min(known_ms, trouble.since_ms)
    for topic, at_ms in sorted(since_ms.items()):
        found.add(m.FAILING_SECONDS, (topic,), max(0, now_ms - at_ms) / 1000)


def _of_groups(
    seen: SeenGroups,
    logs: Mapping[TopicPartition, LogOffsets],
    topics: Mapping[str, Topic],
    found: _Found,
) -> None:
    for group_id, group in sorted(seen.groups.items()):
        found.add(m.GROUP_MEMBERS, (group_id,), group.members)
    for one in seen.offsets:
        tp = one.topic_partition
        topic = topics.get(tp.topic)
        if topic is None or not one.is_of(topic) or tp not in logs:
            continue  # of a topic that was not asked for, or of an earlier one of the name
        where = GroupOffset.of(one, logs[tp])
        labels = (one.group_id, one.group_type.value, tp.topic, str(tp.partition))
        found.add(m.GROUP_OFFSET, labels, where.offset)
        found.add(m.GROUP_LAG, labels, where.unread)


# -- cleanups, told by all processes through Redis ---------------------------------------------

#: With the topic as label.
_OF_TOPICS = (
    p.CLEANER_RUNS,
    p.CLEANER_FAILURES,
    p.CLEANER_FAILED,
    p.RECOPY_RATIO,
    p.MAX_CLEAN_SECONDS,
)
_BUCKETS = range(len(p.CLEANER_SECONDS.buckets) + 1)


def tell_cleanup(cleanups: Cleanups, topic: Topic, report: CleanupReport) -> None:
    """Has whoever watches the log know of a run.

    Raises:
        LakelogError: Redis does not answer, refuses, or is full.
    """
    figures = figures_of(report)
    bucket = bisect_left(p.CLEANER_SECONDS.buckets, figures.seconds)
    cleanups.tell(
        topic.topic_id,
        {
            **{metric.name: amount for metric, amount in figures.more.items()},
            _bucket(bucket): 1,
            _MS: round(1000 * figures.seconds),
        },
        {metric.name: value for metric, value in figures.now.items()},
    )


def _told_of_cleanups(cleanups: Cleanups, topics: Iterable[Topic]) -> list[Measured]:
    """The metrics that runs over these topics have told; none that no run has.

    Raises:
        HotTierUnavailableError: Redis does not answer.
    """
    try:
        read = cleanups.read()
    except HotTierAccessError:  # this user has a role that an older lakelog made
        return []
    of = [(topic.name, read[key]) for topic in topics if (key := str(topic.topic_id)) in read]
    samples: dict[Metric, list[Sample]] = {
        metric: [((name,), one[metric.name]) for name, one in of if metric.name in one]
        for metric in _OF_TOPICS
    }
    measured = [Measured(metric, sorted(found)) for metric, found in samples.items() if found]
    if of:
        counts = [int(sum(one.get(_bucket(at), 0) for _, one in of)) for at in _BUCKETS]
        seconds = sum(one.get(_MS, 0) for _, one in of) / 1000
        histogram = Histogram(tuple(counts), seconds)
        measured.append(Measured(p.CLEANER_SECONDS, histograms=[((), histogram)]))
    return measured


#: What the runs took together.
_MS = f"{p.CLEANER_SECONDS.name}:ms"


def _bucket(at: int) -> str:
    """How many runs were in a bucket."""
    return f"{p.CLEANER_SECONDS.name}:{at}"
