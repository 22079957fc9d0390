"""One log out of two tiers: offsets, seek, fetch and range reads of a topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..clock import Clock, SystemClock
from ..cold.change import Change
from ..cold.registers import LogStart
from ..cold.reserve import reserving
from ..cold.table import ColdTable
from ..errors import (
    ColdTierError,
    CommitConflictError,
    ContradictionError,
    ForeignTableError,
    InvalidArgumentError,
    MissingFileError,
    PolicyViolationError,
    RecoveryNeededError,
)
from ..hot.hot_log import HotLog
from ..offsets import (
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
from ..record import Fetched, OffsetAndTimestamp, OffsetRange, TopicPartition, empty_records
from ..topic import Topic
from . import seek as seeking
from .fetch import DEFAULT_MAX_BYTES, fetches
from .range_read import RangeRead
from .record_count import count_records
from .sample import DEFAULT_SAMPLE_RECORDS, sample
from .tiers import Look, Tiers, out_of_range

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Makes a DataFrame of a topic's tiers; ``spark`` is given by those who open logs, since it stands
#: on what is here.
FrameOf = Callable[..., "DataFrame"]

#: Makes the widget of a topic's name, a partition and a position; given likewise.
ExplorerOf = Callable[[str, int, PositionLike], Any]

END_OF_LOG = -1  # delete-records' word for the log end (Kafka's HIGH_WATERMARK)
_ATTEMPTS = 10  # commits of other partitions may come first


class UnifiedLog:
    """A topic as one log, wherever its records are.

    It holds no position: any number of threads may share it. A topic that was dropped, and perhaps
    created again, is refused with UnknownTopicIdError by every method.

    Args:
        topic: as the registry gave it.
        hot: the hot tier.
        table: the cold tier; None for an untiered topic.
        clock: what "10 minutes ago" is counted from.
        frame_of: what `dataframe` is made with.
        explorer_of: what `explore` is made with.
    """

    def __init__(
        self,
        topic: Topic,
        hot: HotLog,
        table: ColdTable | None,
        clock: Clock | None = None,
        frame_of: FrameOf | None = None,
        explorer_of: ExplorerOf | None = None,
    ) -> None:
        self.topic = topic
        self.hot = hot
        self.table = table
        self._clock = clock or SystemClock()
        self._tiers = Tiers(topic, hot, table)
        self._frame_of = frame_of
        self._explorer_of = explorer_of

    # -- where things lie ------------------------------------------------------------------------

    def offsets(self, partitions: Iterable[int] | None = None) -> dict[int, LogOffsets]:
        """Where each partition begins and ends, in both tiers, of one moment.

        ``recovered=False`` says that the server may have lost its tail: what was appended last
        will be known after the next append or archive run.
        """
        if partitions is None:
            partitions = range(self.topic.partitions)
        return dict(self._tiers.look(partitions).offsets)

    def seek(self, partition: int, to: PositionLike) -> int | None:
        """The offset of a position, None when no record answers to it.

        A timestamp gives the earliest offset whose timestamp is at or after it, so that later
        records may be older still when producers' clocks differ.

        Args:
            to: an offset, a name, a time, a distance from now; see `lakelog.offsets.position`.

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
        if partitions is None:
            partitions = range(self.topic.partitions)
        return seeking.seek_each(self._tiers, partitions, position(to), self._clock)

    def offset_for_timestamp(self, partition: int, timestamp_ms: int) -> OffsetAndTimestamp | None:
        """As `seek` by timestamp, with the timestamp that was found."""
        target = AtTimestamp(timestamp_ms)
        return seeking.offset_for_timestamp(
            self._tiers, self.topic.partition(partition), target.timestamp_ms
        )

    # -- reading ---------------------------------------------------------------------------------

    def fetch(self, partition: int, offset: int, *, max_bytes: int = DEFAULT_MAX_BYTES) -> Fetched:
        """The records from an offset on: at least one, if the log has one there or above.

        Inside a gap the next record is given. ``next_offset`` equals the offset only at the log
        end; offsets skipped after an unclean stop are among the ``gaps``.

        Args:
            max_bytes: about how much; a single larger record is given all the same.

        Raises:
            OffsetOutOfRangeError: below the log start or past the log end.
            RecoveryNeededError: past the log end of a server that may have lost its tail; wait.
        """
        gaps: list[OffsetRange] = []
        next_offset = offset
        for step in self.fetches(partition, offset, max_bytes=max_bytes):
            gaps += step.gaps
            next_offset = step.next_offset
            if step.records.num_rows:
                return Fetched(step.records, offset, next_offset, tuple(gaps))
        return Fetched(empty_records(), offset, next_offset, tuple(gaps))

    def fetches(
        self, partition: int, offset: int, *, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> Iterator[Fetched]:
        """One `fetch` after the other up to the log end, without reading a cold file twice.

        A step may hold no records, only a gap. Errors as for `fetch`; one in the middle ends the
        iteration, which can be taken up again where the last step ended.
        """
        topic_partition = self.topic.partition(partition)
        check_offset(offset)
        _check_max_bytes(max_bytes)
        return fetches(self._tiers, topic_partition, offset, max_bytes=max_bytes)

    def read(
        self,
        partition: int,
        start: PositionLike = "earliest",
        end: PositionLike = "latest",
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> RangeRead:
        """The records of [start, end), to be iterated as batches or records, or taken whole.

        The range is fixed here; each iteration reads it anew, goes on in the cold tier when the hot
        one is trimmed midway, and raises when the log does not cover the range (any more).

        Args:
            start: where to begin. A time after every record, or ``latest-tiered`` with nothing
                tiered, is an empty range.
            end: where to end, exclusive. A time after every record is the log end.
            max_bytes: about how much a batch holds.

        Raises:
            InvalidArgumentError: the range ends before it begins.
            OffsetOutOfRangeError: an offset outside the log; may come while iterating.
        """
        topic_partition = self.topic.partition(partition)
        _check_max_bytes(max_bytes)
        first = self._offset(topic_partition, position(start))
        last = self._offset(topic_partition, position(end))
        if first is None:
            first = last = self._log_end(topic_partition) if last is None else last
        elif last is None:
            unbounded = isinstance(position(end), (AtTimestamp, Ago))
            last = self._log_end(topic_partition) if unbounded else first
        if last < first:
            offsets = self.offsets([partition])[partition]
            for offset in (first, last):
                if not offsets.log_start <= offset <= offsets.log_end:
                    out_of_range(topic_partition, offset, offsets)
            raise InvalidArgumentError(
                f"the range [{first}, {last}) of {topic_partition} ends before it begins; the end "
                "is exclusive and comes second",
                start_offset=first,
                end_offset=last,
            )
        return RangeRead(self._tiers, topic_partition, first, last, max_bytes)

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
        meanwhile; only after the removed files are vacuumed (``file.delete.delay.ms``) it fails.
        Spark Connect plans at each evaluation, and Delta then refuses a version that is older than
        that delay once there is a newer one: make the frame anew.
        What is archived is read by Spark's Delta reader, so that filters, column pruning and file
        skipping work; the rest out of Redis by Spark's tasks.

        Credentials that Unity Catalog vends are in the frame as of now and are not renewed: it can
        be evaluated for half an hour at least, an hour at most; then make it anew. Over Spark
        Connect none go into it: the server opens an object store as it was set up.

        Args:
            start: a position for all partitions, or one for each. A time finds what the log has
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
                own exception, when the log does not cover the range any more.
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
        return sample(self._tiers, n, seed)

    def explore(self, partition: int = 0, at: PositionLike = "earliest") -> Any:
        """A `LogExplorer`: a widget to look at the records and walk through them, in a notebook.

        Args:
            at: where to begin; see `lakelog.offsets.position`.

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
        return self._explorer_of(self.topic.name, partition, at)

    # -- changing --------------------------------------------------------------------------------

    def raise_log_start(self, partition: int, offset: int) -> int:
        """Delete the records below an offset, and return the log start offset as it is then.

        They become unreadable at once; cleanup removes their files later. A log start only grows,
        so a lower offset than it changes nothing.

        Args:
            offset: the first to keep; -1 for the log end (delete all).

        Raises:
            OffsetOutOfRangeError: past the log end, or negative other than -1.
            PolicyViolationError: the topic is compacted without ``delete``.
            CommitConflictError: others kept committing to the cold tier; repeat the call.
        """
        topic_partition = self.topic.partition(partition)
        for _ in range(_ATTEMPTS):
            topic = self._deletable()
            look, start = self._raised_log_start(topic_partition, offset)
            # Register first: what a reader no longer finds hot must by then be known as deleted.
            if self._tiers.table is None or look.cold.log_start(partition) >= start:
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
        self.hot.raise_log_start(topic_partition, start, topic_id=self.topic.topic_id)
        return start

    def records_below(self, partition: int, offset: int) -> int:
        """How many records `raise_log_start` would delete now; it takes and raises the same.

        Counted by the segment index: of the cold files, only the offsets of one that is deleted in
        part are read.
        """
        topic_partition = self.topic.partition(partition)
        self._deletable()
        look, end = self._raised_log_start(topic_partition, offset)
        return self._counted(look, partition, 0, end)

    def count(
        self, partition: int, start: PositionLike = "earliest", end: PositionLike = "latest"
    ) -> int:
        """How many records [start, end) has now; what lies outside the log counts nothing.

        As many as `read` gives, counted by the segment index: of the cold files, only the offsets
        of those that the range cuts are read, where compaction thinned them out.

        Args:
            start, end: as for `read`.
        """
        topic_partition = self.topic.partition(partition)
        first = self._offset(topic_partition, position(start))
        last = self._offset(topic_partition, position(end))
        look = self._tiers.look([partition])
        log_end = look.offsets[partition].log_end
        if first is None:
            return 0
        if last is None:
            last = log_end if isinstance(position(end), (AtTimestamp, Ago)) else first
        return self._counted(look, partition, first, last)

    def _counted(self, look: Look, partition: int, start: int, end: int) -> int:
        while True:
            try:
                return count_records(look, partition, start, end, self._tiers.table).records
            except MissingFileError:
                if not self._tiers.outdated(look):
                    raise
                look = self._tiers.look([partition])

    def recover(self, partition: int, at_least: int) -> None:
        """Make a partition writable again after its server may have lost its tail.

        Args:
            at_least: one past the highest offset the caller was told of; what the cold tier knows
                is added here, so that no offset is ever used twice.

        Raises:
            RecoveryNeededError: the cold tier cannot be reached, and nobody else can tell where the
                partition goes on; retriable. An archiver settles it too.
        """
        topic_partition = self.topic.partition(partition)
        table = self._tiers.table
        if table is None:
            self.hot.recover(topic_partition, at_least, topic_id=self.topic.topic_id)
            return
        try:
            cold = self._tiers.cold()
            known = max(at_least, cold.archived_end(partition), cold.log_start(partition))
            self.hot.recover(
                topic_partition,
                known,
                reserving(self.topic, table),
                topic_id=self.topic.topic_id,
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

    def _deletable(self) -> Topic:
        """The topic as it is now, whatever it was when this log was opened.

        Raises:
            PolicyViolationError: it is compacted without ``delete``.
            UnknownTopicIdError: it was dropped.
        """
        # An untiered topic has no such policy, nor becomes a tiered one: only a commit to the cold
        # tier can meet one that was set since, and it is refused then.
        topic = self.hot.topics().renewed(self.topic)
        if topic.config["cleanup.policy"] == {"compact"}:
            raise PolicyViolationError(
                f"records of topic {topic.name!r} cannot be deleted by offset: its "
                "cleanup.policy is compact, which keeps the latest record of each key. Write "
                "tombstones, or set cleanup.policy=compact,delete",
                topic=topic.name,
            )
        return topic

    def _raised_log_start(self, topic_partition: TopicPartition, offset: int) -> tuple[Look, int]:
        """The log start that deleting what is below an offset leads to, and what it is told by."""
        if offset != END_OF_LOG:
            negative = isinstance(offset, int) and offset < 0
            check_offset(0 if negative else offset)
        look = self._tiers.look([topic_partition.partition])
        offsets = look.offsets[topic_partition.partition]
        start = offsets.log_end if offset == END_OF_LOG else offset
        if not 0 <= start <= offsets.log_end:
            do = f"Delete before an offset up to {offsets.log_end}, or before -1, which is that end"
            out_of_range(topic_partition, start, offsets, do)
        return look, max(start, offsets.log_start)

    def _offset(self, topic_partition: TopicPartition, where: Position) -> int | None:
        """The offset of a position; one that is an offset is checked when it is read."""
        if isinstance(where, AtOffset):
            return where.offset
        return seeking.seek(self._tiers, topic_partition, where, self._clock)

    def _log_end(self, topic_partition: TopicPartition) -> int:
        found = seeking.seek(self._tiers, topic_partition, Latest(), self._clock)
        assert found is not None  # a log always has an end
        return found


def _check_max_bytes(max_bytes: int) -> None:
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
        raise InvalidArgumentError(f"max_bytes={max_bytes!r} is not a number of bytes ≥ 1")
