"""The page's table as HTML; everything that comes from a record is escaped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from ..table import Column, Line, html_table
from .rows import COLUMNS, PARTITION, Row

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


def kept_html(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """The same without scripts and styles, for a notebook that is read without its kernel."""
    drawn = [Column(name, short=name in _SHORT) for name in columns]
    lines = [Line(row.cells, f' class="ll-{row.tier}"') for row in rows]
    return html_table(drawn, lines, none="no records")


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
