"""The segments of a topic in either tier, and a look into their entries and Parquet files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator

import pyarrow as pa
from msgspec import Struct

from ..cold.parquet.file_scan import scan_file
from ..cold.scan import FileScan, ScanTask
from ..cold.segment import UNKNOWN_TIMESTAMP_MS
from ..cold.table import ColdSnapshot
from ..errors import InvalidArgumentError
from ..hot.inspection import HotLook, Inspection, StoredEntry
from ..read.tiers import check_is_there
from ..read.topic_log import TopicLog
from ..values.producer_calls import ProducerCall
from ..values.record import MAX_OFFSET, Record, RecordRows
from ..values.topic_partition import OffsetRange, TopicPartition
from .check.finding import COLD, HOT, TIERS

OPEN, CLOSED, CLEANED, DIRTY = "open", "closed", "cleaned", "dirty"
BELOW_LOG_START = "below log start"

#: Files whose footers are read in one go.
_LOT = 16


class SegmentRow(Struct, frozen=True):
    """One segment in one tier."""

    topic_partition: TopicPartition
    tier: str  # hot or cold
    base_offset: int
    end_offset: int  # exclusive
    records: int  # that it holds, without trimmed or compacted ones
    size_bytes: int  # hot: without what was trimmed, by its share of the offsets
    files: int | None  # cold
    first_timestamp_ms: int | None  # hot: its first entry's largest; cold: the smallest; -1: none
    max_timestamp_ms: int | None  # -1: none; None: not known
    state: str  # open, closed; cleaned or dirty where the topic is compacted; below log start
    appended_bytes: int | None = None  # hot: of the whole segment, with what was trimmed


def tiers_of(log: TopicLog) -> tuple[str, ...]:
    """The tiers that can be looked into: only cold, if the log was opened without a Redis."""
    return (COLD,) if log.redis is None else TIERS


def inspection_of(log: TopicLog) -> Inspection:
    """The inspection of the hot tier.

    Raises:
        InvalidArgumentError: the log was opened without a Redis.
    """
    if log.redis is None:
        raise InvalidArgumentError(
            f"the hot tier of topic {log.topic.name!r} was asked for, but the log was opened "
            "without a Redis; name one, or ask for the cold tier alone",
            topic=log.topic.name,
        )
    return log.redis.inspection()


def segments(
    log: TopicLog,
    partitions: Iterable[int] | None = None,
    *,
    tiers: Collection[str] | None = None,
) -> list[SegmentRow]:
    """One row for each segment and tier, by partition and offset; reads no records.

    A damaged table or ``:state`` is listed as far as it can be read; `verify` says what is wrong.

    Args:
        partitions: numbers; None for all.
        tiers: ``hot``, ``cold`` or both; None for those that the log has.

    Raises:
        InvalidArgumentError: the hot tier is asked for, but the log has none.
        ArchivedElsewhereError: the cold tier is asked for, and its table is away.
    """
    tiers = tiers_of(log) if tiers is None else tiers
    numbers = list(range(log.topic.partitions) if partitions is None else partitions)
    asked = [log.topic.partition(number) for number in numbers]
    looks = {}
    if HOT in tiers:
        inspection = inspection_of(log)
        looks = {tp: inspection.look(tp, log.topic.topic_id) for tp in asked}
    cold = None
    if log.table is not None and COLD in tiers:
        cold = log.table.unchecked()
        check_is_there(log.topic, log.hot, log.table, cold)
    rows: list[SegmentRow] = []
    for tp in asked:
        if cold is not None:
            rows += _cold_rows(log, cold, tp)
        if tp in looks:
            rows += _hot_rows(looks[tp])
    return rows


def _hot_rows(look: HotLook) -> Iterator[SegmentRow]:
    start = look.number("local_log_start") or 0
    newest = look.segments[-1].base_offset if look.segments else 0
    for segment in look.segments:
        is_open = segment.base_offset == newest
        if not is_open and segment.end_offset <= start:
            continue  # all of it was trimmed while it was open; the next trim drops it
        yield SegmentRow(
            look.topic_partition,
            HOT,
            segment.base_offset,
            segment.end_offset,
            max(0, segment.end_offset - max(segment.base_offset, start)),
            segment.bytes_from(start),
            None,
            segment.first_timestamp_ms,
            segment.max_timestamp_ms,
            OPEN if is_open else CLOSED,
            segment.size_bytes,
        )


def _cold_rows(
    log: TopicLog, cold: ColdSnapshot, topic_partition: TopicPartition
) -> Iterator[SegmentRow]:
    partition = topic_partition.partition
    found = cold.files.segments(partition)
    for segment in found:
        if segment.end_offset <= cold.log_start(partition):
            state = BELOW_LOG_START
        elif segment is found[-1]:
            state = OPEN
        elif segment.end_offset <= cold.cleaned_end(partition):
            state = CLEANED
        else:
            state = DIRTY if log.topic.config.compacted else CLOSED
        newest = segment.max_timestamp_ms
        yield SegmentRow(
            topic_partition,
            COLD,
            segment.base_offset,
            segment.end_offset,
            segment.records,
            segment.size_bytes,
            len(segment.files),
            segment.min_timestamp_ms,
            None if newest == UNKNOWN_TIMESTAMP_MS else newest,
            state,
        )


# -- inside ------------------------------------------------------------------------------------


class EntryRow(Struct, frozen=True):
    """One hot entry."""

    entry: StoredEntry
    segment: int | None  # base offset; None: in no segment, like a gap entry
    call: ProducerCall | None  # the call that wrote it, as long as Redis knows
    base_sequence: int | None  # of its first record, likewise


class EntryRows(Struct, frozen=True):
    """Some consecutive entries, and their records."""

    rows: tuple[EntryRow, ...]
    records: pa.RecordBatch  # of those that are sound


def dump_hot(
    log: TopicLog, partition: int, start_offset: int = 0, end_offset: int | None = None
) -> Iterator[EntryRows]:
    """The entries of [start, end), beginning with the one that holds the start.

    An entry does not say who wrote it. That is known only for the last five calls of each producer
    that Redis still remembers (``producer.id.expiration.ms``; a recovery forgets all).
    """
    topic_partition = log.topic.partition(partition)
    inspection = inspection_of(log)
    look = inspection.look(topic_partition, log.topic.topic_id)
    calls = inspection.producer_calls(topic_partition, start_offset)
    starts = [call.base_offset for call in calls]
    bases = [segment.base_offset for segment in look.segments]

    def row(entry: StoredEntry) -> EntryRow:
        if entry.base_offset is None or entry.format == "gap":
            return EntryRow(entry, None, None, None)
        at = bisect_right(bases, entry.base_offset) - 1
        by = bisect_right(starts, entry.base_offset) - 1
        call = calls[by] if by >= 0 and entry.end_offset <= calls[by].end_offset else None
        sequence = None if call is None else call.sequence(entry.base_offset)
        return EntryRow(entry, bases[at] if at >= 0 else None, call, sequence)

    limit = MAX_OFFSET if end_offset is None else end_offset
    for page in inspection.pages(topic_partition, log.topic.topic_id, start_offset):
        inside = [e for e in page.entries if e.base_offset is None or e.base_offset < limit]
        if inside:
            rows = tuple(row(entry) for entry in inside)
            records = page.records.filter(
                pa.compute.less(page.records.column("offset"), pa.scalar(limit, pa.int64()))
            )
            yield EntryRows(rows, records)
        if len(inside) < len(page.entries):
            return


def dump_cold(
    log: TopicLog, partition: int, start_offset: int = 0, end_offset: int | None = None
) -> Iterator[FileScan]:
    """The files with records of [start, end), in offset order: what the footer of each says, and
    what its offsets and timestamps are. A damaged or missing file carries its flaw.
    """
    if log.table is None:
        return
    log.topic.partition(partition)
    limit = MAX_OFFSET if end_offset is None else end_offset
    files = [
        file
        for file in log.table.data_files(partition)
        if file.end_offset > start_offset and file.start_offset < limit
    ]
    for at in range(0, len(files), _LOT):
        lot = files[at : at + _LOT]
        tasks = [ScanTask(file, whole=False) for file in lot]
        found = log.table.map(scan_file, tasks, files_of=lambda task: [task.file], columns=None)
        scans = {scan.file.path: scan for scan in found}
        yield from (scans[file.path] for file in lot)


def cold_records(
    log: TopicLog, scan: FileScan, start_offset: int, end_offset: int | None
) -> Iterator[Record]:
    """The records of a file within [start, end), by offset."""
    if log.table is None:
        return
    tp = log.topic.partition(scan.file.partition)
    end = MAX_OFFSET if end_offset is None else end_offset
    files = [scan.file]
    index = log.table.unchecked().files
    if index.missing([scan.file.path]):  # of a table by name, whose index has slices
        if scan.found.first_offset is None or scan.found.last_offset is None:
            return
        start_offset = max(start_offset, scan.found.first_offset)
        end = min(end, scan.found.last_offset + 1)
        files = index.files_between(scan.file.partition, start_offset, end)
    for batch in log.table.read(files, start_offset, end):
        for part in RecordRows.of(tp, batch).in_parts():
            yield from part


def segment_range(log: TopicLog, partition: int, base_offset: int) -> OffsetRange:
    """The offsets of the segment that begins there, in either tier.

    Raises:
        InvalidArgumentError: no segment begins there; the message names some that exist.
    """
    bases = sorted({row.base_offset for row in segments(log, [partition])})
    if base_offset not in bases:
        near = sorted(bases, key=lambda base: abs(base - base_offset))[:5]
        raise InvalidArgumentError(
            f"no segment of {log.topic.partition(partition)} begins at {base_offset}; the nearest "
            f"ones begin at {', '.join(map(str, sorted(near))) or 'nothing: there are none'}",
            offset=base_offset,
        )
    at = bases.index(base_offset)
    return OffsetRange(base_offset, bases[at + 1] if at + 1 < len(bases) else MAX_OFFSET)
