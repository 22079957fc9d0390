"""The table of groups as a Delta table at a path; see `groups_table`."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import Transaction

from ...back_off import Tries
from ...cold.schema import FORMAT_PROPERTY
from ...cold.store.storage import Storage
from ...cold.store_errors import error_class, one_line
from ...errors import ForeignTableError, LakelogError
from ...failpoints import failpoint
from ...format_version import USUAL_FORMAT, check_format
from ...topic import GROUPS_TABLE
from .groups_table import COMMITS, DESCRIPTION, PROPERTIES, VACUUM_COMMITS, app_id
from .rows import GROUPS, Recording, recording_of, recording_rows

logger = logging.getLogger(__name__)


class PathGroupsTable:
    """The table at a path, by delta-rs, without Spark."""

    def __init__(self, storage: Storage) -> None:
        self.path = f"{storage.root.rstrip('/')}/{GROUPS_TABLE}"
        self._storage = storage.keyed_for(self.path)

    def read(self, keyspace_id: UUID) -> Recording | None:
        """See `GroupsTable.read`."""
        table = self._open()
        return None if table is None else self._read(table, keyspace_id)

    def write(self, recording: Recording) -> bool:
        """See `GroupsTable.write`."""
        rows = recording_rows(recording)
        tries = Tries(f"writing to the table at {self.path}", COMMITS)
        while True:
            table = self._create()
            there = self._read(table, recording.keyspace_id)
            # A lost reply and a lost race look the same: the table knows.
            if there is not None and there.sequence >= recording.sequence:
                return there.sequence == recording.sequence
            failpoint("groups.before_commit")
            number = Transaction(app_id(recording.keyspace_id), recording.sequence)
            try:
                write_deltalake(
                    table,
                    rows,
                    mode="overwrite",
                    predicate=f"keyspace_id = '{recording.keyspace_id}'",
                    commit_properties=CommitProperties(app_transactions=[number]),
                )
            except (DeltaError, OSError) as error:
                pause_s = tries.failed(one_line(error))
                if pause_s is None:
                    raise error_class(one_line(error))(
                        f"the table at {self.path} took no commit in {COMMITS.tries} attempts: "
                        f"{one_line(error)}. The groups are as they are; the next recording tries "
                        f"again. {self._storage.advice()}",
                        path=self.path,
                    ) from error
                time.sleep(pause_s)
                continue
            failpoint("groups.after_commit")
            self._vacuum_now_and_then()
            return True

    # -- how -----------------------------------------------------------------------------------

    def _open(self) -> DeltaTable | None:
        """The table as it is now; None if there is none.

        Raises:
            ForeignTableError: something else lies there.
            NewerVersionError: a newer lakelog made it.
        """
        try:
            table = DeltaTable(self.path, storage_options=self._storage.delta_options())
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise error_class(one_line(error))(
                f"the table at {self.path} cannot be opened: {one_line(error)}. "
                f"{self._storage.advice()}",
                path=self.path,
            ) from error
        found = table.metadata().configuration.get(FORMAT_PROPERTY)
        check_format(found, f"the table at {self.path}", path=self.path)
        missing = set(GROUPS.names) - {field.name for field in table.schema().fields}
        if missing:
            raise ForeignTableError(
                f"{self.path} should hold the offsets of groups, but has no column "
                f"{sorted(missing)[0]!r}: somebody else made it. Move it away",
                path=self.path,
            )
        return table

    def _create(self) -> DeltaTable:
        """The table as it is now; made first if it is not there."""
        table = self._open()
        if table is not None:
            return table
        there = self._storage.list_files(self.path, recursive=False)
        if any(not info.base_name.startswith(("_", ".")) for info in there):
            table = self._open()  # somebody else may have been faster
            if table is not None:
                return table
            raise ForeignTableError(
                f"something lies at {self.path} that is not the table of groups' offsets, whose "
                "place that is. Move it away",
                path=self.path,
            )
        self._storage.make_folder(self.path)
        try:
            DeltaTable.create(
                self.path,
                GROUPS,
                mode="ignore",
                partition_by=["keyspace_id"],
                name=GROUPS_TABLE,
                description=DESCRIPTION,
                configuration={**PROPERTIES, FORMAT_PROPERTY: str(USUAL_FORMAT)},
                raise_if_key_not_exists=False,
                storage_options=self._storage.delta_options(),
            )
        except (DeltaError, OSError) as error:  # somebody else may have been faster
            table = self._open()
            if table is None:
                raise error_class(one_line(error))(
                    f"no Delta table could be made at {self.path}: {one_line(error)}. "
                    f"{self._storage.advice()}",
                    path=self.path,
                ) from error
        table = table or self._open()
        assert table is not None  # it was just made
        return table

    def _read(self, table: DeltaTable, keyspace_id: UUID) -> Recording | None:
        with self._reading():
            mine = pc.field("keyspace_id") == str(keyspace_id)
            rows = table.to_pyarrow_dataset().to_table(columns=GROUPS.names, filter=mine)
        return recording_of(rows, self.path)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._storage.naming(self.path):
            try:
                yield
            except DeltaError as error:
                raise error_class(one_line(error))(
                    f"the table at {self.path} cannot be read: {one_line(error)}. "
                    f"{self._storage.advice()}",
                    path=self.path,
                ) from error

    def _vacuum_now_and_then(self) -> None:
        """Nothing depends on it, and a later recording tries again."""
        try:
            table = self._open()
            if table is not None and table.version() % VACUUM_COMMITS == 0:
                # Not only what the log tells: a checkpoint forgets removed files of that age.
                table.vacuum(dry_run=False, full=True)
        except (DeltaError, OSError, LakelogError) as error:
            logger.warning("%s was not tidied; a later recording tries again: %s", self.path, error)
