"""A table as HTML, shown where plotly is not installed or the front end cannot draw."""

from __future__ import annotations

import html
from datetime import datetime
from typing import Any

import pyarrow as pa

from ..table import Cell, Column, Line, html_table, rest_text
from . import words

DEFAULT_ROWS = 100
_CHARACTERS = 200  # of one cell
_RIGHT = "ll-right"
_STYLE = (
    ".ll-rows { overflow-x: auto; } .ll-rows table { border-collapse: collapse; } "
    ".ll-rows td, .ll-rows th { padding: 2px 10px; text-align: left !important; "
    "white-space: nowrap; border-bottom: 1px solid rgba(128,128,128,.25); } "
    ".ll-rows .ll-right { text-align: right !important; }"
)


def table_html(table: pa.Table, caption: str = "", *, rows: int = DEFAULT_ROWS) -> str:
    """The first rows as one HTML table, with everything in it escaped.

    It has no colours of its own, so it reads in a light and in a dark theme.

    Args:
        table: any Arrow table.
        caption: a sentence above it, as text.
        rows: how many are shown; a line below says how many are not.
    """
    shown = table.slice(0, rows)
    columns = [
        Column(field.name.replace("_", " "), _RIGHT if _is_number(field.type) else "", short=True)
        for field in table.schema
    ]
    cells = [[Cell(_text(value)) for value in _values(column)] for column in shown.columns]
    lines = [Line(row) for row in zip(*cells, strict=True)]
    said = f"<p><b>{html.escape(caption)}</b></p>" if caption else ""
    rest = rest_text(table.num_rows - shown.num_rows)
    return (
        f'<div class="ll-rows"><style>{_STYLE}</style>{said}'
        f"{html_table(columns, lines, none='no rows')}{f'<p>{rest}</p>' if rest else ''}</div>"
    )


class PlainTable:
    """What a chart function gives where plotly is not installed: the chart's sentence and table.

    Args:
        table: what would have been drawn.
        caption: what the chart would have said.
    """

    def __init__(self, table: pa.Table, caption: str = "") -> None:
        self.table = table
        self.caption = caption

    def _repr_html_(self) -> str:
        return table_html(self.table, self.caption)

    def __repr__(self) -> str:
        return f"{self.caption or 'a table'} ({words.count(self.table.num_rows, 'row')})"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"this is the table of a chart, which has no {name!r}: plotly is not installed. "
            "pip install 'lakelog[explore]'"
        )


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        found: list[Any] = column.to_pylist()
    except (
        OverflowError,
        ValueError,
    ):  # a timestamp beyond the year 9999, which Python does not have
        found = column.cast(pa.int64()).to_pylist()
    return found


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds")
    if isinstance(value, bytes):
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = f"0x{value.hex()}"
    else:
        text = str(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"
