"""Text for people: rows under headings, and values that no terminal obeys.

Every text table comes from here, so that all look alike. rich says how wide a text is. Its own
`Table` would give the same lines in 40 times the time: it measures each cell again at each of its
layers. No value is cut or wrapped: a script reads the same table from a pipe, and a path or an
offset can be copied whole. Where a terminal is narrower than a table, whole columns go below.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any

_GAP = "  "  # between columns
_NAMES = ("group", "topic", "partition")  # what a row is of, where a table begins with it

#: C0 and C1 control characters, and those that change the direction of text or break a line.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def text_table(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str] | None = None,
    *,
    right: Collection[str] = (),
    is_ours: bool = True,
    cells_wide: int | None = None,
) -> str:
    """Rows as lines of equal columns, under headings and a rule.

    Args:
        rows: values by column; one that is missing is None.
        columns: what is shown, in order; default: the first row's keys.
        right: columns that end at one line besides those of numbers: numbers that are text already.
        is_ours: the columns are lakelog's: headings have spaces for underscores, numbers are
            rounded and have commas. Else names and values are somebody's data, shown as they are.
        cells_wide: columns that do not fit in so much follow below, again behind those that say
            what a row is of; None: in one line, however long.

    Returns:
        Lines without an end of the last, and without blanks at their ends.
    """
    names = list(columns or (rows[0] if rows else ()))
    padded = []
    for name in names:
        values = [row.get(name) for row in rows]
        ends_level = name in right or all(map(_is_number, values))
        padded.append(
            _column(
                name.replace("_", " ") if is_ours else name,
                map(shown if is_ours else data_text, values),
                ends_level=ends_level,
            )
        )
    told = sum(1 for _ in takewhile(_NAMES.__contains__, names)) or 1
    parts = [padded] if cells_wide is None else _fitted(padded, told, cells_wide)
    return "\n\n".join(
        "\n".join(_GAP.join(cells).rstrip(" ") for cells in zip(*part, strict=True))
        for part in parts
    )


def _fitted(columns: Sequence[list[str]], told: int, cells_wide: int) -> list[list[list[str]]]:
    """The columns in parts that fit, each behind the first so many."""
    wide = [len(rule) + len(_GAP) for _, rule, *_ in columns]
    parts: list[list[list[str]]] = []
    left = 0
    for column, its_wide in zip(columns[told:], wide[told:], strict=True):
        if not parts or its_wide > left:
            parts.append([*columns[:told]])
            left = cells_wide + len(_GAP) - sum(wide[:told])
        parts[-1].append(column)
        left -= its_wide
    return parts or [[*columns]]


def _column(heading: str, cells: Iterable[str], *, ends_level: bool) -> list[str]:
    """The heading, a rule and the cells, each as wide as the widest."""
    texts = [printable(heading), *cells]
    width = max(1, *map(_cells_wide, texts))  # of the rule
    if ends_level:
        lines = [_blanks(width, text) + text for text in map(str.rstrip, texts)]
    else:
        lines = [text + _blanks(width, text) for text in texts]
    return [lines[0], "─" * width, *lines[1:]]


def _blanks(width: int, text: str) -> str:
    return " " * (width - _cells_wide(text))


def _cells_wide(text: str) -> int:
    """How many cells of a terminal the text takes."""
    if text.isascii():  # most is
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


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


def data_text(value: object) -> str:
    """A value of somebody's data as text: every digit of a number and no other; else as `shown`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else shown(value)


def counted(count: int, noun: str) -> str:
    """``1 record``, ``2,000 records``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


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
