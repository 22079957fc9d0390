"""Which records to show: those with a key, a header, a text or a JSON path in the value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidArgumentError
from .json_path import JsonPath


@dataclass(frozen=True, slots=True)
class Match:
    """All given conditions must hold; without any, every record matches."""

    key: bytes | None = None  # these bytes, all of them
    header: tuple[str, bytes | None] | None = None  # a header of that name; with that value
    text: bytes | None = None  # somewhere in the value
    json: JsonPath | None = None

    @classmethod
    def of(
        cls,
        *,
        key: str | bytes | None = None,
        header: str | tuple[str, str | bytes | None] | None = None,
        text: str | bytes | None = None,
        json: str | None = None,
    ) -> Match:
        """From what people write; texts are their UTF-8 bytes.

        Args:
            header: ``name``, ``name=value`` or ``(name, value)``.

        Raises:
            InvalidArgumentError: not a text, an empty header name, or not a JSON path.
        """
        return cls(
            _bytes("key", key),
            None if header is None else _header(header),
            _bytes("text", text) or None,  # every value contains the empty text
            None if json is None else JsonPath.of(json),
        )

    def __bool__(self) -> bool:
        return self != Match()

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a `RECORDS` batch that match, in their order."""
        if self.key is not None:
            records = records.filter(pc.equal(records.column("key"), _binary(self.key)))
        if self.header is not None and records.num_rows:
            records = records.take(_rows_with_header(records.column("headers"), *self.header))
        if self.text is not None and records.num_rows:
            records = records.filter(pc.match_substring(records.column("value"), self.text))
        if self.json is not None and records.num_rows:
            records = records.take(self.json.rows(records.column("value")))
        return records

    def arguments(self) -> str:
        """The keyword arguments of `of` that give this, as code."""
        given = [
            ("key", None if self.key is None else _spelt(self.key)),
            ("header", None if self.header is None else _spelt_header(*self.header)),
            ("text", None if self.text is None else _spelt(self.text)),
            ("json", None if self.json is None else repr(self.json.text)),
        ]
        return ", ".join(f"{name}={code}" for name, code in given if code is not None)


def _rows_with_header(headers: pa.Array, name: str, value: bytes | None) -> pa.Array:
    """The numbers of the rows that have such a header."""
    flat = headers.flatten()
    hit = pc.equal(pc.struct_field(flat, "key"), name)
    if value is not None:
        hit = pc.and_kleene(hit, pc.equal(pc.struct_field(flat, "value"), _binary(value)))
    return pc.unique(pc.list_parent_indices(headers).filter(hit))


def _header(header: str | tuple[str, str | bytes | None]) -> tuple[str, bytes | None]:
    if isinstance(header, str):
        name, equals, text = header.partition("=")
        value: str | bytes | None = text if equals else None
    else:
        name, value = header
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(
            f"{header!r} names no header; write name, name=value or (name, value)", value=header
        )
    return name, _bytes("header", value)


def _bytes(what: str, value: str | bytes | None) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(
                f"{what}={value!r} has no UTF-8 ({error.reason}); give bytes", value=value
            ) from None
    raise InvalidArgumentError(f"{what}={value!r} is neither a text nor bytes")


def _binary(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.binary())


def _spelt(value: bytes) -> str:
    """The value as code: a text if it is readable, else bytes."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return repr(value)
    return repr(text) if text.isprintable() else repr(value)


def _spelt_header(name: str, value: bytes | None) -> str:
    if value is None:
        return repr(name) if "=" not in name else repr((name, None))
    spelt = _spelt(value)
    if spelt.startswith("b") or "=" in name:
        return f"({name!r}, {spelt})"
    return repr(f"{name}={value.decode()}")
