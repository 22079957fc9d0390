"""The table of groups as a Delta table of a catalog; see `groups_table`.

Runs on: driver.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING
from uuid import UUID

from ...base.back_off import Tries
from ...base.failpoints import failpoint
from ...cold.by_name.entry import look_up, run, table_of
from ...cold.by_name.names import TableName, parse_schema, quoted_text
from ...cold.by_name.root_table import create_root_table, sql_columns
from ...cold.schema import FORMAT_PROPERTY
from ...cold.store_errors import error_class, first_sentence
from ...errors import ColdTierError
from ...values.topic import GROUPS_TABLE
from .groups_table import COMMITS, DEFINITION, VACUUM_COMMITS, app_id, check_ours
from .rows import GROUPS, Recording, recording_of, recording_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


class NamedGroupsTable:
    """The table of a schema, by Spark.

    Args:
        schema: ``catalog.schema``.
        spark: gives the session.
        naming: held while the table is made.
    """

    def __init__(
        self,
        schema: str,
        spark: Callable[[], SparkSession],
        naming: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._spark = spark
        self._naming = naming
        self._is_made = False
        self._commits = 0
        self.name = TableName(*parse_schema(schema), GROUPS_TABLE)

    def read(self, keyspace_id: UUID) -> Recording | None:
        """See `GroupsTable.read`."""
        if not self._is_there():
            return None
        # As numbers, which do not depend on the session's time zone.
        names = ", ".join(
            f"unix_micros(`{name}`) AS `{name}`" if name.endswith("_at") else f"`{name}`"
            for name in GROUPS.names
        )
        sql = f"SELECT {names} FROM {self.name} WHERE keyspace_id = {quoted_text(str(keyspace_id))}"
        return recording_of(table_of(self._spark(), sql).cast(GROUPS), str(self.name))

    def write(self, recording: Recording) -> bool:
        """See `GroupsTable.write`."""
        self._create()
        tries = Tries(f"writing to the table {self.name}", COMMITS)
        while True:
            there = self.read(recording.keyspace_id)
            if there is not None and there.sequence >= recording.sequence:
                return there.sequence == recording.sequence
            failpoint("groups.before_commit")
            try:
                self._overwrite(recording)
            except Exception as error:  # the table tells whether it landed
                pause_s = tries.failed(first_sentence(error))
                if pause_s is None:
                    raise error_class(first_sentence(error))(
                        f"the table {self.name} took no commit in {COMMITS.tries} attempts: "
                        f"{first_sentence(error)}. The groups are as they are; the next recording "
                        "tries again. Check that it may be written by this user",
                        path=str(self.name),
                    ) from error
                time.sleep(pause_s)
                continue
            failpoint("groups.after_commit")
            self._vacuum_now_and_then()
            # Delta silently skips a commit whose number is not above those that were.
            there = self.read(recording.keyspace_id)
            return there is not None and there.sequence == recording.sequence

    # -- how -----------------------------------------------------------------------------------

    def _is_there(self) -> bool:
        if self._is_made:
            return True
        entry = look_up(self._spark(), self.name)
        if entry is None:
            return False
        name = str(self.name)
        columns = self._spark().table(name).columns
        check_ours(name, entry.properties.get(FORMAT_PROPERTY), columns, name)
        self._is_made = True
        return True

    def _create(self) -> None:
        if self._is_there():
            return
        with self._naming():
            create_root_table(self._spark(), self.name, DEFINITION)

    def _overwrite(self, recording: Recording) -> None:
        from pyspark.sql.functions import expr

        rows = recording_rows(recording).to_pylist()
        values = [tuple(row[name] for name in GROUPS.names) for row in rows]
        mine = expr(f"keyspace_id = {quoted_text(str(recording.keyspace_id))}")
        frame = self._spark().createDataFrame(values, sql_columns(GROUPS)).coalesce(1)
        writer = frame.writeTo(str(self.name)).option("txnAppId", app_id(recording.keyspace_id))
        writer.option("txnVersion", str(recording.sequence)).overwrite(mine)

    def _vacuum_now_and_then(self) -> None:
        """Nothing depends on it, and a catalog may see to it itself."""
        self._commits += 1
        if self._commits % VACUUM_COMMITS:
            return
        try:
            run(self._spark(), f"VACUUM {self.name}")
        except ColdTierError as error:
            logger.info("%s was not tidied; a later recording tries again: %s", self.name, error)
