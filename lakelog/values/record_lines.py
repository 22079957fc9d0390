r"""Records as lines: for people, as JSON, as CSV, or as a format of theirs says.

Bytes that are not UTF-8 are escaped or hexadecimal, but for raw lines and for what a format says by
``\xHH``: there they are half surrogate pairs (Python's ``surrogateescape``), which whoever writes
the lines turns into bytes again.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..base.json_text import quoted, readable_json
from ..base.text_table import printable
from ..errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from .record import Record

#: Gives the lines of a `FOUND` table of a topic, each with its end.
Lines = Callable[[str, "pa.Table"], str]


class _Columns(Struct, frozen=True):
    """A `FOUND` table's columns as lists."""

    partitions: list[int]
    offsets: list[int]
    times_ms: np.ndarray  # -1: none
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: Sequence[tuple[tuple[str, bytes | None], ...]]

    @classmethod
    def of(cls, table: pa.Table) -> _Columns:
        import numpy as np
        import pyarrow as pa

        from .record import header_tuples, objects

        named = zip(table.column_names, table.columns, strict=True)
        columns = {name: column.combine_chunks() for name, column in named}
        return cls(
            objects(columns["partition"]),
            objects(columns["offset"]),
            np.asarray(columns["timestamp"].view(pa.int64())) // 1000,
            objects(columns["key"]),
            objects(columns["value"]),
            header_tuples(columns["headers"]),
        )

    def rows(self, times: Iterable[Any] | None = None) -> Iterable[tuple[Any, ...]]:
        """By row; `times` in the place of the milliseconds."""
        return zip(
            self.partitions,
            self.offsets,
            self.times_ms.tolist() if times is None else times,
            self.keys,
            self.values,
            self.headers,
            strict=True,
        )


# -- for people --------------------------------------------------------------------------------

#: kafka-console-consumer's, and what they are unless they are set.
PROPERTIES: Mapping[str, str] = {
    "print.topic": "true",
    "print.partition": "true",
    "print.offset": "true",
    "print.timestamp": "true",
    "print.key": "true",
    "print.value": "true",
    "print.headers": "true",
    "key.separator": "\t",
    "headers.separator": " ",
    "null.literal": "null",
}


def text_lines(properties: Mapping[str, str], *, raw: bool) -> Lines:
    """``topic-partition@offset  time  key  value``, and the headers if there are any.

    A text that could be taken for something else (``null``, bytes, one in quotes) or that a
    terminal would obey is in quotes, as JSON has it.

    Args:
        properties: those of `PROPERTIES` that differ.
        raw: texts and bytes as they are.
    """
    asked = {**PROPERTIES, **properties}
    shows = {name: asked[f"print.{name}"] == "true" for name in _SHOWN}
    separator, null = asked["key.separator"], asked["null.literal"]
    text = _raw(null) if raw else _readable(null)

    def lines(topic: str, table: pa.Table) -> str:
        found = []
        columns = _Columns.of(table)
        times = _times(columns.times_ms, "no timestamp")
        for partition, offset, time, key, value, headers in columns.rows(times):
            parts = []
            if shows["topic"] or shows["partition"] or shows["offset"]:
                where = topic if shows["topic"] else ""
                if shows["partition"]:
                    where += f"{'-' if where else ''}{partition}"
                parts.append(f"{where}@{offset}" if shows["offset"] else where)
            if shows["timestamp"]:
                parts.append(time)
            if shows["key"]:
                parts.append(text(key))
            if shows["value"]:
                parts.append(text(value))
            if shows["headers"] and headers:
                each = (f"{printable(name)}={text(data)}" for name, data in headers)
                parts.append(asked["headers.separator"].join(each))
            found.append(separator.join(parts))
        return _ended(found)

    return lines


_SHOWN = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def read_properties(given: Iterable[str]) -> dict[str, str]:
    """The ``--property`` arguments.

    Raises:
        InvalidArgumentError: no such property, or a value that it cannot have.
    """
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or name not in PROPERTIES:
            raise InvalidArgumentError(
                f"--property {one!r} is none of {', '.join(PROPERTIES)}, as NAME=VALUE", value=one
            )
        if name.startswith("print.") and value not in ("true", "false"):
            raise InvalidArgumentError(f"--property {name} is true or false, not {value!r}")
        found[name] = _unescaped(value)
    return found


def _readable(null: str) -> Callable[[bytes | None], str]:
    def text(data: bytes | None) -> str:
        if data is None:
            return null
        try:
            shown = data.decode()
        except UnicodeDecodeError:
            return f"0x{data.hex()}"
        # A backslash stays as it is: JSON in a record is shown as it was written.
        if shown.isprintable() and not _MISTAKABLE.match(shown) and shown != null:
            return shown
        return json.dumps(shown, ensure_ascii=not shown.isprintable())

    return text


_MISTAKABLE = re.compile(r'"|0x(?:[0-9a-f]{2})*$|$')


def _raw(null: str) -> Callable[[bytes | None], str]:
    def text(data: bytes | None) -> str:
        return null if data is None else data.decode(errors="surrogateescape")

    return text


# -- for programs ------------------------------------------------------------------------------


def json_lines(topic: str, table: pa.Table) -> str:
    """An object a line; bytes that are not UTF-8 come as ``…_base64``."""
    name = quoted(topic)
    return "".join(
        f'{{"topic": {name}, "partition": {partition}, "offset": {offset}, "timestamp_ms": '
        f'{time_ms}, {_member("key", key)}, {_member("value", value)}, "headers": '
        f"{_header_list(headers) if headers else '[]'}}}\n"
        for partition, offset, time_ms, key, value, headers in _Columns.of(table).rows()
    )


