"""How each engine reads a topic's Delta table: the calls that its users make, and no others."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from importlib.metadata import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from archived_topic import Row
from deltalake import DeltaTable, QueryBuilder

#: column, operator and number (or "is null" and ""); all must hold
Where = Sequence[tuple[str, str, int | str]]
#: Reads the rows of a table that a condition holds for, in any order.
Reader = Callable[[Path, Where], pa.Table]


def spark(path: Path, where: Where) -> pa.Table:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    return session.read.format("delta").load(str(path)).where(_sql(where, "`")).toArrow()


def delta_rs_sql(path: Path, where: Where) -> pa.Table:
    query = QueryBuilder().register("t", DeltaTable(str(path)))
    return pa.table(query.execute(f"SELECT * FROM t WHERE {_sql(where)}"))


def delta_rs_arrow(path: Path, where: Where) -> pa.Table:
    dataset = DeltaTable(str(path)).to_pyarrow_dataset()
    return dataset.to_table(filter=_expression(where, pc.field))


def polars(path: Path, where: Where) -> pa.Table:
    import polars as pl

    return pl.scan_delta(str(path)).filter(_expression(where, pl.col)).collect().to_arrow()


def duckdb(path: Path, where: Where) -> pa.Table:
    import duckdb

    connection = duckdb.connect()
    connection.load_extension(_delta_extension())  # where there is a network: INSTALL delta
    query = f"SELECT * FROM delta_scan(?) t WHERE {_sql(where)}"
    return connection.execute(query, [str(path)]).to_arrow_table()


def pandas(path: Path, where: Where) -> pa.Table:
    import pandas as pd

    condition = _expression(where, pc.field)
    frame = DeltaTable(str(path)).to_pandas(filters=condition, types_mapper=pd.ArrowDtype)
    return pa.Table.from_pandas(frame, preserve_index=False)


READERS: dict[str, Reader] = {
    "Spark": spark,
    "delta-rs SQL": delta_rs_sql,
    "delta-rs Arrow": delta_rs_arrow,
    "Polars": polars,
    "DuckDB": duckdb,
    "pandas": pandas,
}


def rows(table: pa.Table) -> list[Row]:
    """What came back, sorted."""
    assert sorted(table.column_names) == sorted(COLUMNS + VALUE_COLUMNS)
    columns = []
    for name in COLUMNS + VALUE_COLUMNS:
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        columns.append([_plain(value) for value in column.to_pylist()])
    found = zip(*columns, strict=True)
    return sorted(Row(*values[: len(COLUMNS)], values[len(COLUMNS) :]) for values in found)


COLUMNS = (
    *("partition", "segment", "offset", "timestamp", "timestampType"),
    *("key", "value", "headers", "delete_horizon"),
)
VALUE_COLUMNS = ("id", "price", "at", "day", "paid", "tags", "more", "item", "value_error")


def _plain(value: Any) -> Any:
    """Lists, maps and structs as tuples: engines differ in what they make of them in Python."""
    if isinstance(value, dict):
        return tuple(_plain(part) for part in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(_plain(part) for part in value)
    return value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    ">=": operator.ge,
    "<": operator.lt,
    "is null": lambda column, _: column.is_null(),
}


def _sql(where: Where, quote: str = '"') -> str:
    return " AND ".join(f"{quote}{name}{quote} {sign} {number}" for name, sign, number in where)


def _expression(where: Where, field: Callable[[str], Any]) -> Any:
    parts = (_OPERATORS[sign](field(column), value) for column, sign, value in where)
    return reduce(operator.and_, parts)


def _delta_extension() -> str:
    """Out of its wheel. DuckDB loads only what its makers signed, whoever packed it."""
    packed = files("duckdb-extension-delta") or []
    (found,) = (str(file.locate()) for file in packed if file.name == "delta.duckdb_extension")
    return found
