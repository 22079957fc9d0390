"""The records of a page as the cells of a table, for HTML and for plain text alike."""

from __future__ import annotations

from datetime import timezone, tzinfo

from msgspec import Struct

from ...read.found import records_of
from ...values.record import Record, to_records
from ...values.topic_partition import TopicPartition
from ..table import Cell
from ..words import size
from .decode import AUTO, EMPTY, NULL, Decoded, decode, one_line
from .moment import clock_time
from .view import Shown

COLUMNS = ("offset", "time", "tier", "key", "value", "headers", "size")

#: Before the others, where the rows are of several partitions.
PARTITION = "part"

#: How much a cell shows: of a key, of a value, how many headers, of a header.
KEY_BYTES, VALUE_BYTES, HEADERS, HEADER_BYTES = 80, 200, 3, 40


class Row(Struct, frozen=True):
    """One record in cells of `columns_of`."""

    partition: int
    offset: int
    tier: str
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        return row_name(self.partition, self.offset)


def row_name(partition: int, offset: int) -> str:
    """What a row is called in the list of records that can be opened."""
    return f"{partition}:{offset}"


def columns_of(shown: Shown) -> tuple[str, ...]:
    """The columns of a page."""
    return COLUMNS if shown.view.partition is not None else (PARTITION, *COLUMNS)


def records_shown(shown: Shown) -> list[Record]:
    """The page's records, in its order."""
    view = shown.view
    if view.partition is None:
        return [*records_of(view.topic, shown.records)]
    return [*to_records(TopicPartition(view.topic, view.partition), shown.records)]


def rows(shown: Shown, zone: tzinfo, kind: str = AUTO) -> list[Row]:
    """The page's records as cells."""
    several = shown.view.partition is None
    return [
        _row(record, tier, zone, kind, several=several)
        for record, tier in zip(records_shown(shown), shown.tiers, strict=True)
    ]


def size_bytes(record: Record) -> int:
    """The bytes of its key, its value and its headers."""
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def header_text(record: Record, limit: int = HEADERS) -> str:
    """The first headers as ``name=value``, and how many more there are."""
    parts = [
        one_line(decode(name.encode(), limit=HEADER_BYTES).text)
        + ("" if value is None else f"={one_line(decode(value, limit=HEADER_BYTES).text)}")
        for name, value in record.headers[:limit]
    ]
    more = len(record.headers) - limit
    return ", ".join(parts) + (f" +{more:,}" if more > 0 else "")


def _row(record: Record, tier: str, zone: tzinfo, kind: str, *, several: bool) -> Row:
    key = decode(record.key, limit=KEY_BYTES)
    value = decode(record.value, kind, limit=VALUE_BYTES)
    return Row(
        record.partition,
        record.offset,
        tier,
        (
            *((Cell(str(record.partition), hover=tier),) if several else ()),
            Cell(str(record.offset), hover=tier),
            Cell(
                clock_time(record.timestamp_ms, zone),
                hover=clock_time(record.timestamp_ms, timezone.utc),
            ),
            Cell(tier, tier),
            _cell(key),
            _cell(value, null="tombstone" if record.key is not None else NULL),
            Cell(header_text(record)),
            Cell(size(size_bytes(record))),
        ),
    )


def _cell(decoded: Decoded, null: str = NULL) -> Cell:
    if decoded.kind == NULL:
        return Cell(null, NULL)
    if decoded.kind == EMPTY:
        return Cell(EMPTY, EMPTY)
    text = one_line(decoded.text)
    return Cell(text, decoded.kind, decoded.size_bytes if decoded.cut else None)
