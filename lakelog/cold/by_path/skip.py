"""Skips files of a table that cannot be read: their ranges become declared gaps.

In the table an empty file stands in for such a file, named ``quarantine-{start}-{end}-…``, so that
cover and registers hold. The file itself stays until cleanup deletes it, as any that was removed.
"""

from __future__ import annotations

from msgspec import Struct

from ...base.text_table import counted
from ...errors import (
    CommitConflictError,
    CorruptRecordError,
    InvalidArgumentError,
    LakelogError,
    MissingFileError,
    PolicyViolationError,
)
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from ..change import Change, Rewrite
from ..segment import SegmentFile, is_stand_in
from ..table import ColdSnapshot
from .path_table import PathTable


class BadFile(Struct, frozen=True):
    """A file that may be skipped."""

    file: SegmentFile
    flaw: str
    snapshot: ColdSnapshot  # that names it

    @property
    def gap(self) -> OffsetRange:
        return OffsetRange(self.file.start_offset, self.file.end_offset)


class ColdSkips:
    """Skips files of one partition."""

    def __init__(self, topic: Topic, table: PathTable, partition: int) -> None:
        self._table = table
        self._topic_partition = topic.partition(partition)

    def look(self, path: str) -> BadFile:
        """The file, and why it cannot be read.

        Args:
            path: as errors show it, or the end of it.

        Raises:
            InvalidArgumentError: the partition's table names no such file, or several.
            PolicyViolationError: the file can be read.
        """
        snapshot = self._table.snapshot()
        file = self._named(path, snapshot)
        return BadFile(file, self._flaw(file).message, snapshot)

    def skip(self, bad: BadFile) -> None:
        """Takes the file out of the table.

        Raises:
            CommitConflictError: others rewrote or removed it meanwhile; nothing was skipped.
        """
        stand_in = Rewrite(self._topic_partition, bad.file.segment, (bad.file,), aside=True)
        change = Change(adds=(stand_in,), removes=(bad.file,))
        if self._table.apply(change, bad.snapshot).superseded:
            raise CommitConflictError(
                f"{bad.file.path} was rewritten or removed by others meanwhile; nothing was "
                "skipped. Look whether it still needs to be",
                path=bad.file.path,
            )

    # -- helpers ---------------------------------------------------------------------------------

    def _named(self, path: str, snapshot: ColdSnapshot) -> SegmentFile:
        files = [
            file
            for file in snapshot.files.of_partition(self._topic_partition.partition)
            if not is_stand_in(file.path) and (_ends(path, file.path) or _ends(file.path, path))
        ]
        if len(files) != 1:
            raise InvalidArgumentError(
                f"the table of {self._topic_partition} names {len(files) or 'no'} files {path!r}; "
                f"give a path as errors and `lakelog segments list --verify` show it",
                path=path,
            )
        return files[0]

    def _flaw(self, file: SegmentFile) -> LakelogError:
        """Why the file may go.

        Raises:
            PolicyViolationError: it can be read.
        """
        rows = 0
        try:
            for batch in self._table.read([file], file.start_offset, file.end_offset):
                rows += batch.num_rows
        except (MissingFileError, CorruptRecordError) as error:
            return error
        if file.records >= 0 and rows != file.records:
            return CorruptRecordError(
                f"{file.path} has {counted(rows, 'record')} of its range instead of {file.records}",
                path=file.path,
            )
        raise PolicyViolationError(
            f"{file.path} can be read and has its {counted(rows, 'record')}; only files "
            "that cannot are skipped. To delete records, use `lakelog delete-records`",
            path=file.path,
        )


def _ends(path: str, end: str) -> bool:
    """Whether a path ends in that one, by whole names."""
    return path == end or path.endswith("/" + end.lstrip("/"))
