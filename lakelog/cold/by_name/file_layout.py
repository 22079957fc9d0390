"""Where the files of a table by name lie, and what its columns are called in them. Pure.

A catalog may demand column mapping. Then a column's name in files is one that Delta made up, nested
ones included, and the table's metadata tells it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from msgspec import Struct

from ...values.config import PARQUET_COMPRESSION, TopicConfig
from ..schema import FILE_SCHEMA, PARTITION_COLUMNS, leaf_paths, writer_options
from ..store.storage import Storage

_PHYSICAL_NAME = "delta.columnMapping.physicalName"
_FIELD_ID = "delta.columnMapping.id"

#: Metadata of a column that a writer must check or fill.
_DEMANDS = ("delta.invariants", "delta.generationExpression", "delta.identity.")

_TYPES = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


class FileLayout(Struct, frozen=True):
    """How files for a table are made. Picklable.

    Args:
        storage: the table's folder, opened to be written.
        columns: what a file has.
        stored: the same as they are called in files.
        partition_columns: what `PARTITION_COLUMNS` are called in add actions.
        compression: the topic's `PARQUET_COMPRESSION`.
        filter_keys: whether files have Bloom filters of keys.
    """

    storage: Storage
    columns: pa.Schema
    stored: pa.Schema
    partition_columns: tuple[str, ...]
    compression: str
    filter_keys: bool

    @classmethod
    def of(
        cls,
        storage: Storage,
        metadata: Mapping[str, Any],
        values: pa.Schema,
        config: TopicConfig,
    ) -> FileLayout | None:
        """The layout of an archive's files; None if files alone do not do for this table.

        Args:
            metadata: the table's metaData action.
            values: the value columns to write.
            config: the topic's.
        """
        said = {field["name"]: field for field in json.loads(metadata["schemaString"])["fields"]}
        if metadata["partitionColumns"] != PARTITION_COLUMNS or any(map(_demands, said.values())):
            return None
        columns = pa.schema([*FILE_SCHEMA, *values]).remove_metadata()
        stored = [_stored(field, said.get(field.name)) for field in columns]
        if any(field is None for field in stored):
            return None
        partition_columns = tuple(_name(said[name]) for name in PARTITION_COLUMNS)
        return cls(
            storage,
            columns,
            pa.schema(stored),
            partition_columns,
            config[PARQUET_COMPRESSION],
            config["lakelog.key.bloom.filter"],
        )

    @property
    def values(self) -> pa.Schema:
        """The value columns among the columns."""
        return pa.schema([field for field in self.columns if field.name not in FILE_SCHEMA.names])

    @property
    def names(self) -> dict[str, str]:
        """What each column is called in files."""
        return dict(zip(self.columns.names, self.stored.names, strict=True))

    def writer_options(self) -> dict[str, Any]:
        """See `schema.writer_options`, for the names in files."""
        names = dict(zip(leaf_paths(self.columns), leaf_paths(self.stored), strict=True))
        options = writer_options(self.values, self.compression)
        for option in ("use_dictionary", "write_statistics"):
            options[option] = [names[path] for path in options[option]]
        encodings = options["column_encoding"]
        options["column_encoding"] = {names[path]: how for path, how in encodings.items()}
        return options

    def as_stored(self, rows: pa.Table) -> pa.Table:
        """The rows under the names in files; nothing is copied."""
        return pa.Table.from_batches(
            [pa.record_batch(_Renamed(batch, self.stored)) for batch in rows.to_batches()],
            self.stored,
        )


class _Renamed(Struct, frozen=True):
    """A batch under a schema that differs in names alone, as Arrow's C interface hands it over."""

    rows: pa.RecordBatch
    schema: pa.Schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self.schema.__arrow_c_schema__(), self.rows.__arrow_c_array__()[1]


def _demands(field: Mapping[str, Any]) -> bool:
    """Whether a column may not simply be null in a file that lacks it."""
    keys = field["metadata"]
    return not field["nullable"] or any(key.startswith(_DEMANDS) for key in keys)


def _name(field: Mapping[str, Any]) -> str:
    return str(field["metadata"].get(_PHYSICAL_NAME, field["name"]))


def _stored(field: pa.Field, said: Mapping[str, Any] | None) -> pa.Field | None:
    """The field as it is called in files; None if the table does not have it so."""
    kind = None if said is None else _stored_type(field.type, said["type"])
    if said is None or kind is None:
        return None
    number = said["metadata"].get(_FIELD_ID)
    metadata = None if number is None else {"PARQUET:field_id": str(number)}
    return pa.field(_name(said), kind, metadata=metadata)


def _stored_type(kind: pa.DataType, said: Any) -> pa.DataType | None:
    if isinstance(said, str):
        if said.startswith("decimal"):
            return kind if str(kind).startswith("decimal128") and _decimal(kind) == said else None
        return kind if _TYPES.get(said) == kind else None
    if said["type"] == "struct" and pa.types.is_struct(kind):
        inner = {field["name"]: field for field in said["fields"]}
        if [field.name for field in kind] != list(inner) or any(map(_demands, inner.values())):
            return None
        fields = [_stored(field, inner[field.name]) for field in kind]
        return None if any(one is None for one in fields) else pa.struct(fields)
    if said["type"] == "array" and pa.types.is_list(kind):
        element = _stored_type(kind.value_type, said["elementType"])
        return None if element is None else pa.list_(element)
    if said["type"] == "map" and pa.types.is_map(kind):
        key = _stored_type(kind.key_type, said["keyType"])
        item = _stored_type(kind.item_type, said["valueType"])
        return None if key is None or item is None else pa.map_(key, item)
    return None


def _decimal(kind: pa.DataType) -> str:
    return f"decimal({kind.precision},{kind.scale})"
