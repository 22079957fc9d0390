"""The rows that go into a topic's table, of either kind: checked as they pass, cut into row groups.

Runs on: executor (or in process).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NoReturn

import pyarrow as pa

from ..base import compute as pc
from ..codec.value_columns import columns_of
from ..errors import ContradictionError
from ..values.record import RECORDS
from .change import HotRange, Rewrite, RowsOf
from .offset_set import OffsetSet
from .scan import Tombstones
from .schema import FILE_SCHEMA, ROW_GROUP_BYTES, ROW_GROUP_ROWS


def archived_rows(
    add: HotRange, rows_of: RowsOf, tally: RowTally | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a hot range as the table's files have them: `FILE_SCHEMA`, each record once.

    Args:
        tally: counts the rows; default: a new one.

    Raises (while iterating):
        ContradictionError: the offsets are not ascending within the range, or it lacks a record:
            the first one, those in between, or the last. What came before must not be committed.
    """
    tally = tally or RowTally(add)
    yield from tally.count(map(_with_horizon, rows_of(add)))
    tally.check_end()


def _with_horizon(batch: pa.RecordBatch) -> pa.RecordBatch:
    horizon = pa.nulls(batch.num_rows, FILE_SCHEMA.field("delete_horizon").type)
    columns = [batch.column(name) for name in RECORDS.names]
    return pa.RecordBatch.from_arrays([*columns, horizon], schema=FILE_SCHEMA)


def rewritten_rows(batch: pa.RecordBatch, rewrite: Rewrite) -> pa.RecordBatch:
    """The rows that a rewrite keeps of its files; `FILE_SCHEMA`'s columns, perhaps others."""
    if rewrite.without is not None:
        batch = batch.filter(pc.invert(rewrite.without.contains(batch.column("offset"))))
    if rewrite.nulled is not None and len(rewrite.nulled):
        batch = _nulled(batch, rewrite.nulled)
    if rewrite.delete_horizon_ms is not None:
        batch = _set_horizon(batch, rewrite.delete_horizon_ms)
    return batch


def _nulled(batch: pa.RecordBatch, offsets: OffsetSet) -> pa.RecordBatch:
    """Some rows as if they had been appended without key, value and headers."""
    hit = offsets.contains(batch.column("offset"))
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    empty: dict[str, object] = {"key": None, "value": None, "headers": [], "delete_horizon": None}
    for name, nothing in empty.items():
        kind = columns[name].type
        columns[name] = pc.if_else(hit, pa.scalar(nothing, kind), columns[name])
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _set_horizon(batch: pa.RecordBatch, horizon_ms: int) -> pa.RecordBatch:
    """Each tombstone without a horizon gets this one."""
    horizons = batch.column("delete_horizon")
    new = pa.scalar(horizon_ms * 1000, pa.int64()).cast(horizons.type)
    fresh = pc.and_(pc.is_null(batch.column("value")), pc.is_null(horizons))
    at = batch.schema.get_field_index("delete_horizon")
    columns = batch.columns
    columns[at] = pc.if_else(fresh, new, horizons)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def with_value_columns(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows with their value columns.

    Args:
        columns: from `value_columns`, not empty.
    """
    made = columns_of(rows["value"], columns)
    for field, column in zip(columns, made.columns, strict=True):
        rows = rows.append_column(field, column)
    return rows


class RowTally:
    """Checks the rows of one addition as they pass, and remembers what they span."""

    def __init__(self, add: HotRange | Rewrite) -> None:
        self.add = add
        self.records = 0
        self.unparsed = 0  # records with a value_error, counted by whoever makes the columns
        self.first = -1  # offset of the first record
        self.last = add.start_offset - 1
        self.min_us: int | None = None
        self.max_us: int | None = None
        self.tombstones = Tombstones()

    def count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same rows, once they are checked; no empty batch.

        Raises (while iterating):
            ContradictionError: see `archived_rows`.
        """
        for batch in batches:
            if batch.num_rows:
                self._count(batch)
                yield batch
            del batch  # it may be huge, and the next one is asked for

    def _count(self, batch: pa.RecordBatch) -> None:
        offsets = batch.column("offset")
        first, last = offsets[0].as_py(), offsets[-1].as_py()
        ascending = pc.all(pc.less(offsets[:-1], offsets[1:])).as_py() is not False
        if not ascending or first <= self.last or last >= self.add.end_offset:
            self._refuse(f"offsets {first} … {last} after {self.last} are out of order or range")
        if isinstance(self.add, HotRange):
            # A gap lies only before a segment: within one, each offset has its record.
            expected = self.last + 1 if self.records else max(self.last + 1, self.add.segment)
            if first != expected or last - first + 1 != batch.num_rows:
                self._refuse(f"the records after {self.last} are not dense from {expected} on")
        self.tombstones += Tombstones.of(batch)
        if not self.records:
            self.first = first
        self.last = last
        self.records += batch.num_rows
        edges = pc.min_max(pc.cast(batch.column("timestamp"), pa.int64())).as_py()
        self.min_us = edges["min"] if self.min_us is None else min(self.min_us, edges["min"])
        self.max_us = edges["max"] if self.max_us is None else max(self.max_us, edges["max"])

    def check_end(self) -> None:
        """Raises ContradictionError if the range goes on after the last row."""
        if isinstance(self.add, HotRange) and self.last != self.add.end_offset - 1:
            self._refuse(f"the last record is {self.last}; no archived range ends in a gap")

    def _refuse(self, what: str) -> NoReturn:
        raise ContradictionError(
            f"{self.add.topic_partition} [{self.add.start_offset}, {self.add.end_offset}) of "
            f"segment {self.add.segment} is not written: {what}. Nothing was committed",
            topic_partition=self.add.topic_partition,
        )


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
