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
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs

from ..back_off import BackOff, Tries
from ..clock import Clock
from ..engine import Engine
from ..errors import (
    ColdTierError,
    ColdTierRefusedError,
    CommitUnknownError,
    ContradictionError,
    MissingFileError,
)
from ..failpoints import failpoint
from ..topic import Topic
from . import contradictions
from .change import Change, RowsOf
from .delta_log import UNDO_FEATURES, DeltaLog
from .lost_commits import CommitBackOff, LostCommits
from .orphans import SETTLING_MS, is_settled, may_be_orphan
from .planned import check_plan, standing_partitions
from .registers import ArchivedEnd, CleanedEnd, LogStart, Register, ReservedEnd, app_id
from .schema import (
    changed_comments,
    columns_to_write,
    file_retention_ms,
    mirrored_properties,
    mirrored_topic,
    mirrored_version,
    missing_columns,
    table_properties,
    value_columns,
)
from .segment import SegmentFile
from .segment_reader import SegmentReader
from .segment_writer import WrittenFile, write_segment_file
from .storage import Storage, modified_ms
from .table import Applied, ColdSnapshot, Orphans, Vacuumed
from .timestamp_lookup import TimestampLookup

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

#: Each race has a winner, so one of n equal committers loses all of them with a chance of
#: (1 - 1/n)^100: never, in practice. A store that is away for a moment is back within the others.
BACK_OFF = CommitBackOff(
    races=BackOff(0.01, 0.5, tries=100),
    refusals=BackOff(0.02, 0.5, tries=5),
    reads=BackOff(0.02, 0.5, tries=5),
)


