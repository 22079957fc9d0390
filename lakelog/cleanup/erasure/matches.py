"""Finding the records of a file that are to be erased: its Bloom filters, its keys, its rows.

Runs on: executor (or in process).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...cold.offset_set import OffsetSet
from ...cold.segment import SegmentFile
from ...cold.table import RowReader
from ...errors import CorruptRecordError, MissingFileError
from ...values.topic_partition import OffsetRange
from .condition import Condition


class MatchSearch(Struct, frozen=True):
    """One task: a file, and what is looked for in it."""

    file: SegmentFile
    condition: Condition
    last_offset: int = -1  # of the partition: its record stays, and may have been erased before

    @property
    def size_bytes(self) -> int:
        """Bytes of the file."""
        return self.file.size_bytes


class Matches(Struct, frozen=True, eq=False):
    """What was found in a file; of one that cannot be read, why."""

    file: SegmentFile
    offsets: OffsetSet
    error: MissingFileError | CorruptRecordError | None = None

    def __bool__(self) -> bool:
        return len(self.offsets) > 0


def find_matches(reader: RowReader, search: MatchSearch) -> Matches:
    """The records of a file that match. Bounded memory, but for about a bit for each match."""
    file = search.file
    found = [np.empty(0, np.int64)]
    try:
        for stretch in _stretches(reader, search):
            rows = reader.read([file], stretch.start, stretch.end, search.condition.columns)
            for batch in rows:
                mask = search.condition.holds(batch, file.partition)
                offsets = batch.column("offset").to_numpy(zero_copy_only=False)
                mask &= ~_erased(batch, offsets, search.last_offset)
                found.append(offsets[mask])
    except (MissingFileError, CorruptRecordError) as error:
        return Matches(file, OffsetSet.of(()), error)
    return Matches(file, OffsetSet.of(np.concatenate(found)))


def _stretches(reader: RowReader, search: MatchSearch) -> Sequence[OffsetRange]:
    file, keys = search.file, search.condition.keys
    if keys is None:
        return [OffsetRange(file.start_offset, file.end_offset)]
    return reader.with_keys([file], file.start_offset, file.end_offset, keys)


def _erased(batch: pa.RecordBatch, offsets: np.ndarray, last_offset: int) -> np.ndarray:
    """Whether a row is the partition's last record and has nothing left to erase."""
    at = np.flatnonzero(offsets == last_offset)
    mask = np.zeros(len(offsets), np.bool_)
    for row in at.tolist():
        one = batch.slice(row, 1)
        empty = [
            name not in batch.schema.names or one.column(name).null_count == 1
            for name in ("key", "value")
        ]
        headers = (
            "headers" not in batch.schema.names
            or not pc.list_value_length(one.column("headers"))[0].as_py()
        )
        mask[row] = all(empty) and headers
    return mask
