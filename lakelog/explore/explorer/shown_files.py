"""The rows shown as files."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ...base.text_table import counted
from ...errors import InvalidArgumentError
from ...read.found import FOUND
from ...values.record_lines import CSV_HEADING, csv_lines, json_lines
from ..words import size
from .view import Shown, View

#: What they can be saved as, by the end of a file's name.
FILES = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}

#: The largest file that goes into the page as a link.
LINKED_BYTES = 16 << 20


def save(view: View, tables: Iterable[pa.Table], path: str | Path) -> int:
    """Writes rows as the end of the file's name says, and returns how many.

    Args:
        tables: RECORDS of the view's one partition, or FOUND.

    Raises:
        InvalidArgumentError: a name that ends in none of `FILES`.
        OSError: the file cannot be written.
    """
    path = Path(path)
    kind = path.suffix.removeprefix(".")
    _check_kind(kind)
    with path.open("wb") as file:
        return _write(view, tables, kind, file)


def download_html(shown: Shown, kind: str) -> str:
    """A link that holds the rows shown as a file.

    Raises:
        InvalidArgumentError: they are more than `LINKED_BYTES`.
    """
    _check_kind(kind)
    file = io.BytesIO()
    _write(shown.view, [shown.records], kind, file)
    data = file.getvalue()
    if len(data) > LINKED_BYTES:
        raise InvalidArgumentError(
            f"{size(len(data))} are too much for a link; "
            f"explorer.export('{shown.view.topic}.{kind}') writes a file"
        )
    name = escape(f"{shown.view.topic}.{kind}")
    held = f"{counted(shown.records.num_rows, 'row')}, {size(len(data))}"
    return (
        f'<a download="{name}" href="data:application/octet-stream;base64,'
        f'{base64.b64encode(data).decode()}">{name}</a> '
        f'<span class="ll-kind">{held}</span>'
    )


def _check_kind(kind: str) -> None:
    if kind not in FILES:
        raise InvalidArgumentError(
            f"a file's name ends in {', '.join('.' + one for one in FILES)}, not in .{kind}",
            value=kind,
        )


def _write(view: View, tables: Iterable[pa.Table], kind: str, file: BinaryIO) -> int:
    rows = 0
    whole = (_with_partition(view, table) for table in tables)
    if kind == "parquet":
        with pq.ParquetWriter(file, FOUND) as writer:
            for table in whole:
                writer.write_table(table)
                rows += table.num_rows
        return rows
    if kind == "csv":
        file.write(CSV_HEADING.encode())
    lines = csv_lines if kind == "csv" else json_lines
    for table in whole:
        file.write(lines(view.topic, table).encode())
        rows += table.num_rows
    return rows


def _with_partition(view: View, table: pa.Table) -> pa.Table:
    if view.partition is None:
        return table.cast(FOUND)
    numbers = pa.array([view.partition] * table.num_rows, pa.int32())
    return table.add_column(0, FOUND.field("partition"), numbers).cast(FOUND)
