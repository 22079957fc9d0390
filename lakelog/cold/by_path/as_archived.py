"""A partition of a table at a path as it was archived: see `cold.as_archived`."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable

from ...errors import ColdTierAccessError, ColdTierRefusedError
from ...topic import Topic
from ..as_archived import AsArchived
from ..registers import ArchivedEnd, LogStart, Register, app_id
from ..segment import SegmentIndex
from ..table import ColdSnapshot
from .delta_log import naming
from .path_table import PathTable


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
        options = self._table.storage.delta_options()
        try:
            with naming(self._table.path):
                return DeltaTable(self._table.path, version=version, storage_options=options)
        except ColdTierAccessError:
            raise
        except ColdTierRefusedError as error:
            raise self._gone(f"version {version} of the table is gone from its log") from error

    def _snapshot(self, table: DeltaTable, version: int) -> ColdSnapshot:
        partition = self._topic_partition.partition
        with naming(self._table.path):
            files = SegmentIndex.from_add_actions(pa.table(table.get_add_actions(flatten=True)))
        registers: tuple[Register, ...] = (ArchivedEnd(partition), LogStart(partition))
        found = {register: self._register(table, register) for register in registers}
        return ColdSnapshot(version, files, found)

    def _register(self, table: DeltaTable, register: Register) -> int:
        with naming(self._table.path):
            return table.transaction_version(app_id(self._topic.topic_id, register)) or 0
