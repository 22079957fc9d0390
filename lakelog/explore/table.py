"""One HTML table: of a chart's rows, of the explorer's page, of what a notebook keeps of that."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from msgspec import Struct

from ..base.text_table import counted
from .words import size


class Cell(Struct, frozen=True):
    """A text, how to draw it, and the full size if it was cut."""

    text: str
    kind: str = ""  # null, empty, json, utf-8, hex; a tier's name; "" for a number or a time
    of_bytes: int | None = None  # the full size, if the text is only the beginning
    hover: str = ""  # what it says below the pointer


class Column(Struct, frozen=True):
    """A heading, and how the cells below it look."""

    name: str
    style: str = ""  # a CSS class; nothing from a record is in it
    html: str = ""  # of the heading, if that is more than its name
    sorts: bool = False  # by a click on the heading
    short: bool = False  # whether its texts are never cut by the column's edge


class Line(Struct, frozen=True):
    """The cells of a row, and the attributes that scripts and styles find it by."""

    cells: Sequence[Cell]
    attributes: str = ""


def html_table(
    columns: Sequence[Column], lines: Sequence[Line], attributes: str = "", *, none: str
) -> str:
    """The table; every text in it is escaped.

    Args:
        attributes: of the table.
        none: what is said where there are no rows.
    """
    head = "".join(_head(column) for column in columns)
    body = "".join(
        f"<tr{line.attributes}>"
        + "".join(
            f"<td{_style(column)}{_hover(cell)}>{_cell(cell, column)}</td>"
            for column, cell in zip(columns, line.cells, strict=True)
        )
        + "</tr>"
        for line in lines
    )
    if not lines:
        body = f'<tr><td class="ll-none" colspan="{max(1, len(columns))}">{none}</td></tr>'
    return f"<table{attributes}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def rest_text(left_out: int) -> str:
    """What stands below a table that is cut; empty if it is not."""
    return f"… and {counted(left_out, 'more row')}" if left_out > 0 else ""


def _head(column: Column) -> str:
    sorts = f' data-sort="{escape(column.name)}"' if column.sorts else ""
    return f"<th{_style(column)}{sorts}>{column.html or escape(column.name)}</th>"


def _style(column: Column) -> str:
    return f' class="{column.style}"' if column.style else ""


def _hover(cell: Cell) -> str:
    return f' title="{escape(cell.hover)}"' if cell.hover else ""


def _cell(cell: Cell, column: Column) -> str:
    text = escape(cell.text)
    if cell.kind in {"null", "empty"}:
        return f'<i class="ll-nothing">{text}</i>'
    if column.short:
        return text
    cut = ""
    if cell.of_bytes is not None:
        cut = f'… <span class="ll-cut">{size(cell.of_bytes)}</span>'
    binary = '<span class="ll-kind">hex</span> ' if cell.kind == "hex" else ""
    return f'{binary}<span title="{text}">{text}</span>{cut}'
