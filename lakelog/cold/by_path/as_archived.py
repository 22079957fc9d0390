"""A partition of a table at a path as it was archived: see `cold.as_archived`."""

from __future__ import annotations

from ...errors import ColdTierAccessError, ColdTierRefusedError
from ...values.topic import Topic
from ..as_archived import AsArchived
from ..registers import ArchivedEnd, LogStart, Register, app_id
from ..table import ColdSnapshot
from .log_state import LogState, open_log
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

    def _at(self, version: int) -> LogState:
        try:
            state = open_log(self._table.storage, self._table.path, version)
        except ColdTierAccessError:
            raise
        except ColdTierRefusedError as error:
            raise self._gone(f"version {version} of the table is gone from its log") from error
        if state is None:
            raise self._gone("the table has no log")
        return state

    def _snapshot(self, state: LogState, version: int) -> ColdSnapshot:
        partition = self._topic_partition.partition
        registers: tuple[Register, ...] = (ArchivedEnd(partition), LogStart(partition))
        found = {register: self._register(state, register) for register in registers}
        return ColdSnapshot(version, state.files(), found)

    def _register(self, state: LogState, register: Register) -> int:
        return state.transactions.get(app_id(self._topic.topic_id, register), 0)
