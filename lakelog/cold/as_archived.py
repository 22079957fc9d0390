"""A partition's cold tier as it was archived, whatever compaction and retention did since.

For readers that must give the same records each time. The files that a commit removed stay until a
vacuum. The version that first held an offset names the file that the offset was archived into, and
no commit removes records from a file that it adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from ..errors import MissingFileError, OffsetOutOfRangeError
from ..values.topic_partition import OffsetRange, TopicPartition
from .answers import RowGroupTimes
from .segment import SegmentFile, archived_start
from .table import ColdSnapshot, ColdTable


class AsArchived:
    """Snapshots of one partition for a reader whose position is `at`. Not thread-safe.

    Args:
        since: a version at which the partition was archived up to where the reader begins.
        end: where the reader ends.
    """

    def __init__(
        self, table: ColdTable, topic_partition: TopicPartition, *, since: int, start: int, end: int
    ) -> None:
        self._table = table
        self._topic_partition = topic_partition
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
        newest, partition = self._table.snapshot(), self._topic_partition.partition
        if newest.archived_end(partition) <= self.at or self._is_untouched(newest):
            return newest
        found = self._table.archived_at(partition, self.at, self._since, newest)
        if found is None:
            raise self._gone("the table's log no longer reaches back that far")
        return found

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

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        return self._table.with_keys(files, start, end, keys)

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        return self._table.row_groups(files, start, end)

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

    def _gone(self, why: str) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(
            f"[{self._start}, {self._end}) of {self._topic_partition} can no longer be read as it "
            f"was when the DataFrame was made: {why}. Make the DataFrame again",
            topic_partition=self._topic_partition,
            offset=self.at,
        )
