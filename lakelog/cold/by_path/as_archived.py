"""A partition of a table at a path as it was archived: see `cold.as_archived`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ...errors import ColdTierAccessError, ColdTierRefusedError
from ...values.topic import Topic
from ..added_file import index_of_adds
from ..as_archived import AsArchived
from ..registers import ArchivedEnd, LogStart, Register, app_id
from ..table import ColdSnapshot
from .delta_log import naming, open_table
from .path_table import PathTable

if TYPE_CHECKING:
    from deltalake import DeltaTable


class PathAsArchived(AsArchived):
    """See `AsArchived`."""

    def __init__(
        self,
        table: PathTable,
        topic: Topic,
        partition: int,
        *,
        since: int,
        start: int,
        end: int,
    ) -> None:
        super().__init__(table, topic.partition(partition), since=since, start=start, end=end)
        self._table = table
        self._topic = topic

    def _first(self, newest: ColdSnapshot) -> ColdSnapshot:
        partition = self._topic_partition.partition
        low, high = max(0, self._since), newest.version
        while low < high:
            middle = (low + high) // 2
            if self._register(self._at(middle), ArchivedEnd(partition)) > self.at:
                high = middle
            else:
                low = middle + 1
        return self._snapshot(self._at(low), low)

    def _at(self, version: int) -> DeltaTable:
        try:
            table = open_table(self._table.storage, self._table.path, version)
        except ColdTierAccessError:
            raise
        except ColdTierRefusedError as error:
            raise self._gone(f"version {version} of the table is gone from its log") from error
        if table is None:
            raise self._gone("the table has no log")
        return table

    def _snapshot(self, table: DeltaTable, version: int) -> ColdSnapshot:
        partition = self._topic_partition.partition
        registers: tuple[Register, ...] = (ArchivedEnd(partition), LogStart(partition))
        found = {register: self._register(table, register) for register in registers}
        with naming(self._table.path):
            files = index_of_adds(pa.table(table.get_add_actions(flatten=True)))
        return ColdSnapshot(version, files, found)

    def _register(self, table: DeltaTable, register: Register) -> int:
        with naming(self._table.path):
            return table.transaction_version(app_id(self._topic.topic_id, register)) or 0
