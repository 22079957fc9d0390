"""Makes the rows of a table by name, on executors, for Spark's Delta writer.

Runs on: executor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...engines.spark import spare_imports
from ..change import HotRange, Rewrite, RowsOf
from ..rows import archived_rows, rewritten_rows, with_value_columns
from ..schema import FILE_SCHEMA
from .measures import measured
from .task_errors import TaskErrors


class ArchivedRows(Struct, frozen=True):
    """Copies hot ranges: numbers of ranges in, the table's rows out. Bounded memory.

    With `measured`, each row has one more column, for the range's measure (see `measures`).
    """

    ranges: Sequence[HotRange]
    rows_of: RowsOf
    columns: Sequence[str]  # partition columns and others
    values: pa.Schema  # the columns of them that come from a record's value
    errors: TaskErrors
    measured: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_imports()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = self._rows(self.ranges[number])
                yield from measured(number, rows) if self.measured else rows

    def _rows(self, add: HotRange) -> Iterator[pa.RecordBatch]:
        rows = archived_rows(add, self.rows_of)
        while True:
            try:
                batch = next(rows, None)
            except Exception as error:
                raise self.errors.carried(error) from error
            if batch is None:
                return
            partition = add.topic_partition.partition
            yield table_rows(batch, partition, add.segment, self.columns, self.values)


class RewrittenRows(Struct, frozen=True):
    """Rewrites: takes the rows of all their files, in any order, and gives those that stay."""

    rewrites: Sequence[Rewrite]
    columns: Sequence[str]  # all that the rows have
    values: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_imports()
        for batch in batches:
            partitions = batch.column("partition")
            for number in pc.unique(partitions).to_pylist():
                rows = batch.filter(pc.equal(partitions, number))
                yield from self._of_partition(rows, number)

    def _of_partition(self, rows: pa.RecordBatch, partition: int) -> Iterator[pa.RecordBatch]:
        offsets = rows.column("offset")
        edges = pc.min_max(offsets).as_py()
        for rewrite in self.rewrites:
            start, end = rewrite.start_offset, rewrite.end_offset
            if rewrite.topic_partition.partition != partition:
                continue
            if edges["max"] < start or edges["min"] >= end:
                continue
            inside = pc.and_(pc.greater_equal(offsets, start), pc.less(offsets, end))
            kept = rewritten_rows(rows.filter(inside), rewrite)
            if kept.num_rows:
                yield table_rows(kept, partition, rewrite.segment, self.columns, self.values)


def table_rows(
    rows: pa.RecordBatch, partition: int, segment: int, columns: Sequence[str], values: pa.Schema
) -> pa.RecordBatch:
    """The rows as the table has them: with partition columns and value columns."""
    count = rows.num_rows
    made = {
        "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        "segment": pa.repeat(pa.scalar(segment, pa.int64()), count),
    }
    if len(values):
        table = pa.Table.from_batches([rows.select(FILE_SCHEMA.names)])
        typed = with_value_columns(table, values).combine_chunks().to_batches()[0]
        made |= {name: typed.column(name) for name in values.names}
    arrays = [made[name] if name in made else rows.column(name) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))
