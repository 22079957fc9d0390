"""The page's table as HTML; everything that comes from a record is escaped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from .pointer import AWAY, OVER
from .row_keys import ROW_KEYS
from .rows import COLUMNS, PARTITION, Cell, Row, readable_size

_NUMBERS = {PARTITION, "offset", "size"}

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
    drawn = [name for name in columns if name not in _UNDRAWN]
    made = heads or {}
    styles = {name: _style(name, made, numbers) for name in drawn}
    head = "".join(_head(name, styles[name], made) for name in drawn)
    body = "".join(_row(row, columns, styles) for row in rows)
    if not rows:
        body = f'<tr><td class="ll-none" colspan="{len(drawn)}">no records</td></tr>'
    end = " ll-tail" if tail else ""
    pointed = f' onmouseenter="{_OVER}" onmouseleave="{_AWAY}"' if tail else ""
    return (
        f'<div class="ll-scroll{end}" {ROW_KEYS}{pointed}>'
        f'<table class="ll-table" onclick="{_CLICK}">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def marked_row_html(explorer: str, name: str) -> str:
    """Marks the row of an opened record by a style, which may stand anywhere on the page.

    The table itself is not redrawn, since it would forget where it was scrolled to.

    Args:
        explorer: the CSS class of the table's explorer.
        name: of the row.
    """
    row = f'.{explorer} .ll-table tr[data-row="{name}"]'
    return f"<style>{row} td, {row}:hover td {{ background: rgba(63,136,197,.22); }}</style>"


def _style(name: str, heads: Mapping[str, str], numbers: Collection[str]) -> str:
    """The CSS class of a column; nothing from a record is in it."""
    if name in heads:
        return "ll-c-member ll-c-number" if name in numbers else "ll-c-member"
    return f"ll-c-{name}"


def _head(name: str, style: str, heads: Mapping[str, str]) -> str:
    if name not in heads:
        return f'<th class="{style}">{name}</th>'
    return f'<th class="{style}" data-sort="{escape(name)}">{heads[name]}</th>'


def _row(row: Row, columns: Sequence[str], styles: Mapping[str, str]) -> str:
    cells = "".join(
        f'<td class="{styles[name]}"{_title(name, cell, row)}>{cell_html(name, cell)}</td>'
        for name, cell in zip(columns, row.cells, strict=True)
        if name not in _UNDRAWN
    )
    return (
        f'<tr class="ll-{row.tier}" data-tier="{row.tier}" data-offset="{row.offset}" '
        f'data-row="{row.name}">{cells}</tr>'
    )


def _title(name: str, cell: Cell, row: Row) -> str:
    """What a cell says below the pointer: the tier, and a time in UTC."""
    if name in (PARTITION, "offset"):
        return f' title="{row.tier}"'
    return f' title="{escape(cell.hover)}"' if cell.hover else ""


def cell_html(column: str, cell: Cell) -> str:
    """The content of a cell."""
    text = escape(cell.text)
    if cell.kind in {"null", "empty"}:
        return f'<i class="ll-nothing">{text}</i>'
    cut = ""
    if cell.of_bytes is not None:
        cut = f'… <span class="ll-cut">{readable_size(cell.of_bytes)}</span>'
    binary = '<span class="ll-kind">hex</span> ' if cell.kind == "hex" else ""
    if column in _NUMBERS or column == "time":
        return text
    return f'{binary}<span title="{text}">{text}</span>{cut}'