def as_object(record: Record) -> dict[str, Any]:
    """A record as `json_lines` has it."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        **_named("key", record.key),
        **_named("value", record.value),
        "headers": [[name, _header(value)] for name, value in record.headers],
    }
    return fields


def _member(name: str, data: bytes | None) -> str:
    if data is None:
        return f'"{name}": null'
    try:
        return f'"{name}": {quoted(data.decode())}'
    except UnicodeDecodeError:
        return f'"{name}_base64": "{base64.b64encode(data).decode()}"'


def _header_list(headers: Iterable[tuple[str, bytes | None]]) -> str:
    return readable_json([[name, _header(data)] for name, data in headers])


def _named(name: str, value: bytes | None) -> dict[str, Any]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _header(value: bytes | None) -> Any:
    named = _named("base64", value)  # text (which may be empty) and null stand for themselves
    return named["base64"] if "base64" in named else {"base64": named["base64_base64"]}


CSV_HEADING = "topic,partition,offset,timestamp,key,value,headers\n"


def csv_lines(topic: str, table: pa.Table) -> str:
    """A row a record (RFC 4180): null is an empty field, an empty text one in quotes, bytes that
    are not UTF-8 are ``0x…``, and headers are a JSON list.
    """
    return _csv_lines(topic, table, _csv_text)


def printable_csv_lines(topic: str, table: pa.Table) -> str:
    """As `csv_lines`, for a terminal: a record is one line, and nothing in it is obeyed."""

    def text(data: bytes | None) -> str | None:
        return None if data is None else printable(_csv_text(data) or "")

    return _csv_lines(topic, table, text)


def _csv_lines(topic: str, table: pa.Table, text: Callable[[bytes | None], str | None]) -> str:
    name = csv_field(topic)
    columns = _Columns.of(table)
    return "".join(
        f"{name},{partition},{offset},{time},"
        f"{csv_field(text(key))},{csv_field(text(value))},"
        f"{csv_field(_header_list(headers) if headers else None)}\n"
        for partition, offset, time, key, value, headers in columns.rows(
            _times(columns.times_ms, "")
        )
    )


def csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if text and not _CSV_SPECIAL.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'


_CSV_SPECIAL = re.compile(r'[",\r\n]|^\s|\s$')


def _csv_text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"


# -- in a format -------------------------------------------------------------------------------


def format_lines(form: str, *, raw: bool) -> Lines:
    r"""Lines as kcat's ``-f`` has them.

    %t topic, %p partition, %o offset, %T timestamp in ms, %k key, %s value, %h headers, %K and %S
    the bytes of key and value (-1: null), %%, ``\n``, ``\t``, ``\r``, ``\\``, ``\xHH``.

    Raises:
        InvalidArgumentError: another letter.
    """
    text = _raw("NULL") if raw else _plain
    parts = re.split(r"(%.?)", _unescaped(form), flags=re.DOTALL)
    makers: list[Callable[..., str]] = []
    for part in parts:
        if part.startswith("%") and part != "%%":
            if part[1:] not in _LETTERS:
                raise InvalidArgumentError(
                    f"{part!r} in the format is none of {', '.join(f'%{x}' for x in _LETTERS)}, %%",
                    value=form,
                )
            makers.append(_LETTERS[part[1:]])
        elif part:
            makers.append(lambda *_, part="%" if part == "%%" else part: part)

    def lines(topic: str, table: pa.Table) -> str:
        rows = _Columns.of(table).rows()
        return "".join([make(topic, row, text) for row in rows for make in makers])

    return lines


_LETTERS: Mapping[str, Callable[..., str]] = {
    "t": lambda topic, row, text: topic,
    "p": lambda topic, row, text: str(row[0]),
    "o": lambda topic, row, text: str(row[1]),
    "T": lambda topic, row, text: str(row[2]),
    "k": lambda topic, row, text: text(row[3]),
    "s": lambda topic, row, text: text(row[4]),
    "K": lambda topic, row, text: str(-1 if row[3] is None else len(row[3])),
    "S": lambda topic, row, text: str(-1 if row[4] is None else len(row[4])),
    "h": lambda topic, row, text: ",".join(
        f"{text(name.encode())}={text(data)}" for name, data in row[5]
    ),
}


def _plain(data: bytes | None) -> str:
    """As kcat prints it, but nothing that a terminal obeys."""
    return "NULL" if data is None else printable(data.decode(errors="backslashreplace"))


def _unescaped(text: str) -> str:
    def one(found: re.Match[bytes]) -> bytes:
        code = found[1].decode()
        return _ESCAPES.get(code) or bytes.fromhex(code[1:])

    given = text.encode(errors="surrogateescape")
    escaped = re.sub(rb"\\(n|t|r|\\|x[0-9a-fA-F]{2})", one, given)
    return escaped.decode(errors="surrogateescape")


_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\"}


# -- both --------------------------------------------------------------------------------------


def _times(times_ms: np.ndarray, none: str) -> list[str]:
    """As ISO 8601 in UTC, to the second or to the millisecond."""
    import numpy as np

    at = np.clip(times_ms, 0, _LAST_MS).astype("datetime64[ms]")
    texts = np.datetime_as_string(at, unit="s").astype(object)
    fine = times_ms % 1000 != 0
    texts[fine] = np.datetime_as_string(at[fine], unit="ms")
    shown: list[str] = (texts + "+00:00").tolist()
    for row in np.flatnonzero((times_ms < 0) | (times_ms > _LAST_MS)).tolist():
        shown[row] = none if times_ms[row] < 0 else f"@{times_ms[row]}"
    return shown


_LAST_MS = 253_402_300_799_999  # of the year 9999


def _ended(lines: list[str]) -> str:
    return "\n".join(lines) + "\n" if lines else ""
