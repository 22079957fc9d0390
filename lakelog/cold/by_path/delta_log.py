"""One topic's Delta table at a path: open, refresh, commit once, read commits back.

What it is, its log tells (`log_state`). delta-rs commits, and says what was removed: it opens the
table when it is first asked, and holds as much of each file again.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import unquote

import pyarrow as pa
from msgspec import Struct

from ...base.failpoints import failpoint
from ...base.json_text import parse_json
from ...engines.at_exit import watch
from ...engines.workers import Workers
from ...errors import (
    ColdTierError,
    ColdTierRefusedError,
    ContradictionError,
    ForeignTableError,
    LakelogError,
)
from ...values.format_version import check_format
from ...values.topic import Topic
from ..committing import deleted_topic
from ..foreign_properties import TXN_RETENTION_PROPERTY, warnings
from ..log_names import LAST_CHECKPOINT, LOG, checkpoint_names, commit_name, commit_versions
from ..schema import (
    CHECKPOINT_INTERVAL,
    CHECKPOINT_PROPERTY,
    FORMAT_PROPERTY,
    PARTITION_COLUMNS,
    TABLE_SCHEMA,
    TOPIC_ID_PROPERTY,
)
from ..segment import SegmentFile, SegmentIndex, no_files
from ..store.delta_runtime import check_not_forked
from ..store.storage import Storage, side_by_side
from ..store_errors import COMMITS_NEED, cannot_commit, error_class, one_line
from .log_content import COMMIT_ID, Piece, TableMetadata
from .log_state import LogState, open_log, pieces_of_commit, read_commit

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from .segment_writer import WrittenFile


logger = logging.getLogger(__name__)

#: How far back an opened local table is synced: the kernel writes dirty pages back within half a
#: minute, so what is older than this is on the disk.
SYNC_S = 10 * 60

#: Reading this many commits one by one costs about as much as asking the table again.
MAX_COMMITS_READ = 100

#: When a register was updated last, for Spark, whose checkpoints drop old ones where somebody sets
#: `TXN_RETENTION_PROPERTY`: a partition may rest for years. The end of the year 9999.
KEPT_FOR_EVER_MS = 253_402_300_799_999

#: Who vacuums once does it again, and each of them makes two commits.
VACUUM_COMMITS = 10

#: Seconds between looks at whether a commit is there that is being made: soon the first times, in a
#: store that is slow less and less often.
_PAUSES_S = (0.035, 0.005, 0.01, 0.02, 0.04, 0.08, *repeat(0.2, 50))

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


class Commit(Struct, frozen=True):
    """What lakelog needs of one version's log file."""

    version: int
    commit_id: str | None
    transactions: Mapping[str, int]  # by app id
    removed: tuple[str, ...]  # paths
    vacuums: bool = False  # see `Piece`

    @classmethod
    def of(cls, version: int, pieces: Iterable[Piece]) -> Commit:
        commit_id = None
        transactions: dict[str, int] = {}
        removed: list[str] = []
        vacuums = False
        for piece in pieces:
            vacuums |= piece.vacuums
            commit_id = piece.commit_id or commit_id
            transactions.update(piece.transactions)
            removed += map(unquote, piece.removes)
        return cls(version, commit_id, transactions, tuple(removed), vacuums)


