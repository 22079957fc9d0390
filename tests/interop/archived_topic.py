"""A topic's cold table as lakelog leaves it, after all that it does to one, and its rows.

| partition | segment | files | what it went through                                             |
|-----------|---------|-------|------------------------------------------------------------------|
| 0         | 0       | 1     | archived in two files, compacted: gaps, tombstones with horizons |
| 0         | 64      | 2     | the second, from 80, archived after the checkpoint, when the     |
|           |         |       | table had got value columns                                      |
| 0         | 120     | 1     | the same; begins after a gap at 100                              |
| 1         | 0       | 1     |                                                                  |
| 2         | 0       | –     | expired: its file lies there still, a tombstone of the log       |
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa
from msgspec.structs import replace

from lakelog.cold.change import Change, HotRange, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, LogStart
from lakelog.cold.table import ColdTable
from lakelog.values.config import TopicConfig
from lakelog.values.record import HEADERS_TYPE, RECORDS, Headers
from lakelog.values.topic import Topic

EPOCH_MS = 1_700_000_000_000
HORIZON_MS = 1_700_000_100_123

#: Each record takes the next of each; the lengths have no common divisor, so all meet.
KEYS = (None, b"", b"k", b"\x00\xff\xfe", "ключ".encode())
VALUES = (
    None,
    b"",
    b'{"id": 9007199254740993, "price": 12.50, "at": "2023-11-14T22:13:20.123Z",'
    b' "day": "2024-02-29", "paid": true, "tags": ["a", null],'
    b' "more": {"k": "v"}, "item": {"sku": "x", "count": 2}}',
    bytes(range(256)),
)
HEADERS: tuple[Headers, ...] = (
    (),
    (("a", b"1"), ("b", None), ("a", b"")),
    (("", b"\x00"),),
)
#: None: EPOCH_MS and as many milliseconds as the offset.
TIMES_MS = (None, None, None, None, -1, 0, 253_402_300_799_999)  # none, 1970, 9999

SUPERSEDED = frozenset(range(0, 60, 3))

VALUE_COLUMNS = (
    "id bigint, price decimal(10,2), at timestamp, day date, paid boolean, tags array<string>,"
    " more map<string,string>, item struct<sku: string, count: int>"
)
#: What VALUES become; the last of each is ``value_error``.
NO_VALUE_COLUMNS = (None,) * 9
MADE_OF_VALUES = (
    NO_VALUE_COLUMNS,
    (*NO_VALUE_COLUMNS[1:], "not a JSON object"),
    (
        *(2**53 + 1, Decimal("12.50"), 1_700_000_000_123_000, date(2024, 2, 29), True),
        *(("a", None), (("k", "v"),), ("x", 2), None),
    ),
    (*NO_VALUE_COLUMNS[1:], "not a JSON object"),
)


class Row(NamedTuple):
    """One row of the table. Times are µs since 1970, as Delta keeps them."""

    partition: int
    segment: int
    offset: int
    timestamp_us: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    delete_horizon_us: int | None
    value_columns: tuple[Any, ...]


def row(partition: int, segment: int, offset: int) -> Row:
    """A record made up from where it is, after the compaction and the columns of its segment."""
    time_ms = TIMES_MS[offset % len(TIMES_MS)]
    value = VALUES[offset % len(VALUES)]
    compacted = (partition, segment) == (0, 0)
    has_columns = partition == 0 and offset >= 80
    return Row(
        partition,
        segment,
        offset,
        1000 * (EPOCH_MS + offset if time_ms is None else time_ms),
        offset % 2,
        KEYS[offset % len(KEYS)],
        value,
        HEADERS[offset % len(HEADERS)],
        1000 * HORIZON_MS if compacted and value is None else None,
        MADE_OF_VALUES[offset % len(VALUES)] if has_columns else NO_VALUE_COLUMNS,
    )


def made_up(hot_range: HotRange) -> Iterator[pa.RecordBatch]:
    """A `RowsOf`."""
    first = max(hot_range.start_offset, hot_range.segment)
    rows = [
        row(hot_range.topic_partition.partition, hot_range.segment, offset)
        for offset in range(first, hot_range.end_offset)
    ]
    headers = [[{"key": key, "value": value} for key, value in one.headers] for one in rows]
    columns = [
        pa.array([one.offset for one in rows], pa.int64()),
        pa.array([one.timestamp_us for one in rows], pa.timestamp("us", tz="UTC")),
        pa.array([one.timestamp_type for one in rows], pa.int32()),
        pa.array([one.key for one in rows], pa.binary()),
        pa.array([one.value for one in rows], pa.binary()),
        pa.array(headers, HEADERS_TYPE),
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=RECORDS)


TOPIC = Topic("orders", UUID("11111111-2222-3333-4444-555555555555"), partitions=3)


class ArchivedTopic:
    """The table of the module's table, made in a new one that lies at a path.

    Args:
        alterations: so many commits change settings, the first adds the value columns.
    """

    def __init__(self, table: ColdTable, path: Path, alterations: int) -> None:
        self.topic, self.table, self.path = TOPIC, table, path
        for partition, segment, *ends in ((0, 0, 40, 64), (0, 64, 80), (1, 0, 30), (2, 0, 30)):
            self._archive(partition, segment, *ends)
        self._compact()
        self._expire()
        self._alter(alterations)
        self._archive(0, 64, 100)
        self._archive(0, 120, 150)

    @property
    def rows(self) -> list[Row]:
        return sorted(
            [row(0, 0, offset) for offset in range(64) if offset not in SUPERSEDED]
            + [row(0, 64, offset) for offset in range(64, 100)]
            + [row(0, 120, offset) for offset in range(120, 150)]
            + [row(1, 0, offset) for offset in range(30)]
        )

    def _archive(self, partition: int, segment: int, *ends: int) -> None:
        before = self.table.snapshot()
        starts = (before.archived_end(partition), *ends)
        ranges = tuple(
            HotRange(self.topic.partition(partition), self.topic.topic_id, segment, start, end)
            for start, end in zip(starts, ends, strict=False)
        )
        self._apply(Change(adds=ranges, registers={ArchivedEnd(partition): ends[-1]}))

    def _compact(self) -> None:
        files = tuple(f for f in self.table.snapshot().files if (f.partition, f.segment) == (0, 0))
        clean = Rewrite(self.topic.partition(0), 0, files, OffsetSet.of(SUPERSEDED), HORIZON_MS)
        self._apply(Change((clean,), files, {CleanedEnd(0): 64}))

    def _expire(self) -> None:
        files = tuple(f for f in self.table.snapshot().files if f.partition == 2)
        self._apply(Change(removes=files, registers={LogStart(2): 30}))

    def _alter(self, times: int) -> None:
        for version in range(2, 2 + times):
            config = TopicConfig.of(
                retention_ms=1000 * version, lakelog_value_columns=VALUE_COLUMNS
            )
            self.table.mirror(replace(self.topic, config_version=version, config=config))

    def _apply(self, change: Change) -> None:
        applied = self.table.apply(change, self.table.snapshot())
        assert not applied.superseded
