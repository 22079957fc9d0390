"""The fields entry: one record as a field map that a person can read in redis-cli.

In this order:

| field                 | value                                                               |
|-----------------------|---------------------------------------------------------------------|
| ``__ts``              | timestamp in ms, -1 for none                                        |
| ``__key``             | the key; absent: null                                               |
| ``__header.{name}``   | a header, repeated as often as the record has it                    |
| ``__nullheader.{name}`` | a header whose value is null (the field's is empty)               |
| ``value``             | the value; absent: null, unless members follow                      |
| ``{member}``          | flattened: a top-level member of the JSON object that is the value  |
| ``__json``            | ``spaced``, before the members: separators ``", "`` and ``": "``    |
| ``__crc``             | CRC-32C over all names and values before it and their lengths |
| ``t``                 | only under LogAppendTime: the append time in ms                     |

A value is flattened only if the members give back exactly its bytes and no member's name is one of
these; otherwise it is stored as ``value``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from json.encoder import encode_basestring
from typing import Any

from ..base.json_text import sourced_members
from ..values.record import NO_TIMESTAMP_MS
from .crc import crc32c_of_parts
from .entry import MAX_TIMESTAMP_MS, Entry, EntryId, append_time_ms, corrupt, newer_entry

TIMESTAMP_FIELD = b"__ts"
KEY_FIELD = b"__key"
HEADER_PREFIX = b"__header."
NULL_HEADER_PREFIX = b"__nullheader."
VALUE_FIELD = b"value"
JSON_FIELD = b"__json"
CRC_FIELD = b"__crc"
_RESERVED_PREFIX = "__"
_SPACED = b"spaced"

#: Lua's unpack fails at 8,000 values, two per field; the rest is for the script's own arguments.
MAX_FIELDS = 3_900

#: timestamp_ms, key, value, headers
Row = tuple[int, "bytes | None", "bytes | None", Sequence[tuple[str, "bytes | None"]]]


def encode_fields(row: Row, flatten: bool) -> Entry | None:
    """The record as a fields entry; None if it has more fields than the append script can pass."""
    timestamp_ms, key, value, headers = row
    fields = [TIMESTAMP_FIELD, b"%d" % timestamp_ms]
    if key is not None:
        fields += (KEY_FIELD, key)
    for name, data in headers:
        if data is None:
            fields += (NULL_HEADER_PREFIX + name.encode(), b"")
        else:
            fields += (HEADER_PREFIX + name.encode(), data)
    if value is not None:
        flattened = _flattened(value) if flatten else None
        if flattened is None or len(fields) + len(flattened) > 2 * (MAX_FIELDS - 1):
            fields += (VALUE_FIELD, value)
        else:
            fields += flattened
    if len(fields) > 2 * (MAX_FIELDS - 1):
        return None
    fields += (CRC_FIELD, crc32c_of_parts(fields))
    size_bytes = sum(map(len, fields))
    return Entry(
        record_count=1,
        fields=fields,
        size_bytes=size_bytes,
        decoded_bytes=size_bytes,
        min_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        first_keyless=0 if key is None else None,
    )


def decode_fields(entry_id: EntryId, fields: Sequence[bytes]) -> tuple[Row, int | None]:
    """The record of a fields entry, and its append time if it has one.

    Raises:
        CorruptRecordError: its fields are not what was written.
        NewerVersionError: they are, but this version does not know all of them.
    """
    names = fields[::2]
    if len(fields) % 2 or CRC_FIELD not in names:
        raise corrupt(entry_id, f"it has no field {CRC_FIELD.decode()}")
    end = 2 * names.index(CRC_FIELD)
    crc = crc32c_of_parts(fields[:end])
    if crc != fields[end + 1]:
        raise corrupt(entry_id, f"its CRC-32C is {crc!r}, stored is {fields[end + 1]!r}")
    if entry_id.record_count != 1:
        raise corrupt(entry_id, f"it holds 1 record, its id says {entry_id.record_count}")
    time_ms = append_time_ms(entry_id, fields[end + 2 :])
    try:
        return _row(entry_id, fields[:end]), time_ms
    except ValueError as error:  # a matching CRC over fields that this version does not write
        raise corrupt(entry_id, str(error)) from error


def _row(entry_id: EntryId, fields: Sequence[bytes]) -> Row:
    timestamp_ms = int(fields[1])
    if not NO_TIMESTAMP_MS <= timestamp_ms <= MAX_TIMESTAMP_MS:
        raise ValueError(f"it holds a timestamp of {timestamp_ms} ms")
    key = value = None
    headers: list[tuple[str, bytes | None]] = []
    members: Members = []
    separators = COMPACT
    for name, data in zip(fields[2::2], fields[3::2], strict=True):
        if name == KEY_FIELD:
            key = data
        elif name == VALUE_FIELD:
            value = data
        elif name.startswith(HEADER_PREFIX):
            headers.append((name[len(HEADER_PREFIX) :].decode(), data))
        elif name.startswith(NULL_HEADER_PREFIX):
            headers.append((name[len(NULL_HEADER_PREFIX) :].decode(), None))
        elif name == JSON_FIELD and data == _SPACED:
            separators = SPACED
        elif name.startswith(_RESERVED_PREFIX.encode()):
            raise newer_entry(entry_id, f"a field {name.decode(errors='replace')[:40]}")
        else:
            members.append((name.decode(), data.decode()))
    if members:
        value = join_object(members, separators).encode()
    return timestamp_ms, key, value, headers


def _flattened(value: bytes) -> list[bytes] | None:
    split = split_object(value)
    if split is None:
        return None
    members, separators = split
    fields = [JSON_FIELD, _SPACED] if separators == SPACED else []
    for name, text in members:
        if name.startswith(_RESERVED_PREFIX) or name == VALUE_FIELD.decode():
            return None
        fields += (name.encode(), text.encode())
    return fields


#: Member and name separators of the two layouts that are told apart.
COMPACT = (",", ":")
SPACED = (", ", ": ")  # Python's json.dumps by default

Members = list[tuple[str, str]]  # name, text; names may repeat

# Reading back must not depend on a JSON parser (its limits differ between Python versions), so a
# bare text is understood by its form alone.
_JSON_LOOK = re.compile(
    r'["\[{].*|true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?', re.DOTALL
)


def split_object(value: bytes) -> tuple[Members, tuple[str, str]] | None:
    """The members of a JSON object and its separators; None if they would not give it back."""
    if not value.startswith(b'{"'):
        return None
    try:
        text = value.decode()
        members = [(name, _shown(member, raw)) for name, member, raw in sourced_members(text)]
    except (ValueError, RecursionError):
        return None
    after_name = len("{" + encode_basestring(members[0][0]))
    separators = SPACED if text.startswith(": ", after_name) else COMPACT
    return (members, separators) if join_object(members, separators) == text else None


def _shown(member: Any, raw: str) -> str:
    """A text without its quotes, if that is how `join_object` would write it again."""
    is_bare = isinstance(member, str) and encode_basestring(member) == raw
    return member if is_bare and not _JSON_LOOK.fullmatch(member) else raw


def join_object(members: Sequence[tuple[str, str]], separators: tuple[str, str]) -> str:
    """The JSON object of the members."""
    between, colon = separators
    return (
        "{"
        + between.join(
            encode_basestring(name)
            + colon
            + (text if _JSON_LOOK.fullmatch(text) else encode_basestring(text))
            for name, text in members
        )
        + "}"
    )
