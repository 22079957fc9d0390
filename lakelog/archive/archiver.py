"""Moves a topic's records from the hot tier to the cold one: all of them, or those that are due."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from ..base import metrics as m
from ..base.failpoints import failpoint
from ..cold.by_path.orphans import SETTLING_MS
from ..cold.change import Change, HotRange
from ..cold.reserve import reserving
from ..cold.segment import SegmentFile
from ..cold.table import Applied, ColdSnapshot, ColdTable
from ..engines.engine import Choices
from ..errors import (
    ContradictionError,
    CorruptRecordError,
    InvalidArgumentError,
    LakelogError,
    MissingFileError,
    NewerVersionError,
    QuotaExceededError,
    TrimmedError,
    UnknownTopicIdError,
)
from ..hot.archived_into import ArchivedInto, Standing
from ..hot.hot_log import HotLog
from ..tracing.switch import archiving
from ..values.offsets import (
    Ago,
    AtOffset,
    AtTimestamp,
    HotSegments,
    Latest,
    Position,
    PositionLike,
    position,
)
from ..values.producer_calls import REMEMBERED_CALLS
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange
from .local_retention import next_trim_ms, trim_points, trimmable
from .plan import FlushLimit, plan
from .report import ArchiveReport, PartitionArchived

logger = logging.getLogger(__name__)

Until = PositionLike | Mapping[int, PositionLike]


def calls_needed(until: Until) -> int:
    """How many of each producer's last calls a run must know; see `producer_calls.last_calls`."""
    to_the_end = not isinstance(until, Mapping) and position(until) == Latest()
    return 1 if to_the_end else REMEMBERED_CALLS


def check_until(until: Until) -> None:
    """Refuse a bound that no archive run can have, whatever the topic.

    Raises:
        InvalidArgumentError: not a position, or one that says no end.
    """
    for at in until.values() if isinstance(until, Mapping) else (until,):
        bound = position(at)
        if not isinstance(bound, Latest | AtOffset | Ago | AtTimestamp):
            raise InvalidArgumentError(
                f"{bound} does not bound an archive run: give 'latest', an offset or a time"
            )


class Flushed(Struct, frozen=True):
    """What one run by the flush policy did, and when the next is due."""

    report: ArchiveReport | None  # None: nothing happened
    settled_ends: Mapping[int, int]  # by partition, below it nothing is left to archive
    next_ms: int | None  # when something is due by its age, on Redis's clock; None: nothing waits
    is_final: bool = False  # all that was there was archived, whatever its age


class _Look(Struct, frozen=True):
    """Both tiers; cold holds all that hot had trimmed, so that they can only overlap."""

    now_ms: int  # Redis's clock, before anything else was read
    hot: Mapping[int, HotSegments]
    cold: ColdSnapshot
    started_ns: int  # by this process's clock


