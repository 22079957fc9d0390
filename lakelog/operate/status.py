"""Where every partition stands: offsets and size in both tiers, archive lag, gaps, Redis's memory,
and problems that will not go away by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from uuid import UUID

import numpy as np
from msgspec import Struct, field

from ..archive.report import Trouble, reported
from ..base.text_table import counted
from ..cleanup.retention import future_warning
from ..cold.segment import Segment
from ..cold.table import ColdSnapshot, ColdTable
from ..errors import ColdTierUnavailableError, LakelogError
from ..hot import HotLog
from ..hot.server_info import ServerInfo
from ..read.hot_tier import HotTier, nothing_above
from ..read.tiers import SegmentedLook, Tiers
from ..values.offsets import HotSegment, HotSegments, LogOffsets
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .headroom import bytes_per_second, headroom_hours, high_water_marks, throttle_ms
from .metrics.cold_looks import ColdFigures, ColdLooks, Found, figures_of

_NO_FIGURES = ColdFigures()

#: Once no table has answered for so long, those that have not are told as ones that fail.
LOOK_TIMEOUT_S = 60.0

#: The state of a partition if Redis was not asked.
COLD_ONLY = "cold only"


class PartitionStatus(Struct, frozen=True, gc=False):
    """One partition."""

    topic_partition: TopicPartition
    tiered: bool
    offsets: LogOffsets
    hot_size_bytes: int | None  # without what was trimmed; None: Redis was not asked
    archive_lag_ms: int | None  # since the oldest unarchived append; None: nothing waits
    skipped: tuple[Skipped, ...]  # offsets that an unclean stop left unused, oldest first
    paused: bool  # for a planned stop
    cold_size_bytes: int = 0  # of the Parquet files, with records below the log start
    cold_segments: int = 0

    @property
    def cold_only(self) -> bool:
        """Whether Redis was not asked, so that what only it knows is not known."""
        return self.hot_size_bytes is None

    @property
    def unarchived(self) -> int | None:
        """How many offsets wait to be archived; None: not known, or the topic is not archived."""
        return self.offsets.unarchived if self.tiered and not self.cold_only else None

    @property
    def state(self) -> str:
        """``ok``, ``paused``, or ``recovery needed`` until the next append or archive run;
        ``cold only`` where Redis was not asked.
        """
        if self.cold_only:
            return COLD_ONLY
        if not self.offsets.recovered:
            return "recovery needed"
        return "paused" if self.paused else "ok"


class PartitionWarning(Struct, frozen=True):
    """Something that stays wrong until somebody does what the sentence says."""

    topic_partition: TopicPartition
    text: str


class TopicFailure(Struct, frozen=True):
    """A topic whose state cannot be told."""

    topic: str
    error: LakelogError


class Status(Struct, frozen=True):
    """The result of one look."""

    partitions: tuple[PartitionStatus, ...]
    servers: tuple[ServerInfo, ...]
    now_ms: int  # the hot tier's clock; this machine's where Redis was not asked
    warnings: tuple[PartitionWarning, ...] = ()
    failures: tuple[TopicFailure, ...] = ()
    troubles: tuple[Trouble, ...] = ()  # what live archivers fail at; topic "": Redis itself
    headroom_hours: Mapping[str, float] = field(default_factory=dict)  # see `headroom_hours`
    throttle_ms: Mapping[str, int] = field(default_factory=dict)  # see `throttled`

    def check(self) -> None:
        """Raises the error of the first topic whose state cannot be told, if there is one."""
        if self.failures:
            raise self.failures[0].error

    def __repr__(self) -> str:
        """One line; `partitions` has what `lakelog status` shows."""
        topics = len({one.topic_partition.topic for one in self.partitions})
        unarchived = sum(one.unarchived or 0 for one in self.partitions)
        said = [
            f"{counted(len(self.partitions), 'partition')} of {counted(topics, 'topic')}",
            f"{counted(unarchived, 'record')} not archived",
        ]
        told = (
            (self.warnings, "warning"),
            (self.failures, "failure"),
            (self.troubles, "archiving trouble"),
        )
        said += [counted(len(found), noun) for found, noun in told if found]
        return f"<Status: {', '.join(said)}>"


def status(
    hot: HotTier,
    topics: Iterable[Topic],
    table_of: Callable[[Topic], ColdTable | None],
    *,
    redis: HotLog | None = None,
    looks: ColdLooks | None = None,
) -> Status:
    """Looks at both tiers of every partition of some topics; a topic that fails hides no other.

    Each table is asked once, several at a time, until none answers for `LOOK_TIMEOUT_S`.

    Args:
        table_of: gives a topic's cold tier; None if it is untiered. Its errors are that topic's.
        redis: the hot tier, if it has servers.
        looks: ask the tables of `table_of`, and know those that hang since an earlier look.

    Raises:
        HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
    """
    now_ms = hot.now_ms()
    topics = tuple(topics)
    partitions: list[PartitionStatus] = []
    warnings: list[PartitionWarning] = []
    failures = []
    rates: list[tuple[str, float]] = []
    # Hot first: a trim between the two looks can then only make the tiers overlap.
    seen = {} if redis is None else hot_segments(redis, topics)
    cold = (looks or ColdLooks(table_of)).look(topics, idle_s=LOOK_TIMEOUT_S)
    for topic in topics:
        try:
            look = _look(topic, hot, table_of, seen.get(topic.topic_id), cold.get(topic.topic_id))
            figures = figures_of(look.cold.files)
            partitions += [
                _partition(topic, look, n, figures.get(n, _NO_FIGURES), now_ms, redis is None)
                for n in look.offsets
            ]
            warnings += _warnings(topic, look, now_ms)
            if redis is not None:
                rates += [
                    (redis.server_name(topic.partition(number)), bytes_per_second(one, now_ms))
                    for number, one in look.hot.items()
                ]
        except LakelogError as error:
            failures.append(TopicFailure(topic.name, error))
    beats = {} if redis is None else redis.beats().alive()
    troubles = {one.topic: one for one in reported(beats.values())}
    servers = () if redis is None else tuple(redis.servers())
    return Status(
        tuple(partitions),
        servers,
        now_ms,
        tuple(warnings),
        tuple(failures),
        tuple(troubles[name] for name in sorted(troubles)),
        headroom_hours(servers, rates),
        {} if redis is None else throttle_ms(servers, high_water_marks(redis, topics, servers)),
    )


def hot_segments(
    redis: HotLog, topics: Sequence[Topic]
) -> dict[UUID, Mapping[TopicPartition, HotSegments] | LakelogError]:
    """What Redis says of all topics: in one round trip a server, unless one of them is damaged, or
    is another by now; then topic by topic, so that each tells what it fails at.
    """
    asked = {topic.topic_id: topic.topic_partitions() for topic in topics}
    ids = {topic.name: topic.topic_id for topic in topics}
    try:
        found = redis.segments((tp for tps in asked.values() for tp in tps), topic_id=ids)
        return {topic_id: {tp: found[tp] for tp in tps} for topic_id, tps in asked.items()}
    except LakelogError as error:
        if error.retriable:
            raise
    one_by_one: dict[UUID, Mapping[TopicPartition, HotSegments] | LakelogError] = {}
    for topic_id, tps in asked.items():
        try:
            one_by_one[topic_id] = redis.segments(tps, topic_id=topic_id)
        except LakelogError as error:
            one_by_one[topic_id] = error
    return one_by_one


def _look(
    topic: Topic,
    hot: HotTier,
    table_of: Callable[[Topic], ColdTable | None],
    seen: Mapping[TopicPartition, HotSegments] | LakelogError | None,
    cold: Found | None,
) -> SegmentedLook:
    """Both tiers of a topic, as one log.

    Args:
        seen: what Redis said of it; None if it was not asked.
        cold: what its table said after that; None: nothing.

    Raises:
        LakelogError: why nothing can be said of it.
    """
    for failure in (cold, seen):
        if isinstance(failure, LakelogError):
            raise failure
    if not isinstance(cold, ColdSnapshot):
        raise ColdTierUnavailableError(
            f"the table of topic {topic.name!r} did not answer within {LOOK_TIMEOUT_S:g} s, or "
            "others kept it from being asked. It is waited for no longer and asked again later; "
            "look at the store that holds it"
        )
    assert not isinstance(seen, LakelogError)
    if seen is None:
        seen = nothing_above(cold, topic.topic_partitions())
    tiers = Tiers(topic, hot, table_of(topic))
    return tiers.look_at_segments(range(topic.partitions), seen, cold)


def _partition(
    topic: Topic,
    look: SegmentedLook,
    partition: int,
    figures: ColdFigures,
    now_ms: int,
    cold_only: bool,
) -> PartitionStatus:
    offsets, seen = look.offsets[partition], look.hot[partition]
    since, tiered = seen.unarchived_since_ms, topic.config.tiered
    waiting = tiered and since is not None and offsets.unarchived
    return PartitionStatus(
        TopicPartition(topic.name, partition),
        tiered,
        offsets,
        None if cold_only else seen.held_bytes,
        max(0, now_ms - since) if waiting and since is not None else None,
        tuple(skipped(offsets, seen)) if offsets.gaps else (),
        seen.paused,
        figures.size_bytes,
        figures.segments,
    )


def _warnings(topic: Topic, look: SegmentedLook, now_ms: int) -> Iterable[PartitionWarning]:
    later = _with_later_timestamps(look.cold, now_ms)
    for partition, offsets in look.offsets.items():
        hot = look.hot[partition].segments
        ahead: list[Segment | HotSegment] = [one for one in hot if one.max_timestamp_ms > now_ms]
        if ahead or partition in later:  # of few
            ahead = [
                *(one for one in later.get(partition, ()) if one.end_offset > offsets.log_start),
                *(one for one in ahead if one.end_offset > offsets.local_log_start),
            ]
        topic_partition = topic.partition(partition)
        for text in (
            future_warning(topic_partition, topic.config, ahead, now_ms) if ahead else None,
            _hole_warning(topic, look, partition),
        ):
            if text is not None:
                yield PartitionWarning(topic_partition, text)


def _hole_warning(topic: Topic, look: SegmentedLook, partition: int) -> str | None:
    """A warning if records lie in neither tier and no gap says why."""
    seen = look.hot[partition]
    cold_end = look.cold.archive_start(partition)
    if seen.local_log_start <= cold_end or not topic.config.tiered:
        return None
    if any(gap.start <= cold_end and gap.end >= seen.local_log_start for gap in seen.gaps):
        return None
    return (
        f"the cold tier of {topic.name}-{partition} ends at {cold_end}, but Redis holds records "
        f"only from {seen.local_log_start} on, and trims nothing that is not archived. Is this the "
        "cold root that the topic was archived to? Check --cold (cold=…)"
    )


def _with_later_timestamps(cold: ColdSnapshot, now_ms: int) -> Mapping[int, list[Segment]]:
    """The cold segments with a record after now, by partition. Mostly none has one."""
    is_later = cold.files.numbers("max_timestamp_ms") > now_ms
    found: dict[int, list[Segment]] = {}
    if not is_later.any():
        return found
    rows = np.flatnonzero(is_later)
    for partition in np.unique(cold.files.numbers("partition")[rows]).tolist():
        of_it = rows[cold.files.numbers("partition")[rows] == partition]
        bases = set(cold.files.numbers("segment")[of_it].tolist())
        segments = cold.files.segments(partition)
        found[partition] = [one for one in segments if one.base_offset in bases]
    return found


class Skipped(Struct, frozen=True, gc=False):
    """Offsets [start, end) of one partition that no record has or ever will have.

    An unclean stop of Redis left them unused. A gap spans every offset that may have been given out
    before the stop, so that none names two records; most of these, often millions, never were. What
    may be lost is bounded by the time of the last kept append and by how Redis writes to disk.
    """

    start_offset: int
    end_offset: int  # exclusive
    last_append_ms: int | None = None  # the last one kept, by Redis's clock; None: not known now
    recovered_ms: int | None = None  # when the log went on above, likewise
    was_lost: bool = False  # Redis had lost the whole partition, not only its tail

    def sentence(self, topic_partition: TopicPartition, at_most: str) -> str:
        """What happened, and what may be lost.

        Args:
            at_most: see `may_be_lost`.
        """
        if self.was_lost:
            return (
                f"{topic_partition}: offsets {self.start_offset:,}..{self.end_offset - 1:,} were "
                f"skipped after Redis had lost the partition. Records that are lost: {UNARCHIVED}"
            )
        since = self.last_append_ms
        after = "" if since is None else f", whose last kept append was at {_utc(since)}"
        return (
            f"{topic_partition}: offsets {self.start_offset:,}..{self.end_offset - 1:,} were "
            f"skipped after an unclean stop of Redis{after}. Records that may be lost: {at_most}"
        )


#: What a total loss of Redis takes.
UNARCHIVED = "all that were not archived then"


def skipped(log: LogOffsets, hot: HotSegments) -> Iterator[Skipped]:
    """A partition's gaps, with the times that the segments beside them in Redis tell."""
    for gap in log.gaps:
        whole = next((one for one in hot.gaps if one.start <= gap.start < one.end), gap)
        before = [
            s.modified_ms for s in hot.segments if s.base_offset < s.end_offset <= whole.start
        ]
        after = [s.created_ms for s in hot.segments if s.base_offset == whole.end]
        yield Skipped(
            gap.start,
            gap.end,
            before[-1] if before else None,
            after[0] if after else None,
            whole.start == hot.lost_from,
        )


def may_be_lost(servers: Iterable[ServerInfo]) -> str:
    """The most that an unclean stop of such servers loses.

    Judged by their present settings, which may have been changed since the stop.
    """
    servers = list(servers)
    how = {server.appendfsync if server.append_only_file else "snapshot" for server in servers}
    if how == {"always"}:
        text = "none, as each append is on disk before it is answered (appendfsync always)"
    elif how <= {"always", "everysec"}:
        # Redis holds writes back for up to two seconds while a sync of its file is under way.
        text = (
            "at most those appended in the last second before the machine stopped, or two seconds "
            "if its disk was slow to sync (appendfsync everysec); none if Redis's process alone "
            "died and its disk kept up"
        )
    elif "snapshot" in how:
        text = "at most those appended since the last snapshot, as there is no append-only file"
    else:
        text = (
            "at most those that the operating system had not written yet when the machine stopped; "
            "none if Redis's process alone died"
        )
    return f"{text}; after a failover, at most those that the replica lacked"


def _utc(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
