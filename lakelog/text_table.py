"""Text for people: rows under headings, and values that no terminal obeys.

Every text table comes from here, so that all look alike. The layout is rich's, which knows how wide
a character is. It is never fitted to a terminal: a script reads the same table from a pipe, and a
path or an offset can be copied whole.
"""

from __future__ import annotations

import io
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

#: No table is wider: rich cuts or folds what does not fit its console.
_WIDTH = 2**31

#: rich lays out a cell of many lines much faster than many cells, but more lines not in proportion.
_LINES = 256

#: C0 and C1 control characters, and those that change the direction of text or break a line.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def text_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    *,
    right: Collection[str] = (),
) -> str:
    """Rows as lines of equal columns, under headings and a rule.

    Args:
        rows: values by column; one that is missing is None.
        columns: what is shown, in order; default: the first row's keys. Headings are their names
            with spaces for underscores.
        right: columns that end at one line besides those of numbers: numbers that are text already.

    Returns:
        Lines without an end of the last, and without blanks at their ends.
    """
    from rich.console import Console
    from rich.rule import Rule
    from rich.table import Table
    from rich.text import Text

    names = list(columns or (rows[0] if rows else ()))
    if not names:
        return ""
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for name in names:
        is_right = name in right or all(_is_number(row.get(name)) for row in rows)
        grid.add_column(justify="right" if is_right else "left", no_wrap=True, overflow="crop")
    grid.add_row(*(Text(printable(name.replace("_", " "))) for name in names))
    grid.add_row(*(Rule(style="none") for _ in names))
    for first in range(0, len(rows), _LINES):
        some = rows[first : first + _LINES]
        grid.add_row(*(Text("\n".join(shown(row.get(name)) for row in some)) for name in names))
    text = io.StringIO()
    Console(file=text, width=_WIDTH, color_system=None, legacy_windows=False).print(grid)
    return "\n".join(line.rstrip(" ") for line in text.getvalue().removesuffix("\n").split("\n"))


def shown(value: object) -> str:
    """A value as text for people: numbers with commas, a dash for None, one line, no commands."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"
    return printable(str(value))


def printable(text: str) -> str:
    r"""The text in one line without anything that a terminal obeys: ``\x1b`` for an escape byte.

    A backslash stays as it is, so JSON in a record is shown as it was written.
    """
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    short = {9: "\\t", 10: "\\n", 13: "\\r"}.get(code)
    return short or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, (int, float))