class PathTable(TimestampLookup[SegmentReader]):
    """A `ColdTable` at ``{root}/{topic}/{topic_id}``. Thread-safe.

    The table is made by the first change. Local files, commits and their folders are on the disk
    before `apply` or `snapshot` speaks of them.

    Args:
        engine: where files are written.
        rows_of: how hot ranges are read there.
        newest_config: asks for the topic's config version, wherever that is decided. Asked right
            before a commit that follows from a policy; default: the table's properties alone tell.
        store_clock: for tests; files are as old as it says. Default: what the store itself says.
    """

    def __init__(
        self,
        topic: Topic,
        storage: Storage,
        engine: Engine,
        rows_of: RowsOf,
        *,
        newest_config: Callable[[], int] | None = None,
        store_clock: Clock | None = None,
    ) -> None:
        self._topic = topic
        self._engine = engine
        self.storage = storage
        self._newest_config = newest_config
        self._write = partial(write_segment_file, topic=topic, storage=storage, rows_of=rows_of)
        self._log = DeltaLog(storage, topic)
        self._reader = SegmentReader(storage, self._log.path)
        self._store_now_ms: Callable[[], int | None] = (
            partial(storage.now_ms, self._log.path) if store_clock is None else store_clock.now_ms
        )
        self._unchecked = ColdSnapshot()  # the newest looked at
        self._latest = ColdSnapshot()  # the newest of those that hold together
        self._described_version = 0  # the newest config version that the properties say
        self._lock = threading.RLock()  # of the log and the latest snapshot

    @property
    def path(self) -> str:
        """Where the Delta table is."""
        return self._log.path

    def snapshot(self, newer_than: ColdSnapshot | None = None) -> ColdSnapshot:
        """See `ColdTable.snapshot`."""
        with self._lock:
            self._log.refresh()
            if self._log.version != self._latest.version:
                found = self.unchecked()
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

    def unchecked(self) -> ColdSnapshot:
        """See `ColdTable.unchecked`."""
        with self._lock:
            self._log.refresh()
            if self._log.version != self._unchecked.version:
                files = self._log.files()
                registers = self._registers(files.partitions)
                told = mirrored_version(self._log.properties())
                self._unchecked = ColdSnapshot(self._log.version, files, registers, told)
            return self._unchecked

    def apply(self, change: Change, planned_on: ColdSnapshot) -> Applied:
        """See `ColdTable.apply`."""
        check_plan(self._topic, change, planned_on)
        with self._lock:
            snapshot = self.snapshot(planned_on)
            if not change.partitions:
                return Applied(snapshot)
            if snapshot.version < 0:
                self._log.create(table_properties(self._topic), value_columns(self._topic))
                self._mirror()  # who else made it may have known older settings
                snapshot = self.snapshot()
            # Columns before the files that have them, and no others: a table says what is in it.
            columns = columns_to_write(self._topic, self._log.columns())
        standing = standing_partitions(change, planned_on, snapshot)
        adds = [add for add in change.adds if add.topic_partition.partition in standing]
        written = list(self._engine.map(partial(self._write, columns=columns), adds))
        if len(written) != len(adds):
            raise ColdTierRefusedError(
                f"the engine returned {len(written)} results for {len(adds)} tasks"
            )
        failpoint("cold.after_files")
        return _Committing(self, change, planned_on, written).run()

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdTable.read`."""
        return self._reader.read(files, start, end, columns)

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

    def describe(self, topic: Topic) -> None:
        """See `ColdTable.describe`."""
        if topic.config_version <= self._described_version:
            return
        with self._lock:
            self._topic = topic
            self._log.refresh()
        if self._log.version >= 0:
            self._mirror()
        self._described_version = topic.config_version

    def described(self) -> Topic | None:
        """See `ColdTable.described`."""
        with self._lock:
            self._log.refresh()
            properties = self._log.properties()
        return mirrored_topic(properties) if properties else None

    def vacuum(self, *, dry_run: bool = False) -> Vacuumed:
        """See `ColdTable.vacuum`. Makes no commit, unlike delta-rs's own and Spark's.

        What counts as removed long ago, the machine's clock says, as in every VACUUM.
        """
        with self._lock:
            self.snapshot()
            properties = self._log.properties() or mirrored_properties(self._topic)
            expired = self._log.expired_tombstones()
        retention_ms = file_retention_ms(properties)
        paths: list[str] = []
        size_bytes = 0
        if expired:  # tombstones outlive their files
            listed, snapshot = self._listed_then_seen()
            paths = sorted(snapshot.files.missing(expired & listed.keys()))
            if (
                not dry_run
            ):  # whoever asks may be allowed to read alone, which does not tell the time
                paths, _ = self._by_age(listed, paths)
            size_bytes = sum(listed[path].size for path in paths)
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
        listed, snapshot = self._listed_then_seen()
        candidates = [path for path in listed if may_be_orphan(path, snapshot)]
        candidates = sorted(snapshot.files.missing(candidates))
        if not candidates:  # reading the tombstones costs more than all this
            return Orphans()
        with self._lock:
            self._log.refresh()
            tombstones = self._log.tombstones()
        settled = [
            path for path in candidates if path not in tombstones and is_settled(path, snapshot)
        ]
        old, young = self._by_age(listed, settled)
        return Orphans(tuple(old), tuple(young))

    def remove_orphans(self) -> Orphans:
        """See `ColdTable.remove_orphans`."""
        orphans = self.orphans()
        self._delete(orphans.old)
        for path in orphans.old:
            logger.info("removed %s of %s, left by a failed run", path, self._topic.name)
        return orphans

    # -- helpers -----------------------------------------------------------------------------------

    def _listed_then_seen(self) -> tuple[Mapping[str, pafs.FileInfo], ColdSnapshot]:
        """What lies there, by path, and the table as it was after that.

        In this order: what is listed and was committed by others, the look knows. The other way
        round, a file that they commit in between looks like one that nobody wants.
        """
        listed = self._listed()
        failpoint("cold.after_list")
        return listed, self.snapshot()

    def _listed(self) -> dict[str, pafs.FileInfo]:
        listed = self.storage.list_files(self.path, recursive=True)
        top = self.storage.arrow_path(self.path).rstrip("/") + "/"
        return {info.path.removeprefix(top): info for info in listed if info.is_file}

    def _by_age(
        self, listed: Mapping[str, pafs.FileInfo], paths: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        """The paths that are old enough to be deleted, and the others.

        By the store's clock alone, which stamped them: that of this machine may be hours off.
        """
        old: list[str] = []
        young: list[str] = []
        now_ms = self._store_now_ms() if (paths := list(paths)) else None
        for path in paths:
            written_ms = modified_ms(listed[path])
            is_old = (
                now_ms is not None and written_ms is not None and now_ms - written_ms >= SETTLING_MS
            )
            (old if is_old else young).append(path)
        return old, young

    def _delete(self, paths: Sequence[str]) -> None:
        failpoint("cold.before_delete")
        self.storage.delete_files(f"{self.path}/{path}" for path in paths)

    def _mirror(self) -> None:
        """Make columns and properties say the topic, unless they say a newer one."""
        lost = self._lost_commits()
        while True:
            with self._lock:
                alter = self._alteration()
                if alter is None:
                    return
                version = self._log.version
                error: Exception | None = None
                try:
                    alter(uuid4().hex)
                except Exception as failure:  # may have landed all the same: the next look tells
                    error = failure
                self._log.refresh()
                if error is None:
                    self._log.checkpoint_if_due()
                    continue
                lost.lost(error, to_others=self._log.version > version, advice=_advice(str(error)))
            lost.wait()

    def _lost_commits(self) -> LostCommits:
        return LostCommits(f"the table at {self.path}", self.path, BACK_OFF)

    def _alteration(self) -> Callable[[str], None] | None:
        """The next commit, by its id, towards a table that says the topic; None if it does."""
        topic, properties = self._topic, self._log.properties()
        if mirrored_version(properties) > topic.config_version:
            return None
        there = self._log.columns()
        missing = missing_columns(topic, there)
        if len(missing):
            return lambda commit_id: self._log.add_columns(commit_id, missing)
        comments = changed_comments(topic, there)
        if comments:
            return lambda commit_id: self._log.set_comment(commit_id, *comments.popitem())
        wanted = mirrored_properties(topic)
        changes = {name: wanted[name] for name in wanted if properties.get(name) != wanted[name]}
        return (lambda commit_id: self._log.set_properties(commit_id, changes)) if changes else None

    def _registers(self, partitions: Iterable[int]) -> Mapping[Register, int]:
        """At the log's version: from the commits since the latest snapshot, else by asking."""
        if self._latest.version >= 0:
            commits = self._log.commits(after=self._latest.version)
            if commits is not None:
                registers = dict(self._latest.registers)
                for commit in commits:
                    registers.update(self._parse(commit.transactions))
                return MappingProxyType(registers)
        registers = {}
        count = max([self._topic.partitions, *(number + 1 for number in partitions)])
        for partition in range(count):
            # A partition is born with all of them (see `_transactions`; older ones without the
            # last), and to ask for one that is not there costs a pass over the log.
            for register in _registers_of(partition):
                value = self._log.transaction_version(app_id(self._topic.topic_id, register))
                if value is None:
                    break
                registers[register] = value
        return MappingProxyType(registers)

    def _transactions(
        self, change: Change, standing: frozenset[int], current: ColdSnapshot
    ) -> dict[str, int]:
        """The txn versions of a commit; a partition's first one states all of its registers."""
        values = {
            register: 0
            for partition in standing
            for register in _registers_of(partition)
            if register not in current.registers
        }
        values |= {
            register: value
            for register, value in change.registers.items()
            if register.partition in standing
        }
        return {app_id(self._topic.topic_id, register): values[register] for register in values}

    def _parse(self, transactions: Mapping[str, int]) -> dict[Register, int]:
        """The registers among txn versions."""
        partitions = set()
        for name in transactions:
            owner, _, rest = name.partition(f"/{self._topic.topic_id}/")
            number = rest.partition("/")[0]
            if owner == "lakelog" and number.isdecimal():
                partitions.add(int(number))
        ids = {
            app_id(self._topic.topic_id, register): register
            for partition in partitions
            for register in _registers_of(partition)
        }
        return {ids[name]: version for name, version in transactions.items() if name in ids}


@dataclass(frozen=True)
class _Attempt:
    """One try to make the version after `since`, which nobody else's commit can be then."""

    commit_id: str
    since: int
    standing: frozenset[int]
    transactions: Mapping[str, int]


@dataclass
class _Committing:
    """One change on its way into the table: the same files, as often as it takes."""

    table: PathTable
    change: Change
    planned_on: ColdSnapshot
    written: Sequence[WrittenFile]

    def run(self) -> Applied:
        lost = self.table._lost_commits()
        while True:
            with self.table._lock:
                applied = self._attempt(lost)
            if applied is not None:
                return applied
            lost.wait()

    def _attempt(self, lost: LostCommits) -> Applied | None:
        """Commit what stands; None if that was refused."""
        snapshot = self.table.snapshot()
        standing = standing_partitions(self.change, self.planned_on, snapshot)
        if not standing:
            return Applied(snapshot, superseded=self.change.partitions)
        failpoint("cold.before_commit")
        if self._is_outdated():
            return Applied(snapshot, superseded=self.change.partitions)
        self._check_files(standing)
        failpoint("cold.after_check")
        attempt = _Attempt(
            uuid4().hex,
            snapshot.version,
            standing,
            self.table._transactions(self.change, standing, snapshot),
        )
        error = self._commit(attempt)
        # Whatever the answer was, the log knows: a lost reply looks like a lost race.
        if self._read_back(attempt, error):
            applied = self._applied(standing)
            self.table._log.checkpoint_if_due()
            return applied
        lost.lost(
            error,
            to_others=self.table._log.version > snapshot.version,
            advice=_advice(str(error)),
        )
        return None

    def _is_outdated(self) -> bool:
        """Whether the policy that asked for the change is not the topic's any more.

        Who alters a topic writes the settings where this asks, and then into the table, which is
        another commit. So whichever of the two comes too late for this look fails ours.
        """
        under, newest = self.change.config_version, self.table._newest_config
        return under is not None and newest is not None and newest() > under

    def _check_files(self, standing: frozenset[int]) -> None:
        """Nobody may have deleted what was just written: delta-rs commits it all the same.

        Our own runs do not (see `orphans`), but somebody's full VACUUM takes whatever no commit
        names, and after a RESTORE, what was superseded may look as planned again.
        """
        paths = [f"{self.table.path}/{file.path}" for file in self._files(standing)]
        for path in self.table.storage.missing(paths)[:1]:
            raise MissingFileError(
                f"{path} was deleted before the commit that was to name it, as a full VACUUM with "
                "a retention shorter than a run does. Nothing was committed and nothing is lost; "
                "run again",
                path=path,
            )

    def _commit(self, attempt: _Attempt) -> Exception | None:
        try:
            self.table._log.commit(
                attempt.commit_id,
                [add for add in self.written if add.file.partition in attempt.standing],
                [file for file in self.change.removes if file.partition in attempt.standing],
                attempt.transactions,
                data_change=self.change.data_change,
            )
            failpoint("cold.after_commit")
        except Exception as error:
            return error
        return None

    def _read_back(self, attempt: _Attempt, error: Exception | None) -> bool:
        """Whether it landed.

        Raises:
            CommitUnknownError: the log cannot be read.
            ContradictionError: it landed, but without the registers it carried.
        """
        tries = Tries(f"reading the log of {self.table.path} after a commit", BACK_OFF.reads)
        while True:
            try:
                self.table._log.refresh()
                if self.table._log.version == attempt.since:
                    return False
                commit = self.table._log.commit_at(attempt.since + 1)
                if commit is None:
                    return self._left_traces(attempt)
                break
            except ColdTierError as failure:
                error = error or failure
                pause_s = tries.failed(failure)
                if pause_s is None:
                    raise CommitUnknownError(
                        f"a commit to {self.table.path} may have landed: the store did not say, "
                        f"and reading back failed too ({failure.message}). Take a new snapshot "
                        "when it answers again; running this once more is safe",
                        path=self.table.path,
                    ) from error
                time.sleep(pause_s)
        if commit.commit_id != attempt.commit_id:
            return False
        if commit.transactions != attempt.transactions:
            raise ContradictionError(
                f"version {commit.version} of {self.table.path} should carry the registers "
                f"{attempt.transactions}, but has {dict(commit.transactions)}. Check the deltalake "
                "version",
                path=self.table.path,
            )
        return True

    def _left_traces(self, attempt: _Attempt) -> bool:
        """Whether it landed, when its log file would be cleaned up already.

        Nobody else names the files it added. Without any, "no" is safe to say: if it did land, the
        registers it moved supersede the next attempt, as if somebody else had done the same.
        """
        own = {file.path for file in self._files(attempt.standing)}
        return bool(
            own - self.table._log.files().missing(own) or own & self.table._log.tombstones()
        )

    def _files(self, standing: frozenset[int]) -> list[SegmentFile]:
        """What was written, by partition and offset."""
        files = [add.file for add in self.written if add.file.partition in standing]
        return sorted(files, key=lambda file: (file.partition, file.start_offset))

    def _applied(self, standing: frozenset[int]) -> Applied:
        return Applied(
            self.table.snapshot(self.planned_on),
            tuple(self._files(standing)),
            superseded=self.change.partitions - standing,
            unparsed=self._unparsed(standing),
        )

    def _unparsed(self, standing: frozenset[int]) -> dict[int, int]:
        found = dict.fromkeys(standing, 0)
        for add in self.written:
            if add.file.partition in standing:
                found[add.file.partition] += add.unparsed
        return found


def _registers_of(partition: int) -> tuple[Register, ...]:
    return (
        ArchivedEnd(partition),
        LogStart(partition),
        CleanedEnd(partition),
        ReservedEnd(partition),
    )


def _advice(refusal: str) -> str:
    if "table features" in refusal:  # read they can be, written not
        return f"Somebody turned them on. {UNDO_FEATURES}"
    return "Check that it may be written by this user and has room"
