"""Rows that a notebook shows as a table, and as a sentence where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ..base.text_table import shown, text_table

_CELL = "text-align:{};vertical-align:top"


class TableRows(list[dict[str, Any]]):
    """Rows by column; shows itself as a table.

    Args:
        none: what is said where there are no rows.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]], none: str) -> None:
        super().__init__(dict(row) for row in rows)
        self.none = none

    def __repr__(self) -> str:
        return text_table(self) if self else self.none

    def _repr_html_(self) -> str:
        return table_html(self) if self else f"<p>{escape(self.none)}</p>"


def table_html(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as one HTML table, as `text_table` has them as text; everything is escaped."""
    names = list(columns or (rows[0] if rows else ()))
    level = {name: all(_is_number(row.get(name)) for row in rows) for name in names}
    heads = "".join(_cell("th", name.replace("_", " "), level[name]) for name in names)
    body = "".join(
        "<tr>" + "".join(_cell("td", shown(row.get(name)), level[name]) for name in names) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _cell(tag: str, text: str, is_level: bool) -> str:
    style = _CELL.format("right" if is_level else "left")
    return f'<{tag} style="{style}">{escape(text)}</{tag}>'


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, (int, float))
