"""The table of groups as a Delta table at a path; see `groups_table`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from uuid import UUID

from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from deltalake.transaction import Transaction

from ...base import compute as pc
from ...base.back_off import Tries
from ...base.failpoints import failpoint
from ...cold.by_path.root_table import RootTable
from ...cold.schema import FORMAT_PROPERTY
from ...cold.store.storage import Storage
from ...cold.store_errors import error_class, one_line
from ...errors import LakelogError
from .groups_table import COMMITS, DEFINITION, VACUUM_COMMITS, app_id, check_ours
from .rows import GROUPS, Recording, recording_of, recording_rows

logger = logging.getLogger(__name__)


class PathGroupsTable:
    """The table at a path, by delta-rs, without Spark.

    Args:
        making: held while it is made.
    """

    def __init__(
        self, storage: Storage, making: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        self._table = RootTable(storage, DEFINITION, self._check, making)
        self.path = self._table.path

    def read(self, keyspace_id: UUID) -> Recording | None:
        """See `GroupsTable.read`."""
        table = self._table.open()
        return None if table is None else self._read(table, keyspace_id)

    def write(self, recording: Recording) -> bool:
        """See `GroupsTable.write`."""
        rows = recording_rows(recording)
        tries = Tries(f"writing to the table at {self.path}", COMMITS)
        while True:
            table = self._table.create()
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
                        f"again. {self._table.storage.advice()}",
                        path=self.path,
                    ) from error
                time.sleep(pause_s)
                continue
            failpoint("groups.after_commit")
            self._vacuum_now_and_then()
            return True

    # -- how -----------------------------------------------------------------------------------

    def _check(self, table: DeltaTable) -> None:
        made_as = table.metadata().configuration.get(FORMAT_PROPERTY)
        check_ours(self.path, made_as, [field.name for field in table.schema().fields])

    def _read(self, table: DeltaTable, keyspace_id: UUID) -> Recording | None:
        with self._table.reading():
            mine = pc.field("keyspace_id") == str(keyspace_id)
            rows = table.to_pyarrow_dataset().to_table(columns=GROUPS.names, filter=mine)
        return recording_of(rows, self.path)

    def _vacuum_now_and_then(self) -> None:
        """Nothing depends on it, and a later recording tries again."""
        try:
            table = self._table.open()
            if table is not None and table.version() % VACUUM_COMMITS == 0:
                # Not only what the log tells: a checkpoint forgets removed files of that age.
                table.vacuum(dry_run=False, full=True)
        except (DeltaError, OSError, LakelogError) as error:
            logger.warning("%s was not tidied; a later recording tries again: %s", self.path, error)
