"""Rows of files, in steps: CSV by DuckDB's reader, Parquet and Arrow by Arrow's, JSON by lines.

A file may be compressed: gzip (``.gz``), zstd (``.zst``), bzip2 (``.bz2``). Its text is UTF-8, with
a byte order mark or without, or UTF-16 with one.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

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

#: Told of what is not taken: the line's number, its text, and why.
Reject = Callable[[int, str, str], None]


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


def rows_of(path: Path, format_: str, reject: Reject | None) -> Iterator[pa.Table | list[Any]]:
    """The rows of a file, in order, as tables or as lists of mappings.

    Args:
        reject: is told of a row that cannot be read; None: one ends the reading.

    Raises:
        InvalidArgumentError: it cannot be read, or a row cannot; says where.
        MissingExtraError: a CSV file needs DuckDB.
    """
    readers = {"csv": _csv, "jsonl": _json_lines, "parquet": _parquet, "arrow": _arrow}
    if format_ not in readers:
        raise InvalidArgumentError(f"format {format_!r} is none of {', '.join(readers)}")
    if not path.is_file():
        raise InvalidArgumentError(f"there is no file {path}")
    yield from readers[format_](path, reject)


# -- CSV -------------------------------------------------------------------------------------------


def _csv(path: Path, reject: Reject | None) -> Iterator[pa.Table]:
    """Types are those that all rows fit, and rows that cannot be read are told of before the first
    is given, so the file is read more than once.
    """
    duckdb = duckdb_for("reading CSV")
    with _in_utf8(path) as plain, duckdb.connect() as connection:
        delimiter = _delimiter(plain)
        # Said, not guessed: to make sense of lines that are wrong, it would leave out others.
        source = (
            f"read_csv(?, delim = '{delimiter}', quote = '\"', escape = '\"', header = true,"
            f" skip = 0, nullstr = ['', 'NULL', 'NaN'], sample_size = -1, store_rejects = true,"
            f" max_line_size = {MAX_LINE_BYTES})"
        )
        try:
            connection.execute(f"SELECT count(COLUMNS(*)) FROM {source}", [str(plain)]).fetchall()
            has_flaws = connection.execute(_HAS_REJECTED).fetchall()
            for line, text, why in connection.execute(_REJECTED).fetchall() if has_flaws else ():
                if reject is None:
                    raise InvalidArgumentError(f"{path.name}, line {line:,}: {why}")
                reject(line, text, why)
            for batch in arrow_reader(
                connection, f"SELECT * FROM {source}", _STEP_ROWS, [str(plain)]
            ):
                yield pa.Table.from_batches([batch])
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            said = str(error).strip().splitlines()[0]
            if "sniffing" in said:
                said = "its lines are no rows of CSV; is a quote not closed?"
            raise InvalidArgumentError(f"{path.name}: {said}") from error


_HAS_REJECTED = "SELECT 1 FROM duckdb_tables() WHERE table_name = 'reject_errors'"
#: A line may have several flaws.
_REJECTED = """
    SELECT line, any_value(csv_line), string_agg(error_message, '; ' ORDER BY column_idx)
    FROM reject_errors GROUP BY line ORDER BY line
"""
_DELIMITERS = ",;\t|"


def _delimiter(path: Path) -> str:
    """What stands between the names in the first line.

    Raises:
        InvalidArgumentError: a name is there twice.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        line = file.readline(MIB)
    found = max(_DELIMITERS, key=line.count)
    names = next(csv.reader([line], delimiter=found), [])
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise InvalidArgumentError(
            f"{path.name}, line 1: column {twice[0]!r} is there {names.count(twice[0])} times; "
            "give each a name of its own"
        )
    return found


@contextmanager
def _in_utf8(path: Path) -> Iterator[Path]:
    """A file of the same text, uncompressed and in UTF-8; itself, if it is such."""
    with path.open("rb") as file:
        is_utf8 = file.read(2) not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    if is_utf8 and path.suffix.lower() not in _COMPRESSED:
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="lakelog-load-") as folder:
        plain = Path(folder, path.stem if path.suffix.lower() in _COMPRESSED else path.name)
        with _told(path), _opened(path) as source, plain.open("wb") as copy:
            shutil.copyfileobj(source, copy, MIB)
        yield plain


# -- JSON ------------------------------------------------------------------------------------------


def _json_lines(path: Path, reject: Reject | None) -> Iterator[list[Any]]:
    decoder = msgspec.json.Decoder()
    rows: list[Any] = []
    number = size_bytes = 0
    with _told(path, lambda: number), _opened(path) as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if len(line) > MAX_LINE_BYTES:
                why: str | None = f"it is longer than {MAX_LINE_BYTES} bytes"
                while line and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES)
            elif not line.strip():
                continue
            else:
                why, row = _row_of(decoder, line)
                if why is None:
                    rows.append({**row, LINE: line.strip()})
                    size_bytes += len(line)
            if why is not None:
                if reject is None:
                    raise InvalidArgumentError(f"{path.name}, line {number:,}: {why}")
                reject(number, line[:MIB].decode(errors="backslashreplace").rstrip("\r\n"), why)
            if len(rows) == _STEP_ROWS or size_bytes >= _STEP_BYTES:
                yield rows
                rows, size_bytes = [], 0
        if rows:
            yield rows


def _row_of(decoder: msgspec.json.Decoder[Any], line: bytes) -> tuple[str | None, Any]:
    try:
        row = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"no JSON: {error}", None
    if not isinstance(row, dict):
        return f"{line[:40].decode(errors='replace')!r} is no JSON object", None
    return None, row


# -- Parquet and Arrow -----------------------------------------------------------------------------


def _parquet(path: Path, reject: Reject | None) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    with _told(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_STEP_ROWS):
            yield pa.Table.from_batches([batch])


def _arrow(path: Path, reject: Reject | None) -> Iterator[pa.Table]:
    with _told(path), pa.OSFile(str(path)) as file:
        if file.read(6) == b"ARROW1":
            reader = pa.ipc.open_file(file)
            batches: Any = map(reader.get_batch, range(reader.num_record_batches))
        else:
            file.seek(0)
            batches = pa.ipc.open_stream(file)
        for batch in batches:
            for start in range(0, batch.num_rows, _STEP_ROWS):
                yield pa.Table.from_batches([batch.slice(start, _STEP_ROWS)])


# -- what they have in common ----------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed, as UTF-8."""
    suffix = path.suffix.lower()
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        file: Any = raw
        if suffix == ".gz":
            file = stack.enter_context(gzip.open(raw))
        elif suffix == ".bz2":
            file = stack.enter_context(bz2.open(raw))
        elif suffix == ".zst":
            file = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw), "zstd"))
        if file is raw and raw.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            file = codecs.EncodedFile(raw, "utf-8", "utf-16")
        yield file


@contextmanager
def _told(path: Path, line: Callable[[], int] | None = None) -> Iterator[None]:
    """What reading raises, by the name of the file, and of the line that was read last."""
    try:
        yield
    except (OSError, EOFError, zlib.error, pa.ArrowException, UnicodeError) as error:
        where = path.name if line is None else f"{path.name}, behind line {line():,}"
        raise InvalidArgumentError(f"{where}: {error}; the rows before it can be loaded") from error
