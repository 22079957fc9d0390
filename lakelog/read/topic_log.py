"""A topic as one log out of two tiers: offsets, seek, reads, deleting records, recovery."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from ..base.clock import Clock, SystemClock
from ..cold.change import Change
from ..cold.registers import LogStart
from ..cold.reserve import reserving
from ..cold.table import ColdTable
from ..errors import (
    ColdTierError,
    CommitConflictError,
    ContradictionError,
    ForeignTableError,
    HotTierUnavailableError,
    InvalidArgumentError,
    MissingFileError,
    PolicyViolationError,
    RecoveryNeededError,
)
from ..values.arguments import numbers, whole
from ..values.offsets import (
    Ago,
    AtOffset,
    AtTimestamp,
    Latest,
    LogOffsets,
    Position,
    PositionLike,
    check_offset,
    position,
)
from ..values.record import Fetched, OffsetAndTimestamp, empty_records
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from . import seek as seeking
from .fetch import DEFAULT_MAX_BYTES, fetches
from .found import check_records
from .hot_tier import HotTier, NothingHot
from .range_read import DEFAULT_SAMPLE_RECORDS
from .tiers import Look, OpenTable, Tiers, out_of_range
from .where import Where, parse
from .where.expression import Always

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from ..hot.hot_log import HotLog
    from .lag import Lag
    from .range_read import RangeRead
    from .search import Search

#: Makes a DataFrame of a topic's tiers. It is passed in when a log is opened, since ``spark``
#: builds on this module.
FrameOf = Callable[..., "DataFrame"]

#: Makes the widget for a topic's name, a partition, a position and an expression; likewise.
ExplorerOf = Callable[[str, int | None, PositionLike, str], Any]

END_OF_LOG = -1  # how delete-records names the log end (Kafka's HIGH_WATERMARK)
_ATTEMPTS = 10  # commits of other partitions may come first


class TopicLog:
    """A topic as one log, wherever its records are.

    It holds no position: any number of threads may share it. A topic that was dropped, and perhaps
    created again, is refused with UnknownTopicIdError by every method that asks a Redis.

    Args:
        topic: as the registry gave it.
        hot: a `HotLog`, or what stands for it where there is no Redis.
        table: the cold tier; None for an untiered topic.
        open_table: opens it once the topic is archived after all.
        clock: the time from which "10 minutes ago" is counted.
        frame_of: makes the frame of `dataframe`.
        explorer_of: makes the widget of `explore`.
        stored_values: give encrypted values as they are stored, which takes no key.
    """

    def __init__(
        self,
        topic: Topic,
        hot: HotTier,
        table: ColdTable | None,
        clock: Clock | None = None,
        frame_of: FrameOf | None = None,
        explorer_of: ExplorerOf | None = None,
        open_table: OpenTable | None = None,
        *,
        stored_values: bool = False,
    ) -> None:
        self.topic = topic
        self.hot: HotTier = hot
        self.stored_values = stored_values
        self._clock = clock or SystemClock()
        self._open_table = open_table
        self._tiers = self._tiers_of(table, stored_values)
        self._frame_of = frame_of
        self._explorer_of = explorer_of

    @property
    def table(self) -> ColdTable | None:
        """The cold tier; None if the topic was untiered when it was last looked at."""
        return self._tiers.table

    @property
    def redis(self) -> HotLog | None:
        """The hot tier, if there is a Redis."""
        return None if isinstance(self.hot, NothingHot) else cast("HotLog", self.hot)

    def tiers(self, *, stored_values: bool | None = None) -> Tiers:
        """Both tiers, with nothing remembered of an earlier look.

        Args:
            stored_values: give encrypted values as they are stored; default: as this log does.
        """
        return self._tiers_of(
            self.table, self.stored_values if stored_values is None else stored_values
        )

    def _tiers_of(self, table: ColdTable | None, stored_values: bool) -> Tiers:
        return Tiers(
            self.topic, self.hot, table, open_table=self._open_table, stored_values=stored_values
        )

    def __repr__(self) -> str:
        partitions = self.topic.partitions
        return (
            f"TopicLog({self.topic.name!r}, {partitions} partition{'s' if partitions > 1 else ''})"
        )

    # -- where things lie ------------------------------------------------------------------------

    def offsets(self, partitions: Iterable[int] | None = None) -> dict[int, LogOffsets]:
        """Where each partition begins and ends, in both tiers, at one moment.

        ``recovered=False`` says that the server may have lost its tail: the next append or archive
        run will show what was appended last.
        """
        return dict(self._tiers.look(self._numbers(partitions)).offsets)

    def seek(self, partition: int, to: PositionLike) -> int | None:
        """The offset of a position; None if no record has that position.

        A timestamp gives the earliest offset whose timestamp is at or after it, so later
        records may be older still when producers' clocks differ.

        Args:
            to: an offset, a name, a time, a distance from now; see `values.offsets.position`.

        Raises:
            OffsetOutOfRangeError: an offset outside [log start, log end].
            InvalidArgumentError: not a position (a naive time, a negative offset).
        """
        topic_partition = self.topic.partition(partition)
        return seeking.seek(self._tiers, topic_partition, position(to), self._clock)

    def seek_each(
        self, to: PositionLike, partitions: Iterable[int] | None = None
    ) -> dict[int, int | None]:
        """As `seek`, in several partitions (default: all), with one look where that is enough."""
        asked = self._numbers(partitions)
        sought = seeking.seek_each(self._tiers, asked, position(to), self._clock)
        return dict(sought.offsets)

    def offset_for_timestamp(self, partition: int, timestamp_ms: int) -> OffsetAndTimestamp | None:
        """As `seek` by timestamp, with the timestamp that was found."""
        target = AtTimestamp(timestamp_ms)
        return seeking.offset_for_timestamp(
            self._tiers, self.topic.partition(partition), target.timestamp_ms
        )

    def max_timestamp(self, partition: int) -> OffsetAndTimestamp | None:
        """As `seek` to ``max-timestamp``, with the timestamp that was found."""
        return seeking.max_timestamp(self._tiers, self.topic.partition(partition))

    def lag(self, partition: int, position: int) -> Lag:
        """How far a reader whose next offset that is lies behind the log end.

        The age is counted by this log's clock.

        Raises:
            InvalidArgumentError: not an offset.
        """
        from .lag import lag_of

        position = check_offset(position)
        topic_partition = self.topic.partition(partition)
        partition = topic_partition.partition
        while True:
            look = self._tiers.look([partition])
            start = max(position, look.offsets[partition].log_start)
            first_ms = partial(seeking.first_timestamp_ms, self._tiers, topic_partition, start)
            now_ms = self._clock.now_ms()
            try:
                return lag_of(look, partition, position, first_ms, now_ms, self._tiers.table)
            except MissingFileError:
                if not self._tiers.outdated(look):
                    raise

    # -- reading ---------------------------------------------------------------------------------

    def fetch(self, partition: int, offset: int, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Fetched:
        """The records from an offset on: at least one, if the log has one there or above.

        Inside a gap the next record is given. ``next_offset`` equals the offset only at the log
        end; offsets skipped after an unclean stop are among the ``gaps``.

        Args:
            max_bytes: about how much; a single larger record is still given.

        Raises:
            OffsetOutOfRangeError: below the log start or past the log end.
            RecoveryNeededError: past the log end of a server that may have lost its tail; wait.
        """
        gaps: list[OffsetRange] = []
        next_offset = offset = check_offset(offset)
        for step in self.fetches(partition, offset, max_bytes=max_bytes):
            gaps += step.gaps
            next_offset = step.next_offset
            if step.records.num_rows:
                return Fetched(step.records, offset, next_offset, tuple(gaps))
        return Fetched(empty_records(), offset, next_offset, tuple(gaps))

    def fetches(
        self,
        partition: int,
        offset: int,
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        lead_bytes: int | None = None,
    ) -> Iterator[Fetched]:
        """One `fetch` after another up to the log end, without reading a cold file twice.

        A step may hold no records, only a gap. Errors as for `fetch`; one in the middle ends the
        iteration, which can be taken up again where the last step ended.

        Args:
            lead_bytes: the most that the first steps bring of hot records: a reader that may want
                few of them has the first of them sooner. Default: as the others.
        """
        topic_partition = self.topic.partition(partition)
        return fetches(
            self._tiers,
            topic_partition,
            check_offset(offset),
            max_bytes=_checked_max_bytes(max_bytes),
            lead_bytes=lead_bytes,
        )

    def is_below_hot(self, partition: int, offset: int) -> bool:
        """Whether the offset is known to lie below the hot records; asks nobody."""
        return not self._tiers.may_be_hot(self.topic.partition(partition), offset)

    def read(
        self,
        partition: int,
        start: PositionLike = "earliest",
        end: PositionLike = "latest",
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> RangeRead:
        """The records of [start, end), to be iterated as batches or records, or taken whole.

        The range is fixed here. Each iteration reads it again, goes on in the cold tier if the hot
        one is trimmed midway, and raises if the log does not (or no longer) cover the range.

        Args:
            start: where to begin. A time after every record, or ``latest-tiered`` with nothing
                tiered, is an empty range.
            end: where to end, exclusive. A time after every record is the log end.
            max_bytes: about how much a batch holds.

        Raises:
            InvalidArgumentError: the range ends before it begins.
            OffsetOutOfRangeError: an offset outside the log; may come while iterating.
        """
        from .range_read import RangeRead

        topic_partition = self.topic.partition(partition)
        max_bytes = _checked_max_bytes(max_bytes)
        first, last = self._range(topic_partition, start, end)
        if last < first:
            offsets = self.offsets([partition])[topic_partition.partition]
            for offset in (first, last):
                if not offsets.log_start <= offset <= offsets.log_end:
                    out_of_range(topic_partition, offset, offsets)
            raise InvalidArgumentError(
                f"the range [{first}, {last}) of {topic_partition} ends before it begins; the end "
                "is exclusive and comes second",
                offset=first,
                end_offset=last,
            )
        return RangeRead(self._tiers, topic_partition, first, last, max_bytes)

    def search(
        self,
        where: str | Where = "",
        start: PositionLike | Mapping[int, PositionLike] = "earliest",
        end: PositionLike | Mapping[int, PositionLike] = "latest",
        *,
        partitions: Iterable[int] | None = None,
    ) -> Search:
        """The records of [start, end) that match, of all partitions, in the order of time.

        The ranges are fixed here. Files and segments that cannot hold a match are not read.

        Args:
            where: which records, such as ``key = "N229JB" and value.dep_delay > 60``, or a text to
                look for; see `lakelog.read.where.grammar`. Times without a zone are UTC.
            start: where to begin in each partition, or a position for each that is to be searched.
                An offset counts where a partition has it; one that has not begins or ends there.
            end: where to end, exclusive.
            partitions: which to search; default those of a dict, or all.

        Raises:
            InvalidArgumentError: an expression that cannot be read, or not a position.
            UnknownTopicOrPartitionError: no such partition.
        """
        from .search import Search

        given = [one for one in (start, end) if isinstance(one, Mapping)]
        if partitions is None and given:
            partitions = set.intersection(*({*one} for one in given))
        elif partitions is not None:
            partitions = numbers("partitions", partitions)
            for number in partitions:
                if any(number not in one for one in given):
                    raise InvalidArgumentError(
                        f"partition {number} of {self.topic.name!r} is to be searched, but no "
                        "position is given for it"
                    )
        asked = sorted(set(self._numbers(partitions)))
        found = cast("Where", where) if hasattr(where, "holds") else parse(where)
        edges = [self._sought(asked, one) for one in (start, end)]
        looks = [one.look for _, one in edges if one is not None]
        look = looks[-1] if looks else self._tiers.look_at_segments(asked)
        first, last = (self._clamped(asked, sought, look) for sought, _ in edges)
        ranges = {number: (first[number], max(first[number], last[number])) for number in asked}
        begun = edges[0][1]
        times_ms = {} if begun is None else begun.times_ms
        known_ms = {
            number: time_ms
            for number, time_ms in times_ms.items()
            if begun is not None and begun.offsets[number] == first[number]
        }
        return Search(self._tiers, ranges, found, look, known_ms)

    def search_ranges(self, ranges: Mapping[int, tuple[int, int]], where: Where) -> Search:
        """As `search`, in [start, end) of each of some partitions."""
        from .search import Search

        return Search(self._tiers, ranges, where)

    def last(self, partition: int, records: int) -> int:
        """The offset from which on a partition has so many records, or all it has, if fewer."""
        records = check_records(records)
        partition = self.topic.partition(partition).partition
        held = self.offsets([partition])[partition]
        search = self.search_ranges({partition: (held.log_start, held.log_end)}, Always())
        found = search.page(records, backward=True).records if records else None
        return int(found["offset"][0].as_py()) if found is not None and len(found) else held.log_end

    def dataframe(
        self,
        start: PositionLike | Mapping[int, PositionLike] = "earliest",
        end: PositionLike | Mapping[int, PositionLike] = "latest",
        *,
        spark: SparkSession | None = None,
        partitions: Iterable[int] | None = None,
        clip: bool = False,
    ) -> DataFrame:
        """The records of [start, end) of all partitions as one Spark DataFrame.

        The ranges are fixed here, by one look at both tiers: the rows are the same each time the
        frame is evaluated, until the removed files are vacuumed (``file.delete.delay.ms``). What is
        archived is read by Spark's Delta reader, with its filters and skipping; Spark's tasks read
        the rest from Redis.

        Credentials that Unity Catalog vends are put into the frame now and not renewed: make it
        again after half an hour. Spark Connect plans at each evaluation, and refuses an older
        version than Delta keeps.

        Args:
            start: a position for all partitions, or one for each. A time gives what the log has
                from then on, an offset must be in the log.
            end: where to end, exclusive. A time after every record is the log end.
            spark: default the session there is, or a local one.
            partitions: which to read; default those of a dict, or all.
            clip: cut an offset outside the log to the nearest inside, instead of failing.

        Returns:
            The columns of Spark's Kafka source: key, value (binary), topic (string), partition
            (int), offset (long), timestamp, timestampType (int), headers (array of structs of key,
            value); then, if the topic has ``lakelog.value.columns``, those and value_error, null
            for what was archived before they were set. In no order; sort by partition and offset.

        Raises:
            OffsetOutOfRangeError: an offset outside the log. May come from a task, inside Spark's
                own exception, if the log no longer covers the range.
            InvalidArgumentError: a range ends before it begins, or the Redis URL has a password and
                records in Redis are asked for: connect with ``password_ref``.
        """
        if self._frame_of is None:
            raise InvalidArgumentError(
                f"this log of topic {self.topic.name!r} does not know how executors would open it; "
                "get it from Lakelog.log, or call lakelog.spark.read"
            )
        return self._frame_of(
            self._tiers, self._clock, start, end, spark=spark, partitions=partitions, clip=clip
        )

    def sample(self, n: int = DEFAULT_SAMPLE_RECORDS, *, seed: int = 0) -> pa.Table:
        """About `n` records spread over all partitions and both tiers: a first look at the data.

        A few dozen places are read, not the log. The same log and seed give the same records.

        Returns:
            At most `n` rows, ordered by partition and offset; columns ``partition`` (int32) and
            `RECORDS`. All if the log has no more; else `n`, or somewhat fewer where compaction
            thinned the log out.
        """
        from .range_read import sample

        return sample(self._tiers, n, seed)

    def explore(
        self, partition: int | None = None, at: PositionLike = "earliest", where: str = ""
    ) -> Any:
        """A `LogExplorer`: a widget to look at the records and walk through them, in a notebook.

        Args:
            partition: None: all of them, merged by time.
            at: where to begin; see `values.offsets.position`.
            where: which records; see `search`.

        Raises:
            MissingExtraError: ipywidgets is not installed.
            UnknownTopicOrPartitionError: no such partition.
            InvalidArgumentError: not a position.
        """
        if self._explorer_of is None:
            raise InvalidArgumentError(
                f"this log of topic {self.topic.name!r} does not know how to open others; get it "
                "from Lakelog.log"
            )
        return self._explorer_of(self.topic.name, partition, at, where)

    def count(
        self, partition: int, start: PositionLike = "earliest", end: PositionLike = "latest"
    ) -> int:
        """How many records [start, end) has now; offsets outside the log do not count.

        As many as `read` gives, counted by the segment index: of the cold files, only the offsets
        of those that the range cuts are read, where compaction thinned them out.

        Args:
            start, end: as for `read`.
        """
        topic_partition = self.topic.partition(partition)
        first, last = self._range(topic_partition, start, end)
        partition = topic_partition.partition
        return self._counted(self._tiers.look([partition]), partition, first, last)

    # -- changing --------------------------------------------------------------------------------

    def raise_log_start(self, partition: int, offset: int) -> int:
        """Delete the records below an offset, and return the log start offset after that.

        They become unreadable at once; cleanup removes their files later. A log start only grows,
        so a lower offset changes nothing.

        Args:
            offset: the first to keep; -1 for the log end (delete all).

        Raises:
            OffsetOutOfRangeError: past the log end, or negative other than -1.
            PolicyViolationError: the topic is compacted without ``delete``.
            ArchivedElsewhereError: another table is the topic's, and may be away; nothing changed.
            CommitConflictError: others kept committing to the cold tier; repeat the call.
        """
        hot, topic_partition = self._changeable(), self.topic.partition(partition)
        for _ in range(_ATTEMPTS):
            topic = self._deletable()
            look, start = self._raised_log_start(topic_partition, offset)
            # Register first: records that are no longer hot must by then be known as deleted.
            if self._tiers.table is None:
                break
            hot.archived_into().settle(topic, self._tiers.table)
            if look.cold.log_start(partition) >= start:
                break
            change = Change(
                registers={LogStart(partition): start}, config_version=topic.config_version
            )
            if not self._tiers.table.apply(change, look.cold).superseded:
                break
        else:
            raise CommitConflictError(
                f"the log start of {topic_partition} could not be raised: others changed its "
                "registers or the topic's settings each time. Nothing was deleted; repeat the call",
                topic_partition=topic_partition,
            )
        hot.raise_log_start(topic_partition, start, topic_id=self.topic.topic_id)
        return start

    def records_below(self, partition: int, offset: int) -> int:
        """How many records `raise_log_start` would delete now; it takes and raises the same.

        Counted by the segment index: of the cold files, only the offsets of one that is deleted in
        part are read.
        """
        topic_partition = self.topic.partition(partition)
        self._deletable()
        look, end = self._raised_log_start(topic_partition, offset)
        return self._counted(look, topic_partition.partition, 0, end)

    def recover(self, partition: int, at_least: int, *, waits: bool = True) -> None:
        """Make a partition writable again after its server may have lost its tail.

        Args:
            at_least: one past the highest offset the caller was told of. What the cold tier knows
                is added here, so that no offset is ever used twice.
            waits: whether to wait, two minutes at most, while somebody else takes its server over.

        Raises:
            ConcurrentChangeError: somebody else takes it over; retriable.
            RecoveryNeededError: the cold tier cannot be reached, and only it can tell where the
                partition goes on; retriable. An archiver settles it too.
        """
        hot, topic_partition = self._changeable(), self.topic.partition(partition)
        at_least = check_offset(at_least)
        table = self._tiers.current_table([topic_partition])
        if table is None:
            hot.recover(topic_partition, at_least, topic_id=self.topic.topic_id, waits=waits)
            return
        try:
            self._settle(self.topic, table)
            cold = self._tiers.cold()
            known = max(at_least, cold.archive_start(partition))
            hot.recover(
                topic_partition,
                known,
                reserving(self.topic, table, self._settle),
                topic_id=self.topic.topic_id,
                waits=waits,
            )
        except (ContradictionError, ForeignTableError):
            raise
        except ColdTierError as error:
            raise RecoveryNeededError(
                f"the server of {topic_partition} may have lost its tail, or all its offsets are "
                "given out, and only the cold tier says where it can go on, which cannot be "
                f"used now: {error.message}",
                topic_partition=topic_partition,
            ) from error

    # -- how -------------------------------------------------------------------------------------

    def _changeable(self) -> HotLog:
        """What is changed.

        Raises:
            InvalidArgumentError: there is no Redis.
        """
        if self.redis is None:
            raise InvalidArgumentError(
                f"this log of topic {self.topic.name!r} is what is archived, without a Redis: "
                "nothing is deleted or recovered there; connect with a redis_url"
            )
        return self.redis

    def _settle(self, topic: Topic, table: ColdTable) -> None:
        """Offsets that another table reserved could be given out again by the topic's own.

        Raises:
            ArchivedElsewhereError: another one is the topic's.
        """
        # Another server may know, and not answer now. None is made then (see `making`), and
        # archivers ask, too.
        with suppress(HotTierUnavailableError):
            self._changeable().archived_into().settle(topic, table)

    def _deletable(self) -> Topic:
        """The topic as it is now, not as it was when this log was opened.

        Raises:
            PolicyViolationError: it is compacted without ``delete``.
            UnknownTopicIdError: it was dropped.
        """
        # An untiered topic has no such policy. A commit to the cold tier can meet one that was set
        # since, and it is then refused.
        topic = self._changeable().topics().renewed(self.topic)
        if topic.config["cleanup.policy"] == {"compact"}:
            raise PolicyViolationError(
                f"records of topic {topic.name!r} cannot be deleted by offset: its "
                "cleanup.policy is compact, which keeps the latest record of each key. Write "
                "tombstones, or set cleanup.policy=compact,delete",
                topic=topic.name,
            )
        return topic

    def _raised_log_start(self, topic_partition: TopicPartition, offset: int) -> tuple[Look, int]:
        """The log start after deleting the records below an offset, and the look that shows it."""
        number = whole(offset)
        offset = check_offset(offset) if number is None or number >= 0 else number
        look = self._tiers.look([topic_partition.partition])
        offsets = look.offsets[topic_partition.partition]
        start = offsets.log_end if offset == END_OF_LOG else offset
        if not 0 <= start <= offsets.log_end:
            do = f"Delete before an offset up to {offsets.log_end}, or before -1, which is that end"
            out_of_range(topic_partition, start, offsets, do)
        return look, max(start, offsets.log_start)

    def _numbers(self, partitions: Iterable[int] | None) -> list[int]:
        """Those partitions, or all.

        Raises:
            UnknownTopicOrPartitionError: no such partition.
        """
        if partitions is None:
            return [*range(self.topic.partitions)]
        return [self.topic.partition(one).partition for one in numbers("partitions", partitions)]

    def _sought(
        self, asked: Sequence[int], given: PositionLike | Mapping[int, PositionLike]
    ) -> tuple[Mapping[int, Position | int | None], seeking.Sought | None]:
        """Positions in each partition, as offsets where it takes a search to tell.

        Returns:
            They, and what that search found in all partitions, if there was one.
        """
        if isinstance(given, Mapping):
            positions = {number: position(given[number]) for number in asked}
            return {
                number: self.seek(number, where) if isinstance(where, seeking.SOUGHT) else where
                for number, where in positions.items()
            }, None
        where = position(given)
        if isinstance(where, seeking.SOUGHT):
            sought = seeking.seek_each(self._tiers, asked, where, self._clock)
            return sought.offsets, sought
        return dict.fromkeys(asked, where), None

    def _clamped(
        self, asked: Sequence[int], sought: Mapping[int, Position | int | None], look: Look
    ) -> dict[int, int]:
        """Where a position lies in each partition; at one of its ends, if it lies outside."""
        clamped = {}
        for number in asked:
            log, where = look.offsets[number], sought[number]
            if isinstance(where, AtOffset):
                offset: int | None = where.offset
            elif isinstance(where, Position):
                offset = seeking.offset_of(where, self._tiers, number, log)
            else:
                offset = where
            if offset is None:
                offset = log.log_end
            clamped[number] = min(max(offset, log.log_start), log.log_end)
        return clamped

    def _counted(self, look: Look, partition: int, start: int, end: int) -> int:
        from .lag import count_records

        while True:
            try:
                return count_records(look, partition, start, end, self._tiers.table).records
            except MissingFileError:
                if not self._tiers.outdated(look):
                    raise
                look = self._tiers.look([partition])

    def _range(
        self, topic_partition: TopicPartition, start: PositionLike, end: PositionLike
    ) -> tuple[int, int]:
        """[start, end) in offsets; those that were given as such are checked when they are read."""
        seek = partial(seeking.seek, self._tiers, topic_partition, clock=self._clock)
        begin, wanted = position(start), position(end)
        first = begin.offset if isinstance(begin, AtOffset) else seek(begin)
        last = wanted.offset if isinstance(wanted, AtOffset) else seek(wanted)
        if first is not None and last is None and not isinstance(wanted, (AtTimestamp, Ago)):
            last = first  # nothing is tiered
        if last is None:
            last = seek(Latest())
        assert last is not None  # a log always has an end
        return last if first is None else first, last


def _checked_max_bytes(max_bytes: int) -> int:
    number = whole(max_bytes)
    if number is None or number < 1:
        raise InvalidArgumentError(f"max_bytes={max_bytes!r} is not a number of bytes ≥ 1")
    return number


#: The earlier name of a log with its Redis.
UnifiedLog = TopicLog
