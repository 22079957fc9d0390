"""Rows of files, in steps: CSV by Python's reader, Parquet and Arrow by Arrow's, JSON by lines.

A file may be compressed: gzip (``.gz``), zstd (``.zst``), bzip2 (``.bz2``). Its text is UTF-8, with
a byte order mark or without, UTF-16 with one, or of an encoding that is said.

What a column of CSV is of is told by how its values are written, see `columns_of_text`.
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
from functools import cache, partial
from io import DEFAULT_BUFFER_SIZE, BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa

from ...base import compute as pc
from ...base.text_table import counted
from ...errors import InvalidArgumentError
from ...values.config import MIB
from .columns_of_text import TEXT, as_kind, kind_of, ways_of

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
_COMPRESSED = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".bz2": b"BZh"}
#: What a file of text begins with that is none, and what to do with it.
_NO_TEXT = {
    b"PK\x03\x04": "a ZIP archive, as an Excel workbook is: save it as CSV, or give `lake.append` "
    "what pandas.read_excel reads",
    b"PAR1": "Parquet: say --format parquet, or name it .parquet",
}

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
        null: texts of CSV that stand for no value, besides the empty one; in columns that are not
            of text, ``NULL`` and ``NaN`` do, too.
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
    """
    if path.is_dir():
        raise InvalidArgumentError(f"{path} is a folder: load its files one by one")
    if not path.is_file():
        raise InvalidArgumentError(f"there is no file {path}")
    if form.format in ("csv", "jsonl"):
        begin = _begin(path)
        for mark, what in _NO_TEXT.items():
            if begin.startswith(mark):
                raise InvalidArgumentError(f"{path.name} is no text but {what}")
    yield from _READERS[form.format](path, form, reject)


# -- CSV -------------------------------------------------------------------------------------------


def _csv(path: Path, form: FileForm, reject: Reject | None) -> Iterator[Rows]:
    """All rows have one form, and lines that are none are told of before the first row is given, so
    the file is read twice.
    """
    with _in_utf8(path, form, reject) as plain:
        is_utf8, longest = _looked_at(path.name, plain)
        delimiter, names = _header(path.name, plain)
        if not names:
            return
        records = _CsvRecords(path.name, plain, delimiter, len(names), longest, is_utf8=is_utf8)
        ways = [TEXT if name in form.texts else 0 for name in names]
        for _, columns in records.steps(form.null, reject):
            for number, column in enumerate(columns):
                if not ways[number] & TEXT:
                    ways[number] |= ways_of(column, ways[number])
        kinds = [kind_of(signs) for signs in ways]
        for lines, columns in records.steps(form.null, lambda *_: None):  # told of already
            typed = [as_kind(one, kind) for one, kind in zip(columns, kinds, strict=True)]
            yield Rows(pa.table(typed, names), "line", lines)


class _CsvRecords:
    """The records of a file below its header.

    Args:
        width: how many fields each has.
        longest: so many bytes the longest line has.
        is_utf8: whether there is nothing else in it.
    """

    def __init__(
        self, name: str, plain: Path, delimiter: str, width: int, longest: int, *, is_utf8: bool
    ) -> None:
        self._name = name
        self._plain = plain
        self._delimiter = delimiter
        self._width = width
        self._longest = longest
        self._is_utf8 = is_utf8

    def steps(
        self, null: Sequence[str], reject: Reject | None
    ) -> Iterator[tuple[list[int], list[pa.Array]]]:
        """The lines that some records begin in, and their columns as text; null as `FileForm`."""
        none = pa.array(["", *null])
        lines: list[int] = []
        rows: list[list[str]] = []
        with ExitStack() as stack:
            file, raw = (stack.enter_context(_text_of(self._plain)) for _ in range(2))
            flaws = _Flaws(self._name, raw, reject)
            until = _STEP_BYTES
            for line, row in self._records(
                csv.reader(file, delimiter=self._delimiter, strict=True), flaws
            ):
                lines.append(line)
                rows.append(row)
                most_bytes = (line - lines[0] + 1) * self._longest
                if len(rows) == _STEP_ROWS or (
                    most_bytes > _STEP_BYTES and file.buffer.tell() > until
                ):
                    yield lines, _columns(rows, none)
                    lines, rows, until = [], [], file.buffer.tell() + _STEP_BYTES
        if rows:
            yield lines, _columns(rows, none)

    def _records(self, reader: Any, flaws: _Flaws) -> Iterator[tuple[int, list[str]]]:
        width, is_utf8 = self._width, self._is_utf8
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
        next(reader)
        while True:
            begin = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                flaws.note(begin, reader.line_num, str(error))
                continue
            if len(row) != width:
                if not row:
                    if width == 1:
                        yield begin, [""]
                    continue  # an empty line
                if len(row) != width + 1 or row[-1]:  # else a delimiter ends the line
                    why = f"it has {counted(len(row), 'field')}, and the header {width}"
                    flaws.note(begin, reader.line_num, why)
                    continue
                row.pop()
            if not is_utf8 and _surrogates().search("".join(row)):
                flaws.note(begin, reader.line_num, _NO_UTF8)
                continue
            yield begin, row


