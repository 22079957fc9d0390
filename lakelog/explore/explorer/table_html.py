"""The page's table as HTML; everything that comes from a record is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .row_keys import ROW_KEYS
from .rows import COLUMNS, Cell, Row, readable_size

_NUMBERS = {"offset", "size"}

#: A click on a row picks its offset in the list of records, if the page runs scripts in HTML. The
#: script holds nothing from a record.
_CLICK = escape(
    "var row = event.target.closest('tr[data-offset]'), "
    "picker = this.closest('.lakelog-explorer').querySelector('.lakelog-opened select'); "
    "if (row && picker) { picker.value = row.dataset.offset; "
    "picker.dispatchEvent(new Event('change', {bubbles: true})); }"
)


def table_html(rows: Sequence[Row], *, tail: bool = False) -> str:
    """A table with a row for each record (``data-offset``); it scrolls in its box if it is wide.

    Args:
        tail: whether it starts scrolled to its end.
    """
    heads = "".join(f'<th class="ll-c-{name}">{name}</th>' for name in COLUMNS)
    body = "".join(_row(row) for row in rows)
    if not rows:
        body = f'<tr><td class="ll-none" colspan="{len(COLUMNS)}">no records</td></tr>'
    end = " ll-tail" if tail else ""
    return (
        f'<div class="ll-scroll{end}" {ROW_KEYS}><table class="ll-table" onclick="{_CLICK}">'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def marked_row_html(explorer: str, offset: int) -> str:
    """Marks the row of an opened record by a style, which may stand anywhere on the page.

    The table itself is not redrawn, since it would forget where it was scrolled to.

    Args:
        explorer: the CSS class of the table's explorer.
    """
    row = f'.{explorer} .ll-table tr[data-offset="{offset}"]'
    return f"<style>{row} td, {row}:hover td {{ background: rgba(63,136,197,.22); }}</style>"


def _row(row: Row) -> str:
    cells = "".join(
        f'<td class="ll-c-{name}">{cell_html(name, cell)}</td>'
        for name, cell in zip(COLUMNS, row.cells, strict=True)
    )
    return f'<tr data-offset="{row.offset}">{cells}</tr>'


def cell_html(column: str, cell: Cell) -> str:
    """The content of a cell."""
    text = escape(cell.text)
    if column == "tier":
        return f'<span class="ll-tier ll-{escape(cell.kind)}">{text}</span>'
    if cell.kind in {"null", "empty"}:
        return f'<i class="ll-nothing">{text}</i>'
    cut = ""
    if cell.of_bytes is not None:
        cut = f'… <span class="ll-cut">{readable_size(cell.of_bytes)}</span>'
    binary = '<span class="ll-kind">hex</span> ' if cell.kind == "hex" else ""
    if column in _NUMBERS or column == "time":
        return text
    return f'{binary}<span title="{text}">{text}</span>{cut}'
