"""A partition's cold tier as it was archived, whatever compaction and retention did since.

For readers that must give the same records each time. The files that a commit removed stay until a
vacuum. The version that first held an offset names the file that the offset was archived into, and
no commit removes records from a file that it adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from deltalake import DeltaTable

from ...errors import (
    ColdTierAccessError,
    ColdTierRefusedError,
    MissingFileError,
    OffsetOutOfRangeError,
)
from ...record import TopicPartition
from ...topic import Topic
from ..registers import ArchivedEnd, LogStart, Register, app_id
from ..segment import SegmentFile, SegmentIndex, archived_start
from ..table import ColdSnapshot
from .delta_log import naming
from .path_table import PathTable


class AsArchived:
    """Snapshots of one partition for a reader whose position is `at`. Not thread-safe.

    Args:
        table: the topic's.
        since: a version at which the partition was archived up to where the reader begins.
        end: where the reader ends.
    """

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
        self._table = table
        self._topic = topic
        self._topic_partition = TopicPartition(topic.name, partition)
        self._since = since
        self._start = start
        self._end = end
        self.at = start  # moved by the reader

    def snapshot(self, newer_than: ColdSnapshot | None = None) -> ColdSnapshot:
        """The first version that holds the record at `at`, or the newest if none does.

        Raises:
            OffsetOutOfRangeError: the table's log no longer reaches back that far.
            ColdTierUnavailableError, ColdTierAccessError: the store does not say.
        """
        newest = self._table.snapshot()
        partition = self._topic_partition.partition
        if newest.archived_end(partition) <= self.at or self._is_untouched(newest):
            return newest
        low, high = max(0, self._since), newest.version
        while low < high:
            middle = (low + high) // 2
            if self._register(self._at(middle), ArchivedEnd(partition)) > self.at:
                high = middle
            else:
                low = middle + 1
        return self._snapshot(self._at(low), low)

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdTable.read`.

        Raises:
            OffsetOutOfRangeError: a file was vacuumed.
        """
        try:
            yield from self._table.read(files, start, end, columns)
        except MissingFileError as error:
            raise self._gone("a file that cleanup removed was vacuumed") from error

    def _is_untouched(self, snapshot: ColdSnapshot) -> bool:
        """Whether everything in it that is left to read lies as the archiver wrote it."""
        partition = self._topic_partition.partition
        end = min(self._end, snapshot.archived_end(partition))
        covered = self.at
        for file in snapshot.files.files_between(partition, self.at, end):
            if archived_start(file.path) is None or file.start_offset > covered:
                return False
            covered = max(covered, file.end_offset)
        return covered >= end and snapshot.log_start(partition) <= self.at

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

    def _gone(self, why: str) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            f"[{self._start}, {self._end}) of {self._topic_partition} can no longer be read as it "
            f"was when the DataFrame was made: {why}. Make the DataFrame again",
            topic_partition=self._topic_partition,
            offset=self.at,
        )
