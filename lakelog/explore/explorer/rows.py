"""The records of a page as the cells of a table, as HTML and as text; and one of them in full."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone, tzinfo
from html import escape

from msgspec import Struct

from ...base.text_table import counted, text_table
from ...read.found import records_of
from ...values.record import NO_TIMESTAMP_MS, Record, TimestampType, to_records
from ...values.topic_partition import TopicPartition
from ...values.typed_time import clock_text
from ..table import Cell, Column, Line, html_table, rest_text
from ..words import size
from .decode import AUTO, EMPTY, HEX, NULL, Decoded, decode, one_line
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


def records_shown(shown: Shown, *, are_read: bool = False) -> list[Record]:
    """The page's records, in its order.

    Args:
        are_read: keys and values as people read them; else as they are stored.
    """
    view, records = shown.view, shown.readable if are_read else shown.records
    if view.partition is None:
        return [*records_of(view.topic, records)]
    return [*to_records(TopicPartition(view.topic, view.partition), records)]


def rows(shown: Shown, zone: tzinfo, kind: str = AUTO) -> list[Row]:
    """The page's records as cells."""
    several = shown.view.partition is None
    stored, read = records_shown(shown), records_shown(shown, are_read=True)
    return [
        _row(record, size_bytes(as_stored), tier, zone, kind, several=several)
        for as_stored, record, tier in zip(stored, read, shown.tiers, strict=True)
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


def _row(
    record: Record, of_bytes: int, tier: str, zone: tzinfo, kind: str, *, several: bool
) -> Row:
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
            Cell(size(of_bytes)),
        ),
    )


def _cell(decoded: Decoded, null: str = NULL) -> Cell:
    if decoded.kind == NULL:
        return Cell(null, NULL)
    if decoded.kind == EMPTY:
        return Cell(EMPTY, EMPTY)
    text = one_line(decoded.text)
    return Cell(text, decoded.kind, decoded.size_bytes if decoded.cut else None)


def clock_time(time_ms: int, where: tzinfo) -> str:
    """A timestamp as the zone's clocks show it, to the millisecond, with its offset from UTC."""
    return "–" if time_ms == NO_TIMESTAMP_MS else clock_text(time_ms, where, "milliseconds")


# -- as text --------------------------------------------------------------------------------------

#: The widest a column gets; a line stays readable in a terminal.
_TEXT_WIDTH = 48


