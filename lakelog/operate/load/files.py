"""Rows of files, in steps: CSV by DuckDB's reader, Parquet and Arrow by Arrow's, JSON by lines.

A file may be compressed: gzip (``.gz``), zstd (``.zst``), bzip2 (``.bz2``). Its text is UTF-8, with
a byte order mark or without, UTF-16 with one, or of an encoding that is said.

A column of CSV is of whole numbers, numbers, true and false, or ISO dates and times, if each of its
values is written so; else it is of text, as it is written. Nothing is guessed: ``01067``, ``1e400``
and ``01/02/2013`` stay text.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from io import DEFAULT_BUFFER_SIZE, BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa

from ...errors import InvalidArgumentError
from ...read.sql import arrow_reader, duckdb_for
from ...values.config import MIB

#: Formats, by what a file's name ends with.
FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}

#: The field of a row of JSON that has the line it is from, byte for byte.
LINE = "\0line"

#: What is made at a time: rows, and of lines of JSON bytes as well.
_STEP_ROWS = 5_000
_STEP_BYTES = 4 * MIB
#: A line of JSON that is longer is refused: no record may be as large.
MAX_LINE_BYTES = 64 * MIB
#: JSON that is one array is read as a whole, so a longer one is refused.
MAX_ARRAY_BYTES = 256 * MIB

#: Told of what is not taken: "line" or "row", its number, its bytes, and why.
Reject = Callable[[str, int, bytes, str], None]


class FileForm(msgspec.Struct, frozen=True):
    """How a file is to be read.

    Args:
        format: csv, jsonl, parquet or arrow.
        encoding: of text that is neither UTF-8 nor, with its mark, UTF-16; as Python names it.
        null: texts of CSV that stand for no value, besides ``NULL``, ``NaN`` and none.
        texts: columns of CSV that are text, whatever is in them.
    """

    format: str
    encoding: str | None = None
    null: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.format not in _READERS:
            raise InvalidArgumentError(f"format {self.format!r} is none of {', '.join(_READERS)}")
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError:
            raise InvalidArgumentError(
                f"{self.encoding!r} is no encoding that is known; write one such as cp1252 (of "
                "Windows), latin-1 or utf-16"
            ) from None


class Rows(NamedTuple):
    """Some rows of a file, in order, and how each is named to somebody who looks for it there."""

    rows: pa.Table | list[Any]  # a list has mappings
    unit: str  # line, or row
    numbers: Sequence[int]


def format_of(path: Path) -> str:
    """The format that a file's name tells.

    Raises:
        InvalidArgumentError: none.
    """
    suffixes = [one.lower() for one in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    found = FORMATS.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise InvalidArgumentError(
            f"{path.name} does not tell what it is: names end in {', '.join(FORMATS)}, perhaps "
            f"with {', '.join(_COMPRESSED)} behind; else say the format"
        )
    return found


def rows_of(path: Path, form: FileForm, reject: Reject | None) -> Iterator[Rows]:
    """The rows of a file, in order.

    Args:
        reject: is told of what cannot be read; None: that ends the reading.

    Raises:
        InvalidArgumentError: it cannot be read, or a row cannot; says where.
        MissingExtraError: a CSV file needs DuckDB.
    """
    if not path.is_file():
        raise InvalidArgumentError(f"there is no file {path}")
    yield from _READERS[form.format](path, form, reject)


# -- CSV -------------------------------------------------------------------------------------------


def _csv(path: Path, form: FileForm, reject: Reject | None) -> Iterator[Rows]:
    """All rows have one form, and lines that are none are told of before the first row is given, so
    the file is read three times.
    """
    duckdb = duckdb_for("reading CSV")
    with _in_utf8(path, form, reject) as plain, duckdb.connect() as connection:
        delimiter, names = _header(path.name, plain)
        if not names:
            return

        def source(kinds: Sequence[str]) -> str:
            # Said, not guessed: to make sense of lines that are wrong, it would leave out others.
            columns = ", ".join(f"'{n}': '{kind}'" for n, kind in enumerate(kinds))
            null = ", ".join(map(_quoted, ("", "NULL", "NaN", "nan", *form.null)))
            return (
                f"read_csv({_quoted(str(plain))}, auto_detect = false, columns = {{{columns}}},"
                f" delim = '{delimiter}', quote = '\"', escape = '\"', header = true, skip = 0,"
                f" nullstr = [{null}], max_line_size = {MAX_LINE_BYTES}, store_rejects = true)"
            )

        try:
            texts = ["VARCHAR"] * len(names)
            kinds = [
                "VARCHAR" if name in form.texts else _kind_of(ways)
                for name, ways in zip(
                    names, _ways(connection, source(texts), len(names)), strict=True
                )
            ]
            for line, text, why in _flaws(plain, _rejected(connection, _FLAWED)):
                if reject is None:
                    raise InvalidArgumentError(f"{path.name}, line {line:,}: {why}")
                reject("line", line, text, why)
            first = 1
            for batch in arrow_reader(connection, f"SELECT * FROM {source(kinds)}", _STEP_ROWS):
                table = pa.Table.from_batches([batch]).rename_columns(names)
                yield Rows(table, "row", range(first, first + len(table)))
                first += len(table)
            for (why,) in _rejected(connection, _NOT_CAST):  # none: all values were looked at
                raise InvalidArgumentError(f"{path.name}: {why}")
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise InvalidArgumentError(f"{path.name}: {str(error).splitlines()[0]}") from error


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = f"{_DATE}[ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,6}})?)?"
_NUMBER = "-?((0|[1-9][0-9]*)([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?"
#: How a value may be written: the sign that stands for it, the pattern, what must hold as well.
_WRITTEN = (
    (1, "0|-?[1-9][0-9]{0,14}", "true"),
    (2, "-?[1-9][0-9]{15,17}", "true"),
    (4, "-?[1-9][0-9]{18,37}", "true"),
    (
        *(8, _NUMBER),
        "isfinite(TRY_CAST({0} AS DOUBLE)) AND (length({0}) <= 18 OR"
        " length(replace(ltrim(split_part(lower({0}), 'e', 1), '-0.'), '.', '')) <= 17)",
    ),
    (16, "(?i)true|false", "true"),
    (32, _DATE, "TRY_CAST({0} AS DATE) IS NOT NULL"),
    (64, _TIME, "TRY_CAST({0} AS TIMESTAMP) IS NOT NULL"),
    (128, _TIME + " ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)", "TRY_CAST({0} AS TIMESTAMPTZ) IS NOT NULL"),
)
_TEXT = 256
#: The type of a column whose values are written in some of these ways.
_KINDS = {
    1 | 2: "BIGINT",
    1 | 2 | 4: "DECIMAL(38,0)",
    1 | 8: "DOUBLE",  # which holds every whole number of 15 digits
    16: "BOOLEAN",
    32: "DATE",
    64: "TIMESTAMP",
    128: "TIMESTAMPTZ",
}


#: Rows that are looked at for all ways; the others for those of a column that these have.
_SAMPLED = 10_000


def _ways(connection: Any, source: str, count: int) -> list[int]:
    """In which ways the values of each of so many columns are written, the sum of their signs."""

    def look(where: str, wanted: Sequence[int]) -> list[int]:
        told = [_way(f'"{n}"', ways) for n, ways in enumerate(wanted)]
        statement = f"SELECT {', '.join(told)}, count(COLUMNS(*)) FROM {where}"
        return list(connection.execute(statement).fetchall()[0][: len(wanted)])

    sampled = look(f"(SELECT * FROM {source} LIMIT {_SAMPLED})", [_TEXT - 1] * count)
    found = look(source, sampled)
    if any(_TEXT & ways & ~some for ways, some in zip(found, sampled, strict=True)):
        # One's values are written in more ways than those of the sample.
        found = look(source, [_TEXT if some & _TEXT else _TEXT - 1 for some in sampled])
    return found


def _way(value: str, wanted: int) -> str:
    """Tells which of these ways the values of a column are written in; `_TEXT`: in another one."""
    if wanted & _TEXT:
        return str(_TEXT)
    tests = " ".join(
        f"WHEN regexp_full_match({value}, '{pattern}') AND {more.replace('{0}', value)} THEN {sign}"
        for sign, pattern, more in _WRITTEN
        if sign & wanted
    )
    case = f"CASE {tests} ELSE {_TEXT} END" if tests else str(_TEXT)
    return f"coalesce(bit_or(CASE WHEN {value} IS NOT NULL THEN {case} END), 0)"


def _kind_of(signs: int) -> str:
    return next((kind for ways, kind in _KINDS.items() if signs and not signs & ~ways), "VARCHAR")


#: A line may have several flaws.
_FLAWED = """
    SELECT line_byte_position, any_value(csv_line), bool_or(error_type = 'INVALID ENCODING'),
        string_agg(DISTINCT error_message, '; ' ORDER BY error_message)
    FROM reject_errors GROUP BY line_byte_position ORDER BY line_byte_position
