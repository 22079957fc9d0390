"""How far a reader is behind the end of a partition: in records, and in time.

Offsets that no record has (gaps, what compaction removed) do not count, so the lag is what there is
left to read. In time it is the age of the first record that was not read; that record says when it
was made, so it is the caller who reads it, or does not.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..cold.table import ColdTable
from ..values.record import NO_TIMESTAMP_MS
from .record_count import RecordCount, count_records
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
