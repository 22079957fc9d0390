"""One topic's Delta table at a path, by delta-rs: open, refresh, commit once, read commits back.

delta-rs tells the files and what the table is. Registers are read here, from the log's own files:
delta-rs looks one txn version up at a time, and reads the log anew for each.

Checkpoints are written here, and log files that they replace are removed here, not by delta-rs's
own hooks. Those look only when a version is a multiple of the interval, so a crash there doubles
the log, and they list the whole log after each commit (tried: 57 instead of 30 ms at 10,000).

This module deals with one version after another; `path_commit` knows what a change means.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, cast
from uuid import uuid4

import pyarrow as pa

from ...base.clock import SystemClock
from ...base.failpoints import failpoint
from ...base.json_text import parse_json
from ...errors import (
    ColdTierError,
    ColdTierRefusedError,
    ContradictionError,
    ForeignTableError,
    LakelogError,
    MissingFileError,
)
from ...values.format_version import check_format
from ...values.topic import Topic
from ..added_file import index_of_adds, statistics_of
from ..committing import deleted_topic
from ..log_names import (
    LAST_CHECKPOINT,
    LOG,
    checkpoint_names,
    commit_name,
    commit_versions,
    newest_checkpoint,
)
from ..properties import (
    CHECKPOINT_INTERVAL,
    CHECKPOINT_PROPERTY,
    FORMAT_PROPERTY,
    TOPIC_ID_PROPERTY,
    TXN_RETENTION_PROPERTY,
    AddColumns,
    Alteration,
    SetComment,
    warnings,
)
from ..registers import Register
from ..schema import PARTITION_COLUMNS, TABLE_SCHEMA
from ..segment import SegmentFile, SegmentIndex, no_files
from ..store.storage import Storage, check_not_forked, side_by_side
from ..store_errors import COMMITS_NEED, cannot_commit, error_class, one_line
from .log_file import COMMIT_ID, Commit, registers_in, transactions_in
from .made_once import make_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from .segment_writer import WrittenFile


logger = logging.getLogger(__name__)

#: How far back an opened local table is synced: the kernel writes dirty pages back within half a
#: minute, so what is older than this is on the disk.
SYNC_S = 10 * 60

#: Reading this many commits one by one costs about as much as reading a checkpoint.
MAX_COMMITS_READ = 100

#: When a register was updated last, for Spark, whose checkpoints drop old ones where somebody sets
#: `TXN_RETENTION_PROPERTY`: a partition may rest for years. The end of the year 9999.
KEPT_FOR_EVER_MS = 253_402_300_799_999

#: Who vacuums once does it again, and each of them makes two commits.
VACUUM_COMMITS = 10

#: How to rid a table of Delta features that somebody turned on. DROP FEATURE is not enough: it
#: leaves checkpointProtection or domainMetadata behind, with which delta-rs cannot write (tried).
UNDO_FEATURES = (
    "Undo it: SET spark.databricks.delta.restore.protocolDowngradeAllowed=true, then RESTORE the "
    "table to the version before (DESCRIBE HISTORY has it; lakelog has committed nothing since). "
    "ALTER TABLE … DROP FEATURE is not enough"
)


#: Those that delta-rs commits with, of the ones that ask nothing of readers.
WRITER_FEATURES = frozenset(
    {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"}
)


class DeltaLog:
    """The table's log at one version, and the way to newer ones. Not thread-safe.

    Args:
        topic: the topic that the table must belong to.
    """

    def __init__(self, storage: Storage, topic: Topic) -> None:
        self._storage = storage
        self._topic = topic
        self.path = storage.table_path(topic)
        self.version = -1  # there is no table yet
        self._table: DeltaTable | None = None  # at this version, or after a commit at the next one
        self._registers: dict[Register, int] = {}
        self._files: SegmentIndex | None = None  # nobody has asked for them yet
        self._commits: dict[int, Commit] = {}  # the newest
        self._opened_with: dict[str, str] | None = None
        self._checked_version = -1
        self._synced_version = -1
        self._checkpointed_version = -1  # as far as known here

    @property
    def newest_file(self) -> str:
        """Where the commit of this version lies."""
        return self._log_file(self.version)

    def refresh(self) -> None:
        """Go to the newest version; on local paths it is on the disk afterwards.

        Raises:
            ForeignTableError: it is not this topic's table, or no table at all.
            UnknownTopicIdError: it was removed for good, as its topic was deleted.
            ContradictionError: the table is gone, or another one took its place.
            NewerVersionError: a newer lakelog wrote it.
            ColdTierError: it cannot be read.
        """
        check_not_forked()
        if not self._advance():
            # The first look; or the log behind us was cleaned up; or all of it is gone.
            self._open()
        self._check()

    def read_back(self) -> None:
        """After `commit`: go on to the version that it made, or to the newest one.

        Raises: see `refresh`.
        """
        if self._table is None or self._table.version() <= self.version:
            self.refresh()
            return
        self._go_on(self._table)
        self._check()

    def _check(self) -> None:
        """Check what was not looked at yet, and sync it."""
        if self.version != self._checked_version:
            self._check_ours()
            self._sync()
            self._checked_version = self.version

    def _advance(self) -> bool:
        """Take in what was committed since the last look; False if it has to begin anew."""
        table = self._table
        # An open table does not notice renewed credentials.
        if table is None or self._opened_with != self._storage.delta_options():
            return False
        if table.version() == self.version:  # and not ahead, by a commit of our own
            known = self._log_file(self.version)
            following = self._log_file(self.version + 1)
            missing = self._storage.missing([following, known])
            if missing:
                return missing == [following]
        try:
            with naming(self.path):
                table.update_incremental()
        except ColdTierRefusedError:  # the log behind it was cleaned up
            return False
        self._go_on(table)
        return True

    def _go_on(self, table: DeltaTable) -> None:
        """Take in the commits up to the version that delta-rs is at."""
        newest, commits = table.version(), None
        if newest - self.version <= MAX_COMMITS_READ:
            commits = self._commits_of(range(self.version + 1, newest + 1))
        if commits is None:
            self._registers.update(self._read_registers(newest))
        else:
            for commit in commits:
                self._registers.update(registers_in(self._topic.topic_id, commit.transactions))
                self._commits[commit.version] = commit
                self._commits.pop(commit.version - MAX_COMMITS_READ, None)
        self.version, self._files = newest, None

    def _open(self) -> None:
        """Open the table anew, if there is one."""
        self._table = table = self._found()
        newest = -1 if table is None else table.version()
        if newest < self.version:
            known, self.version, self._table = self.version, -1, None
            self._registers, self._files, self._commits = {}, None, {}
            raise ContradictionError(
                f"the table at {self.path} went from version {known} back to {newest}: "
                "somebody deleted it, or put back an old copy. Bring the newest one back, or "
                "delete the topic and create it again",
                path=self.path,
            )
        if table is not None:
            self._registers.update(self._read_registers(newest))
            self.version, self._files, self._commits = newest, None, {}

    def _found(self) -> DeltaTable | None:
        """The table as it is now; None: nothing is there."""
        for last_try in (False, True):
            names = self._storage.names(self.path)
            # Arrow finds nothing in a bucket that is not there, which delta-rs tells of. Where
            # nothing is, delta-rs need not even be imported.
            if LOG in names or not self._storage.is_local:
                self._opened_with = self._storage.delta_options()
                try:
                    table = open_table(self._storage, self.path)
                except ColdTierRefusedError:
                    if last_try:  # the first time, somebody may be cleaning up its log
                        raise
                    continue
                if table is not None:
                    return table
            strangers = [name for name in names if name != LOG]
            if not strangers:
                return None
            from .purging import MARK

            if MARK in strangers:
                raise deleted_topic(self._topic)
            if last_try:  # the first time, somebody may be creating the table
                self._refuse_foreign(f"no Delta table but {strangers[0]!r}")
        return None

    def _commits_of(self, versions: Sequence[int]) -> list[Commit] | None:
        """None if some are gone."""
        look = map if self._storage.is_local or len(versions) < 2 else side_by_side
        commits = list(look(self.commit_at, versions))
        return None if None in commits else cast("list[Commit]", commits)

    def _read_registers(self, version: int) -> dict[Register, int]:
        """The registers of a version: by the newest checkpoint, and the commits after it.

        Where Spark's checkpoints may have dropped some, also by all commits that are there.
        """
        for _ in range(2):  # somebody may be cleaning up the log
            listed = self._storage.file_names(f"{self.path}/{LOG}")
            checkpoint, parts = newest_checkpoint(listed, version)
            older: list[int] = []
            if self.drops_transactions:
                older = sorted(one for one in commit_versions(listed) if one <= checkpoint)
            try:
                before = self._commits_of(older)
                at = [transactions_in(self._storage, f"{self.path}/{LOG}/{one}") for one in parts]
                after = self._commits_of(range(checkpoint + 1, version + 1))
            except MissingFileError:
                continue
            if before is not None and after is not None:
                said = [one.transactions for one in before] + at
                said += [one.transactions for one in after]
                found = {name: value for one in said for name, value in one.items()}
                return registers_in(self._topic.topic_id, found)
        raise ColdTierRefusedError(
            f"the table at {self.path} cannot be used: its log lacks commits before version "
            f"{version}. Put the log's files back from a backup",
            path=self.path,
        )

    def create(self, properties: Mapping[str, str], columns: pa.Schema | None = None) -> None:
        """Make the table, unless it is there. Another process may make it at the same time.

        Args:
            columns: value columns, after those that every table has.
        """
        from deltalake.exceptions import DeltaError

        self._storage.make_folder(self.path)
        options = self._storage.delta_options()
        with naming(self.path), suppress(DeltaError):  # somebody else was faster: see below
            make_table(
                self.path,
                pa.schema([*TABLE_SCHEMA, *(columns or ())]),
                storage_options=options,
                **self._definition(properties),
            )
        self.refresh()
        if self._table is None:
            raise ColdTierRefusedError(
                f"no Delta table could be made at {self.path}. {self._storage.advice()}",
                path=self.path,
            )

    def create_with(
        self,
        properties: Mapping[str, str],
        columns: pa.Schema,
        files: Sequence[WrittenFile],
        transactions: Mapping[str, int],
    ) -> bool:
        """Make the table by one commit that has all of these; False: one is there.

        delta-rs makes no table with lakelog's properties and files in one commit, so one that it
        makes elsewhere gives the first lines. On an object store, of two that do this at the same
        moment the later one's commit counts: both must give the same files and versions.

        Args:
            columns: value columns, after those that every table has.
        """
        from deltalake import DeltaTable

        path = self._log_file(0)
        if self._storage.is_file(path):
            return False
        with TemporaryDirectory(prefix="lakelog-log-") as folder, naming(self.path):
            made = DeltaTable.create(
                folder, pa.schema([*TABLE_SCHEMA, *columns]), **self._definition(properties)
            )
            lines = Path(folder, LOG, commit_name(0)).read_text("utf-8").splitlines()
            assert made.version() == 0
        actions: list[dict[str, Any]] = [
            {"txn": {"appId": name, "version": version}} for name, version in transactions.items()
        ]
        actions += (
            {
                "add": {
                    "path": one.file.path,
                    "partitionValues": _partition_values(one.file),
                    "size": one.file.size_bytes,
                    "modificationTime": one.file.modified_ms,
                    "dataChange": True,
                    "stats": one.stats,
                }
            }
            for one in files
        )
        text = "\n".join([*lines, *(json.dumps(action) for action in actions), ""])
        self._storage.make_folder(f"{self.path}/{LOG}")
        self._storage.write_bytes(path, text.encode())
        self._storage.sync(path, f"{self.path}/{LOG}", self.path)
        self.refresh()
        return True

    def statistics(self) -> Mapping[str, str]:
        """What the log says of each file's rows, by path: JSON text."""
        if self._table is None:
            return {}
        return statistics_of(self._adds())

    def files(self) -> SegmentIndex:
        """Raises ContradictionError: nothing says what a file holds."""
        if self._files is None:
            self._files = no_files() if self._table is None else index_of_adds(self._adds())
        return self._files

    def _adds(self) -> pa.Table:
        table = self._at_this_version()
        with naming(self.path):
            return pa.table(table.get_add_actions(flatten=True))

    def table_id(self) -> str | None:
        """Delta's id of the table; None: there is none."""
        return None if self._table is None else str(self._table.metadata().id)

    def properties(self) -> dict[str, str]:
        return {} if self._table is None else properties_of(self._table)

    def warnings(self) -> Iterator[str]:
        features = [] if self._table is None else self._table.protocol().writer_features
        unknown = set(features or ()) - WRITER_FEATURES
        if unknown:
            yield (
                f"somebody turned on {', '.join(sorted(unknown))}: the table can be read, but "
                f"archiving and cleanups fail, as lakelog commits nothing then. {UNDO_FEATURES}"
            )
        yield from warnings(self.properties())

    def columns(self) -> pa.Schema:
        """The columns of the table, with their comments."""
        if self._table is None:
            return pa.schema([])
        with naming(self.path):
            return pa.schema(self._table.schema().to_arrow())

    def registers(self) -> Mapping[Register, int]:
        """The registers among the txn versions of the table."""
        return MappingProxyType(dict(self._registers))

    @property
    def drops_transactions(self) -> bool:
        """Whether Spark's checkpoints drop registers that do not say when they were updated."""
        return TXN_RETENTION_PROPERTY in self.properties()

    def commit(
        self,
        commit_id: str,
        adds: Sequence[WrittenFile],
        removes: Sequence[SegmentFile],
        transactions: Mapping[str, int],
        *,
        data_change: bool,
        operation: str | None = None,
    ) -> None:
        """Try once to make the next version. Does not refresh.

        Whatever it returns or raises, only `read_back` tells whether it landed.

        Args:
            operation: what the table's history says it was.
        """
        from deltalake import transaction

        table = self._at_this_version()
        now_ms = time.time_ns() // 1_000_000
        actions = [
            *(
                transaction.AddAction(
                    path=add.file.path,
                    size=add.file.size_bytes,
                    partition_values=_partition_values(add.file),
                    modification_time=add.file.modified_ms,
                    data_change=data_change,
                    stats=add.stats,
                )
                for add in adds
            ),
            *(
                transaction.RemoveAction(
                    path=file.path,
                    data_change=data_change,
                    deletion_timestamp=now_ms,
                    size=file.size_bytes,
                    partition_values=_partition_values(file),
                )
                for file in removes
            ),
        ]
        versions = [
            transaction.Transaction(name, version, KEPT_FOR_EVER_MS)
            for name, version in transactions.items()
        ]
        table.create_write_transaction(
            actions,
            mode="append",
            schema=table.schema(),
            partition_by=PARTITION_COLUMNS,
            **_once(commit_id, versions, operation),
        )

    def alter(self, alteration: Alteration) -> None:
        """Try once to make a next version with this of the topic's settings. Does not refresh."""
        from deltalake import Schema

        alter, once = self._at_this_version().alter, _once(uuid4().hex)
        if isinstance(alteration, AddColumns):
            alter.add_columns(Schema.from_arrow(alteration.columns).fields, **once)
        elif isinstance(alteration, SetComment):
            alter.set_column_metadata(alteration.column, {"comment": alteration.comment}, **once)
        else:
            properties = dict(alteration.properties)
            alter.set_table_properties(properties, raise_if_not_exists=False, **once)

    def commit_at(self, version: int) -> Commit | None:
        """None: the log was cleaned up that far.

        Raises:
            ColdTierRefusedError: it is not what Delta writes.
            ColdTierError: it cannot be read.
        """
        if version in self._commits:
            return self._commits[version]
        path = self._log_file(version)
        content = self._storage.read_bytes(path)
        try:
            return None if content is None else Commit.of(version, content)
        except ValueError as error:
            raise ColdTierRefusedError(
                f"{path} is not the part of a log that was written: {one_line(error).rstrip('.')}. "
                "Put it back from a backup",
                path=path,
            ) from error

    def is_vacuumed(self) -> bool:
        """Whether one of the last commits is of a VACUUM that takes files in flight."""
        versions = range(max(0, self.version + 1 - VACUUM_COMMITS), self.version + 1)
        look = map if self._storage.is_local else side_by_side
        return any(
            commit is not None and commit.vacuums for commit in look(self.commit_at, versions)
        )

    def checkpoint_if_due(self) -> None:
        """Write a checkpoint if the last one is an interval ago, and drop log files it outdates.

        Every committer calls this, so the next one makes up for one that died before it. Log files
        go when they are older than ``delta.logRetentionDuration``. A failure is logged: no commit
        depends on it.
        """
        from deltalake import exceptions

        text = self.properties().get(CHECKPOINT_PROPERTY, "")
        interval = int(text) if text.isdecimal() else CHECKPOINT_INTERVAL
        if self._table is None or self.version - self._checkpointed_version < interval:
            return
        try:
            self._checkpointed_version = self._last_checkpoint()
            if self.version - self._checkpointed_version < interval:
                return
            self._write_checkpoint()
            self._at_this_version().cleanup_metadata()
        except (exceptions.DeltaError, OSError, ColdTierError) as error:
            logger.warning("version %d of %s has no checkpoint: %s", self.version, self.path, error)

    def forget_history(self) -> bool:
        """Write a checkpoint of this version, and remove every log file of an earlier one.

        What tombstones and adds of earlier versions said is gone then: a checkpoint has of removed
        files their paths alone. False: none was there.

        Raises:
            ColdTierError: the log cannot be read or written; what was removed is not needed.
        """
        log = f"{self.path}/{LOG}"
        if self._table is None or not (old := self._older(log)):
            return False
        with naming(self.path):
            self._write_checkpoint()
        failpoint("erase.after_checkpoint")
        self._storage.delete_files(old)
        return True

    def _write_checkpoint(self) -> None:
        self._at_this_version().create_checkpoint()
        # It must be on the disk before the log files that it replaces go.
        log = f"{self.path}/{LOG}"
        self._storage.sync(self._checkpoint_file(self.version), f"{log}/{LAST_CHECKPOINT}", log)
        self._checkpointed_version = self.version

    def _older(self, log: str) -> list[str]:
        """The files of the log that speak of earlier versions alone."""
        names = self._storage.file_names(log)
        found = [(re.match(r"(?:\.)?(\d{20})\.", name), name) for name in names]
        return [f"{log}/{name}" for at, name in found if at and int(at[1]) < self.version]

    def tombstones(self) -> set[str]:
        """The paths that the log names as removed."""
        # It leaves out what was removed after "now", and the remover's clock may be ahead of ours.
        return self._tombstones(retention_hours=0) | self._recently_removed().keys()

    def expired_tombstones(self, retention_ms: int) -> set[str]:
        """The paths that were removed longer ago than the table's own retention."""
        # A checkpoint has no tombstone that is older; the commits before it are still there.
        latest_ms = SystemClock().now_ms() - retention_ms
        removed = self._recently_removed().items()
        return self._tombstones(retention_hours=None) | {
            path for path, removed_ms in removed if removed_ms < latest_ms
        }

    def _recently_removed(self) -> dict[str, int]:
        """What the last commits have removed, path → when, in epoch milliseconds."""
        look = map if self._storage.is_local else side_by_side
        recent = look(self.commit_at, range(max(0, self.version - 99), self.version + 1))
        return {path: ms for one in recent if one for path, ms in one.removed.items()}

    # -- helpers -----------------------------------------------------------------------------------

    def _definition(self, properties: Mapping[str, str]) -> dict[str, Any]:
        """What a new table is made with, beside its place and columns."""
        return {
            "mode": "error",
            "partition_by": PARTITION_COLUMNS,
            "name": self._topic.name,
            "description": "written by lakelog; change it through lakelog only",
            "configuration": properties,
            "raise_if_key_not_exists": False,
        }

    def _tombstones(self, retention_hours: int | None) -> set[str]:
        if self._table is None:
            return set()
        try:
            listed = self._named_as_removed(retention_hours)
        except ColdTierRefusedError:  # somebody cleaned up the log behind what was opened before
            self._opened_with = None
            listed = self._named_as_removed(retention_hours)
        # A path is absolute if its file is gone already; no file that is there has such a path.
        return set(listed)

    def _named_as_removed(self, retention_hours: int | None) -> list[str]:
        # A dry run of "lite" lists what the log itself names.
        table = self._at_this_version()
        with naming(self.path):
            listed: list[str] = table.vacuum(
                retention_hours, dry_run=True, enforce_retention_duration=False, full=False
            )
        return listed

    def _at_this_version(self) -> DeltaTable:
        """delta-rs's view of this version.

        It would commit on top of the version that it knows, of whose registers a change may know
        nothing.

        Raises:
            ColdTierRefusedError: there is no table.
            ColdTierError: it cannot be read.
        """
        options = self._storage.delta_options()
        table = self._table
        if table is not None and (table.version() != self.version or self._opened_with != options):
            table = open_table(self._storage, self.path, self.version)
            self._table, self._opened_with = table, options
        if table is None:
            raise ColdTierRefusedError(
                f"there is no table at {self.path} to commit to", path=self.path
            )
        return table

    def _last_checkpoint(self) -> int:
        content = self._storage.read_bytes(f"{self.path}/{LOG}/{LAST_CHECKPOINT}")
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            return int(parse_json(content or b"")["version"])
        return -1

    def _check_ours(self) -> None:
        if self._table is None:
            return
        metadata, protocol = self._table.metadata(), self._table.protocol()
        owner = metadata.configuration.get(TOPIC_ID_PROPERTY)
        check_format(
            metadata.configuration.get(FORMAT_PROPERTY), f"the table at {self.path}", path=self.path
        )
        if owner is None:
            self._refuse_foreign("a Delta table that lakelog did not make")
        if owner != str(self._topic.topic_id):
            self._refuse_foreign(f"the table of the topic with id {owner}")
        if metadata.partition_columns != PARTITION_COLUMNS:
            self._refuse_foreign(f"a table partitioned by {metadata.partition_columns}")
        if protocol.min_reader_version > 1:
            features = ", ".join(protocol.reader_features or ["columnMapping"])
            raise ColdTierRefusedError(
                f"somebody turned on {features} on the table at {self.path}; lakelog reads its "
                f"Parquet files as they are and would give wrong rows. {UNDO_FEATURES}",
                path=self.path,
            )

    def _refuse_foreign(self, what: str) -> NoReturn:
        raise ForeignTableError(
            f"{self.path} should hold the table of topic {self._topic.name!r} with id "
            f"{self._topic.topic_id}, but holds {what}. Choose another cold root, or move it "
            "away",
            path=self.path,
        )

    def _log_file(self, version: int) -> str:
        return f"{self.path}/{LOG}/{commit_name(version)}"

    def _sync(self) -> None:
        """Sync the commits up to this one to the disk, whoever made them.

        A process that sees a register may trim by it, so it must then survive a power cut.
        """
        if not self._storage.is_local or self._table is None:
            return
        recent_s = time.time() - SYNC_S
        is_synced = True
        for version in range(self.version, self._sync_checkpoint(), -1):
            path = self._log_file(version)
            with self._storage.naming(path), suppress(FileNotFoundError):
                if Path(path).stat().st_mtime >= recent_s:
                    self._storage.sync(path)
                    is_synced = False
                    continue
            break
        if not is_synced:
            self._storage.sync(f"{self.path}/{LOG}", self.path)
        self._synced_version = self.version

    def _sync_checkpoint(self) -> int:
        """The version up to which all is on the disk; a checkpoint replaces all below it."""
        if self.version - self._synced_version > CHECKPOINT_INTERVAL:
            version = self._last_checkpoint()
            path = self._checkpoint_file(version)
            if version > self._synced_version and self._storage.is_file(path):
                self._storage.sync(path, f"{self.path}/{LOG}/{LAST_CHECKPOINT}")
                return version
        return self._synced_version

    def _checkpoint_file(self, version: int) -> str:
        return f"{self.path}/{LOG}/{checkpoint_names(version)[0]}"


