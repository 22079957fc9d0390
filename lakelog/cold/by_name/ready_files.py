"""Writes hot ranges into files of a table by name, which a transaction of Delta's then takes over.

Spark's own writer takes rows from Python one at a time; Arrow writes them a group at a time, as for
a table at a path. What is left of a commit that fails are files that no commit names, as after a
failed write of Spark's.

Runs on: executor up to `ReadyFile`, driver from `ReadyFiles` on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from ...base.back_off import patiently
from ...errors import ColdTierError
from ..change import HotRange, RowsOf
from ..file_statistics import statistics
from ..parquet.file_writer import write_file
from ..row_groups import row_groups
from ..rows import RowTally, archived_rows
from ..segment import file_name
from ..value_statistics import ValueStatistics, counted_values
from .file_layout import FileLayout
from .notes import Slice


class ReadyFile(Struct, frozen=True):
    """A file that is written, and what its rows are like."""

    path: str  # below the table's folder
    size_bytes: int
    records: int
    first: int
    last: int
    min_us: int
    max_us: int
    statistics: str  # JSON, as Delta has it
    unparsed: int  # records with a value_error


def write_ready_file(add: HotRange, *, layout: FileLayout, rows_of: RowsOf) -> ReadyFile:
    """Write the rows of a hot range into one new file, and sync it to the disk.

    While the store or the source is busy or away for a moment, the file is begun again. Memory is
    bounded by a row group and a batch of the source.

    Raises:
        ContradictionError: see `archived_rows`. Nothing is left behind.
        ColdTierError: the place cannot be written.

    Runs on: executor.
    """
    return patiently(
        f"writing a segment of {add.topic_partition}",
        partial(_write_file, add, layout=layout, rows_of=rows_of),
    )


def _write_file(add: HotRange, *, layout: FileLayout, rows_of: RowsOf) -> ReadyFile:
    storage = layout.storage
    partition, segment = add.topic_partition.partition, add.segment
    folders = [f"partition={partition}", f"partition={partition}/segment={segment}"]
    name = f"{folders[-1]}/{file_name('archive', add.start_offset, add.end_offset, uuid4().hex)}"
    path = f"{storage.root}/{name}"
    storage.make_folder(f"{storage.root}/{folders[-1]}", synced=False)  # below, with the file
    tally, values = RowTally(add), ValueStatistics(layout.values)
    try:
        groups = row_groups(archived_rows(add, rows_of, tally))
        size_bytes = write_file(
            storage,
            path,
            counted_values(groups, layout.values, tally, values),
            layout.stored,
            layout.writer_options(),
            key=layout.names["key"],
            filtered=layout.filter_keys,
            stored=layout.as_stored,
        )
        # The commit that will name the file must not survive a power cut that the file does not.
        storage.sync(path, *(f"{storage.root}/{one}" for one in reversed(folders)), storage.root)
    except BaseException:
        # No commit can name the file, since this call returns none.
        with suppress(ColdTierError):
            storage.delete_file(path)
        raise
    assert tally.min_us is not None  # no hot range is empty
    assert tally.max_us is not None
    return ReadyFile(
        name,
        size_bytes,
        tally.records,
        tally.first,
        tally.last,
        tally.min_us,
        tally.max_us,
        statistics(tally, values, layout.names),
        tally.unparsed,
    )


class ReadyFiles(Struct, frozen=True):
    """The files of one commit, in the order of their ranges.

    Args:
        added: the slice that each range becomes.
    """

    files: Sequence[ReadyFile]
    added: Sequence[Slice]

    def slices(self) -> list[Slice]:
        """The slices with the measures of their files."""
        return [
            replace(
                one,
                records=file.records,
                first=file.first,
                last=file.last,
                min_timestamp_ms=file.min_us // 1000,
                max_timestamp_ms=file.max_us // 1000,
                size_bytes=file.size_bytes,
            )
            for one, file in zip(self.added, self.files, strict=True)
        ]

    def unparsed(self) -> dict[int, int]:
        """By partition, how many records have a ``value_error``."""
        unparsed = {one.partition: 0 for one in self.added}
        for one, file in zip(self.added, self.files, strict=True):
            unparsed[one.partition] += file.unparsed
        return unparsed

    def add_actions(self, layout: FileLayout) -> list[dict[str, Any]]:
        """What a commit says of the files."""
        now_ms = time.time_ns() // 1_000_000
        return [
            {
                "path": file.path,
                "partitionValues": dict(
                    zip(
                        layout.partition_columns,
                        (str(one.partition), str(one.segment)),
                        strict=True,
                    )
                ),
                "size": file.size_bytes,
                "modificationTime": now_ms,
                "dataChange": True,
                "stats": file.statistics,
            }
            for one, file in zip(self.added, self.files, strict=True)
        ]

    def metrics(self) -> dict[str, int]:
        """As Spark's own writer tells the table's history."""
        return {
            "numFiles": len(self.files),
            "numOutputRows": sum(file.records for file in self.files),
            "numOutputBytes": sum(file.size_bytes for file in self.files),
        }
