"""The cold tier of one topic: one Delta table of either kind, changed one commit at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa
from msgspec import Struct, field

from ..values import reservation
from ..values.producer_calls import ProducerCall
from ..values.record import OffsetAndTimestamp
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange
from .answers import Discarded, Leftovers, Orphans, Purged, RowGroupTimes, Vacuumed
from .change import Change
from .registers import ArchivedEnd, CleanedEnd, ErasedEnd, LogStart, Register, ReservedEnd
from .scan import FileScan, ScanTask, Spacing, Tombstones
from .segment import SegmentFile, SegmentIndex, no_files

T = TypeVar("T")
R = TypeVar("R")

NO_TABLE = -1  # the version of a table that no commit has made yet


class ColdSnapshot(Struct, frozen=True, eq=False):
    """The cold tier as of one version; answers without I/O."""

    version: int = NO_TABLE
    files: SegmentIndex = field(default_factory=no_files)
    registers: Mapping[Register, int] = field(default_factory=lambda: MappingProxyType({}))
    config_version: int = 0  # of the topic's settings in the table
    is_deleted: bool = False  # whether the table says that its topic was
    is_untiered: bool = False  # whether it says that its topic is archived no more

    def archived_end(self, partition: int) -> int:
        return self.registers.get(ArchivedEnd(partition), 0)

    def log_start(self, partition: int) -> int:
        return self.registers.get(LogStart(partition), 0)

    def archive_start(self, partition: int) -> int:
        """The first offset that is neither archived nor below the log start."""
        return max(self.archived_end(partition), self.log_start(partition))

    def cleaned_end(self, partition: int) -> int:
        return self.registers.get(CleanedEnd(partition), 0)

    def erased_end(self, partition: int) -> int:
        return self.registers.get(ErasedEnd(partition), 0)

    def thinned_end(self, partition: int) -> int:
        """One past the last offset that compaction or an erasure may have taken."""
        return max(self.cleaned_end(partition), self.erased_end(partition))

    def reserved_end(self, partition: int) -> int:
        """At or above what is reserved; exact once the partition had a reservation of its own."""
        return self.registers.get(ReservedEnd(partition), 0) or reservation.FIRST_OFFSETS


class Applied(Struct, frozen=True, eq=False):
    """What became of a change."""

    snapshot: ColdSnapshot  # with the change in it; may hold later commits of others too
    files: tuple[SegmentFile, ...] = ()  # added, by partition and offset
    superseded: frozenset[int] = frozenset()  # partitions left out: plan them again
    #: Records among those added whose value did not parse, by partition.
    unparsed: Mapping[int, int] = field(default_factory=dict)
    #: Of rewrites that stood, but merge what the catalog alone may merge: they stay as they were.
    left: tuple[SegmentFile, ...] = ()
    #: Files that it wrote, that no commit can name any more, and that could not be deleted.
    undeleted: tuple[str, ...] = ()


class RowReader(Protocol):
    """What a function reads with when a table maps it over tasks."""

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdRows.read`; `columns` may also name ``delete_horizon``."""
        ...

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        """See `ColdRows.with_keys`."""
        ...

    def tombstones(self, file: SegmentFile) -> Tombstones:
        """How many tombstones the file has, and when the earliest may go."""
        ...