"""


def _rejected(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    """What DuckDB has noted, in a table that it makes when it does so first."""
    is_there = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'"
    if not connection.execute(is_there).fetchall():
        return []
    found: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
    return found


def _flaws(path: Path, rejected: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, bytes, str]]:
    """The lines that are no rows: number, bytes and why; told of by the place where each begins."""
    line = 1
    with path.open("rb") as file:
        for begin, text, is_encoding, why in rejected:
            while (left := begin - 1 - file.tell()) > 0:
                line += file.read(min(left, MIB)).count(b"\n")
            found = file.readline()
            while not found.strip(b"\r\n") and found:  # of a line end of two, the second
                line += 1
                found = file.readline()
            lines = text.strip("\r\n").count("\n")
            found += b"".join(file.readline() for _ in range(lines))
            if is_encoding:
                why = "it is not UTF-8; if the file is of another encoding, say which (--encoding)"
            yield line, found.rstrip(b"\r\n"), why.replace("\n", " ")
            line += found.count(b"\n")


#: Of lines that are rows.
_NOT_CAST = """
    SELECT any_value(error_message) FROM reject_errors
    GROUP BY line_byte_position HAVING bool_and(error_type = 'CAST')
"""

_DELIMITERS = ",;\t|"


def _header(name: str, path: Path) -> tuple[str, list[str]]:
    """What stands between the names in the first line, and the names.

    Raises:
        InvalidArgumentError: a name is there twice.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        found = max(_DELIMITERS, key=file.readline(MIB).count)
        file.seek(0)
        lines = iter(partial(file.readline, MIB), "")
        try:
            names = next(csv.reader(lines, delimiter=found), [])
        except csv.Error as error:
            raise InvalidArgumentError(f"{name}, line 1: {error}") from error
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise InvalidArgumentError(
            f"{name}, line 1: column {twice[0]!r} is there {names.count(twice[0])} times; "
            "give each a name of its own"
        )
    return found, [name or f"column{n}" for n, name in enumerate(names)]