class DeltaLog:
    """The table's log at one version, and the way to newer ones. Not thread-safe.

    Args:
        topic: the topic that the table must belong to.
    """

    def __init__(self, storage: Storage, topic: Topic) -> None:
        self._storage = storage
        self._topic = topic
        self.path = storage.table_path(topic)
        self._state: LogState | None = None  # None: there is no table yet
        self._commits: dict[int, Commit] = {}  # the newest
        self._ahead: dict[int, bytes | None] = {}  # what was read and is not applied; None: no file
        self._writer: DeltaTable | None = None  # delta-rs's own view; None: it was not asked yet
        self._committing: _Call | None = None  # which may still use the writer
        self._opened_with: dict[str, str] = {}
        self._checked_version = -1
        self._synced_version = -1
        self._checkpointed_version = -1  # as far as known here

    @property
    def version(self) -> int:
        """-1: there is no table yet."""
        return -1 if self._state is None else self._state.version

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
        known = self.version
        if self._state is None or not self._advance(self._state):
            # The first look; or the log behind us was cleaned up; or all of it is gone.
            self._commits, self._ahead = {}, {}
            self._state = self._open()
        if self.version < known:
            self._state = self._writer = None
            raise ContradictionError(
                f"the table at {self.path} went from version {known} back to {self.version}: "
                "somebody deleted it, or put back an old copy. Bring the newest one back, or "
                "delete the topic and create it again",
                path=self.path,
            )
        self._check()

    def read_back(self) -> None:
        """After `commit`: go on to the version that it would have made, or to the newest one.

        Raises: see `refresh`.
        """
        content = self._ahead.pop(self.version + 1, None)
        if self._state is None or content is None:
            self.refresh()
            return
        self._go_on(self._state, content)
        self._check()

    def _check(self) -> None:
        """Check what was not looked at yet, and sync it."""
        if self.version != self._checked_version:
            self._check_ours()
            self._sync()
            self._checked_version = self.version

    def _advance(self, state: LogState) -> bool:
        """Apply what was committed since the last look; False if it has to begin anew."""
        known = state.version
        is_there = None  # not asked
        if not self._storage.is_local:  # where each answer is waited for, all are asked at once
            asked = (known, known + 1, known + 2)
            is_there, *contents = side_by_side(partial(self._asked, known), asked)
            self._ahead = dict(zip(asked[1:], cast("list[bytes | None]", contents), strict=True))
        while (content := self._content_after(state.version)) is not None:
            if state.version - known >= MAX_COMMITS_READ:
                return False  # a checkpoint is nearer
            self._go_on(state, content)
        if is_there is None and state.version == known:
            is_there = self._is_log_file(known)
        return state.version > known or bool(is_there)

    def _asked(self, known: int, version: int) -> bytes | bool | None:
        """Of the known version whether it is there, of others the content."""
        return self._is_log_file(version) if version == known else self._read(version)

    def _content_after(self, version: int) -> bytes | None:
        following = version + 1
        return self._ahead.pop(following) if following in self._ahead else self._read(following)

    def _go_on(self, state: LogState, content: bytes) -> None:
        """Apply the next commit."""
        version = state.version + 1
        pieces = list(pieces_of_commit(self.path, version, content))  # all of it, or nothing
        for piece in pieces:
            state.apply(piece)
        state.version = version
        self._commits[version] = Commit.of(version, pieces)
        self._commits.pop(version - MAX_COMMITS_READ, None)

    def create(self, properties: Mapping[str, str], columns: pa.Schema | None = None) -> None:
        """Make the table, unless it is there. Another process may make it at the same time.

        Args:
            columns: value columns, after those that every table has.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        self._storage.make_folder(self.path)
        options = self._storage.delta_options()
        with naming(self.path), suppress(DeltaError):  # somebody else was faster: see below
            DeltaTable.create(
                self.path,
                pa.schema([*TABLE_SCHEMA, *(columns or ())]),
                storage_options=options,
                **self._definition(properties),
            )
        self.refresh()
        if self._state is None:
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

    def statistics(self) -> Mapping[str, str | None]:
        """What the log says of each file's rows, by path: JSON text; None: nothing."""
        from .log_statistics import log_statistics

        if self._state is None:
            return {}
        with naming(self.path):
            return log_statistics(self._storage, self.path, self.version)

    def files(self) -> SegmentIndex:
        """Raises ContradictionError: nothing says what a file holds."""
        return no_files() if self._state is None else self._state.files()

    def table_id(self) -> str | None:
        """Delta's id of the table; None: there is none."""
        return None if self._metadata is None else self._metadata.table_id

    def properties(self) -> dict[str, str]:
        return {} if self._metadata is None else dict(self._metadata.properties)

    def warnings(self) -> Iterator[str]:
        """See `ColdTable.warnings`."""
        protocol = None if self._state is None else self._state.protocol
        unknown = set(protocol.writer_features) - WRITER_FEATURES if protocol is not None else ()
        if unknown:
            yield (
                f"somebody turned on {', '.join(sorted(unknown))}: the table can be read, but "
                f"archiving and cleanups fail, as lakelog commits nothing then. {UNDO_FEATURES}"
            )
        yield from warnings(self.properties())

    def columns(self) -> pa.Schema:
        """The columns of the table, with their comments."""
        if self._metadata is None:
            return pa.schema([])
        with naming(self.path):
            return _columns(self._metadata.schema)

    def transactions(self) -> Mapping[str, int]:
        """The txn versions of the table by app id.

        Where Spark's checkpoints may have dropped some, also those of all commits that are there.
        """
        if self._state is None:
            return {}
        if not self.drops_transactions:
            return self._state.transactions
        listed = self._storage.file_names(f"{self.path}/{LOG}")
        versions = sorted(one for one in commit_versions(listed) if one <= self.version)
        look = map if self._storage.is_local else side_by_side
        found: dict[str, int] = {}
        for commit in look(self.commit_at, versions):
            found.update({} if commit is None else commit.transactions)
        return found | self._state.transactions

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
        commit = partial(
            table.create_write_transaction,
            actions,
            mode="append",
            schema=table.schema(),
            partition_by=PARTITION_COLUMNS,
            **_once(commit_id, versions, operation),
        )
        if self._storage.is_local:
            commit()
        else:
            self._until_seen(commit)

    def _until_seen(self, commit: Callable[[], None]) -> None:
        """Returns once the commit is done, or the log has the version that it is to make.

        delta-rs reads its own commit back before it returns, by three calls of the store one after
        the other. That goes on meanwhile.
        """
        self._committing = call = _Call(commit)
        following = self.version + 1
        for pause_s in _PAUSES_S:
            if not call.is_in_call_after(pause_s):
                break
            try:
                content = self._read(following)
            except ColdTierError:  # the commit itself tells more
                break
            if content is not None:
                self._ahead = {following: content}
                return
        call.result()

    def prepare_commit(self) -> None:
        """Have delta-rs look at this version before it is to commit on top of it."""
        self._at_this_version()

    def set_properties(self, commit_id: str, properties: Mapping[str, str]) -> None:
        """Try once to make a next version with these properties added. Does not refresh."""
        self._at_this_version().alter.set_table_properties(
            dict(properties), raise_if_not_exists=False, **_once(commit_id)
        )

    def add_columns(self, commit_id: str, columns: pa.Schema) -> None:
        """Try once to make a next version with these columns added. Does not refresh."""
        from deltalake import Schema

        fields = Schema.from_arrow(columns).fields
        self._at_this_version().alter.add_columns(fields, **_once(commit_id))

    def set_comment(self, commit_id: str, column: str, comment: str) -> None:
        """Try once to make a next version with this comment. Does not refresh."""
        self._at_this_version().alter.set_column_metadata(
            column, {"comment": comment}, **_once(commit_id)
        )

    def commit_at(self, version: int) -> Commit | None:
        """None: the log was cleaned up that far."""
        if version not in self._commits:
            content = self._read(version)
            if content is None:
                return None
            return Commit.of(version, pieces_of_commit(self.path, version, content))
        return self._commits[version]

    def commits(self, after: int) -> list[Commit] | None:
        """The commits above that version up to this one.

        None if they are too many, or some are gone.
        """
        if self.version - after > MAX_COMMITS_READ:
            return None
        commits = [self.commit_at(version) for version in range(after + 1, self.version + 1)]
        return None if None in commits else cast("list[Commit]", commits)

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
        if self._state is None or self.version - self._checkpointed_version < interval:
            return
        try:
            self._checkpointed_version = self._last_checkpoint()
            if self.version - self._checkpointed_version < interval:
                return
            table = self._at_this_version()
            table.create_checkpoint()
            # It must be on the disk before the log files that it replaces go.
            log = f"{self.path}/{LOG}"
            checkpoint = self._checkpoint_file(self.version)
            self._storage.sync(checkpoint, f"{log}/{LAST_CHECKPOINT}", log)
            table.cleanup_metadata()
            self._checkpointed_version = self.version
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
        if self._state is None or not (old := self._older(log)):
            return False
        checkpoint = self._checkpoint_file(self.version)
        with naming(self.path):
            self._at_this_version().create_checkpoint()
        # It must be on the disk before the log files that it replaces go.
        self._storage.sync(checkpoint, f"{log}/{LAST_CHECKPOINT}", log)
        self._checkpointed_version = self.version
        failpoint("erase.after_checkpoint")
        self._storage.delete_files(old)
        return True

    def _older(self, log: str) -> list[str]:
        """The files of the log that speak of earlier versions alone."""
        names = self._storage.file_names(log)
        found = [(re.match(r"(?:\.)?(\d{20})\.", name), name) for name in names]
        return [f"{log}/{name}" for at, name in found if at and int(at[1]) < self.version]

    def tombstones(self) -> set[str]:
        """The paths that the log names as removed."""
        listed = self._tombstones(retention_hours=0)
        # It leaves out what was removed after "now", and the remover's clock may be ahead of ours.
        recent = [self.commit_at(version) for version in range(self.version, -1, -1)[:100]]
        return listed.union(*(commit.removed for commit in recent if commit))

    def expired_tombstones(self) -> set[str]:
        """The paths that were removed longer ago than the table's own retention."""
        return self._tombstones(retention_hours=None)

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
        from deltalake import exceptions

        if self._state is None:
            return set()
        with naming(self.path):
            try:
                listed = self._named_as_removed(retention_hours)
            except (
                exceptions.DeltaError
            ):  # somebody cleaned up the log behind what was opened before
                self._writer = None
                listed = self._named_as_removed(retention_hours)
        # A path is absolute if its file is gone already; no file that is there has such a path.
        return set(listed)

    def _named_as_removed(self, retention_hours: int | None) -> list[str]:
        # A dry run of "lite" lists what the log itself names.
        listed: list[str] = self._at_this_version().vacuum(
            retention_hours, dry_run=True, enforce_retention_duration=False, full=False
        )
        return listed

    def _at_this_version(self) -> DeltaTable:
        """delta-rs's own view of this version.

        It would commit on top of the version that it knows, of whose registers a change may know
        nothing.

        Raises:
            DeltaError, OSError: it cannot be read, or delta-rs sees a newer version only.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        if self._state is None:
            raise ColdTierRefusedError(
                f"there is no table at {self.path} to commit to", path=self.path
            )
        if self._committing is not None:
            self._committing.error()
            self._committing = None
        options = self._storage.delta_options()
        if self._opened_with != options:  # an open table does not notice renewed credentials
            self._writer, self._opened_with = None, options
        table, self._writer = self._writer, None
        if table is not None and table.version() < self.version:
            with suppress(DeltaError, OSError):  # the log behind it was cleaned up
                table.update_incremental()
        if table is None or table.version() != self.version:
            table = DeltaTable(self.path, version=self.version, storage_options=options)
        self._writer = table
        return table

    def _last_checkpoint(self) -> int:
        content = self._storage.read_bytes(f"{self.path}/{LOG}/{LAST_CHECKPOINT}")
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            return int(parse_json(content or b"")["version"])
        return -1

    def _open(self) -> LogState | None:
        """None: nothing is there."""
        for last_try in (False, True):
            state = open_log(self._storage, self.path)
            if state is not None:
                return state
            if not self._storage.is_local:  # Arrow finds nothing in a bucket that is not there
                from deltalake import DeltaTable
                from deltalake.exceptions import TableNotFoundError

                with naming(self.path), suppress(TableNotFoundError):
                    DeltaTable(self.path, storage_options=self._storage.delta_options())
            strangers = [name for name in self._storage.names(self.path) if name != LOG]
            if not strangers:
                return None
            from .purging import MARK

            if MARK in strangers:
                raise deleted_topic(self._topic) from None
            if last_try:  # the first time, somebody may be creating the table
                self._refuse_foreign(f"no Delta table but {strangers[0]!r}")
        return None

    @property
    def _metadata(self) -> TableMetadata | None:
        return None if self._state is None else self._state.metadata

    def _check_ours(self) -> None:
        if self._state is None or self._state.metadata is None:
            return
        metadata = self._state.metadata
        owner = metadata.properties.get(TOPIC_ID_PROPERTY)
        check_format(
            metadata.properties.get(FORMAT_PROPERTY), f"the table at {self.path}", path=self.path
        )
        if owner is None:
            self._refuse_foreign("a Delta table that lakelog did not make")
        if owner != str(self._topic.topic_id):
            self._refuse_foreign(f"the table of the topic with id {owner}")
        if metadata.partition_columns != PARTITION_COLUMNS:
            self._refuse_foreign(f"a table partitioned by {metadata.partition_columns}")
        protocol = self._state.protocol
        if protocol is not None and protocol.min_reader_version > 1:
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

    def _is_log_file(self, version: int) -> bool:
        return self._storage.is_file(self._log_file(version))

    def _read(self, version: int) -> bytes | None:
        return read_commit(self._storage, self.path, version)

    def _sync(self) -> None:
        """Sync the commits up to this one to the disk, whoever made them.

        A process that sees a register may trim by it, so it must then survive a power cut.
        """
        if not self._storage.is_local or self._state is None:
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


class _Call:
    """A call of delta-rs in a thread of its own, which the end of the process waits for."""

    def __init__(self, call: Callable[[], None]) -> None:
        workers = Workers("lakelog-commit")
        self._answer = workers.ask(call)
        self._answer.add_done_callback(self._is_over)  # until then somebody holds this
        workers.end()
        watch(self)

    def is_in_call(self) -> bool:
        return not self._answer.done()

    def is_in_call_after(self, timeout_s: float) -> bool:
        """Whether it lasts longer than that from now on."""
        wait([self._answer], timeout_s)
        return self.is_in_call()

    def result(self) -> None:
        """Wait for it, and raise what it raises."""
        self._answer.result()

    def error(self) -> BaseException | None:
        """Wait for it; what it raises."""
        return self._answer.exception()

    def end(self) -> None:
        """There is nothing more to begin."""

    def _is_over(self, answer: Future[None]) -> None: ...


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


@lru_cache(maxsize=64)
def _columns(schema: str) -> pa.Schema:
    """The columns of Delta's text of them, which many tables share."""
    from deltalake import Schema

    return pa.schema(Schema.from_json(schema).to_arrow())


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
            "whole"
        )
        raise error_class(said)(
            f"the table at {path} cannot be used: {said}. {advice}",
            path=path,
        ) from error
