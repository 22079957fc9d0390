"""Rows of a table by name, brought to the driver a window of offsets at a time, in bounded memory.

The number of rows in a window is chosen before anything is known of them, and their size in files
says little of their real size: a kilobyte may hold a megabyte of blanks. So every row comes with
its size. Its key, value and headers come only if a window full of rows of that size stays within
`MAX_BYTES`. Rows without them are asked for once more, in parts cut by the sizes known by then.
Records of about the same size never need that.

Runs on: driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...values.config import MIB
from ..record_batches import cuts, shaped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: How much a window should bring, judged by the rows of the one before, and how much at most. A
#: single record that is larger comes by itself.
WINDOW_BYTES = 16 * MIB
MAX_BYTES = 4 * WINDOW_BYTES  # records of up to four times the average come at once
WINDOW_ROWS = 256 * 1024
FIRST_WINDOW_ROWS = 4 * 1024  # until the size of records is known
BATCH_BYTES = 16 * MIB

#: A column beside the table's own: a row's bytes that are not of fixed size.
SIZE = "lakelog size"

_SIZES = {
    "key": "coalesce(octet_length(key), 0L)",
    "value": "coalesce(octet_length(value), 0L)",
    "headers": (
        "coalesce(aggregate(headers, 0L, (sum, one) -> sum + 8L + octet_length(one.key) + "
        "coalesce(octet_length(one.value), 0L)), 0L)"
    ),
}
_FIXED_BYTES = 48  # all other columns, and where bytes begin


class Stretch(Struct, frozen=True):
    """Consecutive offsets, and the query for a part of them.

    Args:
        frame: has the wanted columns and ``offset``.
        where: the rows of [start, end), as SQL.
        records: about how many there are in all.
        size_bytes: what they take in files.
    """

    frame: DataFrame
    where: Callable[[int, int], str]
    start: int
    end: int
    records: int
    size_bytes: int

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The schema's columns by offset, in pieces of `BATCH_BYTES` or of one record."""
        rows = max(1, min(FIRST_WINDOW_ROWS, WINDOW_BYTES * self.records // (self.size_bytes or 1)))
        sparsity = max(1, (self.end - self.start) // max(1, self.records))
        at = self.start
        while at < self.end:
            until = min(self.end, at + rows * sparsity)
            most = max(1, min(until - at, self.records))
            found = self._sized(at, until, MAX_BYTES // most)
            if found.num_rows:
                sizes = found[SIZE].to_numpy() + _FIXED_BYTES
                average = int(sizes.sum()) // len(sizes) + 1
                rows = max(1, min(4 * rows, WINDOW_ROWS, WINDOW_BYTES // average))
                yield from self._pieces(found, sizes, MAX_BYTES // most + _FIXED_BYTES, schema)
            at = until

    def _sized(self, start: int, end: int, most_bytes: int) -> pa.Table:
        """The rows with their sizes; rows above `most_bytes` come without their bytes."""
        names = self.frame.columns
        known = [name for name in names if name in _SIZES]
        size = " + ".join(_SIZES[name] for name in known) or "0L"
        rows = self.frame.where(self.where(start, end)).selectExpr("*", f"{size} AS `{SIZE}`")
        small = (
            f"IF(`{SIZE}` <= {most_bytes}, {name}, NULL) AS {name}" if name in known else name
            for name in names
        )
        found: pa.Table = rows.selectExpr(*small, f"`{SIZE}`").toArrow()
        return found.sort_by("offset")

    def _pieces(
        self, found: pa.Table, sizes: np.ndarray, most_bytes: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        for low, high in cuts(sizes, BATCH_BYTES):
            part = found.slice(low, high - low)
            if bool(np.any(sizes[low:high] > most_bytes)):
                offsets = pc.min_max(part["offset"]).as_py()
                where = self.where(offsets["min"], offsets["max"] + 1)
                part = self.frame.where(where).toArrow().sort_by("offset")
            for batch in part.combine_chunks().to_batches():
                yield shaped(batch, schema)
