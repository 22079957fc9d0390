"""SQL over topics, by DuckDB: a topic is a table, read from both tiers as far as a query needs it.

========== ============== ===========================================================
partition  integer
offset     bigint         a word of SQL: write ``"offset"``, or ``orders.offset``
timestamp  timestamptz    null for none
key        varchar        bytes that are not UTF-8 as ``0x…``
value      varchar        the same; ``value->>'$.delay'`` is a member of a JSON value
headers    list           of structs of key and value (blob)
key_bytes  blob           as it was sent
value_bytes blob
========== ============== ===========================================================

Then come the typed columns of the topic (``lakelog.value.columns``) and ``value_error``. Where an
archived file has them, they are read as they lie; else they are made of the values as these are
read: a file that is older than a column has it, too.

DuckDB asks for columns and hands over the conditions on them. What it does not ask for is not read,
and neither are parts of the log that cannot hold a match, by partition, offset or time.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as pafs
from msgspec import Struct

from ..base import compute as pc
from ..codec.formats.decoders import decoded
from ..codec.value_columns import columns_of_decoded, value_schema
from ..cold.answers import RowGroupTimes
from ..cold.segment import SegmentFile
from ..cold.table import ColdSnapshot, ColdTable
from ..errors import InvalidArgumentError, MissingExtraError
from ..values.config import DATA_KEYS, TopicConfig
from ..values.record import HEADERS_TYPE, RECORDS
from ..values.topic import near_names
from ..values.topic_partition import OffsetRange
from .fetch import range_fetches
from .stretches import Piece, pieces
from .tiers import Tiers

TABLE = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.string()),
        pa.field("value", pa.string()),
        pa.field("headers", HEADERS_TYPE, nullable=False),
        pa.field("key_bytes", pa.binary()),
        pa.field("value_bytes", pa.binary()),
    ]
)

T = TypeVar("T")

#: DuckDB forgets an interrupt that comes between two statements, and Python does not look at one
#: that comes just before it waits for a lock until that wait ends.
_INTERRUPTED_AGAIN_S = 0.05

#: What asks DuckDB which tables there are.
_ASKS_FOR_TABLES = re.compile(
    r"\b(?:show|describe|information_schema|pg_\w+|duckdb_\w+|sqlite_\w+)\b", re.IGNORECASE
)

_BATCH_ROWS = 65_536  # of what a query gives
_LAST_MS = 253_402_300_799_999  # of the year 9999: what is later bounds nothing


def query(
    statement: str,
    topics: Mapping[str, str],
    tiers_of: Callable[[str], Tiers],
    *,
    zone: str = "UTC",
) -> pa.RecordBatchReader:
    """The rows of a statement (of several, the last one's), read as they are asked for.

    A topic is looked at when it is first read, and seen so wherever the statement names it.

    Args:
        statement: DuckDB's SQL. It may read and write files, as DuckDB does.
        topics: the names of those that there are, and the definitions of their typed columns.
        tiers_of: both tiers of one of them.
        zone: of times that are written without one, and of those that are given.

    Raises:
        MissingExtraError: duckdb is not installed.
        InvalidArgumentError: the statement cannot be run; while reading too.
        LakelogError: what reading the topics raises, here or while reading.
    """
    duckdb = duckdb_for("SQL")
    if not isinstance(statement, str) or not statement.strip("; \n\t"):
        raise InvalidArgumentError("there is no statement: give one, such as select 1")
    tables = {
        name: _TopicTable(partial(tiers_of, name), topics[name])
        for name in _named(statement, topics)
    }
    connection = duckdb.connect(config={"python_enable_replacements": False})
    try:
        with _told(statement, tables, list(topics)):
            run = partial(_run, connection, tables, zone, statement)
            rows = _interruptible(connection, run)
    except BaseException:
        connection.close()
        raise

    def batches() -> Iterator[pa.RecordBatch]:
        with connection, _told(statement, tables, list(topics)):
            while (batch := _interruptible(connection, partial(next, rows, None))) is not None:
                yield batch

    return pa.RecordBatchReader.from_batches(rows.schema, batches())


def _run(
    connection: Any, tables: Mapping[str, _TopicTable], zone: str, statement: str
) -> pa.RecordBatchReader:
    connection.execute("SET TimeZone = ?", [zone])
    for name, table in tables.items():
        connection.register(name, table)
    return arrow_reader(connection, statement, _BATCH_ROWS)


def arrow_reader(
    connection: Any, statement: str, rows: int, params: Sequence[object] | None = None
) -> pa.RecordBatchReader:
    """What a statement finds, in batches of so many rows."""
    major = int(duckdb_for("SQL").__version__.split(".")[0])
    if major >= 2:  # before, `sql` gives no rows of a COPY
        return connection.sql(statement, params=params).to_arrow_reader(rows)
    found = connection.execute(statement, params)
    take = getattr(found, "to_arrow_reader", None) or found.fetch_record_batch  # older
    return take(rows)


def duckdb_for(what: str) -> Any:
    """DuckDB's module.

    Args:
        what: needs it.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import duckdb
    except ModuleNotFoundError as error:
        if error.name != "duckdb":
            raise
        raise MissingExtraError(
            f"{what} needs duckdb, which is not installed: pip install 'lakelog[sql]'"
        ) from error
    return duckdb


def _interruptible(connection: Any, call: Callable[[], T]) -> T:
    """What DuckDB is called for, in another thread: this one can be interrupted while it waits."""
    done: Future[T] = Future()

    def run() -> None:
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(call())
        except BaseException as error:
            done.set_exception(error)

    thread = threading.Thread(target=run, name="lakelog-sql", daemon=True)
    try:
        thread.start()
        while not done.done():
            with suppress(FutureTimeoutError):
                done.exception(_INTERRUPTED_AGAIN_S)
        return done.result()
    except BaseException:
        while not done.cancel() and thread.is_alive():
            connection.interrupt()
            thread.join(_INTERRUPTED_AGAIN_S)
        raise


def _named(statement: str, topics: Iterable[str]) -> list[str]:
    """The topics whose names occur in it, perhaps by chance: one that is not read costs nothing.

    Raises:
        InvalidArgumentError: two of them differ in case alone, which DuckDB takes for one.
    """
    text = statement.lower()
    names = sorted((name for name in topics if name.lower() in text), key=str.lower)
    for one, other in pairwise(names):
        if one.lower() == other.lower():
            raise InvalidArgumentError(
                f"the topics {one} and {other} are one name in SQL, so neither can be queried"
            )
    if _ASKS_FOR_TABLES.search(statement):
        often = Counter(map(str.lower, topics))
        return [name for name in topics if often[name.lower()] == 1]
    return names


@contextmanager
def _told(
    statement: str, tables: Mapping[str, _TopicTable], topics: Sequence[str]
) -> Iterator[None]:
    """What DuckDB raises, as lakelog does; above all what reading a topic raised inside it."""
    import duckdb

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        for table in tables.values():
            if table.error is not None:
                raise table.error from None
        if isinstance(error, OSError):
            raise
        named = [name for name in tables if re.search(rf"(?i)\b{re.escape(name)}\b", statement)]
        untyped = [name for name in named if not tables[name].is_typed]
        raise InvalidArgumentError(
            f"the statement cannot be run: {_advised(str(error), named, untyped, topics)}"
        ) from error


#: How DuckDB tells of a column that there is not.
_NO_COLUMN = re.compile(
    r'Referenced column "(.+?)" not found|does not have a column named "(.+?)"'
    r"""|Cannot extract field '(.+?)' from expression "value\""""
)
#: Where it cannot read a statement: at a word, or after one.
_NOT_READ = re.compile(r'at or near "(.+?)"\s+(LINE \d+: .*)\n( *)\^')


def _advised(said: str, named: Sequence[str], untyped: Sequence[str], topics: Sequence[str]) -> str:
    """What DuckDB says, and what to do about it.

    Args:
        named: the topics that the statement names.
        untyped: those of them without typed columns.
        topics: all that there are.
    """
    if (found := _NOT_READ.search(said)) and (word := _word_of_sql(*found.groups())):
        topic = next(filter(str.isidentifier, named), "orders")
        return (
            f"{said}\n{word} is a word of SQL: for a column of that name write "
            f'"{word}" in quotes, or {topic}.{word}'
        )
    if untyped and (missing := _NO_COLUMN.search(said)):
        member = next(filter(None, missing.groups()))
        step = member if member.isidentifier() else f'"{member}"'
        return (
            f"{said}\nA member of a JSON value is value->>'$.{step}'; `lakelog topics infer "
            f"{untyped[0]}` proposes columns for members"
        )
    if missing := re.search(r"Table with name (\S+) does not exist", said):
        names = ", ".join(topics[:5]) + (", …" if len(topics) > 5 else "")
        there_are = f"there {'are' if len(topics) > 1 else 'is'} {names or 'none'}."
        near = near_names(missing[1], topics).replace("'", "")  # which are of texts in SQL
        return (
            f"there is no topic {missing[1]}; {near or there_are} A name with a dot or a dash "
            "stands in double quotes"
        )
    return said


def _word_of_sql(at: str, line: str, blanks: str) -> str | None:
    """The word that no column can have as its name unless it is quoted, if that is the matter.

    Args:
        at: where reading ended: at such a word, or behind one that a column list ended with.
        line: which that is in.
        blanks: as many as come before it.
    """
    import duckdb

    if at.lower() in ("from", "asc", "desc") or not at.isidentifier():
        before = re.search(r"(\w+)\s*$", line[: len(blanks)])
        at = before[1] if before else ""
    with duckdb.connect() as connection:
        found = connection.execute(
            "select 1 from duckdb_keywords() where keyword_name = lower(?) "
            "and keyword_category in ('reserved', 'type_function')",
            [at],
        ).fetchone()
    return at if found else None


# -- a topic as DuckDB sees it -----------------------------------------------------------------


class _Part(Struct, frozen=True):
    """Offsets of a partition, and what is known of their times without reading them."""

    partition: int
    piece: Piece

    def guarantee(self) -> pc.Expression:
        """What holds of all its records."""
        offset, time = pc.field("offset"), pc.field("timestamp")
        piece = self.piece
        holds = (
            (pc.field("partition") == pa.scalar(self.partition, pa.int32()))
            & (offset >= pa.scalar(piece.start, pa.int64()))
            & (offset <= pa.scalar(piece.end - 1, pa.int64()))
        )
        if 0 <= piece.max_ms <= _LAST_MS:
            within = time <= _time(piece.max_ms)
            # -1: some may have no timestamp.
            holds &= (
                within & (time >= _time(piece.min_ms))
                if piece.min_ms >= 0
                else within | (time.is_null())
            )
        return holds


def _time(time_ms: int) -> pa.Scalar:
    return pa.scalar(time_ms * 1000, pa.timestamp("us", tz="UTC"))


class _TopicTable(ds.Dataset):  # type: ignore[misc]
    """One look at a topic, from which DuckDB reads columns of those records that match."""

    def __init__(self, tiers_of: Callable[[], Tiers], columns: str) -> None:
        self._tiers_of = tiers_of
        self._values = value_schema(columns)
        typed = [field for field in self._values if field.name.lower() not in TABLE.names]
        self._schema = pa.schema([*TABLE, *typed])
        self.is_typed = bool(typed)
        self.error: BaseException | None = None

    @cached_property
    def _seen(self) -> tuple[Tiers, list[_Part]]:
        tiers = self._tiers_of()
        look = tiers.look_at_segments(range(tiers.topic.partitions))
        return tiers, [
            _Part(number, piece)
            for number, log in look.offsets.items()
            for piece in pieces(look, number, log.log_start, log.log_end)
        ]

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_: Any,
    ) -> ds.Scanner:
        names = list(self._schema.names if columns is None else columns)
        asked = f"{names} {filter}"  # a column is read where it may be meant
        read = [field for field in self._schema if field.name in asked]
        schema = pa.schema(read or [TABLE.field("offset")])  # rows are counted by a column
        return ds.Scanner.from_batches(
            self._batches(filter, schema), schema=schema, columns=names, filter=filter
        )

    def _batches(
        self, condition: pc.Expression | None, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        typed = [name for name in schema.names if name not in TABLE.names]
        try:
            tiers, parts = self._seen
            asked = {_STORED.get(name, name) for name in schema.names} & {*RECORDS.names}
            kept = _AskedRows.of(tiers, asked, [self._values.field(name) for name in typed])
            matching = may_match(parts, condition, pa.schema([*TABLE, *map(schema.field, typed)]))
            for partition, start, end in _joined(matching):
                for step in range_fetches(kept, tiers.topic.partition(partition), start, end):
                    if step.records.num_rows:
                        yield self._table(step.records, partition, schema, tiers.topic.config)
        except Exception as error:
            self.error = error
            raise

    def _table(
        self, records: pa.RecordBatch, partition: int, schema: pa.Schema, config: TopicConfig
    ) -> pa.RecordBatch:
        """The columns of a query, of records that have what it asks for."""
        read = {*records.schema.names}
        made = {*schema.names} - {*TABLE.names} - read
        stored = keys = None
        if made or "value" in schema.names:
            stored = decoded(records.column("value"), config.value_format)
        if "key" in schema.names:
            keys = decoded(records.column("key"), config.key_format).values
        values = columns_of_decoded(stored, self._values) if made and stored else None
        columns = []
        for name in schema.names:
            if values is not None and name in made:
                columns.append(values.column(name))
            elif name == "partition":
                columns.append(pa.repeat(pa.scalar(partition, pa.int32()), records.num_rows))
            elif name == "timestamp":
                times = records.column(name)
                no_time = pc.less(times, _time(0))
                columns.append(pc.if_else(no_time, pa.scalar(None, times.type), times))
            elif name == "key":
                columns.append(_text(keys))
            elif name == "value" and stored is not None:
                columns.append(_text(stored.values))
            else:
                columns.append(records.column(_STORED.get(name, name)))
        return pa.RecordBatch.from_arrays(columns, schema=schema)


#: Under which names records have columns of a table.
_STORED = {"key_bytes": "key", "value_bytes": "value"}


class _AskedRows:
    """Archived rows, of which only columns are read that a query asks for.

    Args:
        names: of `RECORDS`.
        typed: columns of values.
    """

    def __init__(self, table: ColdTable, names: Collection[str], typed: list[pa.Field]) -> None:
        self._table = table
        whole = {*names, "value"} if typed else names
        self._names = [name for name in RECORDS.names if name in whole or name == "offset"]
        self._schema = None
        if typed and not any(pa.types.is_nested(field.type) for field in typed):
            own = [field for field in RECORDS if field.name in names or field.name == "offset"]
            self._schema = pa.schema([*own, *typed])

    @classmethod
    def of(cls, tiers: Tiers, names: Collection[str], typed: list[pa.Field]) -> Tiers:
        """Both tiers, where the cold one gives those columns; the hot one gives all."""
        config, table = tiers.topic.config, tiers.table
        if table is None or tiers.rows is not table or config.encrypts or config.text(DATA_KEYS):
            return tiers
        if "value" in names and not typed:  # which is most of what there is to be read
            return tiers
        return tiers.reading(cls(table, names, typed))

    def snapshot(self, newer_than: ColdSnapshot | None = None) -> ColdSnapshot:
        return self._table.snapshot(newer_than)

    def read(
        self, files: Iterable[SegmentFile], start: int, end: int, columns: object = None
    ) -> Iterator[pa.RecordBatch]:
        files = list(files)
        if self._schema is not None:
            found = self._table.value_columns(files, start, end, self._schema)
            if found is not None:
                return found
        return self._table.read(files, start, end, self._names)

    def with_keys(
        self, files: Iterable[SegmentFile], start: int, end: int, keys: frozenset[bytes]
    ) -> Sequence[OffsetRange]:
        return self._table.with_keys(files, start, end, keys)

    def row_groups(
        self, files: Iterable[SegmentFile], start: int, end: int
    ) -> Sequence[RowGroupTimes]:
        return self._table.row_groups(files, start, end)


def may_match(
    parts: Sequence[_Part], condition: pc.Expression | None, schema: pa.Schema = TABLE
) -> list[_Part]:
    """Those that may hold a match.

    Arrow decides: it leaves out the fragments of a data set whose partition expression contradicts
    the filter. No file of those names is looked at.
    """
    if condition is None:
        return list(parts)
    form, files = ds.ParquetFileFormat(), pafs.LocalFileSystem()
    fragments = [
        form.make_fragment(str(number), files, partition_expression=part.guarantee())
        for number, part in enumerate(parts)
    ]
    kept = ds.FileSystemDataset(fragments, schema, form, files).get_fragments(filter=condition)
    return [parts[int(fragment.path)] for fragment in kept]


def _joined(parts: Iterable[_Part]) -> Iterator[tuple[int, int, int]]:
    """Partition, start and end of what is read at a stretch."""
    at: tuple[int, int, int] | None = None
    for part in parts:
        if at is not None and (part.partition, part.piece.start) == (at[0], at[2]):
            at = (at[0], at[1], part.piece.end)
            continue
        if at is not None:
            yield at
        at = (part.partition, part.piece.start, part.piece.end)
    if at is not None:
        yield at


def _text(data: pa.Array) -> pa.Array:
    try:
        return data.cast(pa.string())
    except pa.ArrowInvalid:  # some are not UTF-8
        return pa.array([None if one is None else _as_text(one) for one in data.to_pylist()])


def _as_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
