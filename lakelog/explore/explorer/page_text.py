"""The page's records as plain text, for frontends without widgets and for logs of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.text_table import text_table
from ..words import size
from .rows import COLUMNS, PARTITION, Row

#: The widest a column gets; a line stays readable in a terminal.
_WIDTH = 48


def page_text(rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> str:
    """A table with column names; long texts are cut and show their size."""
    if not rows:
        return "no records"
    lines = [
        {
            name: _text(cell.text, cell.of_bytes)
            for name, cell in zip(columns, row.cells, strict=True)
        }
        for row in rows
    ]
    return text_table(lines, columns, right={PARTITION, "offset", "size"})


def _text(text: str, of_bytes: int | None) -> str:
    cut = "" if of_bytes is None else f"… {size(of_bytes)}"
    if len(text) + len(cut) <= _WIDTH:
        return text + cut
    cut = cut or "…"
    return text[: _WIDTH - len(cut)] + cut
