"""``lakelog sql``: a query over topics, in both tiers."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from ..base.json_text import readable_json
from .connect import open_to_read
from .options import Offer
from .output import FILE_FORMS, Table
from .record_output import check_columns_output, columns_written, form_by_name, lines_written
from .records import RowLimit

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a text table: its columns are as wide as their widest cell, so it is made whole.
_TEXT_ROWS = 1_000

_EPILOG = """\
DuckDB's SQL (pip install 'lakelog[sql]'). A topic is a table of partition, offset, timestamp, key,
value, headers, key_bytes, value_bytes, and of its typed columns; "show tables" lists the topics.
Other names than plain ones stand in double quotes, and so does "offset", a word of SQL. Conditions
on partition, offset and timestamp decide what is read of either tier. More: `lakelog help sql`.

examples:
  lakelog --dir ./log sql "select partition, count(*), max(timestamp) from orders group by all"
  lakelog --dir ./log sql "select key, value->>'$.to' as \\"to\\" from flights
                           where timestamp >= '2013-12-30' and (value->>'$.delay')::int > 60"
  lakelog --dir ./log sql 'select * from "web.log" where "offset" > 250' --output csv -o web.csv
"""


def add_sql(offer: Offer) -> None:
    added = offer.command(
        _run,
        "Run a query over topics as tables, in both tiers.",
        _EPILOG,
        forms=("text", "json", *FILE_FORMS),
    )
    added.add_argument("statement", help="in quotes; - reads it from standard input")
    added.add_argument(
        "--zone", default="UTC", help="of times without one, and of those that are shown"
    )
    added.add_argument(
        "--max",
        type=int,
        metavar="N",
        help=f"stop after N rows (default: {_TEXT_ROWS:,} of text that is shown, else all)",
    )
    added.add_argument("-o", "--output-file", metavar="FILE", help="default: standard output")


def _run(arguments: argparse.Namespace) -> Iterator[Any]:
    from ..values.typed_time import zone_named

    form_by_name(arguments)
    check_columns_output(arguments)
    zone_named(arguments.zone)
    limit = RowLimit(arguments.max)
    statement = sys.stdin.read() if arguments.statement == "-" else arguments.statement
    with open_to_read(arguments) as log:
        found = log.sql(statement, zone=arguments.zone)
        try:
            yield from rows_written(found.schema, limit.limited(found), arguments)
        finally:
            found.close()


def rows_written(
    schema: pa.Schema, found: Iterable[pa.RecordBatch], arguments: argparse.Namespace
) -> Iterator[Any]:
    """Rows of any columns, in the form that was asked for."""
    if arguments.output in ("parquet", "arrow"):
        yield from columns_written(found, schema, arguments, "row")
    elif arguments.output == "text":
        yield from _text(schema, found, arguments)
    else:
        make = _json_lines if arguments.output == "json" else _csv_lines
        lines = [(_csv_row(_names(schema)), 0)] if arguments.output == "csv" else []
        made = ((make(batch), batch.num_rows) for batch in found)
        yield from lines_written(chain(lines, made), arguments, "row")


def _text(
    schema: pa.Schema, found: Iterable[pa.RecordBatch], arguments: argparse.Namespace
) -> Iterator[Any]:
    most = arguments.max
    if most is None and arguments.output_file is None:
        most = _TEXT_ROWS
    limit = RowLimit(None if most is None else most + 1)
    rows = [row for batch in limit.limited(found) for row in _rows(batch)]
    names = _names(schema)
    shown = [dict(zip(names, map(_cell, row), strict=True)) for row in rows[:most]]
    if arguments.output_file is None:
        yield Table(shown, names, empty="no rows", is_ours=False)
    else:
        from ..base.text_table import text_table

        lines = [(f"{text_table(shown, names, is_ours=False)}\n", len(shown))]
        yield from lines_written(lines, arguments, "row")
    if most is not None and len(rows) > most and arguments.max is None:
        print(
            f"the first {most:,} rows; --max shows more, --output csv or json all", file=sys.stderr
        )


def _names(schema: pa.Schema) -> list[str]:
    """The columns' names; of several the same, the later ones with a number, as in DuckDB."""
    seen: dict[str, None] = {}
    for name in schema.names:
        numbered = (f"{name}_{number}" for number in count(1))
        seen[name if name not in seen else next(one for one in numbered if one not in seen)] = None
    return list(seen)


def _rows(batch: pa.RecordBatch) -> Iterable[tuple[Any, ...]]:
    return zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    import pyarrow as pa

    if column.type == pa.float32():  # 0.1, which is 0.10000000149011612 in Python
        return [
            None if text is None else _plain(float(text))
            for text in column.cast("string").to_pylist()
        ]
    if column.type == pa.timestamp("ns"):  # pandas, where it is there, would cut them
        return [_far_time(scalar) if scalar.is_valid else None for scalar in column]
    try:
        return [_plain(value) for value in column.to_pylist()]
    except (ValueError, OverflowError):  # a time that Python has no object for
        return list(map(_of_scalar, column))


def _of_scalar(scalar: Any) -> Any:
    """As `_plain`; times before the year 1 and after 9999 too."""
    import pyarrow as pa

    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(kind):
        return {kind[n].name: _of_scalar(scalar[n]) for n in range(kind.num_fields)}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return list(map(_of_scalar, scalar.values))
    if pa.types.is_map(kind):
        return [[_of_scalar(pair[0]), _of_scalar(pair[1])] for pair in scalar.values]
    try:
        return _plain(scalar.as_py())
    except (ValueError, OverflowError):
        return _far_time(scalar)


def _far_time(scalar: Any) -> str:
    """A time as ISO 8601 has it, in UTC if it has a zone; DuckDB's ends of time by their names."""
    import numpy as np
    import pyarrow as pa

    unit = "D" if pa.types.is_date(scalar.type) else scalar.type.unit
    ticks = scalar.cast(pa.int32() if unit == "D" else pa.int64()).as_py()
    if abs(ticks) == (2**31 if unit == "D" else 2**63) - 1:
        return "infinity" if ticks > 0 else "-infinity"
    has_zone = unit != "D" and scalar.type.tz is not None
    text = re.sub(r"\.0+$|(?<=\.\d{3})0+$", "", str(np.array(ticks).astype(f"datetime64[{unit}]")))
    text = re.sub(r"^-(\d+)", lambda year: f"-{year[1]:0>4}", text)
    return f"{text}{'+00:00' if has_zone else ''}"


def _plain(value: Any) -> Any:
    """A value as JSON has it; bytes as `lakelog consume --output csv` shows them."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return value.isoformat(timespec=_timespec(value.microsecond))
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return f"0x{value.hex()}"
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return str(value)  # a decimal, a day, a UUID


def _timespec(microsecond: int) -> str:
    if microsecond % 1000:
        return "microseconds"
    return "milliseconds" if microsecond else "seconds"


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def _json_lines(batch: pa.RecordBatch) -> str:
    names = _names(batch.schema)
    objects = (dict(zip(names, row, strict=True)) for row in _rows(batch))
    return "".join(f"{readable_json(one)}\n" for one in objects)


def _csv_lines(batch: pa.RecordBatch) -> str:
    return "".join(_csv_row(map(_cell, row)) for row in _rows(batch))


def _csv_row(values: Iterable[Any]) -> str:
    from ..values.record_lines import csv_field

    return ",".join(csv_field(None if value is None else str(value)) for value in values) + "\n"
