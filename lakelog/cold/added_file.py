"""What add actions say of files, as delta-rs has them: rows of the index, and statistics. Pure.

Of few files, rows are made in Python: what Arrow's functions cost by the call is ten times as much.
Of many, `index_of_adds` makes columns of columns, at a fifth of the time, where all is said of a
file that lakelog wrote. For the same reason, `index_of` makes no columns of few files.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..base.arrow_columns import bits, numbers, texts
from ..errors import ContradictionError
from .file_statistics import statistics_text
from .segment import COLUMNS, OURS, UNKNOWN_TIMESTAMP_MS, OwnFiles, SegmentIndex, no_files

_named = re.compile(OURS).search

#: A row of `COLUMNS`.
Row = tuple[Any, ...]


class Statistics(NamedTuple):
    """Of the rows of a file; None: not said."""

    records: int | None = None
    first: int | None = None  # offset
    last: int | None = None  # offset, inclusive
    oldest_ms: int | None = None
    newest_ms: int | None = None


class AddedFile(NamedTuple):
    """An add action, as far as the index goes by it, beside its statistics."""

    path: str
    partition: int | None  # None: somebody else left it out
    segment: int | None  # likewise
    size_bytes: int
    modified_ms: int

    def row(self, said: Statistics) -> Row | None:
        """The row of the file: its range from its name, the rest from statistics.

        A foreign file has no range in its name. It covers its records and, if it is the first of
        its segment, the offsets before them down to the end of the segment before, since a gap lies
        only there (`SegmentIndex` sees to that).

        Args:
            said: by its statistics.

        Returns:
            None for a foreign file without records, which stands for nothing.

        Raises:
            ContradictionError: such a file has no statistics on its offsets either, or the log
                lacks what every file has.
        """
        path = self.path
        records, first, last, oldest_ms, newest_ms = said
        found = _named(path)
        empty = records == 0
        if found is None and empty:
            return None
        if self.partition is None or self.segment is None:
            raise ContradictionError(
                f"{path} was written by somebody else, and has no partition or no segment, so "
                "nothing says which records it holds. RESTORE the table to the version before it"
            )
        if found is not None:
            start, end = int(found["start"]), int(found["end"])
            if first is None:
                # A gap lies only before a segment.
                is_base = found["kind"] == "archive" and self.segment in range(start, end)
                first = self.segment if is_base else start
        elif first is None or last is None:
            raise ContradictionError(
                f"{path} was written by somebody else, without statistics on offset, so nothing "
                "says which records it holds. In Spark: ANALYZE TABLE delta.`<path>` COMPUTE DELTA "
                "STATISTICS"
            )
        else:
            start, end = first, last + 1
        return (
            self.partition,
            self.segment,
            path,
            self.size_bytes,
            -1 if records is None else records,
            start,
            end,
            -1 if oldest_ms is None else oldest_ms,
            -1 if empty else UNKNOWN_TIMESTAMP_MS if newest_ms is None else newest_ms,
            self.modified_ms,
            first,
            -1 if empty else end - 1 if last is None else last,
            found is not None,
        )


#: From here on, Arrow's columns cost less than what they save in memory.
_FEW = 256

#: The columns of add actions by the fields of `AddedFile`, and by those of `Statistics`.
_OF_FILE = ("path", "partition.partition", "partition.segment", "size_bytes", "modification_time")
_OF_ROWS = ("num_records", "min.offset", "max.offset", "min.timestamp", "max.timestamp")


def index_of_adds(adds: pa.Table) -> SegmentIndex:
    """The index of a table's files.

    Args:
        adds: flattened, as delta-rs gives them.

    Raises:
        ContradictionError: see `AddedFile.row`.
    """
    if adds.num_rows > _FEW:
        with suppress(pa.ArrowInvalid):  # somebody made up a name; the rows tell of it
            plain, others = _plain_rows(adds)
            return SegmentIndex(pa.concat_tables([plain, index_rows(_rows(others))]))
    return index_of(_rows(adds))


def _rows(adds: pa.Table) -> list[Row]:
    files, said = (
        zip(*(_column(adds, name).to_pylist() for name in names), strict=True)
        for names in (_OF_FILE, _OF_ROWS)
    )
    rows = (
        AddedFile(*file).row(
            Statistics(records, first, last, _milliseconds(oldest), _milliseconds(newest))
        )
        for file, (records, first, last, oldest, newest) in zip(files, said, strict=True)
    )
    return [row for row in rows if row is not None]


def _column(adds: pa.Table, name: str) -> pa.ChunkedArray:
    """A column; of nothing if no file says it. Times are microseconds."""
    if name not in adds.column_names:
        return pa.chunked_array([pa.nulls(len(adds), pa.int64())])
    column = adds[name]
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _milliseconds(time_us: int | None) -> int | None:
    return None if time_us is None else time_us // 1000


def _plain_rows(adds: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of the files that lakelog wrote and of which all is said, and the other files."""
    named = pc.extract_regex(adds["path"], OURS)
    is_plain = pc.is_valid(named)
    for name in _OF_ROWS:
        is_plain = pc.and_(is_plain, pc.is_valid(_column(adds, name)))
    others, adds = adds.filter(pc.invert(is_plain)), adds.filter(is_plain)
    named = named.filter(is_plain)
    start, end = (pc.cast(pc.struct_field(named, name), pa.int64()) for name in ("start", "end"))
    path, partition, segment, size_bytes, modified_ms = (_column(adds, one) for one in _OF_FILE)
    records, first, last, *times = (_column(adds, one) for one in _OF_ROWS)
    oldest_ms, newest_ms = (pa.array(time.to_numpy() // 1000, pa.int64()) for time in times)
    columns = [partition, segment, path, size_bytes, records, start, end, oldest_ms, newest_ms]
    columns += [modified_ms, first, last, pc.is_valid(named)]
    return pa.Table.from_arrays(columns, schema=COLUMNS), others


def index_rows(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table of `COLUMNS`.

    Raises:
        ContradictionError: a number is too large.
    """
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    try:
        arrays = [
            _COLUMN_OF[field.type](column) for column, field in zip(columns, COLUMNS, strict=True)
        ]
    except (OverflowError, ValueError) as error:
        raise _not_written_so(error) from None
    return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)])


def index_of(rows: Sequence[Row]) -> SegmentIndex:
    """The index of files by their rows, which may come in any order.

    Raises:
        ContradictionError: see `index_rows`.
    """
    if not rows:
        return no_files()
    if len(rows) > _FEW or not all(row[_OURS] for row in rows):
        return SegmentIndex(index_rows(rows))
    rows = sorted(rows, key=_ORDER)
    columns = list(zip(*rows, strict=True))
    try:
        longs = np.array([columns[at] for at in _LONGS], np.int64)
        partition = np.frombuffer(array("i", columns[_PARTITION]), np.int32)
        "".join(columns[_PATH]).encode()  # as Arrow will want it
    except (OverflowError, ValueError) as error:
        raise _not_written_so(error) from None
    found = dict(zip(_LONGS.values(), longs, strict=True))
    found["partition"] = partition
    return SegmentIndex(OwnFiles(found, columns[_PATH], partial(index_rows, rows)))


_PARTITION, _PATH, _OURS = map(COLUMNS.names.index, ("partition", "path", "ours"))
_LONGS = {at: field.name for at, field in enumerate(COLUMNS) if field.type == pa.int64()}
_ORDER = itemgetter(*map(COLUMNS.names.index, ("partition", "start_offset", "first", "path")))

_COLUMN_OF: Mapping[pa.DataType, Callable[[Sequence[Any]], pa.Array]] = {
    pa.string(): texts,
    pa.int32(): partial(numbers, pa.int32()),
    pa.int64(): partial(numbers, pa.int64()),
    pa.bool_(): bits,
}


def statistics_of(adds: pa.Table) -> dict[str, str]:
    """What add actions say of each file's rows, by path: JSON text, as Delta has it.

    Args:
        adds: flattened, as delta-rs gives them.
    """
    found: dict[str, str] = {}
    for row in adds.to_pylist():
        values: dict[str, dict[str, Any]] = {"min": {}, "max": {}, "null_count": {}}
        for name, value in row.items():
            of, _, column = name.partition(".")
            if of in values and value is not None:
                values[of][column] = value
        found[row["path"]] = statistics_text(row["num_records"], *values.values())
    return found


def _not_written_so(error: Exception) -> ContradictionError:
    return ContradictionError(
        f"the table's log is not what was written: a file has numbers that are too large ({error})."
        " Somebody changed a file in _delta_log; put it back from a backup"
    )
