"""What add actions say of files: an index of them, and their statistics. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..errors import ContradictionError
from ..values.config import INT32_MAX
from .file_statistics import statistics_text
from .segment import OURS, UNKNOWN_TIMESTAMP_MS, FileColumns, SegmentIndex, no_files


class AddedFile(NamedTuple):
    """An add action, as far as the index goes by it; None: it is not said.

    The last five are of the file's rows, by its statistics.
    """

    path: str
    partition: int | None  # None: somebody else left it out
    segment: int | None  # likewise
    size_bytes: int
    modified_ms: int
    records: int | None = None
    first: int | None = None  # offset
    last: int | None = None  # offset, inclusive
    oldest_ms: int | None = None
    newest_ms: int | None = None


#: Its numbers.
_NUMBERS = (
    *("partition", "segment", "size_bytes", "modified_ms"),
    *("records", "first", "last", "oldest_ms", "newest_ms"),
)

#: The same in the columns that delta-rs gives, flattened. Its times are microseconds.
_OF_ADDS = (
    "partition.partition",
    "partition.segment",
    "size_bytes",
    "modification_time",
    "num_records",
    "min.offset",
    "max.offset",
    "min.timestamp",
    "max.timestamp",
)

_NOT_SAID = -(2**63)

_name = re.compile(OURS).match

_MANY = 1_000


def index_of_adds(adds: pa.Table) -> SegmentIndex:
    """The index of a table's files.

    Args:
        adds: flattened, as delta-rs gives them.

    Raises:
        ContradictionError: see `index_of`.
    """
    if not adds.num_rows:
        return no_files()
    found = dict(zip(_NUMBERS, (_column(adds, name) for name in _OF_ADDS), strict=True))
    for name in ("oldest_ms", "newest_ms"):
        found[name] = np.where(found[name] == _NOT_SAID, _NOT_SAID, found[name] // 1000)
    return _index(adds["path"].to_pylist(), found)


def _column(adds: pa.Table, name: str) -> np.ndarray:
    """A column of numbers; where no file says it, there is none."""
    if name not in adds.column_names:
        return np.full(len(adds), _NOT_SAID, np.int64)
    column = adds[name]
    if column.type != pa.int64():
        column = column.cast(pa.int64())
    if column.null_count:
        column = pc.fill_null(column, _NOT_SAID)
    return np.asarray(column.to_numpy())


def index_of(files: Sequence[AddedFile]) -> SegmentIndex:
    """The index of files in any order: the range of each from its name, the rest from statistics.

    A foreign file has no range in its name. It covers its records and, if it is the first of its
    segment, the offsets before them down to the end of the segment before, since a gap lies only
    there (`SegmentIndex` sees to that). Without records, it stands for nothing.

    Raises:
        ContradictionError: such a file has no statistics on its offsets either, or the log lacks
            what every file has, or a number is too large.
    """
    if not files:
        return no_files()
    paths, *columns = zip(*files, strict=True)
    try:
        numbers = {
            name: np.array([_NOT_SAID if one is None else one for one in column], np.int64)
            for name, column in zip(_NUMBERS, columns, strict=True)
        }
    except (OverflowError, ValueError) as error:
        raise _not_written_so(error) from None
    return _index(paths, numbers)


def _index(paths: Sequence[str], said: Mapping[str, np.ndarray]) -> SegmentIndex:
    ours, is_archive, start, end = _named(paths)
    kept = ours | (said["records"] != 0)
    if not kept.all():
        paths = [path for path, is_kept in zip(paths, kept, strict=True) if is_kept]
        ours, is_archive, start, end = (one[kept] for one in (ours, is_archive, start, end))
        said = {name: column[kept] for name, column in said.items()}
    unplaced = np.flatnonzero((said["partition"] == _NOT_SAID) | (said["segment"] == _NOT_SAID))
    if len(unplaced):
        raise ContradictionError(
            f"{paths[unplaced[0]]} was written by somebody else, and has no partition or no "
            "segment, so nothing says which records it holds. RESTORE the table to the version "
            "before it"
        )
    records, first, last = said["records"], said["first"], said["last"]
    unsaid = np.flatnonzero(~ours & ((first == _NOT_SAID) | (last == _NOT_SAID)))
    if len(unsaid):
        raise ContradictionError(
            f"{paths[unsaid[0]]} was written by somebody else, without statistics on offset, so "
            "nothing says which records it holds. In Spark: ANALYZE TABLE delta.`<path>` COMPUTE "
            "DELTA STATISTICS"
        )
    if int(said["partition"].max(initial=0)) > INT32_MAX:
        raise _not_written_so(f"partition {said['partition'].max()}")
    start, end = np.where(ours, start, first), np.where(ours, end, last + 1)
    segment, is_empty = said["segment"], records == 0
    # A gap lies only before a segment.
    is_base = is_archive & (start <= segment) & (segment < end)
    last = np.where(last == _NOT_SAID, end - 1, last)
    newest_ms = said["newest_ms"]
    newest_ms = np.where(newest_ms == _NOT_SAID, UNKNOWN_TIMESTAMP_MS, newest_ms)
    numbers = {
        "partition": said["partition"],
        "segment": segment,
        "size_bytes": said["size_bytes"],
        "records": np.where(records == _NOT_SAID, -1, records),
        "start_offset": start,
        "end_offset": end,
        "min_timestamp_ms": np.where(said["oldest_ms"] == _NOT_SAID, -1, said["oldest_ms"]),
        "max_timestamp_ms": np.where(is_empty, -1, newest_ms),
        "modified_ms": said["modified_ms"],
        "first": np.where(first == _NOT_SAID, np.where(is_base, segment, start), first),
        "last": np.where(is_empty, -1, last),
    }
    return SegmentIndex(FileColumns(numbers, paths, ours))


def _named(paths: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What names of files say: whether they are lakelog's, and an archive's; start; end."""
    try:
        if len(paths) > _MANY:
            return _named_by_arrow(pa.array(paths, pa.string()))
        "".join(paths).encode()  # as Arrow will want it
        said = np.array([_said(path.rpartition("/")[2]) for path in paths], np.int64)
    except (OverflowError, ValueError) as error:  # somebody made up a name
        raise _not_written_so(error) from None
    ours, is_archive, start, end = said.reshape(-1, 4).T
    return ours == 1, is_archive == 1, start, end


def _said(name: str) -> tuple[int, int, int, int]:
    found = _name(name)
    if found is None:
        return 0, 0, 0, 0
    kind, start, end = found.group("kind", "start", "end")
    return 1, kind == "archive", int(start), int(end)


def _named_by_arrow(
    paths: pa.Array,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same in a quarter of the time, where it is worth importing Arrow's functions."""
    found = pc.extract_regex(paths, OURS)
    ours = pc.is_valid(found)
    kind, *ends = (pc.struct_field(found, name) for name in ("kind", "start", "end"))
    start, end = (pc.if_else(ours, one, "0").cast(pa.int64()).to_numpy() for one in ends)
    is_archive = pc.and_kleene(ours, pc.equal(kind, "archive"))
    return *(one.to_numpy(zero_copy_only=False) for one in (ours, is_archive)), start, end


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


def _not_written_so(error: object) -> ContradictionError:
    return ContradictionError(
        f"the table's log is not what was written: a file has numbers that are too large ({error})."
        " Somebody changed a file in _delta_log; put it back from a backup"
    )
