"""What the charts have in common: a table that says what it is of, and how chart and table show.

The schema's metadata of a chart's table carry the topic, the partitions that were asked for (even
without rows), and sentences on what the rows leave out. A table made by hand has no metadata, and
is drawn all the same.
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...base import compute as pc
from ...base.notebook import of_notebook
from ...base.text_table import data_text
from ...errors import InvalidArgumentError
from ...read.topic_log import TopicLog
from .. import words
from ..table import Cell, Column, Line, html_table, rest_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_KEY = b"lakelog.chart"
#: What stands for a null in a column of numbers.
NULL = np.iinfo(np.int64).min

DEFAULT_ROWS = 100
_KEPT_ROWS = 20  # that a notebook stores with a chart
_CHARACTERS = 200  # of one cell
_RIGHT = "ll-right"
_STYLE = (
    ".ll-rows { overflow-x: auto; } .ll-rows table { border-collapse: collapse; } "
    ".ll-rows td, .ll-rows th { padding: 2px 10px; text-align: left !important; "
    "white-space: nowrap; border-bottom: 1px solid rgba(128,128,128,.25); } "
    ".ll-rows .ll-right { text-align: right !important; }"
)


# -- the table ------------------------------------------------------------------------------------


def partitions_asked(asking: str, log: object, partitions: Iterable[int] | None) -> list[int]:
    """The partitions that a function is asked for; None: all of the log's.

    Raises:
        InvalidArgumentError: it was given something else than a topic's log.
    """
    if not isinstance(log, TopicLog):
        of = repr(log) if isinstance(log, str) else '"NAME"'
        raise InvalidArgumentError(
            f"{asking} takes the log of a topic, and was given a {type(log).__name__}: "
            f"charts.{asking}(lake.log({of}))"
        )
    return list(range(log.topic.partitions) if partitions is None else partitions)


def described(
    table: pa.Table, *, topic: str, partitions: Iterable[int], notes: Sequence[str] = ()
) -> pa.Table:
    """The table, with these facts in its metadata."""
    said = {"topic": topic, "partitions": list(partitions), "notes": list(notes)}
    return table.replace_schema_metadata({_KEY: json.dumps(said).encode()})


def partitions_of(table: pa.Table) -> list[int]:
    """The partitions that were asked for, and those of the rows; ascending."""
    rows = table["partition"].unique().to_pylist() if "partition" in table.column_names else []
    return sorted({*_said(table).get("partitions", []), *rows})


def notes_of(table: pa.Table) -> list[str]:
    """Sentences on what the rows leave out."""
    return [str(note) for note in _said(table).get("notes", [])]


def about(table: pa.Table, message: str) -> str:
    """The message, after the topic's name if the table says it."""
    topic = _said(table).get("topic", "")
    return f"{topic}: {message}" if topic else message[:1].upper() + message[1:]