class ColdRows(Protocol):
    """One topic's cold tier as readers see it that go on from an offset."""

    def snapshot(self, newer_than: ColdSnapshot | None = None) -> ColdSnapshot:
        """The newest version, checked for contradictions.

        Args:
            newer_than: an earlier answer; the new one is never older than it. Making a snapshot
                from one costs what was committed in between, not the size of the table.

        Raises:
            ForeignTableError: the place holds a table that is not this topic's.
            ContradictionError: registers and files disagree, or the table went back in time.
            NewerVersionError: a newer lakelog wrote it.
            ColdTierError: the place cannot be read.
        """
        ...

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The records of [start, end) in the files of one partition, sorted by offset.

        Reads only row groups that can hold such records, in bounded memory.

        Args:
            files: of one partition, in the order an index gives them.
            columns: names of `RECORDS`; None for all.

        Raises:
            MissingFileError: the table names a file that is gone.
            CorruptRecordError: a file is not the Parquet that was written.
        """
        ...

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        """Ranges of offsets in which all records of [start, end) lie that have one of the keys.

        They are those of row groups: what is left of one does not depend on where it is cut. Where
        a Bloom filter says that there is none of the keys, nothing is read, else the keys alone. A
        table that cannot be asked gives back [start, end).

        Args:
            files: see `read`.

        Raises:
            MissingFileError, CorruptRecordError: see `read`.
        """
        ...

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        """The row groups that have records of [start, end), as the files' footers tell.

        None of a file whose footer does not tell when its records are, or that does not show it.

        Args:
            files: see `read`; a footer is read of each, some KB.

        Raises:
            MissingFileError, CorruptRecordError: see `read`.
        """
        ...


class ColdTable(ColdRows, Protocol):
    """Reads and changes one topic's cold tier. A second implementation passes the same tests.

    All that look at the table raise what `snapshot` raises; where they are to find damage, not that
    registers and files disagree.
    """

    @property
    def where(self) -> str:
        """The path, URL or name that it is opened by."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether it lies in a folder of this machine, so that opening it waits for nobody."""
        ...

    def table_id(self) -> str | None:
        """Delta's id of the table, the same from wherever it is opened; None: there is none yet.

        Raises:
            ForeignTableError, ColdTierError: as for `snapshot`.
        """
        ...

    def data_files(self, partition: int) -> Sequence[SegmentFile]:
        """The newest version's data files of a partition as they lie, by offset, for `map` without
        columns. Where a snapshot's files are slices of them, these are the whole ones.

        Raises:
            InvalidArgumentError: the platform does not show its files.
            ForeignTableError, ContradictionError, ColdTierError: as for `snapshot`, except that
                registers and files may disagree.
        """
        ...

    def value_columns(
        self, files: Sequence[SegmentFile], start: int, end: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch] | None:
        """As `read`, of columns of values too, as they were when the files were written.

        Args:
            schema: of columns of `RECORDS`, and of `value_columns` that are not nested.

        Returns:
            None: a file lacks one of them, or the platform does not show its files.
        """
        ...

    def missing(self, files: Iterable[SegmentFile]) -> Sequence[SegmentFile]:
        """The files that are gone from the store, though the newest version names them: the newest
        after they were looked for, since files come and go meanwhile.

        Asked before the only other copy of their records goes. A table whose files the platform
        does not show says that none is.
        """
        ...

    def unchecked(self) -> ColdSnapshot:
        """The newest version as it is, whether registers and files agree or not.

        For checks that look for damage; nothing is ever planned on it.
        """
        ...

    def apply(self, change: Change, planned_on: ColdSnapshot) -> Applied:
        """Write the change's files and commit them with its registers; atomic.

        If others committed since `planned_on`, the partitions whose registers did not move and
        whose removed files are all still there are committed anyway, with the same files. The other
        partitions are reported as superseded, and so are all of them if the change's
        `config_version` is no longer the newest. A lost reply is settled by reading back. Files
        that it wrote in vain are deleted at once, lest they outlive an erasure; where a commit may
        still name them, they are left for `orphans`: nothing is deleted on a guess. A rewrite reads
        all files that lie within its range; one that only merges may be left to the catalog.

        Raises:
            CommitConflictError: others kept committing; nothing of the change was committed.
            CommitUnknownError: the commit may have landed and reading back failed.
            MissingFileError: somebody deleted a file that a rewrite reads, or one that the change
                had just written (a full VACUUM does); nothing was committed.
            ContradictionError, ForeignTableError, ColdTierError: as for `snapshot`.
        """
        ...

    def map(
        self,
        function: Callable[[Any, T], R],
        tasks: Sequence[T],
        *,
        files_of: Callable[[T], Iterable[SegmentFile]],
        columns: Sequence[str] | None,
    ) -> Iterator[R]:
        """``function(reader, task)`` for each task, where files are written; results in any order.

        Args:
            function: picklable, as the tasks are; it may run more than once.
            files_of: what a task reads.
            columns: those of `FILE_SCHEMA` that the function reads, with a `RowReader`; None: it
                looks at the files themselves, with a `SegmentReader`.

        Raises:
            InvalidArgumentError: the platform does not show its files.
        """
        ...

    def scan(self, snapshot: ColdSnapshot, tasks: Sequence[ScanTask]) -> Iterator[FileScan]:
        """What the rows of a snapshot's files say, in any order. Damage is an answer, no error.

        All rows of the files are read, where they are written; of a table by name in this process.
        In bounded memory, but for 8 bytes a row of files whose rows are in no order.

        Args:
            tasks: files of one partition.
        """
        ...

    def spacing(
        self,
        snapshot: ColdSnapshot,
        files: Sequence[SegmentFile],
        explained: Sequence[OffsetRange],
    ) -> Spacing:
        """How the offsets of a partition's files follow each other, taken together.

        Args:
            explained: sorted, disjoint ranges whose missing offsets are no holes.
        """
        ...

    def archived_at(
        self, partition: int, offset: int, since: int, newest: ColdSnapshot
    ) -> ColdSnapshot | None:
        """The first version that holds a record of a partition, as far as that goes.

        None: the table's log no longer reaches back to it.

        Args:
            offset: archived by the `newest` version.
            since: a version before that.
        """
        ...

    def offset_for_timestamp(
        self, snapshot: ColdSnapshot, partition: int, timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """The earliest offset at or above `from_offset` whose timestamp is at or after that."""
        ...

    def max_timestamp(
        self, snapshot: ColdSnapshot, partition: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """The first record at or above `from_offset` that carries the largest timestamp."""
        ...

    def last_calls(self, partitions: Iterable[int]) -> Mapping[int, Sequence[ProducerCall]]:
        """What is archived last of each producer, of those partitions of which that is known.

        Of the newest version; see `lakelog.producer_calls`.
        """
        ...

    def mirror(self, topic: Topic) -> None:
        """Write the topic's settings into the table's properties, for readers without a Redis.

        Commits only if they differ. Settings of a newer config version stay. Costs nothing if this
        version was written before. A table that is not there yet will be made with these settings.

        Raises:
            CommitConflictError, ColdTierError: as for `apply`.
        """
        ...

    def mirrored(self) -> Topic | None:
        """The topic as the newest version's properties describe it; None if there is no table."""
        ...

    def newest_columns(self) -> pa.Schema:
        """The columns of the newest version after those of every table; none without a table."""
        ...

    def warnings(self) -> Sequence[str]:
        """What will come of properties that somebody set, and what to do; see `warnings`."""
        ...

    def vacuum(self, *, dry_run: bool = False) -> Vacuumed:
        """Delete files that commits removed longer ago than the table's retention.

        Only files that the table's log names: one that is being written is never touched. A file
        written only minutes ago stays until a later call, whatever the retention.

        Args:
            dry_run: only say what would go.
        """
        ...

    def orphans(self) -> Orphans:
        """The files that a failed change left and that no commit can ever name.

        Files of a change that may still be under way are not among them.
        """
        ...

    def remove_orphans(self) -> Orphans:
        """Delete `orphans` that are old enough; the others are for a later call."""
        ...

    def leftovers(self) -> Leftovers:
        """The data files that lie beside those of the newest version, whatever their age."""
        ...

    def discard(self, files: Iterable[SegmentFile]) -> Sequence[Discarded]:
        """Delete files now that the newest version does not name, not when vacuum is due.

        Whoever reads an older version ends in a `MissingFileError`, and looks again. A file that is
        gone already is left out; one that the newest version names stays.

        Args:
            files: such as a commit of the caller's removed, or `leftovers` that may go.
        """
        ...

    def forget_history(self) -> bool:
        """Remove what the table's log says of files of older versions, if it says more of them than
        their offsets and times: statistics of value columns are values.

        Nobody can go back to those versions any more. False: there was nothing to remove.
        """
        ...

    def purge(self, *, decided: bool = False) -> Purged:
        """Remove the table for good, and list what is left. Its topic must have been deleted.

        Readers and archivers that still use it end in an error. A call that was cut short is
        finished by the next; once the table is gone, nothing happens.

        Args:
            decided: Redis knows that the topic was deleted and cannot come back: also if the table
                does not say so, as nobody could tell it or its log is damaged.

        Raises:
            PolicyViolationError: it came back; nothing was removed.
            ForeignTableError, ColdTierError: as for `snapshot`; what was removed is gone.
        """
        ...


#: Held while a table is made. On entry it refuses if the topic has another one, which may be away;
#: on leaving, if somebody made another one meanwhile.
Making = Callable[["ColdTable"], AbstractContextManager[None]]


def unguarded(table: ColdTable) -> AbstractContextManager[None]:
    """Where no Redis can be asked."""
    return nullcontext()


class TimestampReader(Protocol):
    """Looks into files, in the order that an index gives them."""

    def first_at_or_after(
        self, files: Iterable[SegmentFile], timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """The earliest offset from `from_offset` on whose timestamp is at or after a time."""
        ...

    def newest(self, files: Iterable[SegmentFile], from_offset: int) -> OffsetAndTimestamp | None:
        """The record from `from_offset` on with the largest timestamp, the earliest of several."""
        ...


Reader = TypeVar("Reader", bound=TimestampReader)


class TimestampLookup(Generic[Reader]):
    """The look-ups that every `ColdTable` shares; a table gives its `_reader`."""

    _reader: Reader

    def offset_for_timestamp(
        self, snapshot: ColdSnapshot, partition: int, timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        from_offset = max(from_offset, snapshot.log_start(partition))
        files = snapshot.files.first_with_timestamp(partition, timestamp_ms, from_offset)
        return self._reader.first_at_or_after(files, timestamp_ms, from_offset)

    def max_timestamp(
        self, snapshot: ColdSnapshot, partition: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        from_offset = max(from_offset, snapshot.log_start(partition))
        return self._reader.newest(snapshot.files.newest_first(partition, from_offset), from_offset)
