"""A partition of a table by name as it was archived: see `cold.as_archived`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from ...errors import ColdTierRefusedError
from ...values.topic import Topic
from ..as_archived import AsArchived
from ..registers import ArchivedEnd
from ..segment import SegmentFile
from ..table import ColdSnapshot
from .named_table import NamedTable


class NamedAsArchived(AsArchived):
    """See `AsArchived`. The notes of commits say which slices each of them added."""

    def __init__(
        self,
        table: NamedTable,
        topic: Topic,
        partition: int,
        *,
        since: int,
        start: int,
        end: int,
    ) -> None:
        super().__init__(table, topic.partition(partition), since=since, start=start, end=end)
        self._table = table

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `AsArchived.read`."""
        try:
            yield from super().read(files, start, end, columns)
        except ColdTierRefusedError as error:
            raise self._gone(f"its version is known no more ({error.message})") from error

    def _first(self, newest: ColdSnapshot) -> ColdSnapshot:
        partition = self._topic_partition.partition
        found = self._table.archived_at(partition, self.at, self._since)
        if found is None:
            raise self._gone("the table's history no longer reaches back that far")
        version, files = found
        end = max(file.end_offset for file in files.of_partition(partition))
        return ColdSnapshot(version, files, {ArchivedEnd(partition): end})
