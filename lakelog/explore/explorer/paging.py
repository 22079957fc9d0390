"""Records from an offset on, or before it, across gaps."""

from __future__ import annotations

import pyarrow as pa

from ...read.stretches import Stretch
from ...read.topic_log import TopicLog
from ...values.config import MIB
from ...values.record import RECORDS
from .opened_topic import likely_start

#: How much one step of reading a page brings; most pages are some kilobytes.
STEP_BYTES = 256 * 1024

#: The most that a page of several records holds, so pages of large values are shorter.
PAGE_BYTES = 16 * MIB


def page_from(
    log: TopicLog,
    partition: int,
    start: int,
    end: int,
    records: int,
    max_bytes: int = PAGE_BYTES,
) -> pa.Table:
    """The first `records` records of [start, end); fewer if they exceed `max_bytes`."""
    batches: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    if start < end:
        for batch in log.read(partition, start, end, max_bytes=min(STEP_BYTES, max_bytes)):
            batch = batch.slice(0, records - rows)
            if rows and size_bytes + batch.nbytes > max_bytes:
                fitting = _first_rows_within(batch, max_bytes - size_bytes)
                batches.append(batch.slice(0, fitting))
                break
            batches.append(batch)
            rows += batch.num_rows
            size_bytes += batch.nbytes
            if rows >= records:
                break
    return pa.Table.from_batches(batches, schema=RECORDS)


def page_before(
    log: TopicLog,
    partition: int,
    found: list[Stretch],
    log_start: int,
    end: int,
    records: int,
    max_bytes: int = PAGE_BYTES,
) -> pa.Table:
    """The last `records` records of [log start, end); fewer if they exceed `max_bytes`.

    Args:
        found: where records lie; see `likely_start`.
    """
    kept = RECORDS.empty_table()
    at, reach = end, 1
    while at > log_start and kept.num_rows < records and kept.nbytes <= max_bytes:
        start = likely_start(found, log_start, at, reach * (records - kept.num_rows))
        read = last_rows(log, partition, start, at, records - kept.num_rows, max_bytes)
        kept = pa.concat_tables([read, kept])
        at = start
        reach *= 2  # the index promised more: compaction thinned this part out
    while kept.num_rows > 1 and kept.nbytes > max_bytes:
        kept = kept.slice(kept.num_rows - _last_rows_within(kept, max_bytes))
    return kept


def last_rows(
    log: TopicLog, partition: int, start: int, end: int, records: int, max_bytes: int
) -> pa.Table:
    """The last `records` records of [start, end); about `max_bytes` are held at a time."""
    kept = RECORDS.empty_table()
    for batch in log.read(partition, start, end, max_bytes=min(STEP_BYTES, max_bytes)):
        kept = pa.concat_tables([kept, pa.Table.from_batches([batch], schema=RECORDS)])
        kept = kept.slice(max(0, kept.num_rows - records))
        if kept.nbytes > max_bytes:
            kept = kept.slice(kept.num_rows - _last_rows_within(kept, max_bytes))
    return kept


def _first_rows_within(batch: pa.RecordBatch, max_bytes: int) -> int:
    low, high = 0, batch.num_rows  # `low` rows fit, `high` do not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if batch.slice(0, middle).nbytes <= max_bytes else (low, middle)
    return low


def _last_rows_within(table: pa.Table, max_bytes: int) -> int:
    low, high = 1, table.num_rows + 1  # one is kept whatever its size
    while high - low > 1:
        middle = (low + high) // 2
        fits = table.slice(table.num_rows - middle).nbytes <= max_bytes
        low, high = (middle, high) if fits else (low, middle)
    return low
