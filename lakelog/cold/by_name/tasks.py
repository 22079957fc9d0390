"""What Spark's tasks do with rows of a table by name: make them for Delta's writer, and read them.

Spark gives a task its rows once, in a stream; a function like the search for superseded records
goes over them several times. So they are written to a file on the executor's own disk as they come,
and read back as often as needed, in bounded memory.

Runs on: executor.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from msgspec import Struct

from ...base import compute as pc
from ...engines.spark import outcome_of, spare_imports
from ...values.topic_partition import OffsetRange
from ..change import HotRange, Rewrite, RowsOf
from ..record_batches import projection, shaped
from ..rows import archived_rows, rewritten_rows, with_value_columns
from ..scan import Tombstones
from ..schema import FILE_SCHEMA
from ..segment import SegmentFile
from .spark_errors import TaskErrors


class ArchivedRows(Struct, frozen=True):
    """Copies hot ranges: numbers of tasks in, the table's rows out. Bounded memory."""

    tasks: Sequence[Sequence[HotRange]]
    rows_of: RowsOf
    columns: Sequence[str]  # partition columns and others
    values: pa.Schema  # the columns of them that come from a record's value
    errors: TaskErrors

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_imports()
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for add in self.tasks[number]:
                    yield from self._rows(add)

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


#: A column: whether a record's value is null. It shows tombstones without reading any value.
TOMBSTONE = "tombstone"

OUTCOMES = "number long, outcome binary"


class Mapped(Struct, frozen=True):
    """Runs a function over tasks where the rows of their partitions are: rows in, outcomes out.

    The rows of a partition come together, by offset.
    """

    function: bytes
    tasks: Mapping[int, Sequence[tuple[int, bytes]]]  # by partition: numbers and pickled tasks
    columns: Sequence[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_imports()
        for partition, pieces in groupby(
            pieces_by("partition", batches), key=lambda piece: piece[0]
        ):
            rows = (batch.select([*self.columns, TOMBSTONE]) for _, batch in pieces)
            with SpooledRows(rows, self.columns) as reader:
                yield from outcomes(self.function, self.tasks[partition], reader)


def outcomes(
    function: bytes, tasks: Iterable[tuple[int, bytes]], reader: SpooledRows
) -> Iterator[pa.RecordBatch]:
    """``function(reader, task)`` for each task, as rows of `OUTCOMES`."""
    call: Callable[[SpooledRows, Any], Any] = pickle.loads(function)
    for number, pickled in tasks:
        task = pickle.loads(pickled)
        content = outcome_of(lambda task=task: call(reader, task))  # type: ignore[misc]
        yield pa.RecordBatch.from_arrays(
            [pa.array([number], pa.int64()), pa.array([content])], ["number", "outcome"]
        )


@dataclass
class SpooledRows(AbstractContextManager["SpooledRows"]):
    """A `RowReader` over rows in offset order, kept in a file of its own while it is open."""

    rows: Iterable[pa.RecordBatch]
    columns: Sequence[str]
    _edges: list[tuple[int, int]] = field(default_factory=list)  # offsets of each batch, inclusive

    def __enter__(self) -> SpooledRows:
        self._folder = tempfile.TemporaryDirectory(prefix="lakelog-spool-")
        path = str(Path(self._folder.name) / "rows.arrow")
        writer = None
        for batch in self.rows:
            if writer is None:
                writer = pa.ipc.new_file(path, batch.schema)
            offsets = batch.column("offset")
            self._edges.append((offsets[0].as_py(), offsets[-1].as_py()))
            writer.write_batch(batch)
        self._source: Any = None
        self._reader: Any = None
        if writer is not None:
            writer.close()
            self._source = pa.memory_map(path)
            self._reader = pa.ipc.open_file(self._source)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._reader = None
        if self._source is not None:
            self._source.close()
        self._folder.cleanup()

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        schema = projection(columns or self.columns)
        for batch in self._between(files, start, end):
            yield shaped(batch, schema)

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        """See `RowReader.with_keys`: the rows are here, and reading is all there is to do."""
        return [OffsetRange(start, end)]

    def tombstones(self, file: SegmentFile) -> Tombstones:
        found = Tombstones()
        for batch in self._between([file], file.start_offset, file.end_offset):
            dead = batch.filter(batch.column(TOMBSTONE))
            horizons = dead.column("delete_horizon").cast(pa.timestamp("us", "UTC"))
            earliest_us = pc.min(horizons.cast(pa.int64())).as_py()
            found += Tombstones(
                horizons.null_count, None if earliest_us is None else earliest_us // 1000
            )
        return found

    def _between(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Iterator[pa.RecordBatch]:
        for file in sorted(files, key=lambda file: file.start_offset):
            low, high = max(start, file.start_offset), min(end, file.end_offset)
            for number, (first, last) in enumerate(self._edges):
                if last < low or first >= high:
                    continue
                batch = self._reader.get_batch(number)
                if first < low or last >= high:
                    offsets = batch.column("offset")
                    inside = pc.and_(pc.greater_equal(offsets, low), pc.less(offsets, high))
                    batch = batch.filter(inside)
                if batch.num_rows:
                    yield batch


def pieces_by(
    column: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Each batch in pieces of one number in a column, in order."""
    for batch in batches:
        if not batch.num_rows:
            continue
        numbers = batch.column(column).to_numpy()
        cuts = (numbers[1:] != numbers[:-1]).nonzero()[0] + 1
        edges = [0, *cuts.tolist(), batch.num_rows]
        for low, high in pairwise(edges):
            yield int(numbers[low]), batch.slice(low, high - low)
