"""What the log's add actions say of files, as rows of the index. Pure.

A row is made in Python: of ten files, what Arrow's functions cost by the call is ten times as much,
and pyarrow's JSON reader crashes on a line that is no object (26.0: tried), which anybody may write
into a log. `plain_rows` makes the same of many files at a fifth of the time, if all of them are as
lakelog writes them. For the same reason, `index_of` makes no columns of few files.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc
from ..base.arrow_columns import bits, numbers, texts
from ..errors import ContradictionError
from .segment import COLUMNS, OURS, UNKNOWN_TIMESTAMP_MS, OwnFiles, SegmentIndex, no_files

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - UTC; without a zone it takes half the time
_MS = timedelta(milliseconds=1)
_NO_TIME = timedelta()
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


_NOTHING = Statistics()


class _Bounds(Struct, gc=False):
    offset: Any = None
    timestamp: Any = None


#: Bounds, or whatever else somebody wrote there.
_Said = _Bounds | str | int | float | list[Any] | None


class _Stats(Struct, rename="camel", gc=False):
    """As Delta has them; what the index does not go by is passed over, and takes no time."""

    num_records: Any = None
    min_values: _Said = None
    max_values: _Said = None


_stats = msgspec.json.Decoder(_Stats).decode
_NO_BOUNDS = _Bounds()


def statistics_in(text: str | None) -> Statistics:
    """Of a text as Delta has it. What is not written so counts as not said, as in delta-rs."""
    try:
        said = _stats(text) if text else None
    except (ValueError, TypeError, RecursionError):
        return _NOTHING
    if said is None:
        return _NOTHING
    least, largest = said.min_values, said.max_values
    if type(least) is not _Bounds:
        least = _NO_BOUNDS
    if type(largest) is not _Bounds:
        largest = _NO_BOUNDS
    return Statistics(
        _integer(said.num_records),
        _integer(least.offset),
        _integer(largest.offset),
        _time_ms(least.timestamp),
        _time_ms(largest.timestamp),
    )


class AddedFile(NamedTuple):
    """An add action, as far as the index goes by it. Foreign hands may have written any of it."""

    path: Any
    partition: Any  # a whole number, or its text
    segment: Any  # likewise
    size_bytes: Any
    modified_ms: Any
    stats: Any  # text

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
        if type(path) is not str:
            raise _not_written_so(f"a file has the path {path!r}")
        records, first, last, oldest_ms, newest_ms = said
        start = end = None
        found = _named(path)
        if found is not None:
            start, end = int(found["start"]), int(found["end"])
        elif records == 0:
            return None
        elif first is None:
            raise ContradictionError(
                f"{path} was written by somebody else, without statistics on offset, so nothing "
                "says which records it holds. In Spark: ANALYZE TABLE delta.`<path>` COMPUTE DELTA "
                "STATISTICS"
            )
        empty = records == 0
        try:
            if found is not None and first is None and found["kind"] == "archive":
                # A gap lies only before a segment.
                base = _number(self.segment)
                first = base if base in range(int(found["start"]), int(found["end"])) else None
            row = (
                _number(self.partition),
                _number(self.segment),
                path,
                _integer(self.size_bytes),
                -1 if records is None else records,
                first if start is None else start,
                last + 1 if end is None else end,  # type: ignore[operator]
                -1 if oldest_ms is None else oldest_ms,
                -1 if empty else UNKNOWN_TIMESTAMP_MS if newest_ms is None else newest_ms,
                _integer(self.modified_ms),
                start if first is None else first,
                -1 if empty else end - 1 if last is None else last,  # type: ignore[operator]
                start is not None,
            )
        except (TypeError, ValueError) as error:
            raise _not_written_so(f"{path} lacks what every file has ({error})") from None
        if None in row:
            raise _not_written_so(f"{path} has no {COLUMNS.names[row.index(None)]}")
        return row


def rows_of(adds: Sequence[AddedFile]) -> Iterator[Row]:
    """The rows of files.

    Raises:
        ContradictionError: see `AddedFile.row`.
    """
    for add in adds:
        row = add.row(statistics_in(add.stats))
        if row is not None:
            yield row


def index_rows(rows: Sequence[Row]) -> pa.Table:
    """Rows as a table of `COLUMNS`.

    Raises:
        ContradictionError: a number is too large, or a path is no text.
    """
    columns: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    try:
        arrays = [
            _COLUMN_OF[field.type](column) for column, field in zip(columns, COLUMNS, strict=True)
        ]
    except (OverflowError, ValueError) as error:
        raise _not_written_so(f"a file has fields that are no numbers ({error})") from None
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
        raise _not_written_so(f"a file has fields that are no numbers ({error})") from None
    found = dict(zip(_LONGS.values(), longs, strict=True))
    found["partition"] = partition
    return SegmentIndex(OwnFiles(found, columns[_PATH], partial(index_rows, rows)))


#: From here on, Arrow's columns cost less than what they save in memory.
_FEW = 256

_PARTITION, _PATH, _OURS = map(COLUMNS.names.index, ("partition", "path", "ours"))
_LONGS = {at: field.name for at, field in enumerate(COLUMNS) if field.type == pa.int64()}
_ORDER = itemgetter(*map(COLUMNS.names.index, ("partition", "start_offset", "first", "path")))

_COLUMN_OF: Mapping[pa.DataType, Callable[[Sequence[Any]], pa.Array]] = {
    pa.string(): texts,
    pa.int32(): partial(numbers, pa.int32()),
    pa.int64(): partial(numbers, pa.int64()),
    pa.bool_(): bits,
}


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, str) else _integer(value)


_PLAIN_OFFSET = r'"offset":(?P<{0}>\d{{1,18}}),"timestamp":"(?P<{1}>[0-9T:.-]{{23}})Z"'
_PLAIN = (
    r'^\{"numRecords":(?P<records>[1-9]\d{0,17}),'
    rf'"minValues":\{{{_PLAIN_OFFSET.format("first", "oldest")}\}},'
    rf'"maxValues":\{{{_PLAIN_OFFSET.format("last", "newest")}\}},'
    r'"nullCount":\{"offset":0,"timestamp":0\}\}$'
)


def plain_rows(adds: Mapping[str, pa.Array]) -> pa.Table | None:
    """The rows of files, if all are as lakelog writes them, without statistics of value columns.

    Args:
        adds: columns by the fields of `AddedFile`.
    """
    try:
        named = pc.extract_regex(adds["path"], OURS)
        said = pc.extract_regex(adds["stats"], _PLAIN)
        numbers = {name: pc.struct_field(said, name) for name in ("records", "first", "last")}
        numbers |= {name: pc.struct_field(named, name) for name in ("start", "end")}
        numbers |= {name: adds[name] for name in ("partition", "segment")}
        columns = {name: pc.cast(column, pa.int64()) for name, column in numbers.items()}
        oldest, newest = (
            pc.cast(pc.cast(pc.struct_field(said, name), pa.timestamp("ms")), pa.int64())
            for name in ("oldest", "newest")
        )
        found = pa.Table.from_arrays(
            [
                pc.cast(columns["partition"], pa.int32()),
                columns["segment"],
                pc.cast(adds["path"], pa.string()),
                adds["size_bytes"],
                columns["records"],
                columns["start"],
                columns["end"],
                oldest,
                newest,
                adds["modified_ms"],
                columns["first"],
                columns["last"],
                pc.is_valid(named),
            ],
            schema=COLUMNS,
        )
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        return None
    return None if any(column.null_count for column in found.columns) else found


def _integer(value: object) -> int | None:
    return value if type(value) is int and -(2**63) <= value < 2**63 else None


def _time_ms(text: object) -> int | None:
    """None also for what Python does not know: years beyond 9999, parts of microseconds."""
    if type(text) is not str:
        return None
    try:
        if text.endswith("Z"):  # as lakelog, delta-rs and Spark write it
            return (datetime.fromisoformat(text[:-1]) - _EPOCH) // _MS
        at = datetime.fromisoformat(text)
        return (at.replace(tzinfo=None) - (at.utcoffset() or _NO_TIME) - _EPOCH) // _MS
    except (ValueError, TypeError, OverflowError):
        return None


def _not_written_so(what: str) -> ContradictionError:
    return ContradictionError(
        f"the table's log is not what was written: {what}. Somebody changed a file in _delta_log; "
        "put it back from a backup"
    )
