"""The rows shown as code in other words, and as files."""

from __future__ import annotations

import base64
import io
import shlex
from collections.abc import Iterable, Sequence
from datetime import timezone
from html import escape
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from ...base.text_table import counted
from ...errors import InvalidArgumentError
from ...read.found import FOUND
from ...read.where import is_all, write
from ...values.offsets import AtOffset
from ...values.record_lines import CSV_HEADING, csv_lines, json_lines
from ...values.typed_time import clock_text
from ..table import readable_size
from .member_columns import PREFIX
from .spark_condition import spark_condition
from .spark_members import member_as
from .view import Shown, View

#: What the rows shown can be copied as.
PYTHON, FRAME, SQL, CLI, LINK = "Python", "Spark DataFrame", "Spark SQL", "command line", "link"
CODES = (PYTHON, FRAME, SQL, CLI, LINK)

#: What they can be saved as, by the end of a file's name.
FILES = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}

#: The largest file that goes into the page as a link.
LINKED_BYTES = 16 << 20

#: So much of a call is shown on a page, and kept in a notebook.
SHOWN_CHARACTERS = 4_000


def code(shown: Shown, form: str = PYTHON, members: Sequence[tuple[str, str]] = ()) -> str:
    """The call that gives the rows shown, or for `LINK` that shows them.

    Args:
        members: of the values, by name and Spark's type, that Spark gives as columns, too.

    Raises:
        InvalidArgumentError: another form.
    """
    view = shown.view
    if form == PYTHON:
        return f"lake.log({view.topic!r}).{view.expression.removeprefix('log.')}"
    if form == FRAME:
        return _frame(view, members)
    if form == SQL:
        return _sql(view, members)
    if form == CLI:
        return _command(view)
    if form == LINK:
        return _link(shown)
    raise InvalidArgumentError(f"{form!r} is none of {', '.join(CODES)}", value=form)


def shortened(text: str) -> str:
    """A call as it is shown: cut if it holds a very long text; it says where all of it is."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]} … ({len(text):,} characters; explorer.code() has them all)"


def _selected(members: Sequence[tuple[str, str]]) -> list[str]:
    """All columns, and the members as such that the table gives them as."""
    written = ((name, member_as(name, kind)) for name, kind in members)
    found = [f"{text} AS `{PREFIX}{name}`" for name, text in written if text is not None]
    return ["*", *found]


def _frame(view: View, members: Sequence[tuple[str, str]]) -> str:
    starts = {number: start for number, (start, _) in view.spans.items()}
    ends = {number: end for number, (_, end) in view.spans.items()}
    frame = f"lake.dataframe({view.topic!r}, {starts}, {ends})"
    condition = spark_condition(view.match)
    if condition not in (None, "true"):
        frame += f".where({condition!r})"
    selected = _selected(members)
    if len(selected) > 1:
        frame += f".selectExpr({', '.join(map(repr, selected))})"
    return f"{frame}  # to be filtered: {write(view.match)}" if condition is None else frame


def _sql(view: View, members: Sequence[tuple[str, str]]) -> str:
    name = "".join(one if one.isalnum() else "_" for one in view.topic)
    spans = " OR ".join(
        f"(partition = {number} AND offset >= {start} AND offset < {end})"
        for number, (start, end) in view.spans.items()
    )
    parts = [f"({spans})" if spans else "false"]
    condition = spark_condition(view.match)
    if condition not in (None, "true"):
        parts.append(str(condition))
    note = f"  -- to be filtered: {write(view.match)}" if condition is None else ""
    return (
        f"SELECT {', '.join(_selected(members))} FROM {name} WHERE {' AND '.join(parts)}{note}"
        f"  -- after lake.dataframe({view.topic!r}).createOrReplaceTempView({name!r})"
    )


def _command(view: View) -> str:
    words = ["lakelog", "consume", view.topic]
    where = "" if is_all(view.match) else write(view.match)
    if view.partition is not None:
        start, end = view.spans[view.partition]
        words += ["-p", str(view.partition), "--from", str(start), "--to", str(end)]
    else:
        words.append("--merge")
        spans = " or ".join(
            f"partition = {number} and offset >= {start} and offset < {end}"
            for number, (start, end) in view.spans.items()
        )
        where = " and ".join(f"({part})" for part in (where, spans) if part)
    if where:
        words += ["--where", where]
    return shlex.join(words)


def _link(shown: Shown) -> str:
    view = shown.view
    arguments = [repr(view.topic)]
    if view.partition is not None:
        arguments += [str(view.partition), f"at={view.start_offset}"]
    elif shown.records.num_rows:
        arguments.append(f"at={_time_text(shown.records['timestamp'][0].value // 1000)!r}")
    elif isinstance(shown.ask.where, AtOffset):
        arguments.append(f"at={shown.ask.where.offset}")
    if not is_all(view.match):
        arguments.append(f"where={write(view.match)!r}")
    return f"lake.explore({', '.join(arguments)})"


def _time_text(time_ms: int) -> str:
    """A time as `read_time` reads it; what is before 1970 comes first in any case."""
    if time_ms < 0:
        return "earliest"
    return clock_text(time_ms, timezone.utc).replace(" ", "T")


# -- files ---------------------------------------------------------------------------------------


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
            f"{readable_size(len(data))} are too much for a link; "
            f"explorer.export('{shown.view.topic}.{kind}') writes a file"
        )
    name = escape(f"{shown.view.topic}.{kind}")
    held = f"{counted(shown.records.num_rows, 'row')}, {readable_size(len(data))}"
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
