"""What the files of a Delta log say, piece by piece: a log of 100,000 files is never held at once.

Source: Delta's protocol, "Actions", "Checkpoints".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct, field

from ...base import compute as pc
from ...errors import MissingFileError
from ..added_file import AddedFile, plain_rows
from ..schema import PARTITION_COLUMNS
from ..store.storage import Storage
from .orphans import SETTLING_MS

#: In each commit's ``commitInfo``: tells after a lost reply whose commit landed.
COMMIT_ID = "lakelog.commit"

#: Actions of a piece: they take some MB as Python has them.
_AT_ONCE = 4096

#: Of a column that is read from a local disk.
_BUFFER_BYTES = 1024 * 1024


class TableMetadata(Struct, frozen=True):
    """What a table is, as its log says."""

    table_id: str
    properties: Mapping[str, str]
    partition_columns: Sequence[str]
    schema: str  # JSON, as Delta has it

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> TableMetadata:
        """Raises ValueError, KeyError, TypeError: it is no ``metaData``."""
        properties = dict(action.get("configuration") or {})
        columns = list(action.get("partitionColumns") or ())
        text = [action["id"], action["schemaString"], *columns, *properties, *properties.values()]
        if not all(isinstance(one, str) for one in text):
            raise TypeError("metaData has something else where text should be")
        return cls(action["id"], properties, columns, action["schemaString"])


class Protocol(Struct, frozen=True):
    """What whoever reads or writes the table must understand."""

    min_reader_version: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> Protocol:
        """Raises ValueError, KeyError, TypeError: it is no ``protocol``."""
        readers, writers = (
            tuple(str(one) for one in action.get(of) or ())
            for of in ("readerFeatures", "writerFeatures")
        )
        return cls(int(action["minReaderVersion"]), readers, writers)


class Piece(Struct):
    """Some of the actions of a commit, or of a checkpoint."""

    adds: list[AddedFile] = field(default_factory=list)
    rows: pa.Table | None = None  # of `COLUMNS`: of files that are not among those
    removes: list[str] = field(default_factory=list)  # paths
    transactions: dict[str, int] = field(default_factory=dict)  # by app id
    metadata: TableMetadata | None = None
    protocol: Protocol | None = None
    commit_id: str | None = None
    vacuums: bool = False  # a VACUUM with so short a retention that it takes files in flight


def commit_pieces(content: bytes) -> Iterator[Piece]:
    """The actions of a commit's file, in its order.

    Raises:
        ValueError: it is not what Delta writes.
    """
    lines = list(filter(bytes.strip, content.splitlines()))
    if not lines:
        raise ValueError("it is empty")
    for at in range(0, len(lines), _AT_ONCE):
        piece = Piece()
        try:
            for action in map(_action, lines[at : at + _AT_ONCE]):
                if (txn := action.txn) is not None:  # most are
                    piece.transactions[txn.app_id] = txn.version
                else:
                    _add_to(piece, action)
        except RecursionError:
            raise ValueError("it nests too deep") from None
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"an action lacks what it should have ({error!r})") from None
        yield piece


class _Txn(Struct, rename="camel", gc=False):
    app_id: str
    version: int


class _Add(Struct, rename="camel", gc=False):
    path: Any
    partition_values: dict[str, Any]
    size: Any
    modification_time: Any
    stats: Any = None


class _Remove(Struct, gc=False):
    path: str


class _CommitInfo(Struct, gc=False):
    commit_id: Any = msgspec.field(default=None, name=COMMIT_ID)
    operation: Any = None
    parameters: Any = msgspec.field(default=None, name="operationParameters")


class _Action(Struct, rename="camel", gc=False):
    """A line of a commit; what a look does not go by is passed over, and takes no time."""

    txn: _Txn | None = None
    add: _Add | None = None
    remove: _Remove | None = None
    commit_info: _CommitInfo | None = None
    meta_data: Any = None
    protocol: Any = None


_action = msgspec.json.Decoder(_Action).decode


def _add_to(piece: Piece, action: _Action) -> None:
    if (add := action.add) is not None:
        partition, segment = map(add.partition_values.get, PARTITION_COLUMNS)
        piece.adds.append(
            AddedFile(add.path, partition, segment, add.size, add.modification_time, add.stats)
        )
    elif action.remove is not None:
        piece.removes.append(action.remove.path)
    elif action.commit_info is not None:
        info = action.commit_info
        piece.commit_id = info.commit_id
        piece.vacuums = info.operation == "VACUUM START" and _is_short(info.parameters)
    elif action.meta_data is not None:
        piece.metadata = TableMetadata.of(action.meta_data)
    elif action.protocol is not None:
        piece.protocol = Protocol.of(action.protocol)


def _is_short(said: Any) -> bool:
    """Whether a VACUUM of these parameters takes files that are being written."""
    said = said if isinstance(said, dict) else {}
    kept = said.get("specifiedRetentionMillis", said.get("defaultRetentionMillis"))
    try:
        return int(kept) < SETTLING_MS
    except (TypeError, ValueError):
        return False


def checkpoint_pieces(storage: Storage, path: str) -> Iterator[Piece]:
    """The actions of one file of a checkpoint that take part in what a table is.

    A file of a store is read by one request. One of a checkpoint that is not classic says what the
    table asks of its readers, and less of all else.

    Raises:
        ValueError: it is not what Delta writes.
        MissingFileError, CorruptRecordError, ColdTierError: it cannot be read.
    """
    import pyarrow.parquet as pq

    if path.endswith(".json"):
        content = storage.read_bytes(path)
        if content is None:
            raise MissingFileError(f"{path} is missing", path=path)
        yield from commit_pieces(content)
        return
    with storage.naming(path), _source(storage, path) as source:
        file = pq.ParquetFile(
            source, buffer_size=_BUFFER_BYTES if storage.is_local else 0, pre_buffer=False
        )
        wanted = ["metaData", "protocol", "txn.appId", "txn.version"]
        wanted += [
            f"add.{name}"
            for name in ("path", "partitionValues", "size", "modificationTime", "stats")
        ]
        wanted += ["add.stats_parsed." + name for name in _PARSED]
        for batch in file.iter_batches(_AT_ONCE // 2, columns=wanted, use_threads=False):
            yield _piece_of(batch)


def _source(storage: Storage, path: str) -> Any:
    if storage.is_local:
        return pa.OSFile(storage.arrow_path(path))
    content = storage.read_bytes(path)
    if content is None:
        raise FileNotFoundError(path)
    return pa.BufferReader(content)


def _piece_of(batch: pa.RecordBatch) -> Piece:
    piece = Piece()
    try:
        for name in batch.schema.names:
            column = batch.column(name)
            rows = column.filter(column.is_valid())
            if not len(rows):
                continue
            if name == "add":
                columns = _columns(rows)
                piece.rows = plain_rows(columns)
                if piece.rows is None:
                    lists = {of: column.to_pylist() for of, column in columns.items()}
                    rows_of = zip(*lists.values(), strict=True)
                    piece.adds = [
                        AddedFile(**dict(zip(lists, row, strict=True))) for row in rows_of
                    ]
            elif name == "txn":
                names, versions = (pc.struct_field(rows, of) for of in ("appId", "version"))
                piece.transactions = dict(zip(names.to_pylist(), versions.to_pylist(), strict=True))
            elif name == "metaData":
                piece.metadata = TableMetadata.of(rows[-1].as_py(maps_as_pydicts="lossy"))
            elif name == "protocol":
                piece.protocol = Protocol.of(rows[-1].as_py())
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"an action lacks what it should have ({error!r})") from None
    return piece


def _columns(rows: pa.StructArray) -> dict[str, pa.Array]:
    """By the fields of `AddedFile`."""
    keys = pc.struct_field(rows, "partitionValues")
    partition, segment = (
        pc.map_lookup(keys, pa.scalar(name), "last") for name in PARTITION_COLUMNS
    )
    there = {field.name for field in rows.type}

    def column(name: str) -> pa.Array:
        return pc.struct_field(rows, name) if name in there else pa.nulls(len(rows), pa.string())

    return {
        "path": column("path"),
        "partition": partition,
        "segment": segment,
        "size_bytes": column("size"),
        "modified_ms": column("modificationTime"),
        "stats": _with_parsed(column("stats"), rows),
    }


#: Of a file's statistics as a struct, as Spark's checkpoints may have them instead of the text.
_PARSED = (
    "numRecords",
    *(
        f"{bound}.{name}"
        for bound in ("minValues", "maxValues")
        for name in ("offset", "timestamp")
    ),
)


def _with_parsed(text: pa.Array, rows: pa.StructArray) -> pa.Array:
    """The statistics as text; made of the struct where there is no text."""
    if not text.null_count or "stats_parsed" not in {field.name for field in rows.type}:
        return text
    parsed = pc.struct_field(rows, "stats_parsed").to_pylist()
    said = zip(text.to_pylist(), parsed, strict=True)
    return pa.array(
        [_text_of(one) if old is None and one is not None else old for old, one in said],
        pa.string(),
    )


def _text_of(parsed: Mapping[str, Any]) -> str:
    said = {name: value for name, value in parsed.items() if value is not None}
    for bound in ("minValues", "maxValues"):
        values = {k: v for k, v in (said.pop(bound, None) or {}).items() if v is not None}
        time = values.get("timestamp")
        if isinstance(time, datetime):
            time = time if time.tzinfo is None else time.astimezone(timezone.utc)
            values["timestamp"] = f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
        if values:
            said[bound] = values
    return json.dumps(said)
