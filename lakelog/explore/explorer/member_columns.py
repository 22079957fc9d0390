"""The members of values that are JSON objects, as columns of the table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...codec.infer import infer
from ...codec.value_columns import columns_of, value_schema
from ...values.config import MIB
from ...values.value_ddl import VALUE_ERROR
from ..table import Cell
from .decode import NULL, one_line
from .rows import VALUE_BYTES, Row

#: The columns of a page whose values are more bytes are not looked for: a page is drawn at once.
LARGEST_BYTES = 4 * MIB

#: So many are shown until others are picked.
FIRST_COLUMNS = 6

#: Bars of a distribution, and its box.
_BARS, _WIDTH, _HEIGHT = 8, 64, 14

#: Before the names of these columns, so that none is taken for the record's own.
PREFIX = "value."


class MemberColumn(Struct, frozen=True):
    """A member of the values of a page."""

    name: str
    type: str  # as `topics infer` says it
    values: tuple[Any, ...]  # by row; None: null, or not there
    is_number: bool

    @property
    def column(self) -> str:
        """What the table calls it."""
        return PREFIX + self.name


class Members(Struct, frozen=True):
    """The columns of a page, and whether they tell all that its values hold.

    Args:
        others: whether some values are no such objects: they are shown as they are, too.
    """

    columns: tuple[MemberColumn, ...] = ()
    others: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def members_of(values: pa.ChunkedArray, known: str = "") -> Members:
    """The columns that the values could have, in the order in which they occur.

    Args:
        known: those that the topic has (``lakelog.value.columns``); they come first.
    """
    if values.nbytes > LARGEST_BYTES or not len(values):
        return Members()
    inferred = infer(values, known)
    if not inferred.ddl:
        return Members()
    table = columns_of(values, value_schema(inferred.ddl))
    types = {column.name: column.type for column in inferred.columns if column.type}
    found = [
        MemberColumn(
            field.name,
            types.get(field.name, str(field.type)),
            tuple(table.column(number).to_pylist()),
            pa.types.is_integer(field.type)
            or pa.types.is_floating(field.type)
            or pa.types.is_decimal(field.type),
        )
        for number, field in enumerate(table.schema)
        if field.name != VALUE_ERROR and field.name in types
    ]
    errors = table.column(table.schema.get_field_index(VALUE_ERROR))
    return Members(tuple(found), errors.null_count < len(errors))


def with_members(
    rows: Sequence[Row],
    columns: Sequence[str],
    members: Members,
    picked: Sequence[str],
    sort: tuple[str, bool] | None,
) -> tuple[list[Row], list[str]]:
    """The rows with the picked members in the place of the value, or before it.

    Args:
        columns: of the rows.
        sort: by the name of a member, and whether downward; None: as they are.
    """
    shown = [column for column in members.columns if column.name in picked]
    at = [*columns].index("value")
    kept = [columns[at]] if members.others or not shown else []
    names = [*columns[:at], *(column.column for column in shown), *kept, *columns[at + 1 :]]
    made = []
    for number, row in enumerate(rows):
        cells = [_cell(column.values[number]) for column in shown]
        own = [row.cells[at]] if kept else []
        cells = [*row.cells[:at], *cells, *own, *row.cells[at + 1 :]]
        made.append(replace(row, cells=tuple(cells)))
    by = next((one for one in members.columns if sort is not None and one.name == sort[0]), None)
    if by is not None and sort is not None:
        there = [number for number, value in enumerate(by.values) if value is not None]
        there.sort(key=lambda number: _order(by.values[number]), reverse=sort[1])
        lacking = [number for number, value in enumerate(by.values) if value is None]
        made = [made[number] for number in [*there, *lacking]]
    return made, names


def heads_html(members: Members) -> Mapping[str, str]:
    """The heading of each column: its name, and how its values are distributed on this page."""
    return {
        column.column: (
            f'<span title="{escape(column.type)}">{escape(column.name)}</span>'
            f"<br>{_distribution(column)}"
        )
        for column in members.columns
    }


def _cell(value: Any) -> Cell:
    if value is None:
        return Cell(NULL, NULL)
    text = _text(value)
    if len(text) > VALUE_BYTES:
        return Cell(text[:VALUE_BYTES], of_bytes=len(text.encode(errors="replace")))
    return Cell(text)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, dict)):
        return one_line(json.dumps(value, default=str))
    return one_line(str(value))


def _order(value: Any) -> Any:
    return json.dumps(value, default=str) if isinstance(value, (list, dict)) else value


def _distribution(column: MemberColumn) -> str:
    """Bars: of numbers by their size, of others by how often each occurs."""
    there = [value for value in column.values if value is not None]
    if not there:
        return ""
    if column.is_number:
        numbers = np.array([float(value) for value in there])
        counts, edges = np.histogram(numbers, _BARS)
        said = [
            f"{low:,.4g} to {high:,.4g}: {count:,}"
            for low, high, count in zip(edges, edges[1:], counts.tolist(), strict=False)
        ]
    else:
        common = Counter(_text(value) for value in there).most_common(_BARS)
        counts = np.array([count for _, count in common])
        said = [f"{text[:60]}: {count:,}" for text, count in common]
    wide = _WIDTH / _BARS
    top = max(1, int(counts.max()))
    bars = "".join(
        f'<rect x="{number * wide:.0f}" y="{_HEIGHT * (1 - count / top):.1f}" '
        f'width="{wide - 2:.0f}" height="{_HEIGHT * count / top:.1f}">'
        f"<title>{escape(text)}</title></rect>"
        for number, (count, text) in enumerate(zip(counts.tolist(), said, strict=True))
        if count
    )
    return f'<svg class="ll-spread" width="{_WIDTH}" height="{_HEIGHT}">{bars}</svg>'
