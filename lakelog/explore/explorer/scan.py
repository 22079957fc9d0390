"""Searches a bounded part of a log for records that match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from ...config import MIB
from ...errors import InvalidArgumentError
from ...read.stretches import Stretch
from ...read.topic_log import TopicLog
from ...read.where import Where, matching
from ...record import RECORDS
from .opened_topic import likely_start
from .paging import PAGE_BYTES

#: How much one step of a scan reads: a lot, since most of it is dropped at once.
_STEP_BYTES = 4 * MIB

#: Records in the first stretch of a scan backward; the factor by which the next one grows while
#: stretches stay below `_STEP_BYTES`, and shrinks after one above `_LARGEST_BYTES`.
_FIRST_STRETCH, _GROWTH, _SHRINKAGE = 1_024, 4, 32
_LARGEST_BYTES = 32 * MIB

FOUND, AT_THE_EDGE, STOPPED = "found", "edge", "stopped"
TOO_MANY_RECORDS, TOO_MANY_BYTES = "records", "bytes"


@dataclass(frozen=True, slots=True)
class ScanLimit:
    """How much one scan may read before it asks again."""

    records: int = 1_000_000
    bytes: int = 256 * MIB

    def __post_init__(self) -> None:
        for name in ("records", "bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidArgumentError(f"a scan's limit of {name} is a number ≥ 1, not {value}")

    def reached(self, progress: Progress) -> str | None:
        if progress.records >= self.records:
            return TOO_MANY_RECORDS
        return TOO_MANY_BYTES if progress.bytes >= self.bytes else None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a scan has come."""

    records: int  # read
    bytes: int  # of them
    matches: int
    at_offset: int
    share: float  # 0 to 1: of what it may read, or of the whole way if that is shorter


@dataclass(frozen=True, slots=True)
class Scanned:
    """The records that match, and the range in which there are no other matches."""

    records: pa.Table
    start_offset: int
    end_offset: int  # exclusive
    progress: Progress
    ended: str  # found (a page full), edge (of the log), stopped, records, bytes


OnProgress = Callable[[Progress], None]
Stopped = Callable[[], bool]


def scan_forward(
    log: TopicLog,
    partition: int,
    stretches: list[Stretch],
    start: int,
    end: int,
    match: Where,
    records: int,
    *,
    limit: ScanLimit,
    on_progress: OnProgress,
    stopped: Stopped,
) -> Scanned:
    """The first `records` matches of [start, end)."""
    found = _Found(start, _records(stretches, start, end), limit, on_progress)
    if start < end:
        for batch in log.read(partition, start, end, max_bytes=min(_STEP_BYTES, limit.bytes)):
            room = max(0, limit.records - found.read)
            matches = matching(match, batch.slice(0, room), partition)
            page_full = found.rows + matches.num_rows >= records
            matches = matches.slice(0, records - found.rows)
            last = matches if page_full else batch.slice(0, room)
            at = int(last.column("offset")[last.num_rows - 1].as_py()) + 1
            found.add(batch.slice(0, room), matches, at)
            if page_full or found.nbytes > PAGE_BYTES:
                return found.scanned(start, at, FOUND)
            if stopped():
                return found.scanned(start, at, STOPPED)
            if reached := limit.reached(found.progress):
                return found.scanned(start, at, reached)
    return found.scanned(start, max(start, end), AT_THE_EDGE)


def scan_backward(
    log: TopicLog,
    partition: int,
    stretches: list[Stretch],
    log_start: int,
    end: int,
    match: Where,
    records: int,
    *,
    limit: ScanLimit,
    on_progress: OnProgress,
    stopped: Stopped,
) -> Scanned:
    """The last `records` matches of [log start, end), found stretch by stretch from the end."""
    found = _Found(end, _records(stretches, log_start, end), limit, on_progress)
    at, stretch_records = end, min(_FIRST_STRETCH, limit.records)
    while at > log_start:
        start = likely_start(stretches, log_start, at, stretch_records)
        before = found.nbytes_read
        matches: list[pa.RecordBatch] = []
        too_large = False
        for batch in log.read(partition, start, at, max_bytes=min(_STEP_BYTES, limit.bytes)):
            matches.append(matching(match, batch, partition))
            found.read_more(batch)
            if stopped():  # this stretch was read from its start, so its last part is missing
                return found.scanned(at, end, STOPPED)
            too_large = found.nbytes_read - before > _LARGEST_BYTES and stretch_records > 1
            if too_large:
                break
        if too_large:  # its matches might be as large: read a shorter one instead
            stretch_records = max(1, stretch_records // _SHRINKAGE)
            continue
        table = pa.Table.from_batches(matches, schema=RECORDS)
        full = found.rows + table.num_rows >= records
        table = table.slice(max(0, table.num_rows - (records - found.rows)))
        at = int(table["offset"][0].as_py()) if full else start
        found.put_before(table, at)
        if full or found.nbytes > PAGE_BYTES:
            return found.scanned(at, end, FOUND)
        if reached := limit.reached(found.progress):
            return found.scanned(at, end, reached)
        if found.nbytes_read - before < _STEP_BYTES:
            stretch_records *= _GROWTH
        stretch_records = min(stretch_records, limit.records - found.read)
    return found.scanned(min(log_start, end), end, AT_THE_EDGE)


def _records(stretches: list[Stretch], start: int, end: int) -> int:
    return sum(stretch.records_between(start, end) for stretch in stretches)


class _Found:
    """What a scan has read and found so far.

    Args:
        records: the most that the scan may meet.
    """

    def __init__(self, start: int, records: int, limit: ScanLimit, on_progress: OnProgress) -> None:
        self._tables: list[pa.Table] = []
        self._records = max(1, min(records, limit.records))
        self._limit = limit
        self._on_progress = on_progress
        self.rows = self.nbytes = self.read = self.nbytes_read = 0
        self.progress = Progress(0, 0, 0, start, 0.0)

    def read_more(self, batch: pa.RecordBatch) -> None:
        self.read += batch.num_rows
        self.nbytes_read += batch.nbytes

    def add(self, batch: pa.RecordBatch, matches: pa.RecordBatch, at: int) -> None:
        self.read_more(batch)
        self._tables.append(pa.Table.from_batches([matches], schema=RECORDS))
        self._count(matches, at)

    def put_before(self, matches: pa.Table, at: int) -> None:
        self._tables.insert(0, matches)
        self._count(matches, at)

    def _count(self, matches: pa.Table | pa.RecordBatch, at: int) -> None:
        self.rows += matches.num_rows
        self.nbytes += matches.nbytes
        share = max(self.read / self._records, self.nbytes_read / self._limit.bytes)
        self.progress = Progress(self.read, self.nbytes_read, self.rows, at, min(1.0, share))
        self._on_progress(self.progress)

    def scanned(self, start: int, end: int, ended: str) -> Scanned:
        records = pa.concat_tables([RECORDS.empty_table(), *self._tables])
        return Scanned(records, start, end, self.progress, ended)
