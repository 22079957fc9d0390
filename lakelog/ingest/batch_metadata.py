"""Where the records of a bulk append went, and what became of those that were not written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..base.text_table import counted
from ..values.record import RecordMetadata


class BatchMetadata(Sequence[RecordMetadata]):
    """The `RecordMetadata` of each record of a batch, in input order, made on access."""

    def __init__(
        self, topic: str, partitions: np.ndarray, offsets: np.ndarray, timestamps_ms: np.ndarray
    ) -> None:
        self.topic = topic
        self._partitions = partitions
        self._offsets = offsets
        self._timestamps_ms = timestamps_ms

    def to_arrow(self) -> pa.Table:
        """A row for each record: ``partition`` int32, ``offset`` int64, ``timestamp_ms`` int64."""
        return pa.table(
            {
                "partition": pa.array(self._partitions, pa.int32()),
                "offset": pa.array(self._offsets, pa.int64()),
                "timestamp_ms": pa.array(self._timestamps_ms, pa.int64()),
            }
        )

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> RecordMetadata: ...
    @overload
    def __getitem__(self, index: slice) -> BatchMetadata: ...
    def __getitem__(self, index: int | slice) -> RecordMetadata | BatchMetadata:
        columns = (self._partitions, self._offsets, self._timestamps_ms)
        if isinstance(index, slice):
            return BatchMetadata(self.topic, *(column[index] for column in columns))
        return RecordMetadata(self.topic, *(int(column[index]) for column in columns))

    def __repr__(self) -> str:
        ends = f"{self[0]} … {self[-1]}" if len(self) else ""
        return f"<BatchMetadata of {counted(len(self), 'record')}: {ends}>"


class BatchOutcome(Struct, frozen=True):
    """The rows of a batch by their fate; ``error.batch`` of what `Producer.send_batch` raises."""

    written: int  # records that are in the log
    not_written_rows: pa.Array  # row numbers that are surely not in the log, ascending
    unknown_rows: pa.Array  # row numbers that may or may not be in the log, ascending

    @property
    def not_written(self) -> int:
        return len(self.not_written_rows)

    @property
    def unknown(self) -> int:
        return len(self.unknown_rows)
