"""Segments that are put into a table's log directly, since it is not archiving that is measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import uuid4

from lakelog import Topic
from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.by_path.segment_writer import WrittenFile
from lakelog.cold.file_statistics import time_statistic
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, LogStart, app_id
from lakelog.cold.segment import SegmentFile, file_name

COMMITS = 120  # so that the table has had two checkpoints


def path_of(partition: int, base: int, end: int) -> str:
    """Where the one file of a segment lies, below the table's folder."""
    return f"partition={partition}/segment={base}/{file_name('archive', base, end, uuid4().hex)}"


def written(
    partition: int, base: int, end: int, path: str, size_bytes: int, times_us: tuple[int, int]
) -> WrittenFile:
    """What an archiver knows of a file that is all of a segment.

    Args:
        times_us: the first and the last record's.
    """
    first_us, last_us = times_us
    first_ms, last_ms = first_us // 1000, last_us // 1000
    records = end - base
    stats = {
        "numRecords": records,
        "minValues": {"offset": base, **time_statistic(first_us)},
        "maxValues": {"offset": end - 1, **time_statistic(last_us)},
        "nullCount": {"offset": 0, "timestamp": 0},
    }
    file = SegmentFile(
        partition, base, path, size_bytes, records, base, end, first_ms, last_ms, last_ms
    )
    return WrittenFile(file, json.dumps(stats, separators=(",", ":")))


def shares(things: Sequence[object]) -> list[Sequence[object]]:
    """The things in order, in as many commits as a table gets."""
    size = max(1, -(-len(things) // COMMITS))
    return [things[at : at + size] for at in range(0, len(things), size)]


def commit(log: DeltaLog, topic: Topic, files: Sequence[WrittenFile]) -> None:
    transactions = {}
    for partition in range(topic.partitions):
        ends = [one.file.end_offset for one in files if one.file.partition == partition]
        if not ends:
            continue
        for register in (ArchivedEnd(partition), LogStart(partition), CleanedEnd(partition)):
            value = max(ends) if isinstance(register, ArchivedEnd) else 0
            transactions[app_id(topic.topic_id, register)] = value
    log.commit(uuid4().hex, list(files), [], transactions, data_change=True)
    log.refresh()
    log.checkpoint_if_due()