def _said(table: pa.Table) -> dict[str, Any]:
    found = (table.schema.metadata or {}).get(_KEY)
    return json.loads(found) if found else {}


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
            for field in schema:
                at = arrow.schema.get_field_index(field.name)
                arrow = arrow.set_column(at, field, arrow[field.name].cast(field.type))
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
    found = pc.fill_null(table[name].cast(pa.int64()), NULL)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def float64(table: pa.Table, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A column of numbers; NaN where it is null."""
    found = pc.fill_null(table[name].cast(pa.float64()), float("nan"))
    return np.asarray(found.to_numpy(), dtype=np.float64)


# -- as HTML --------------------------------------------------------------------------------------


def table_html(table: pa.Table, caption: str = "", *, rows: int = DEFAULT_ROWS) -> str:
    """The first rows as one HTML table, with everything in it escaped.

    It has no colours of its own, so it reads in a light and in a dark theme. Names and values are
    shown as they are; numbers of a table that a log gave for a chart are rounded, with commas.

    Args:
        table: any Arrow table.
        caption: a sentence above it, as text.
        rows: how many are shown; a line below says how many are not.
    """
    return _html(table, caption, rows, is_ours=bool(_said(table)))


def _html(table: pa.Table, caption: str, rows: int, *, is_ours: bool) -> str:
    shown = table.slice(0, rows)
    columns = [
        Column(
            field.name.replace("_", " ") if is_ours else field.name,
            _RIGHT if _is_number(field.type) else "",
            short=True,
        )
        for field in table.schema
    ]
    text = _text if is_ours else _data_text
    cells = [[Cell(text(value)) for value in _values(column)] for column in shown.columns]
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
        is_ours = bool(self.caption or _said(self.table))
        return _html(self.table, self.caption, DEFAULT_ROWS, is_ours=is_ours)

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
    except (OverflowError, ValueError):  # a timestamp beyond the year 9999, which Python has not
        found = column.cast(pa.int64()).to_pylist()
    return found


def _data_text(value: Any) -> str:
    return data_text(value) if isinstance(value, (bool, int, float)) else _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1 else f"{value:,.3f}".rstrip("0").rstrip(".")
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


# -- as a chart -----------------------------------------------------------------------------------


def drawn(
    table: pa.Table, message: str, draw: Callable[[], tuple[list[Any], dict[str, Any]]]
) -> Figure:
    """The chart; a `PlainTable` where plotly is not installed.

    Args:
        message: what the chart says.
        draw: gives traces and layout, as plain values; not called without plotly.
    """
    try:
        from .figure import Chart
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "plotly":
            raise
        return PlainTable(table, message)
    traces, layout = draw()
    kept = _html(table, message, _KEPT_ROWS, is_ours=True)
    return Chart(data=traces, layout=layout, table=table, message=message, table_html=kept)


def show(shown: Any) -> None:
    """Displays a chart, or a table, as the output of a notebook's cell or inside a widgets' Output.

    A chart is sent as ``application/vnd.plotly.v1+json``, which JupyterLab and VS Code draw, with
    the first rows of its table (``text/html``) for what does not: GitHub, nbconvert. plotly.js
    itself is never sent. A Databricks notebook gets the drawing as HTML that loads plotly.js from
    the web. If another front end shows the table and you want the drawing, ``figure.show()`` lets
    plotly choose a way.

    Args:
        shown: what a function of `lakelog.explore.charts` gave, any other plotly Figure, or an
            Arrow table. Outside IPython its sentence is printed.

    Raises:
        InvalidArgumentError: it is none of these.
    """
    data = bundle(shown)
    if "IPython" not in sys.modules:  # plain Python would not draw it
        print(data["text/plain"])
        return
    from IPython.display import display

    display_html = of_notebook("displayHTML")
    if display_html is not None and not isinstance(shown, (pa.Table, PlainTable)):
        # Databricks' own function, since its notebooks draw plotly only from HTML.
        display_html(shown.to_html(include_plotlyjs="cdn", full_html=False))
        return
    display(data, raw=True)  # type: ignore[no-untyped-call]  # IPython has no types for it


def bundle(shown: Any) -> dict[str, Any]:
    """What a front end chooses from, by mimetype.

    Raises:
        InvalidArgumentError: it is no chart and no table.
    """
    if isinstance(shown, pa.Table):
        shown = PlainTable(shown)
    if isinstance(shown, PlainTable):
        return {"text/html": shown._repr_html_(), "text/plain": repr(shown)}
    if "plotly" in sys.modules:
        from plotly.graph_objects import Figure

        from .figure import Chart, drawing

        if isinstance(shown, Chart):
            return shown._repr_mimebundle_()
        if isinstance(shown, Figure):
            return drawing(shown)
    raise InvalidArgumentError(
        f"{type(shown).__name__} is neither a chart nor a table: pass what a function of "
        "lakelog.explore.charts gave, a plotly Figure or an Arrow table (.to_table() of a read)"
    )
