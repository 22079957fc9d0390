"""Records as frames of the libraries that people compute with, their values opened."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..codec.formats.decoders import Decoded, decoded
from ..codec.infer import infer
from ..codec.value_columns import columns_of_decoded, value_schema
from ..errors import InvalidArgumentError, MissingExtraError
from ..values.config import TopicConfig
from ..values.value_ddl import VALUE_ERROR

if TYPE_CHECKING:
    import duckdb
    import pandas  # type: ignore[import-untyped]
    import polars

#: How the values of a frame are given.
Values = Literal["columns", "json", "text", "bytes"]
_LEGAL = ("columns", "json", "text", "bytes")

_SHOWN_ROWS = 20
#: Of how many values the columns are found that a topic does not say.
_SAMPLED = 1_000

_PLAIN = TopicConfig()


class Frames(ABC):
    r"""What can be read into memory as a frame.

    `values` says how keys and values are given:

    - ``columns``: the members of values that are JSON objects as columns, by the topic's
      ``lakelog.value.columns``, or by what the values have where it has none. If some are not such,
      ``value_error`` says why, and ``value`` has their text. Values that are no objects at all are
      given as text.
    - ``json``: the same in one column ``value``, of a struct (in pandas: mappings).
    - ``text``: UTF-8; what is not is escaped, such as ``\xff``.
    - ``bytes``: as they are stored.
    """

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """All of it, in memory, as it is stored."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch] | Iterator[pa.Table]:
        """Parts of `to_arrow`, as they are read."""

    @abstractmethod
    def _config(self) -> TopicConfig:
        """The topic's settings, which say how its keys and values are read."""

    def to_table(self, values: Values = "columns") -> pa.Table:
        """All of it as a table of Arrow.

        Raises:
            InvalidArgumentError: no such `values`.
        """
        return opened(self.to_arrow(), values, self._config())

    def to_pandas(self, values: Values = "columns") -> pandas.DataFrame:
        """All of it as a frame of pandas; whole numbers and booleans stay so where some are null.

        Raises:
            InvalidArgumentError: no such `values`.
            MissingExtraError: pandas is not installed.
        """
        return _pandas(self.to_table(values))

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the first rows, where pandas is installed."""
        if find_spec("pandas") is None:
            return None
        parts: list[pa.Table] = []
        rows = 0
        for part in self:
            rows += part.num_rows
            parts.append(pa.table(part.columns, schema=part.schema))
            if rows > _SHOWN_ROWS:
                break
        if not rows:
            return f"<p>{escape(repr(self))}: no records</p>"
        first = pa.concat_tables(parts).slice(0, _SHOWN_ROWS)
        frame = _pandas(opened(first, "columns", self._config()))
        more = "" if rows <= _SHOWN_ROWS else f", the first {_SHOWN_ROWS} of more"
        shown: str = frame.to_html(index=False, border=0, na_rep="")
        return f"<p>{escape(repr(self))}{more}</p>{shown}"

    def to_polars(self, values: Values = "columns") -> polars.DataFrame:
        """All of it as a frame of polars; raises as `to_pandas`."""
        made = _needed("polars").from_arrow(self.to_table(values))
        return cast("polars.DataFrame", made)

    def to_duckdb(self, values: Values = "columns") -> duckdb.DuckDBPyRelation:
        """All of it as a relation of DuckDB; raises as `to_pandas`."""
        made = _needed("duckdb").from_arrow(self.to_table(values))
        return cast("duckdb.DuckDBPyRelation", made)


def _pandas(table: pa.Table) -> pandas.DataFrame:
    pandas = _needed("pandas")
    frame = table.to_pandas()
    for number, field in enumerate(table.schema):
        is_whole = pa.types.is_integer(field.type) or pa.types.is_boolean(field.type)
        if is_whole and table.column(number).null_count:  # else they become floats and objects
            name = str(field.type).replace("uint", "UInt").replace("int", "Int")
            dtype = pandas.api.types.pandas_dtype("boolean" if name == "bool" else name)
            column = table.column(number).to_pandas(types_mapper={field.type: dtype}.get)
            frame[field.name] = column
    return frame


def _needed(package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"a frame of {package} takes {package}, which is not installed: pip install {package}"
        ) from error


def opened(table: pa.Table, values: Values, config: TopicConfig = _PLAIN) -> pa.Table:
    """Records with their keys and values as they are asked for; see `Frames`.

    Args:
        table: with columns key and value, among others.
        config: of their topic: how keys and values are read, and the columns of these.

    Raises:
        InvalidArgumentError: no such `values`.
        MissingExtraError: what reads them is not installed.
    """
    if values not in _LEGAL:
        raise InvalidArgumentError(f"values={values!r} is none of {', '.join(_LEGAL)}")
    if values == "bytes":
        return table
    stored = decoded(table["value"], config.value_format)
    table = _with(table, "key", _texts(decoded(table["key"], config.key_format).values))
    members = None if values == "text" else _members(stored, config.value_columns)
    if members is None:
        return _with(table, "value", _texts(stored.values))
    if values == "json":
        errors = members[VALUE_ERROR]
        columns = members.drop_columns([VALUE_ERROR])
        table = _with(table, "value", pa.chunked_array(_struct(columns, stored.values)))
        return table.append_column(VALUE_ERROR, errors) if _some(errors) else table
    table = _beside(table, stored.values, members)
    return table if _some(members[VALUE_ERROR]) else table.drop_columns(["value", VALUE_ERROR])


def readable(table: pa.Table, config: TopicConfig) -> pa.Table:
    """Records as people read them: keys and values as JSON where they are of another format."""
    for name, form in (("key", config.key_format), ("value", config.value_format)):
        if not form.is_json:
            table = _with(table, name, decoded(table[name], form).values)
    return table


def in_columns(table: pa.Table, value_columns: str, config: TopicConfig) -> pa.Table:
    """Records whose values are given as columns of one definition, whatever they are.

    Args:
        table: with columns key and value, among others.
        value_columns: as ``lakelog.value.columns``; not empty.
        config: of their topic: how keys and values are read.

    Returns:
        As `opened` gives it, always with ``value_error``, and the text of such values in ``value``.
    """
    stored = decoded(table["value"], config.value_format)
    made = columns_of_decoded(stored, value_schema(value_columns))
    table = _with(table, "key", _texts(decoded(table["key"], config.key_format).values))
    return _beside(table, stored.values, pa.Table.from_batches([made]))


def _beside(table: pa.Table, stored: pa.Array, members: pa.Table) -> pa.Table:
    """The members in the place of the value, which is left where it has an error."""
    errors = members[VALUE_ERROR]
    at = table.column_names.index("value")
    texts = pa.nulls(len(table), pa.string())
    if _some(errors):
        texts = pc.if_else(errors.combine_chunks().is_valid(), _texts(stored), None)
    table = _with(table, "value", texts)
    for offset, name in enumerate(members.column_names[:-1]):
        table = table.add_column(at + 1 + offset, members.schema.field(name), members[name])
    return table.append_column(VALUE_ERROR, errors)


def _some(errors: pa.ChunkedArray) -> bool:
    return bool(errors.null_count < len(errors))


def _with(table: pa.Table, name: str, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _members(stored: Decoded, ddl: str) -> pa.Table | None:
    """The members of values as columns, and ``value_error``; None: they are no objects."""
    whole = stored.values
    sample = None if ddl else whole.take(_spread(len(whole)))
    ddl = ddl or infer(sample).ddl
    if not ddl:
        return None
    members = columns_of_decoded(stored, value_schema(ddl))
    flawed = np.flatnonzero(members[VALUE_ERROR].is_valid())
    if sample is not None and len(flawed):
        # Of what the sample had not: the columns that all of them fit.
        others = whole.take(pa.array(flawed[:_SAMPLED]))
        ddl = infer(pa.concat_arrays([sample, others])).ddl
        members = columns_of_decoded(stored, value_schema(ddl))
    if members[VALUE_ERROR].null_count == whole.null_count < len(whole):
        return None
    return pa.Table.from_batches([members])


def _spread(count: int) -> pa.Array:
    return pa.array(np.unique(np.linspace(0, max(0, count - 1), min(count, _SAMPLED), dtype=int)))


def _struct(columns: pa.Table, stored: pa.Array) -> list[pa.Array]:
    arrays = [column.combine_chunks() for column in columns.columns]
    missing = stored.is_null()
    return [pa.StructArray.from_arrays(arrays, names=columns.column_names, mask=missing)]


def _texts(column: pa.Array) -> pa.Array:
    """Bytes as text; what is not UTF-8 is escaped."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [
            None if one is None else one.decode(errors="backslashreplace")
            for one in column.to_pylist()
        ]
        return pa.array(texts, pa.string())
