"""What a chart's table says besides its rows, and how its columns are read.

The schema's metadata carry the topic, the partitions that were asked for (even without rows), and
sentences on what the rows leave out. A table made by hand has no metadata, and is drawn all the
same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ...base import compute as pc
from ...errors import InvalidArgumentError

_KEY = b"lakelog.chart"
#: What stands for a null in a column of numbers.
NULL = np.iinfo(np.int64).min


def described(
    table: pa.Table, *, topic: str, partitions: Iterable[int], notes: Sequence[str] = ()
) -> pa.Table:
    """The table, with these facts in its metadata."""
    said = {"topic": topic, "partitions": list(partitions), "notes": list(notes)}
    return table.replace_schema_metadata({_KEY: json.dumps(said).encode()})


def topic_of(table: pa.Table) -> str:
    """The topic; empty if the table does not say."""
    return str(_said(table).get("topic", ""))


def partitions_of(table: pa.Table) -> list[int]:
    """The partitions that were asked for, and those of the rows; ascending."""
    rows = table["partition"].unique().to_pylist() if "partition" in table.column_names else []
    return sorted({*_said(table).get("partitions", []), *rows})


def notes_of(table: pa.Table) -> list[str]:
    """Sentences on what the rows leave out."""
    return [str(note) for note in _said(table).get("notes", [])]


def about(table: pa.Table, message: str) -> str:
    """The message, after the topic's name if the table says it."""
    topic = topic_of(table)
    return f"{topic}: {message}" if topic else message[:1].upper() + message[1:]


def checked(table: Any, schema: pa.Schema, made_by: str) -> pa.Table:
    """The table, if a chart can be drawn of it.

    Args:
        table: an Arrow table, or what `pyarrow.table` turns into one (a pandas or polars frame).
        schema: the columns that are read; a table may have more, in any order.
        made_by: where such a table comes from, for the error's sentence.

    Raises:
        InvalidArgumentError: columns are missing, or hold something else.
    """
    try:
        arrow = table if isinstance(table, pa.Table) else pa.table(table)
        missing = [name for name in schema.names if name not in arrow.column_names]
        if not missing:
            typed = {field.name: arrow[field.name].cast(field.type) for field in schema}
            for name, column in typed.items():
                at = arrow.schema.get_field_index(name)
                arrow = arrow.set_column(at, schema.field(name), column)
            return arrow
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"this is no table of {made_by}: {error}. Pass what that gives, or rows of "
            f"{', '.join(f'{field.name} {field.type}' for field in schema)}"
        ) from error
    raise InvalidArgumentError(
        f"the table has no column {', '.join(missing)}, only {', '.join(arrow.column_names)}. "
        f"Pass what {made_by} gives"
    )


def int64(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A column of whole numbers or timestamps (µs); `NULL` where it is null."""
    column = table[name]
    found = pc.fill_null(column.cast(pa.int64()), NULL)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def float64(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column of numbers; NaN where it is null."""
    found = pc.fill_null(table[name].cast(pa.float64()), float("nan"))
    return np.asarray(found.to_numpy(), dtype=np.float64)


def _said(table: pa.Table) -> dict[str, Any]:
    found = (table.schema.metadata or {}).get(_KEY)
    return json.loads(found) if found else {}
