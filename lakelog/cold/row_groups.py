"""How rows are laid out in a Parquet file of lakelog's: in groups small enough to read one alone.

Runs on: executor (or in process).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

from .schema import ROW_GROUP_BYTES, ROW_GROUP_ROWS


def row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The same rows in tables of at most `ROW_GROUP_ROWS` and about `ROW_GROUP_BYTES`."""
    held: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for piece in chain.from_iterable(map(_cut, batches)):
        if held and (
            rows + piece.num_rows > ROW_GROUP_ROWS or size_bytes + piece.nbytes > ROW_GROUP_BYTES
        ):
            yield pa.Table.from_batches(_taken(held))
            rows = size_bytes = 0
        held.append(piece)
        rows += piece.num_rows
        size_bytes += piece.nbytes
        del piece  # what was given is held by whoever took it alone: it may be huge
        if size_bytes >= ROW_GROUP_BYTES:  # a huge record is written before the next one is read
            yield pa.Table.from_batches(_taken(held))
            rows = size_bytes = 0
    if held:
        yield pa.Table.from_batches(_taken(held))


def _taken(held: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    batches = [*held]
    held.clear()
    return batches


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices small enough to fill row groups well; a single large record stays whole."""
    if batch.num_rows == 0:
        return
    fits = batch.num_rows <= ROW_GROUP_ROWS // 4 and batch.nbytes <= ROW_GROUP_BYTES // 4
    if fits or batch.num_rows == 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _cut(batch.slice(0, half))
    yield from _cut(batch.slice(half))
