"""The records of one key, read as its history."""

from __future__ import annotations

import pyarrow as pa
from msgspec.structs import replace

from ...errors import InvalidArgumentError
from ...read.found import SearchLimit
from ...read.where import Where
from ...read.where.expression import Bytes, Compare
from ...values.offsets import Earliest, Latest
from .decode import decode
from .view import Ask


def history_of(ask: Ask, key: bytes | None) -> Ask:
    """The question for all versions of a key in all partitions, newest page first.

    Raises:
        InvalidArgumentError: the record has no key.
    """
    if key is None:
        raise InvalidArgumentError("a record without a key has no history; pick one with a key")
    return replace(
        ask,
        partition=None,
        where=Latest(),
        match=Compare(Bytes("key"), "=", key),
        limit=SearchLimit(),
        history=True,
        span=(Earliest(), Latest()),
    )


def history_note(match: Where, records: pa.Table) -> str:
    """What became of the key, judged by the rows shown."""
    assert isinstance(match, Compare)
    assert isinstance(match.literal, bytes)
    name = decode(match.literal, limit=60).text
    if not records.num_rows:
        return f"key {name}: no version found"
    last = records.num_rows - 1
    offset = records["offset"][last].as_py()
    deleted = records["value"][last].as_py() is None
    versions = "version" if records.num_rows == 1 else "versions"
    state = "deleted by the tombstone" if deleted else "last written"
    return f"key {name}: {records.num_rows:,} {versions} shown, {state} at offset {offset:,}"