# -- JSON ------------------------------------------------------------------------------------------


def _json(path: Path, form: FileForm, reject: Reject | None) -> Iterator[Rows]:
    decoder = msgspec.json.Decoder()
    rows: list[Any] = []
    numbers: list[int] = []
    size_bytes = 0
    for unit, number, text, why in _json_texts(path, form, reject):
        row: dict[str, Any] = {}
        if not why:
            why, row = _row_of(decoder, text)
        if why:
            if reject is None:
                raise InvalidArgumentError(f"{path.name}, {unit} {number:,}: {why}")
            reject(unit, number, text, why)
            continue
        rows.append({**row, LINE: text})
        numbers.append(number)
        size_bytes += len(text)
        if len(rows) == _STEP_ROWS or size_bytes >= _STEP_BYTES:
            yield Rows(rows, unit, numbers)
            rows, numbers, size_bytes = [], [], 0
    if rows:
        yield Rows(rows, unit, numbers)


def _json_texts(
    path: Path, form: FileForm, reject: Reject | None
) -> Iterator[tuple[str, int, bytes, str]]:
    """Each line that is not empty, or each element of an array; with why it is not to be read."""
    number = 0
    with ExitStack() as stack:
        if _is_utf8(path, form):
            file = stack.enter_context(_opened(path))
        else:
            file = stack.enter_context(stack.enter_context(_in_utf8(path, form, reject)).open("rb"))
        try:
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                    if re.match(rb"\s*\[\s*({|$)", line):
                        array = line + file.read(MAX_ARRAY_BYTES + 1)
                        if elements := _elements(path.name, array):
                            yield from elements
                            return
                        file = BytesIO(array)
                        line = file.readline(MAX_LINE_BYTES + 1)
                if len(line) > MAX_LINE_BYTES:
                    yield "line", number, line[:MIB], f"it is longer than {MAX_LINE_BYTES} bytes"
                    while line and not line.endswith(b"\n"):
                        line = file.readline(MAX_LINE_BYTES)
                elif text := line.strip():
                    yield "line", number, text, ""
        except _BROKEN as error:
            yield "line", number + 1, b"", _ended_early(error, reject)


def _elements(name: str, array: bytes) -> list[tuple[str, int, bytes, str]]:
    """Those of an array of objects; none: it is no such array."""
    if len(array) > MAX_ARRAY_BYTES:
        raise InvalidArgumentError(
            f"{name} is one array of JSON, longer than {MAX_ARRAY_BYTES // MIB} MiB: write an "
            f"object a line, such as by `jq -c '.[]' {name}`"
        )
    try:
        found = msgspec.json.decode(array, type=list[msgspec.Raw])
    except msgspec.DecodeError:
        return []
    return [("row", number, bytes(one), "") for number, one in enumerate(found, 1)]


