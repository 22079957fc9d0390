"""The page's table as plain text, for frontends without widgets and for logs of jobs."""

from __future__ import annotations

from collections.abc import Sequence

from .rows import COLUMNS, Row, readable_size

#: The widest a column gets; a line stays readable in a terminal.
_WIDTH = 48


def text_table(rows: Sequence[Row]) -> str:
    """Columns beside each other under their names; long texts are cut, with their size."""
    if not rows:
        return "no records"
    lines = [list(COLUMNS), *([_text(cell.text, cell.of_bytes) for cell in r.cells] for r in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if name in {"offset", "size"} else text.ljust(width)
            for name, text, width in zip(COLUMNS, line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _text(text: str, of_bytes: int | None) -> str:
    size = "" if of_bytes is None else f"… {readable_size(of_bytes)}"
    if len(text) + len(size) <= _WIDTH:
        return text + size
    size = size or "…"
    return text[: _WIDTH - len(size)] + size