class _Flaws:
    """Tells of records that are no rows, by their lines.

    Args:
        file: read once more for what is in those lines.
    """

    def __init__(self, name: str, file: IO[str], reject: Reject | None) -> None:
        self._name = name
        self._file = file
        self._reject = reject
        self._line = 0  # that was read last

    def note(self, begin: int, end: int, why: str) -> None:
        """Tells of the lines from one to another, both included.

        Raises:
            InvalidArgumentError: nobody is told, or nobody can tell where the record ends.
        """
        is_open = begin < end and ("unexpected end" in why or "field limit" in why)
        if is_open:
            why = "a quote that begins in it is not closed in its row"
        elif begin < end:
            why = f"{why}, in the {end - begin + 1:,} lines from there"
        if self._reject is None or is_open:
            raise InvalidArgumentError(f"{self._name}, line {begin:,}: {why}")
        for _ in range(begin - 1 - self._line):
            self._file.readline()
        text = "".join(self._file.readline() for _ in range(end - begin + 1))
        self._line = end
        if _surrogates().search(text):
            why = _NO_UTF8
        data = text.encode(errors="surrogateescape")
        self._reject("line", begin, data.rstrip(b"\r\n"), why)


_NO_UTF8 = "it is not UTF-8; if the file is of another encoding, say which (--encoding)"


@cache
def _surrogates() -> re.Pattern[str]:
    return re.compile("[\udc80-\udcff]")


def _text_of(path: Path) -> Any:
    return path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")


def _columns(rows: list[list[str]], none: pa.Array) -> list[pa.Array]:
    columns = (pa.array(one, pa.string()) for one in zip(*rows, strict=True))
    null = pa.scalar(None, pa.string())
    return [pc.if_else(pc.is_in(one, value_set=none), null, one) for one in columns]


def _looked_at(name: str, path: Path) -> tuple[bool, int]:
    """Whether a file is UTF-8 as a whole, and at least how many bytes its longest line has.

    Raises:
        InvalidArgumentError: a line of it is too long.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    is_utf8, lines, size, longest = True, 0, 0, 0  # size: of the line that is not over
    with path.open("rb") as file:
        while data := file.read(MIB):
            *whole, rest = data.split(b"\n")
            if whole:
                longest = max(longest, size + len(whole[0]), *map(len, whole))
                size = 0
            size += len(rest)
            longest = max(longest, size)
            if longest > MAX_LINE_BYTES:
                at = next((n for n, one in enumerate(whole) if len(one) > MAX_LINE_BYTES), 0)
                at = len(whole) if size > MAX_LINE_BYTES else at
                raise InvalidArgumentError(
                    f"{name}, line {lines + at + 1:,}: it is longer than {MAX_LINE_BYTES} bytes"
                )
            lines += len(whole)
            with suppress(UnicodeDecodeError):
                is_utf8 = is_utf8 and decoder.decode(data) is not None
                continue
            is_utf8 = False
    return is_utf8, longest


_DELIMITERS = ",;\t|"


def _header(name: str, path: Path) -> tuple[str, list[str]]:
    """What stands between the names in the first line, and the names.

    Raises:
        InvalidArgumentError: a name is there twice, or there is none although there are lines.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        found = max(_DELIMITERS, key=file.readline(MIB).count)
        file.seek(0)
        lines = iter(partial(file.readline, MIB), "")
        try:
            names = next(csv.reader(lines, delimiter=found), None)
        except csv.Error as error:
            raise InvalidArgumentError(f"{name}, line 1: {error}") from error
    if names == []:
        raise InvalidArgumentError(
            f"{name}, line 1: it is empty, and the columns' names belong there"
        )
    names = names or []
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
    if _is_utf8(path, form) and not _compression(path):
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


def _begin(path: Path) -> bytes:
    with _told(path), path.open("rb") as file:
        return file.read(4)


def _compression(path: Path) -> str:
    """Told by the content, as `_COMPRESSED` has it; empty for none."""
    begin = _begin(path)
    return next((name for name, mark in _COMPRESSED.items() if begin.startswith(mark)), "")


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The bytes of a file, decompressed."""
    suffix = _compression(path)
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