def _row_of(decoder: msgspec.json.Decoder[Any], line: bytes) -> tuple[str, dict[str, Any]]:
    try:
        row = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"no JSON: {error}", {}
    if not isinstance(row, dict):
        return f"{line[:40].decode(errors='replace')!r} is no JSON object", {}
    return "", row


# -- Parquet and Arrow -----------------------------------------------------------------------------


def _parquet(path: Path, form: FileForm, reject: Reject | None) -> Iterator[Rows]:
    import pyarrow.parquet as pq

    with _told(path), pq.ParquetFile(path) as file:
        yield from _numbered(file.iter_batches(_STEP_ROWS))


def _arrow(path: Path, form: FileForm, reject: Reject | None) -> Iterator[Rows]:
    with _told(path), pa.OSFile(str(path)) as file:
        if file.read(6) == b"ARROW1":
            reader = pa.ipc.open_file(file)
            batches: Any = map(reader.get_batch, range(reader.num_record_batches))
        else:
            file.seek(0)
            batches = pa.ipc.open_stream(file)
        yield from _numbered(
            batch.slice(start, _STEP_ROWS)
            for batch in batches
            for start in range(0, batch.num_rows, _STEP_ROWS)
        )


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[Rows]:
    first = 1
    for batch in batches:
        yield Rows(pa.Table.from_batches([batch]), "row", range(first, first + batch.num_rows))
        first += batch.num_rows


_READERS = {"csv": _csv, "jsonl": _json, "parquet": _parquet, "arrow": _arrow}


# -- what they have in common ----------------------------------------------------------------------

#: What reading a damaged file raises.
_BROKEN = (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeError)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What reading raises, by the name of the file."""
    try:
        yield
    except _BROKEN as error:
        raise InvalidArgumentError(f"{path.name}: {error}") from error


def _ended_early(error: Exception, reject: Reject | None) -> str:
    more = "" if reject else "; the rows before it are loaded if rejects are put aside (--rejects)"
    return f"the file cannot be read further: {error}{more}"


@contextmanager
def _in_utf8(path: Path, form: FileForm, reject: Reject | None) -> Iterator[Path]:
    """A file of the same text, uncompressed and in UTF-8; itself, if it is such.

    Of one that ends early, what is there of its last line is told to `reject`.
    """
    if _is_utf8(path, form) and path.suffix.lower() not in _COMPRESSED:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="lakelog-load-") as folder:
        plain = Path(folder, "rows")
        with plain.open("w+b") as copy:
            try:
                with _opened(path) as source:
                    if _is_utf8(path, form):
                        shutil.copyfileobj(_Read1(source), copy, DEFAULT_BUFFER_SIZE)
                    else:
                        text = TextIOWrapper(source, form.encoding or "utf-16", newline="")
                        for piece in iter(partial(text.read, MIB), ""):
                            copy.write(piece.encode())
            except _BROKEN as error:
                _cut(path, copy, error, reject)
        yield plain


def _cut(path: Path, copy: IO[bytes], error: Exception, reject: Reject | None) -> None:
    """Leaves the whole lines of a copy whose original could not be read to its end."""
    copy.seek(0)
    line, end, rest = 0, 0, b""
    for rest in copy:
        line, end = line + rest.endswith(b"\n"), end + len(rest)
    rest = b"" if rest.endswith(b"\n") else rest
    why = _ended_early(error, reject)
    if reject is None:
        raise InvalidArgumentError(f"{path.name}, line {line + 1:,}: {why}") from error
    reject("line", line + 1, rest, why)
    copy.truncate(end - len(rest))


class _Read1:
    """A file whose reads give what is there: a later one that raises takes nothing along."""

    def __init__(self, file: Any) -> None:
        self.read = file.read1


def _is_utf8(path: Path, form: FileForm) -> bool:
    if form.encoding is not None:
        return codecs.lookup(form.encoding).name in ("utf-8", "utf-8-sig")
    with suppress(*_BROKEN), _opened(path) as file:
        return file.peek(2)[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return True  # who reads it says what is wrong


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The bytes of a file, decompressed."""
    suffix = path.suffix.lower()
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        file: Any = raw
        if suffix == ".gz":
            file = stack.enter_context(gzip.open(raw))
        elif suffix == ".bz2":
            file = stack.enter_context(bz2.open(raw))
        elif suffix == ".zst":
            file = BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw), "zstd"))
        yield file