class Archiver:
    """Archives one topic: plan, copy, commit, trim. Not thread-safe; any number may run at once.

    A crash anywhere loses nothing and doubles nothing. The next run plans again what was not
    committed, trims what was not trimmed, and removes files that no commit can name any more.

    Args:
        topic: a tiered one.
        table: the topic's cold tier; its executors read the same hot tier.
        current_topic: looks the topic up again. Asked before each look and before each trim, so
            that added partitions and changed settings count at once.
        may_make: refuses where the topic's first table must not be made now; asked before.

    Raises:
        InvalidArgumentError: the topic has no cold tier.
    """

    def __init__(
        self,
        topic: Topic,
        hot: HotLog,
        table: ColdTable,
        *,
        current_topic: Callable[[], Topic] | None = None,
        may_make: Callable[[Topic], None] = lambda topic: None,
    ) -> None:
        self._topic = _tiered(topic)
        self._hot = hot
        self._table = table
        self._current_topic = current_topic
        self._may_make = may_make
        self._cold: ColdSnapshot | None = None  # the newest seen; others may be ahead of it
        self._is_known = False  # whether Redis knows the table as the topic's
        self._was_full = False  # whether it gave room at the last look
        self._orphans_possible = True  # an earlier process may have left some
        self._next_orphans_s = 0.0  # when to look for them again (monotonic)

    @property
    def topic(self) -> Topic:
        """The topic as last looked up."""
        return self._topic

    def run_once(self, until: Until = Latest()) -> ArchiveReport:  # noqa: B008, an immutable value
        """Archive what is there now, or what lies before a bound, without asking the flush policy.

        Records appended meanwhile are left for the next run, so it ends under any load.

        Args:
            until: ``latest``, an offset, or a time (up to the earliest record of the log at or
                after it); for all partitions, or by partition, and then only for those.

        Raises:
            CorruptRecordError: an entry is damaged; the other partitions were archived.
            QuotaExceededError: the tables of the keyspace are as large as they may be.
            ContradictionError: the tiers do not fit together.
            ArchivedElsewhereError: Redis knows another table as the topic's; see `adopt`.
            UnknownTopicIdError: the topic was dropped since it was looked up.
            CommitUnknownError, CommitConflictError, ColdTierError: from the table.
            HotTierUnavailableError: Redis does not answer.
        """
        report, errors = self.attempt(until)
        if errors:
            raise errors[0]
        return report

    def attempt(
        self,
        until: Until = Latest(),  # noqa: B008, an immutable value
    ) -> tuple[ArchiveReport, Sequence[LakelogError]]:
        """As `run_once`, but a failure does not hide what was archived.

        Args:
            until: see `run_once`.

        Returns:
            What was archived, and the errors: one a damaged partition, and what ended the run.
        """
        archived: list[PartitionArchived] = []
        started_s = time.monotonic()
        try:
            self._reload_topic()
            look = self._look(calls=calls_needed(until))
            limit = FlushLimit(ends=self._ends(until, look))
            return self._archive(look, limit, archived)
        except LakelogError as error:
            seconds = time.monotonic() - started_s
            return ArchiveReport(self._topic.name, tuple(archived), seconds=seconds), [error]

    def adopt(self) -> None:
        """Archive into this table from now on, whatever other one Redis knows as the topic's.

        What the other one alone holds is in neither tier then: a run says so. Whoever still
        archives into that one stops at the next look.

        Raises:
            UnknownTopicIdError: the topic was dropped since it was looked up.
            HotTierUnavailableError: Redis does not answer.
            ColdTierError: from the table.
        """
        self._hot.archived_into().adopt(self._topic, self._table)

    def trim(self) -> dict[int, OffsetRange]:
        """Drop from the hot tier what cold holds or has dropped, as far as local retention allows.

        Also to be called after the log start was raised. Archives nothing.

        Returns:
            The dropped offsets, by partition.

        Raises:
            MissingFileError: the table names a file that is gone; its records stay in Redis.
        """
        self._reload_topic()
        trimmed, errors = self._trim(self._look_once(), set())
        if errors:
            raise errors[0]
        return trimmed

    def flush(self) -> Flushed:
        """Archive and trim what the topic's flush policy asks for by now.

        While that is nothing it costs four round trips to Redis, no Spark job and no commit. From
        a server that is nearly full everything is archived at once.

        Raises: see `run_once`.
        """
        self._reload_topic()
        full = self._full()
        limit = FlushLimit() if full else FlushLimit.of(self._topic.config)
        now_ms = self._hot.now_ms()
        hot = self._segments(range(self._topic.partitions))
        report = None
        if self._cold is None or self._is_due(hot, self._cold, limit, now_ms, full):
            report, errors = self._archive(self._look(calls=1), limit, [])
            if errors:
                raise errors[0]
            hot = self._segments(range(self._topic.partitions))
        return self._flushed(report, hot, FlushLimit.of(self._topic.config))

    def drain(self) -> Flushed:
        """Archive and trim all that is there now, at the end of a run."""
        report = self.run_once()
        hot = self._segments(range(self._topic.partitions))
        return self._flushed(report, hot, FlushLimit.of(self._topic.config), is_final=True)

    def _archive(
        self, look: _Look, limit: FlushLimit, archived: list[PartitionArchived]
    ) -> tuple[ArchiveReport, Sequence[LakelogError]]:
        """Commit what the limit asks for, up to where the log ended at that look; then trim.

        Args:
            archived: gets what is committed, as soon as it is.

        Returns:
            What was done, and why partitions could not be archived.
        """
        started_s = time.monotonic()
        choices = Choices()
        with choices.watched():
            look, errors = self._commit(look, limit, archived)
            # Only now, with the commit on disk (apply returns no earlier): until here Redis holds
            # the only copy, and a crash on either side of this line loses nothing.
            failpoint("archive.before_trim")
            trimmed, kept = self._trim(look, {done.topic_partition.partition for done in archived})
        failpoint("archive.after_trim")
        is_damaged = any(isinstance(e, CorruptRecordError | NewerVersionError) for e in errors)
        report = ArchiveReport(
            self._topic.name,
            tuple(archived),
            trimmed,
            0 if is_damaged else self._remove_orphans(),
            time.monotonic() - started_s,
            engines=choices.made,
        )
        return report, [*errors, *kept]

    def _commit(
        self, look: _Look, limit: FlushLimit, archived: list[PartitionArchived]
    ) -> tuple[_Look, Sequence[LakelogError]]:
        """Copy and commit what the limit asks for.

        Returns:
            A look that has all that was committed, and why partitions could not be archived.
        """
        ends = {number: limit.end(number, seen.log_end) for number, seen in look.hot.items()}
        limit = replace(limit, ends=ends)
        overtaken: tuple[object, ...] = ()
        damaged: dict[int, CorruptRecordError | NewerVersionError] = {}
        beyond: list[LakelogError] = []
        # Partitions that another archiver archived first, or whose server lost its tail, are
        # planned again. Each time some archiver got further, and the ends are fixed, so this
        # terminates.
        while (change := plan(self._topic, look.hot, look.cold, limit, look.now_ms)).partitions:
            failpoint("archive.after_plan")
            if not self._is_known:
                self._may_make(self._topic)
            try:
                self._hot.cold_quota().check(self._topic, look.cold.files.size_bytes)
            except QuotaExceededError as error:
                beyond.append(error)
                break  # nothing more is archived; what was is trimmed all the same
            copy_started_s = time.monotonic()
            try:
                with archiving(self._topic.name, len(change.partitions), look.started_ns):
                    applied = self._table.apply(change, look.cold)
            except (TrimmedError, MissingFileError, ContradictionError):
                # Another archiver committed and trimmed what was being copied, or removed the file
                # while it was written, since no commit could name it any more; or the log start was
                # raised, or the server lost its tail: a new look tells. If it tells the same, this
                # is something else.
                self._orphans_possible = True
                if change.adds == overtaken:
                    raise
                overtaken = change.adds
                look = self._look()
                continue
            except (CorruptRecordError, NewerVersionError) as error:
                # A partition that cannot be read must not keep the others in Redis.
                self._orphans_possible = True
                topic_partition = error.topic_partition
                # An error without a partition is about a cold file, and concerns all of them.
                if topic_partition is None or topic_partition.partition in damaged:
                    raise
                number = topic_partition.partition
                damaged[number] = error
                ends = {**ends, number: look.cold.archive_start(number)}
                limit = replace(limit, ends=ends)
                continue
            except BaseException:
                self._orphans_possible = True
                raise
            failpoint("archive.after_commit")
            done = _archived(change, applied, time.monotonic() - copy_started_s)
            _count(done)
            archived += done
            if not self._is_known:
                self._settle_table(None)  # it may have been made just now
            self._orphans_possible |= bool(applied.superseded)
            self._cold = applied.snapshot
            if applied.superseded:
                self._reload_topic()  # the settings may be newer than those it was planned by
                look = self._look()
            else:
                look = replace(look, cold=applied.snapshot, started_ns=time.time_ns())
        return look, [*damaged.values(), *beyond]

    def _trim(
        self, look: _Look, archived: set[int]
    ) -> tuple[dict[int, OffsetRange], Sequence[LakelogError]]:
        """Trim by local retention, and tell Redis how far the partitions are archived.

        Also finishes what an earlier run left undone after its commit.

        Returns:
            What was dropped, and what was kept in Redis as its file is gone from the table.
        """
        full = self._full()
        points = trim_points(self._topic, look.hot, look.cold, look.now_ms, full)
        if points:  # settings may have changed while the copy took its time
            self._reload_topic()
            points = trim_points(self._topic, look.hot, look.cold, look.now_ms, full)
        spans = {n: OffsetRange(look.hot[n].local_log_start, point) for n, point in points.items()}
        ends, kept = trimmable(self._topic, self._table, look.cold, spans)
        points = {n: end for n, end in ends.items() if end > spans[n].start}
        for number, seen in look.hot.items():
            settled_end = seen.settled_end(look.cold.archive_start(number))
            is_all = settled_end >= seen.log_end
            if number in points or number in archived or _is_untold(seen, look.cold, number):
                self._hot.trim(
                    self._topic.partition(number),
                    points.get(number, seen.local_log_start),
                    archived_end=settled_end,
                    # Records that this look did not see were appended after it.
                    planned_at_ms=look.now_ms if is_all else None,
                    topic_id=self._topic.topic_id,
                )
        return {
            number: OffsetRange(look.hot[number].local_log_start, point)
            for number, point in points.items()
        }, kept

    def _remove_orphans(self) -> int:
        """Remove orphans when there may be some: in the first run and after one that lost a race.

        Listing a large table's folders costs more than a small commit, so not every time, and those
        that are too young only once they are old enough.
        """
        now_s = time.monotonic()
        if not self._orphans_possible or now_s < self._next_orphans_s:
            return 0
        found = self._table.remove_orphans()
        self._orphans_possible = bool(found.young)
        if found.young:
            self._next_orphans_s = now_s + SETTLING_MS / 1000
        return len(found.old)

    # -- looking ---------------------------------------------------------------------------------

    def _look(self, *, calls: int = REMEMBERED_CALLS) -> _Look:
        """Both tiers as they are, after recovering partitions whose server lost its tail.

        Args:
            calls: of each producer: see `producer_calls.last_calls`.
        """
        look = self._look_once(calls)
        behind = _behind(look.hot, look.cold)
        if not behind:
            return look
        # On the first look, another archiver's commit may be the reason; on the second, with
        # the same snapshot, Redis holds less than what was archived from it.
        seen = self._segments(behind)
        behind = _behind(seen, look.cold)
        self._hot.recover_all(
            {self._topic.partition(n): look.cold.archive_start(n) for n in behind},
            reserving(self._topic, self._table, self._hot.archived_into().settle),
            topic_id=self._topic.topic_id,
        )
        look = self._look_once(calls)
        for number in behind:
            if seen[number].log_end != look.hot[number].log_end or not seen[number].recovered:
                logger.warning(
                    "%s-%d: the server changed since the last append; recovered, and the log goes "
                    "on at %d; `lakelog status` says what may be lost",
                    self._topic.name,
                    number,
                    look.hot[number].log_end,
                )
        return look

    def _look_once(self, calls: int = 0) -> _Look:
        while True:
            is_first = self._cold is None
            started_ns = time.time_ns()
            planned_from = self._table.snapshot() if self._cold is None else self._cold
            now_ms = self._hot.now_ms()
            hot = self._segments(range(self._topic.partitions), calls)
            self._settle_table(hot[0].archived_into)
            starts = {number: planned_from.archive_start(number) for number in hot}
            self._cold = planned_from
            if not is_first or any(one.local_log_start > starts[n] for n, one in hot.items()):
                self._cold = self._table.snapshot(newer_than=planned_from)
            if all(self._cold.archive_start(n) >= start for n, start in starts.items()):
                return _Look(now_ms, hot, self._cold, started_ns)

    def _full(self) -> frozenset[int]:
        """The partitions whose server is so full that the topic gives room there."""
        mark = self._topic.config.high_water_percent
        if mark == math.inf:
            return frozenset()
        found = self._hot.memory_percent(self._topic.topic_partitions())
        full = frozenset(tp.partition for tp, percent in found.items() if percent >= mark)
        if full and not self._was_full:
            logger.warning(
                "topic %r: Redis uses %.0f %% of its memory, from lakelog.high.water.percent=%d on "
                "all that is archived goes from there, whatever local.retention says",
                self._topic.name,
                max(found.values()),
                mark,
            )
        self._was_full = bool(full)
        return full

    def _settle_table(self, text: str | None) -> None:
        """Makes sure that the topic is archived into this table alone.

        Two archivers with different cold roots would each trim what the other does not have.

        Args:
            text: which table Redis knows as the topic's; None: none, or it did not say.

        Raises:
            ArchivedElsewhereError: Redis knows another table as the topic's.
        """
        self._is_known = False
        said = None if text is None else ArchivedInto.of_text(text)
        found = self._hot.archived_into().settle_said(self._topic, self._table, said)
        self._is_known = found is not Standing.UNMADE  # else once it is made

    def _segments(self, partitions: Iterable[int], calls: int = 0) -> dict[int, HotSegments]:
        """What Redis says of partitions."""
        numbers = {self._topic.partition(number): number for number in partitions}
        # By id: after a drop and create, the new stream must not look like one that lost records.
        found = self._hot.segments(numbers, topic_id=self._topic.topic_id, calls=calls)
        return {numbers[topic_partition]: seen for topic_partition, seen in found.items()}

    def _ends(self, until: Until, look: _Look) -> dict[int, int]:
        check_until(until)
        if isinstance(until, Mapping):
            bounds = {self._topic.partition(n).partition: position(at) for n, at in until.items()}
        else:
            bounds = dict.fromkeys(look.hot, position(until))
        return {number: self._end(number, bound, look) for number, bound in bounds.items()}

    def _end(self, partition: int, bound: Position, look: _Look) -> int:
        log_end = look.hot[partition].log_end
        if isinstance(bound, Latest):
            return log_end
        if isinstance(bound, AtOffset):
            return bound.offset
        if isinstance(bound, Ago):
            bound = AtTimestamp(max(0, look.now_ms - bound.duration // timedelta(milliseconds=1)))
        assert isinstance(bound, AtTimestamp)  # see `check_until`
        found = self._table.offset_for_timestamp(
            look.cold, partition, bound.timestamp_ms, look.cold.log_start(partition)
        ) or self._hot.offset_for_timestamp(
            self._topic.partition(partition),
            bound.timestamp_ms,
            topic_id=self._topic.topic_id,
        )
        return found.offset if found else log_end

    # -- continuously ----------------------------------------------------------------------------

    def _flushed(
        self,
        report: ArchiveReport | None,
        hot: Mapping[int, HotSegments],
        limit: FlushLimit,
        *,
        is_final: bool = False,
    ) -> Flushed:
        assert self._cold is not None  # archiving, or finding nothing due, looks at it
        cold = self._cold
        times = [next_trim_ms(self._topic, hot, cold)]
        for number, seen in hot.items():
            since_ms = seen.unarchived_since_ms
            if since_ms is not None and seen.appended_from(cold.archive_start(number)):
                times.append(since_ms + limit.interval_ms)
        return Flushed(
            report or None,
            {n: seen.settled_end(cold.archive_start(n)) for n, seen in hot.items()},
            min((time for time in times if time is not None), default=None),
            is_final,
        )

    def _is_due(
        self,
        hot: Mapping[int, HotSegments],
        cold: ColdSnapshot,
        limit: FlushLimit,
        now_ms: int,
        full: frozenset[int],
    ) -> bool:
        """Whether there may be something to do. With an old snapshot it may say yes for nothing."""
        return bool(
            _behind(hot, cold)
            or trim_points(self._topic, hot, cold, now_ms, full)
            or any(
                limit.reached(
                    seen.appended_from(cold.archive_start(number)),
                    seen.unarchived_since_ms,
                    now_ms,
                )
                or _is_untold(seen, cold, number)
                for number, seen in hot.items()
            )
        )

    def _reload_topic(self) -> None:
        """Take up changed settings, and write them into the table."""
        topic = self._topic if self._current_topic is None else self._current_topic()
        if topic.topic_id != self._topic.topic_id:
            raise UnknownTopicIdError(
                f"topic {topic.name!r} was dropped and created again: this archiver works on "
                f"{self._topic.topic_id}, now it is {topic.topic_id}. Start a new one",
                topic=topic.name,
                topic_id=self._topic.topic_id,
            )
        self._topic = _tiered(topic)
        self._table.mirror(topic)


def _is_untold(seen: HotSegments, cold: ColdSnapshot, partition: int) -> bool:
    """Whether Redis has yet to be told that nothing of the partition waits any more."""
    if seen.unarchived_since_ms is None:
        return False
    return not seen.appended_from(cold.archive_start(partition))


def _tiered(topic: Topic) -> Topic:
    if not topic.config.tiered:
        raise InvalidArgumentError(
            f"topic {topic.name!r} is not archived, it has remote.storage.enable=false; set it to "
            "true first",
            topic=topic.name,
        )
    return topic


def _behind(hot: Mapping[int, HotSegments], cold: ColdSnapshot) -> list[int]:
    """Partitions whose server changed, or holds less than was archived from it, or that will soon
    have given out all offsets that are reserved for them.
    """
    return [
        number
        for number, seen in hot.items()
        if not seen.recovered or seen.needs_room or seen.log_end < cold.archive_start(number)
    ]


def _count(done: Sequence[PartitionArchived]) -> None:
    """Of one commit; none if others were faster in all of it."""
    for one in done[:1]:
        m.COUNTS.add(m.ARCHIVE_COMMITS, 1, one.topic_partition.topic)
        m.COUNTS.observe(m.COMMIT_SECONDS, one.seconds)
    for one in done:
        m.COUNTS.add(m.ARCHIVED_RECORDS, one.records, one.topic_partition.topic)
        m.COUNTS.add(m.ARCHIVED_BYTES, one.size_bytes, one.topic_partition.topic)


def _archived(change: Change, applied: Applied, seconds: float) -> list[PartitionArchived]:
    done = []
    by_partition: dict[int, list[SegmentFile]] = {}
    for file in applied.files:
        by_partition.setdefault(file.partition, []).append(file)
    for number in sorted(change.partitions - applied.superseded):
        ranges: list[HotRange] = change.hot_ranges(number)
        if not ranges:
            continue
        files = by_partition.get(number, [])
        done.append(
            PartitionArchived(
                ranges[0].topic_partition,
                ranges[0].start_offset,
                ranges[-1].end_offset,
                sum(file.records for file in files),
                sum(file.size_bytes for file in files),
                len(files),
                seconds,
                applied.unparsed.get(number, 0),
            )
        )
    return done