def open_table(storage: Storage, path: str, version: int | None = None) -> DeltaTable | None:
    """The table at a path, at its newest version or at that one; None: nothing is there.

    Raises:
        ColdTierRefusedError: the log has a hole, or is not what Delta writes.
        ColdTierError: it cannot be read.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    options = storage.delta_options()
    with naming(path), suppress(TableNotFoundError):
        return DeltaTable(path, version=version, storage_options=options)
    return None


def properties_of(table: DeltaTable) -> dict[str, str]:
    """The properties of the version that a table is at."""
    return {name: text for name, text in table.metadata().configuration.items() if text is not None}


def _once(
    commit_id: str, transactions: Sequence[Any] = (), operation: str | None = None
) -> dict[str, Any]:
    """How to commit: at the next version or not at all, and without delta-rs's own hooks.

    Args:
        operation: what ``DESCRIBE HISTORY`` shows as the commit's ``userMetadata``.
    """
    # Not imported at the top: a deltalake that lacks them must get as far as `check_deltalake`.
    from deltalake import transaction

    return {
        "commit_properties": transaction.CommitProperties(
            custom_metadata={
                COMMIT_ID: commit_id,
                **({} if operation is None else {"userMetadata": f"lakelog: {operation}"}),
            },
            max_commit_retries=0,  # a compare-and-set on the version: see the design
            app_transactions=list(transactions),
        ),
        "post_commithook_properties": transaction.PostCommitHookProperties(
            create_checkpoint=False, cleanup_expired_logs=False
        ),
    }


def _partition_values(file: SegmentFile) -> dict[str, str | None]:
    return {"partition": str(file.partition), "segment": str(file.segment)}


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Say which table an error of delta-rs is about."""
    from deltalake import exceptions

    try:
        yield
    except (exceptions.DeltaError, OSError) as error:
        if isinstance(error, LakelogError):
            raise
        said = one_line(error)
        advice = (
            COMMITS_NEED
            if "://" not in path and cannot_commit(said)
            else "Check that it may be read and written by this user, and that its _delta_log is "
            "whole; if not, put its files back from a backup"
        )
        raise error_class(said)(
            f"the table at {path} cannot be used: {said}. {advice}",
            path=path,
        ) from error
