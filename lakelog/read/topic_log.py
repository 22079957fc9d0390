"""One log out of two tiers, to be read: offsets, seek, fetch and range reads of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from ..base.clock import Clock, SystemClock
from ..cold.table import ColdTable
from ..errors import InvalidArgumentError, MissingFileError
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
from .hot_tier import HotTier
from .sample import DEFAULT_SAMPLE_RECORDS
from .tiers import Look, OpenTable, Tiers, out_of_range
from .where import Where, parse
from .where.expression import Always

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from .lag import Lag
    from .range_read import RangeRead
    from .search import Search

#: Makes a DataFrame of a topic's tiers. It is passed in when a log is opened, since ``spark``
#: builds on this module.
FrameOf = Callable[..., "DataFrame"]

#: Makes the widget for a topic's name, a partition, a position and an expression; likewise.
ExplorerOf = Callable[[str, int | None, PositionLike, str], Any]


class TopicLog:
    """A topic as one log, to be read wherever its records are.

    It holds no position: any number of threads may share it. A topic that was dropped, and perhaps
    created again, is refused with UnknownTopicIdError by every method that asks a Redis.

    Args:
        topic: as the registry gave it.
        hot: the hot tier.
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
            f"{type(self).__name__}({self.topic.name!r}, "
            f"{partitions} partition{'s' if partitions > 1 else ''})"
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
        first = self._offset(topic_partition, position(start))
        last = self._offset(topic_partition, position(end))
        if first is None:
            first = last = self._log_end(topic_partition) if last is None else last
        elif last is None:
            unbounded = isinstance(position(end), (AtTimestamp, Ago))
            last = self._log_end(topic_partition) if unbounded else first
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

        The ranges are fixed here, by one look at both tiers, and the rows are the same each time
        the frame is evaluated, whatever is appended, archived, trimmed, compacted or expires
        meanwhile. It fails only after the removed files are vacuumed (``file.delete.delay.ms``).
        Spark Connect plans at each evaluation, and Delta then refuses a version that is older than
        that delay once there is a newer one: make the frame again.
        What is archived is read by Spark's Delta reader, so that filters, column pruning and file
        skipping work; Spark's tasks read the rest from Redis.

        Credentials that Unity Catalog vends are put into the frame now and are not renewed: it can
        be evaluated for half an hour at least, an hour at most; then make it again. Over Spark
        Connect it holds none: the server opens an object store as it was set up.

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
            value); then, if the topic has ``lakelog.value.columns``, those and value_error, which
            are null for what was archived before they were set and not rewritten since. In no
            order; sort by partition and offset.

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
        from .sample import sample

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
        first = self._offset(topic_partition, position(start))
        last = self._offset(topic_partition, position(end))
        partition = topic_partition.partition
        look = self._tiers.look([partition])
        log_end = look.offsets[partition].log_end
        if first is None:
            return 0
        if last is None:
            last = log_end if isinstance(position(end), (AtTimestamp, Ago)) else first
        return self._counted(look, partition, first, last)

    # -- how -------------------------------------------------------------------------------------

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
        from .record_count import count_records

        while True:
            try:
                return count_records(look, partition, start, end, self._tiers.table).records
            except MissingFileError:
                if not self._tiers.outdated(look):
                    raise
                look = self._tiers.look([partition])

    def _offset(self, topic_partition: TopicPartition, where: Position) -> int | None:
        """The offset of a position; one that is an offset is checked when it is read."""
        if isinstance(where, AtOffset):
            return where.offset
        return seeking.seek(self._tiers, topic_partition, where, self._clock)

    def _log_end(self, topic_partition: TopicPartition) -> int:
        found = seeking.seek(self._tiers, topic_partition, Latest(), self._clock)
        assert found is not None  # a log always has an end
        return found


def _checked_max_bytes(max_bytes: int) -> int:
    number = whole(max_bytes)
    if number is None or number < 1:
        raise InvalidArgumentError(f"max_bytes={max_bytes!r} is not a number of bytes ≥ 1")
    return number
