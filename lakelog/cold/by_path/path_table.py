"""The cold tier of a topic as one Delta table at a path, committed by delta-rs.

Executors write the Parquet files; the driver commits them with the registers, as Delta ``txn``
versions, in one compare-and-set on the table's version. Losing that race costs a look at what the
winner did, never the files.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from ...base.back_off import BackOff
from ...base.clock import Clock
from ...base.failpoints import failpoint
from ...engines.engine import Engine
from ...errors import (
    ColdTierAccessError,
    ColdTierRefusedError,
    ColdTierUnavailableError,
    CommitUnknownError,
    ContradictionError,
    LakelogError,
    MissingFileError,
)
from ...tracing.switch import step
from ...values.producer_calls import ProducerCall
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from .. import contradictions
from ..added_file import index_of_adds
from ..answers import Discarded, Leftovers, Orphans, Purged, RowGroupTimes, Vacuumed
from ..change import Change, HotRange, Rewrite, RowsOf
from ..committing import (
    VACUUM_S,
    Attempt,
    CommitBackOff,
    Committing,
    LostCommits,
    NotLanded,
    deleted_topic,
    refuse_loss,
    tell_purge,
)
from ..parquet.file_scan import offsets_of, scan_file
from ..parquet.segment_reader import SegmentReader
from ..planned import check_plan, standing_partitions
from ..properties import (
    READABLE_BY_ALL,
    file_retention_ms,
    is_deleted,
    is_untiered,
    mirrored_properties,
    mirrored_topic,
    mirrored_version,
    table_properties,
)
from ..registers import ArchivedEnd, LogStart, Register, app_id
from ..scan import FileScan, ScanTask, Spacing
from ..schema import columns_beyond_own, columns_to_write, value_columns, with_statistics
from ..segment import SegmentFile, is_ours
from ..store.storage import FileStamp, Storage
from ..table import Applied, ColdSnapshot, ColdTable, Making, TimestampLookup, unguarded
from . import purging
from .delta_log import DeltaLog, naming, open_table
from .producer_snapshots import ProducerSnapshots

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from .segment_writer import WrittenFile


logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

#: The files that lie in a table's folder, by path; see `Storage.files_below`.
_Listed = Mapping[str, FileStamp]

#: Files are scanned in lots of this size, so that progress can be seen.
SCAN_LOT = 64

#: Each race has a winner, so one of n equal committers loses all of them with a chance of
#: (1 - 1/n)^100: never, in practice. The others outlast a store that is away for a moment.
BACK_OFF = CommitBackOff(
    races=BackOff(0.01, 0.5, tries=100),
    refusals=BackOff(0.02, 0.5, tries=5),
    reads=BackOff(0.02, 0.5, tries=5),
)


class PathTable(TimestampLookup[SegmentReader], ColdTable):
    """A `ColdTable` at ``{root}/{topic}/{topic_id}``. Thread-safe.

    The first change makes the table. Local files, commits and their folders are on the disk before
    `apply` or `snapshot` gives them.

    Args:
        engine: where files are written.
        rows_of: how hot ranges are read there.
        newest_config: gives the topic's config version from where it is decided. Called right
            before a commit that follows from a policy; default: the table's properties alone tell.
        making: held while the table is made; it refuses where it must not be.
        store_clock: for tests; tells the age of files. Default: the store's own clock.
    """

    def __init__(
        self,
        topic: Topic,
        storage: Storage,
        engine: Engine,
        rows_of: RowsOf,
        *,
        newest_config: Callable[[], int] | None = None,
        making: Making = unguarded,
        store_clock: Clock | None = None,
    ) -> None:
        self._topic = topic
        self._engine = engine
        self.storage = storage
        self._newest_config = newest_config
        self._making = making
        self._rows_of = rows_of
        self._log = DeltaLog(storage, topic)
        self._reader = SegmentReader(storage, self._log.path)
        self._producers = ProducerSnapshots(storage, self._log.path)
        self._store_now_ms: Callable[[], int | None] = (
            partial(storage.now_ms, self._log.path) if store_clock is None else store_clock.now_ms
        )
        self._unchecked = ColdSnapshot()  # the newest seen
        self._latest = ColdSnapshot()  # the newest that holds no contradiction
        self._settings_version = 0  # the newest config version that the properties hold
        self._lock = threading.RLock()  # guards the log and the latest snapshot

    @property
    def path(self) -> str:
        """Where the Delta table is."""
        return self._log.path

    @property
    def where(self) -> str:
        return self._log.path

    @property
    def is_local(self) -> bool:
        return self.storage.is_local

    def table_id(self) -> str | None:
        with self._lock:
            self._log.refresh()
            return self._log.table_id()

    def snapshot(self, newer_than: ColdSnapshot | None = None) -> ColdSnapshot:
        with self._lock:
            self._log.refresh()
            return self._as_read(newer_than)

    def _as_read(self, newer_than: ColdSnapshot | None = None) -> ColdSnapshot:
        """The snapshot of the log as it was last read."""
        with self._lock:
            if self._log.version != self._latest.version:
                found = self._seen()
                contradictions.check(self._topic.name, found.files, found.registers)
                self._latest = found
            latest = self._latest
        if newer_than is not None and latest.version < newer_than.version:
            raise ContradictionError(
                f"the table at {self.path} is at version {latest.version}, but was seen at version "
                f"{newer_than.version} before: somebody put back an old copy. Bring the newest one "
                "back",
                path=self.path,
            )
        return latest

    def _at_hand(self, planned_on: ColdSnapshot) -> ColdSnapshot:
        """What is surely not older than what was planned on: what was last read, or the newest.

        A store's answers take a while. Whether there is a newer version is asked by the commit
        itself, which only one of two can make on top of one version.
        """
        if self.is_local or not 0 <= planned_on.version <= self._log.version:
            return self.snapshot(planned_on)
        return self._as_read(planned_on)

    def data_files(self, partition: int) -> Sequence[SegmentFile]:
        return list(self.unchecked().files.of_partition(partition))

    def missing(self, files: Iterable[SegmentFile]) -> Sequence[SegmentFile]:
        by_path = {f"{self.path}/{file.path}": file for file in files}
        if by_path and self._log.is_vacuumed():
            time.sleep(VACUUM_S)
        gone = [by_path[path] for path in self.storage.missing(list(by_path))]
        if not gone:
            return []
        # Somebody may have put others in their place since they were planned on.
        unnamed = self.snapshot().files.missing(file.path for file in gone)
        return [file for file in gone if file.path not in unnamed]

    def unchecked(self) -> ColdSnapshot:
        with self._lock:
            self._log.refresh()
            return self._seen()

    def apply(self, change: Change, planned_on: ColdSnapshot) -> Applied:
        from .segment_writer import write_segment_file

        check_plan(self._topic, change, planned_on)
        with self._lock:
            if not change.partitions:
                return Applied(self.snapshot(planned_on))
            snapshot = self._at_hand(planned_on)
            if snapshot.version < 0:
                if purging.is_marked(self.storage, self.path):
                    raise deleted_topic(self._topic)
                properties = table_properties(self._topic) | READABLE_BY_ALL
                with self._making(self):
                    self._log.create(properties, value_columns(self._topic))
                self._write_settings()  # another process may have made it with older settings
                snapshot = self.snapshot()
            # The table gets columns before the files that have them, and no columns but those.
            columns = columns_to_write(self._topic, self._log.columns())
            write = partial(
                write_segment_file,
                topic=self._topic,  # by its settings of now
                storage=self.storage,
                rows_of=self._rows_of,
                columns=columns,
            )
        standing = standing_partitions(change, planned_on, snapshot)
        written: list[WrittenFile] = []
        tried: list[int] = []  # the versions on top of which it was to be committed
        try:
            applied = self._copy_and_commit(change, planned_on, write, standing, written, tried)
        except (ColdTierUnavailableError, CommitUnknownError):
            raise
        except Exception:
            self._take_back(written, tried, planned_on)
            raise
        unwanted = [one for one in written if one.file.partition in applied.superseded]
        undeleted = self._take_back(unwanted, tried, planned_on)
        return replace(applied, undeleted=undeleted) if undeleted else applied

    def _copy_and_commit(
        self,
        change: Change,
        planned_on: ColdSnapshot,
        write: Callable[[HotRange | Rewrite], WrittenFile],
        standing: frozenset[int],
        written: list[WrittenFile],
        tried: list[int],
    ) -> Applied:
        """As `apply`; notes what it wrote and tried, as soon as it did."""
        from .path_commit import PathCommit

        adds = [add for add in change.adds if add.topic_partition.partition in standing]
        with step("copy", self._topic.name):
            written.extend(self._engine.map(write, adds))  # those before an error, too
            if len(written) != len(adds):
                raise ColdTierRefusedError(
                    f"the engine returned {len(written)} results for {len(adds)} tasks"
                )
            self._write_calls(change, standing)
        failpoint("cold.after_files")
        commit = PathCommit(
            self._log,
            self.storage,
            self._topic.topic_id,
            change,
            written,
            BACK_OFF.reads,
            self.snapshot,
            partial(self._as_read, planned_on),
        )
        looks: Iterator[Callable[[], ColdSnapshot]] = chain(
            [partial(self._at_hand, planned_on)], repeat(self.snapshot)
        )

        def prepare() -> tuple[ColdSnapshot, Attempt]:
            current = next(looks)()
            return current, partial(commit.attempt, current, tried)

        committing = Committing(self._topic, change, planned_on, self._newest_config, self._lock)
        with step("commit", self._topic.name):
            applied = committing.run(prepare, self._lost_commits())
        if any(change.calls.values()):
            self._producers.drop_stale(applied.snapshot)
        return applied

    def _take_back(
        self, written: Sequence[WrittenFile], tried: Sequence[int], planned_on: ColdSnapshot
    ) -> tuple[str, ...]:
        """Deletes files that were written in vain.

        Whether no commit names them is certain only once each version that was tried is there: a
        commit whose reply was lost may still arrive, but a version is made once.

        Returns:
            Those that could not be deleted.
        """
        if not written:
            return ()
        paths = {one.file.path for one in written}
        try:
            if tried:
                with self._lock:
                    snapshot = self.snapshot(planned_on)
                    if snapshot.version <= max(tried):
                        return ()
                    paths = snapshot.files.missing(paths) - self._log.tombstones()
            self._delete(sorted(paths))
        except LakelogError as error:
            logger.warning("%d files of %s stay: %s", len(paths), self._topic.name, error)
            return tuple(sorted(paths))
        return ()

    def described(self) -> tuple[ColdSnapshot, Sequence[WrittenFile]]:
        """The newest snapshot, and its files with what the log says of their rows.

        Raises:
            ForeignTableError, ContradictionError, ColdTierError: as for `snapshot`.
        """
        from .segment_writer import WrittenFile

        with self._lock:
            snapshot = self.snapshot()
            statistics = self._log.statistics()
        files = [WrittenFile(file, statistics.get(file.path) or "{}") for file in snapshot.files]
        return snapshot, files

    def columns(self) -> pa.Schema:
        """The columns that the table has after those of every table; as of the last look."""
        with self._lock:
            return columns_beyond_own(self._log.columns())

    def create_with(
        self,
        files: Sequence[WrittenFile],
        registers: Mapping[Register, int],
        calls: Mapping[int, Sequence[ProducerCall]],
        columns: pa.Schema | None = None,
    ) -> bool:
        """Makes the table by one commit, of files that lie in its folder already.

        Args:
            registers: all of each partition.
            calls: see `Change.calls`.
            columns: value columns; default: those of the topic's settings.

        Returns:
            False if there is a table.

        Raises:
            ForeignTableError, ColdTierError: as for `snapshot`.
        """
        topic = self._topic
        known = {number: of_one for number, of_one in calls.items() if of_one}
        if known:
            ends = {number: registers[ArchivedEnd(number)] for number in known}
            self._producers.write(known, ends)
        transactions = {app_id(topic.topic_id, one): value for one, value in registers.items()}
        with self._lock:
            return self._log.create_with(
                table_properties(topic) | READABLE_BY_ALL,
                value_columns(topic) if columns is None else columns,
                files,
                transactions,
            )

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        return self._reader.read(files, start, end, columns)

    def value_columns(
        self, files: Sequence[SegmentFile], start: int, end: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch] | None:
        return self._reader.value_columns(files, start, end, schema)

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        return self._reader.with_keys(files, start, end, keys)

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        return self._reader.row_groups(files, start, end)

    def map(
        self,
        function: Callable[[Any, T], R],
        tasks: Sequence[T],
        *,
        files_of: Callable[[T], Iterable[SegmentFile]],
        columns: Sequence[str] | None,
    ) -> Iterator[R]:
        """See `ColdTable.map`. Each task opens its files where it runs."""
        return self._engine.map(partial(function, self._reader), tasks)

    def scan(self, snapshot: ColdSnapshot, tasks: Sequence[ScanTask]) -> Iterator[FileScan]:
        for at in range(0, len(tasks), SCAN_LOT):
            yield from self._engine.map(partial(scan_file, self._reader), tasks[at : at + SCAN_LOT])

    def spacing(
        self,
        snapshot: ColdSnapshot,
        files: Sequence[SegmentFile],
        explained: Sequence[OffsetRange],
    ) -> Spacing:
        found = self._engine.map(partial(offsets_of, self._reader), files)
        return Spacing.of(np.concatenate(list(found)), explained)

    def archived_at(
        self, partition: int, offset: int, since: int, newest: ColdSnapshot
    ) -> ColdSnapshot | None:
        low, high = max(0, since), newest.version
        try:
            while low < high:
                middle = (low + high) // 2
                if self._register(self._at(middle), ArchivedEnd(partition)) > offset:
                    high = middle
                else:
                    low = middle + 1
            table = self._at(low)
            registers: tuple[Register, ...] = (ArchivedEnd(partition), LogStart(partition))
            found = {register: self._register(table, register) for register in registers}
            with naming(self.path):
                files = index_of_adds(pa.table(table.get_add_actions(flatten=True)))
            return ColdSnapshot(low, files, found)
        except ColdTierAccessError:
            raise
        except ColdTierRefusedError:
            return None

    def _at(self, version: int) -> DeltaTable:
        table = open_table(self.storage, self.path, version)
        if table is None:
            raise ColdTierRefusedError(f"there is no log at {self.path}", path=self.path)
        return table

    def _register(self, table: DeltaTable, register: Register) -> int:
        with naming(self.path):
            return table.transaction_version(app_id(self._topic.topic_id, register)) or 0

    def last_calls(self, partitions: Iterable[int]) -> Mapping[int, Sequence[ProducerCall]]:
        snapshot = self.snapshot()
        return self._producers.read(
            {number: snapshot.archived_end(number) for number in partitions}
        )

    def mirror(self, topic: Topic) -> None:
        if topic.config_version <= self._settings_version:
            return
        with self._lock:
            self._topic = topic
            self._log.refresh()
        if self._log.version >= 0:
            self._write_settings()
            self._settings_version = topic.config_version

    def mirrored(self) -> Topic | None:
        with self._lock:
            self._log.refresh()
            properties = self._log.properties()
        return mirrored_topic(properties) if properties else None

    def newest_columns(self) -> pa.Schema:
        with self._lock:
            self._log.refresh()
            return self.columns()

    def warnings(self) -> Sequence[str]:
        with self._lock:
            self._log.refresh()
            return list(self._log.warnings())

    def vacuum(self, *, dry_run: bool = False) -> Vacuumed:
        """See `ColdTable.vacuum`. Makes no commit, unlike delta-rs's own and Spark's.

        This machine's clock decides what was removed long ago, as in every VACUUM.
        """
        with self._lock:
            self.snapshot()
            properties = self._log.properties() or mirrored_properties(self._topic)
            retention_ms = file_retention_ms(properties)
            expired = self._log.expired_tombstones(retention_ms)
        paths: list[str] = []
        size_bytes = 0
        if expired:  # tombstones outlive their files
            listed, snapshot = self._listed_then_seen()
            # What was committed after the list is not in it.
            unlisted = [file for file in snapshot.files if file.path not in listed]
            refuse_loss(self, self.missing(unlisted))
            paths = sorted(snapshot.files.missing(expired & listed.keys()))
            if not dry_run:  # the store's clock takes a write, which a reader may not be allowed
                paths, _ = self._by_age(listed, paths)
            size_bytes = sum(listed[path].size_bytes for path in paths)
        if not dry_run:
            self._delete(paths)
            logger.info(
                "vacuumed %s: %d files, %d bytes, removed more than %d ms ago",
                self._topic.name,
                len(paths),
                size_bytes,
                retention_ms,
            )
        return Vacuumed(len(paths), size_bytes, retention_ms)

    def orphans(self) -> Orphans:
        """See `ColdTable.orphans`. Lists the table's folders."""
        from .orphans import is_settled, may_be_orphan

        listed, snapshot = self._listed_then_seen()
        candidates = [path for path in listed if may_be_orphan(path, snapshot)]
        candidates = sorted(snapshot.files.missing(candidates))
        others = [one for one in listed if _may_be_data(one) and not is_ours(one)]
        foreign = sorted(snapshot.files.missing(others))
        if not candidates and not foreign:  # reading the tombstones costs more than all this
            return Orphans()
        with self._lock:
            self._log.refresh()
            tombstones = self._log.tombstones()
        settled = [
            path for path in candidates if path not in tombstones and is_settled(path, snapshot)
        ]
        old, young = self._by_age(listed, settled)
        foreign = [path for path in foreign if path not in tombstones]
        return Orphans(tuple(old), tuple(young), tuple(foreign))

    def remove_orphans(self) -> Orphans:
        orphans = self.orphans()
        self._delete(orphans.old)
        for path in orphans.old:
            logger.info("removed %s of %s, left by a failed run", path, self._topic.name)
        return orphans

    def leftovers(self) -> Leftovers:
        """See `ColdTable.leftovers`. Lists the table's folders."""
        from .orphans import leftovers_of

        listed, snapshot = self._listed_then_seen()
        with self._lock:
            tombstones = self._log.tombstones()
        sizes = {path: stamp.size_bytes for path, stamp in listed.items()}
        return Leftovers(tuple(leftovers_of(sizes, snapshot, tombstones)))

    def discard(self, files: Iterable[SegmentFile]) -> Sequence[Discarded]:
        files = list(files)
        sizes = {file.path: file.size_bytes for file in files}
        gone = []
        snapshot = self.snapshot()
        between = snapshot.files.files_between
        for file in files:
            there = between(file.partition, file.start_offset, file.end_offset)
            refuse_loss(self, self.missing(there))
        for path in sorted(snapshot.files.missing(sizes)):
            with suppress(MissingFileError):
                digest = self.storage.sha256(f"{self.path}/{path}")
                gone.append(Discarded(path, sizes[path], digest))
        self._delete([one.path for one in gone])
        return gone

    def forget_history(self) -> bool:
        with self._lock:
            self._log.refresh()
            if not with_statistics(columns_beyond_own(self._log.columns())):
                return False
            return self._log.forget_history()

    def purge(self, *, decided: bool = False) -> Purged:
        if not purging.is_marked(self.storage, self.path):
            try:
                # Of those who remove it and those who bring it back, one commits first.
                if not tell_purge(self, decided=decided):
                    return Purged(self.path, 0, 0)
            except (ColdTierRefusedError, ContradictionError):
                if not decided:
                    raise
        return purging.remove(self.storage, self.path, lambda: self._store_now_ms())

    # -- helpers -----------------------------------------------------------------------------------

    def _seen(self) -> ColdSnapshot:
        """The version that the log is at."""
        if self._log.version != self._unchecked.version:
            properties = self._log.properties()
            self._unchecked = ColdSnapshot(
                self._log.version,
                self._log.files(),
                self._log.registers(),
                mirrored_version(properties),
                is_deleted(properties),
                is_untiered(properties),
            )
        return self._unchecked

    def _write_calls(self, change: Change, standing: Iterable[int]) -> None:
        calls = {number: change.calls.get(number, ()) for number in standing}
        calls = {number: of_one for number, of_one in calls.items() if of_one}
        if calls:
            ends = {number: change.registers[ArchivedEnd(number)] for number in calls}
            self._producers.write(calls, ends)

    def _listed_then_seen(self) -> tuple[_Listed, ColdSnapshot]:
        """The files that lie there, by path, and the table as it was after listing them.

        In this order, the snapshot knows every listed file that others committed. The other way
        round, a file that they commit in between would look like an orphan.
        """
        listed = self.storage.files_below(self.path)
        failpoint("cold.after_list")
        return listed, self.snapshot()

    def _by_age(self, listed: _Listed, paths: Iterable[str]) -> tuple[list[str], list[str]]:
        """The paths that are old enough to be deleted, and the others.

        Only the store's clock counts, which stamped them: this machine's may be hours off.
        """
        from .orphans import SETTLING_MS

        old: list[str] = []
        young: list[str] = []
        now_ms = self._store_now_ms() if (paths := list(paths)) else None
        for path in paths:
            written_ms = listed[path].modified_ms
            is_old = (
                now_ms is not None and written_ms is not None and now_ms - written_ms >= SETTLING_MS
            )
            (old if is_old else young).append(path)
        return old, young

    def _delete(self, paths: Sequence[str]) -> None:
        failpoint("cold.before_delete")
        self.storage.delete_files(f"{self.path}/{path}" for path in paths)

    def _write_settings(self) -> None:
        """Write the topic into columns and properties, unless they hold a newer one."""
        from ..properties import next_alteration
        from .path_commit import advice

        lost = self._lost_commits()
        while True:
            with self._lock:
                alteration = next_alteration(self._topic, self._log.properties(), self._log.columns)
                if alteration is None:
                    return
                version = self._log.version
                error: Exception | None = None
                try:
                    self._log.alter(alteration)
                except Exception as failure:  # it may have landed: the next look tells
                    error = failure
                self._log.refresh()
                if error is None:
                    self._log.checkpoint_if_due()
                    continue
                to_others = self._log.version > version
                lost.lost(NotLanded(error, to_others, advice(str(error))))
            lost.wait()

    def _lost_commits(self) -> LostCommits:
        return LostCommits(f"the table at {self.path}", self.path, BACK_OFF)


def _may_be_data(path: str) -> bool:
    """Whether a file could be taken for rows: Delta takes none whose name begins so."""
    return path.startswith("partition=") and not path.rpartition("/")[2].startswith((".", "_"))
