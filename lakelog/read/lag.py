"""How many records a range of a partition has, and how far a reader is behind its end.

| where                    | counted by                                                       |
|--------------------------|------------------------------------------------------------------|
| hot                      | its offsets: each is a record                                    |
| cold, a file inside      | the file's row count                                             |
| cold, a file at the edge | its offsets where there is a record at each; else, if a table is |
|                          | given, its column of offsets, of the row groups at the edge; else|
|                          | the smaller of its row count and the offsets inside: at most     |
| a gap of hot             | nothing, but for what cold got of it                             |

So the lag is what there is left to read. In time it is the age of the first record that was not
read; that record says when it was made, so it is the caller who reads it, or does not.
`LogOffsets.appended_between` is the other count: of records that were appended, also of those that
compaction removed since.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from ..cold.table import ColdSnapshot, ColdTable
from ..values.record import NO_TIMESTAMP_MS
from .stretches import tiers_between
from .tiers import Look


class Lag(Struct, frozen=True):
    """What is left to read of one partition."""

    records: RecordCount
    age_ms: int | None  # of the first of them; None: there is none, or it has no timestamp


def lag_of(
    look: Look,
    partition: int,
    position: int,
    first_timestamp_ms: Callable[[], int | None],
    now_ms: int,
    table: ColdTable | None = None,
) -> Lag:
    """The lag of a reader whose next offset is `position`.

    Args:
        look: what both tiers said.
        position: below the log start, all that there is has not been read; beyond the log end,
            nothing has been appended that could be.
        first_timestamp_ms: of the first record at or behind the position; asked for only if there
            is something to read.
        now_ms: a clock that goes with the records' timestamps. A record of the future is 0 old.
        table: see `count_records`.

    Raises:
        MissingFileError, ColdTierError: see `count_records`.
    """
    log = look.offsets[partition]
    start = max(position, log.log_start)
    records = count_records(look, partition, start, log.log_end, table)
    if records.records <= 0:
        return Lag(RecordCount(0), None)
    made_ms = first_timestamp_ms()
    if made_ms is None or made_ms == NO_TIMESTAMP_MS:
        return Lag(records, None)
    return Lag(records, max(0, now_ms - made_ms))


class RecordCount(Struct, frozen=True):
    """How many records there are."""

    records: int
    exact: bool = True  # False: at most this many

    def __add__(self, other: RecordCount) -> RecordCount:
        return RecordCount(self.records + other.records, self.exact and other.exact)


def count_records(
    look: Look, partition: int, start: int, end: int, table: ColdTable | None = None
) -> RecordCount:
    """How many records the log has in [start, end).

    Costs a walk over arrays of the segment index, and a read of at most a row group or so at either
    end of the range where that is needed and a table is given.

    Args:
        start, end: offsets; those outside the log do not count.
        table: the cold tier of the look; None: nothing is read.

    Returns:
        The exact count if a table is given or no file is cut by the range; see `RecordCount`.

    Raises:
        MissingFileError: a file is gone since the look: it was rewritten, or expired.
        ColdTierError: the table cannot be read.
    """
    found = RecordCount(0)
    for tier in tiers_between(look.offsets[partition], look.hot[partition], start, end):
        if tier.hot:
            found += RecordCount(tier.end - tier.start)
        else:
            found += _cold(look.cold, partition, tier.start, tier.end, table)
    return found


def _cold(
    cold: ColdSnapshot, partition: int, start: int, end: int, table: ColdTable | None
) -> RecordCount:
    files = cold.files
    rows = files.row_range(partition, start, end)
    first, last, records = (files.numbers(name)[rows] for name in ("first", "last", "records"))
    inside = (start <= first) & (last < end) & (records >= 0)
    found = int(records[inside].sum())
    exact = True
    for row in np.flatnonzero(~inside & (records != 0)).tolist():
        offsets = int(min(end, last[row] + 1) - max(start, first[row]))
        if offsets <= 0:
            continue
        if records[row] == last[row] + 1 - first[row]:
            found += offsets
        elif table is not None:
            file = files.file(files.columns, rows.start + row)
            cut = table.read([file], start, end, ["offset"])
            found += sum(batch.num_rows for batch in cut)
        else:
            found += offsets if records[row] < 0 else min(offsets, int(records[row]))
            exact = False
    return RecordCount(found, exact) if exact else RecordCount(min(found, end - start), exact)