def page_text(rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> str:
    """A table with column names; long texts are cut and show their size."""
    if not rows:
        return "no records"
    lines = [
        {
            name: _cut(cell.text, cell.of_bytes)
            for name, cell in zip(columns, row.cells, strict=True)
        }
        for row in rows
    ]
    return text_table(lines, columns, right={PARTITION, "offset", "size"})


def _cut(text: str, of_bytes: int | None) -> str:
    cut = "" if of_bytes is None else f"… {size(of_bytes)}"
    if len(text) + len(cut) <= _TEXT_WIDTH:
        return text + cut
    cut = cut or "…"
    return text[: _TEXT_WIDTH - len(cut)] + cut


# -- as HTML --------------------------------------------------------------------------------------

#: Where the pointer may be, as the table's script tells it.
AWAY, OVER = "away", "over the table"

_SHORT = {PARTITION, "offset", "time", "size"}

#: The tier of a row is its edge; the word is told when the pointer is over the row's first cell.
_UNDRAWN = {"tier"}

#: A click on a row writes its name into the box of the open record, if the page runs scripts in
#: HTML. The script holds nothing from a record.
_CLICK = escape(
    "var row = event.target.closest('tr[data-offset]'), "
    "picker = this.closest('.lakelog-explorer').querySelector('.lakelog-opened input'); "
    "if (row && picker) { picker.value = row.dataset.row; "
    "picker.dispatchEvent(new Event('change', {bubbles: true})); } "
    "var head = event.target.closest('th[data-sort]'), "
    "sort = this.closest('.lakelog-explorer').querySelector('.lakelog-sort select'); "
    "if (head && sort) { var up = head.dataset.sort.slice(6) + ' ↑', "
    "down = head.dataset.sort.slice(6) + ' ↓'; "
    "sort.value = sort.value === up ? down : up; "
    "sort.dispatchEvent(new Event('change', {bubbles: true})); }"
)

#: While the pointer is over the rows, a tail that is followed holds still.
_POINTER = (
    "var picker = this.closest('.lakelog-explorer').querySelector('.lakelog-pointer select'); "
    "if (picker) {{ picker.value = '{}'; "
    "picker.dispatchEvent(new Event('change', {{bubbles: true}})); }}"
)
_OVER, _AWAY = (escape(_POINTER.format(one)) for one in (OVER, AWAY))

#: Arrows choose a row, Enter opens it as a click does. The script holds nothing from a record.
_KEYS = (
    "var rows = [...this.querySelectorAll('tr[data-offset]')], "
    "at = rows.indexOf(document.activeElement), "
    "to = {ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1}[event.key]; "
    "if (rows.length && to !== undefined) { "
    "to = rows[Math.max(0, Math.min(rows.length - 1, to))]; to.tabIndex = -1; to.focus(); "
    "event.preventDefault(); } "
    "else if (at >= 0 && (event.key === 'Enter' || event.key === ' ')) { "
    "rows[at].click(); event.preventDefault(); }"
)

#: Attributes of the box around a table. JupyterLab would take the keys to walk through the cells.
_ROW_KEYS = (
    'tabindex="0" data-lm-suppress-shortcuts="true" '
    'aria-label="records: the arrow keys choose one, Enter opens it" '
    f'onkeydown="{escape(_KEYS)}"'
)


def table_html(
    rows: Sequence[Row],
    columns: Sequence[str] = COLUMNS,
    *,
    heads: Mapping[str, str] | None = None,
    numbers: Collection[str] = (),
    tail: bool = False,
) -> str:
    """A table with a row for each record (``data-offset``); it scrolls in its box if it is wide.

    Args:
        columns: the cells of each row.
        heads: of columns that are not the record's own, as HTML. A click on one sorts by it.
        numbers: those columns of them that are numbers.
        tail: whether it starts scrolled to its end, and holds still below the pointer.
    """
    at = [number for number, name in enumerate(columns) if name not in _UNDRAWN]
    drawn = [_column(columns[number], heads or {}, numbers) for number in at]
    lines = [Line([row.cells[number] for number in at], _attributes(row)) for row in rows]
    end = " ll-tail" if tail else ""
    pointed = f' onmouseenter="{_OVER}" onmouseleave="{_AWAY}"' if tail else ""
    table = html_table(drawn, lines, f' class="ll-table" onclick="{_CLICK}"', none="no records")
    return f'<div class="ll-scroll{end}" {_ROW_KEYS}{pointed}>{table}</div>'


#: So many rows are stored in a notebook.
_MOST_KEPT = 100


def kept_html(shown: Shown, zone: tzinfo, kind: str, expression: str) -> str:
    """A page for a notebook that is read without its kernel: it needs neither style nor script.

    Args:
        expression: the call that gives the rows.
    """
    view, found = shown.view, rows(shown, zone, kind)
    where = view.topic if view.partition is None else f"{view.topic}-{view.partition}"
    drawn = [Column(name, short=name in _SHORT) for name in columns_of(shown)]
    lines = [Line(row.cells, f' class="ll-{row.tier}"') for row in found[:_MOST_KEPT]]
    said = [rest_text(len(found) - _MOST_KEPT), *shown.notes]
    below = "".join(f"<div>{escape(line)}</div>" for line in said if line)
    return (
        f"<div><b>{escape(where)}</b> as of {datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S}Z. "
        f"Run the cell again to walk through the log.</div><div><code>{escape(expression)}</code>"
        f"</div>{html_table(drawn, lines, none='no records')}{below}"
    )


def note_html(text: str) -> str:
    """A remark below the controls."""
    return f'<div class="ll-note">{escape(text)}</div>'


def marked_row_html(explorer: str, name: str) -> str:
    """Marks the row of an opened record by a style, which may stand anywhere on the page.

    The table itself is not redrawn, since it would forget where it was scrolled to.

    Args:
        explorer: the CSS class of the table's explorer.
        name: of the row.
    """
    row = f'.{explorer} .ll-table tr[data-row="{name}"]'
    return f"<style>{row} td, {row}:hover td {{ background: rgba(63,136,197,.22); }}</style>"


def _column(name: str, heads: Mapping[str, str], numbers: Collection[str]) -> Column:
    if name in heads:
        style = "ll-c-member ll-c-number" if name in numbers else "ll-c-member"
        return Column(name, style, heads[name], sorts=True)
    return Column(name, f"ll-c-{name}", short=name in _SHORT)


def _attributes(row: Row) -> str:
    return (
        f' class="ll-{row.tier}" data-tier="{row.tier}" data-offset="{row.offset}" '
        f'data-row="{row.name}"'
    )


# -- one record in full ---------------------------------------------------------------------------

#: Shown at first, and on demand. With more, a browser can no longer handle the page.
FIRST_BYTES, FIRST_HEADERS = 4 * 1024, 50
ALL_BYTES, ALL_HEADERS = 2 * 1024 * 1024, 20_000

_BLOCK = 100  # lines

#: A hexadecimal dump takes some five letters a byte.
_HEX_SHARE = 4


def is_long(record: Record) -> bool:
    """Whether it has more than is shown at first."""
    longest = max(len(record.value or b""), len(record.key or b""))
    headers = sum(len(value or b"") for _, value in record.headers)
    return longest > FIRST_BYTES or len(record.headers) > FIRST_HEADERS or headers > FIRST_BYTES


def record_html(
    record: Record, tier: str, zone: tzinfo, kind: str = AUTO, full: bool = False
) -> str:
    """The record's fields, its value over several lines, its headers.

    Args:
        kind: how to show the value.
        full: all of it, up to `ALL_BYTES` and `ALL_HEADERS`.
    """
    limit = ALL_BYTES if full else FIRST_BYTES
    clock = (
        "append time" if record.timestamp_type is TimestampType.LOG_APPEND_TIME else "create time"
    )
    fields = [
        ("offset", f"{record.offset}"),
        ("time", f"{escape(clock_time(record.timestamp_ms, zone))} <small>{clock}</small>"),
        ("tier", f'<span class="ll-tier ll-{escape(tier)}">{escape(tier)}</span>'),
        ("size", f"{size(size_bytes(record))}"),
        ("key", _bytes_html(record.key, AUTO, limit)),
        ("value", _bytes_html(record.value, kind, limit)),
        ("headers", _headers_html(record, full)),
    ]
    return (
        '<table class="ll-fields">'
        + "".join(f"<tr><th>{name}</th><td>{html}</td></tr>" for name, html in fields)
        + "</table>"
    )


def _bytes_html(value: bytes | None, kind: str, limit: int) -> str:
    decoded = decode(value, kind, limit=limit, pretty=True)
    if decoded.kind == HEX:
        decoded = decode(value, HEX, limit=limit // _HEX_SHARE, pretty=True)
    if decoded.kind in {NULL, EMPTY}:
        return f'<i class="ll-nothing">{decoded.kind}</i>'
    size = f'<span class="ll-kind">{decoded.kind}, {decoded.size_bytes:,} bytes</span>'
    if decoded.cut:
        size += f' <span class="ll-cut">the first {decoded.shown_bytes:,} are shown</span>'
    return f"{size}<pre>{_blocks(decoded.text)}</pre>"


def _blocks(text: str) -> str:
    """A text, in blocks of lines if it is long: a browser lays out only those that are in view."""
    if len(text) <= FIRST_BYTES:
        return escape(text)
    lines = text.splitlines(keepends=True)
    blocks = ("".join(lines[at : at + _BLOCK]) for at in range(0, len(lines), _BLOCK))
    return "".join(f'<div class="ll-block">{escape(block)}</div>' for block in blocks)


def _headers_html(record: Record, full: bool) -> str:
    if not record.headers:
        return '<i class="ll-nothing">none</i>'
    shown = record.headers[: ALL_HEADERS if full else FIRST_HEADERS]
    left = ALL_BYTES if full else FIRST_BYTES  # of all values together
    lines = []
    for name, value in shown:
        decoded = decode(value, limit=max(16, left))
        left -= decoded.shown_bytes
        text = escape(decoded.text)
        if decoded.kind in {NULL, EMPTY}:
            text = f'<i class="ll-nothing">{decoded.kind}</i>'
        cut = f'… <span class="ll-cut">{size(decoded.size_bytes)}</span>'
        written = escape(decode(name.encode()).text)
        lines.append(f"<tr><th>{written}</th><td>{text}{cut if decoded.cut else ''}</td></tr>")
    more = len(record.headers) - len(shown)
    count = f'<span class="ll-kind">{counted(len(record.headers), "header")}</span>'
    if more:
        count += f' <span class="ll-cut">the first {len(shown):,} are shown</span>'
    table = f'<table class="ll-fields">{"".join(lines)}</table>'
    return f'{count}<div class="ll-headers-box">{table}</div>'
