"""Named ways to break lakelog, one at a time, to prove that the machine notices.

A mutant patches the running process; no production module knows of it. One whose place in the code
is gone fails loudly instead of testing nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import pyarrow as pa

from ..archive import archiver
from ..archive.copy import HotRows
from ..codec import arrow_entry, codec, fields_entry
from ..cold import path_table
from ..cold.change import HotRange
from ..hot import connection
from ..offsets import HotOffsets


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect."""

    name: str
    breaks: str  # the promise it breaks
    applied: Callable[[], AbstractContextManager[Any]]


def _script(name: str, changes: Mapping[str, str]) -> Callable[[], AbstractContextManager[None]]:
    """The script as loaded into Redis, with some of its text changed."""
    original = connection.script_text

    def changed_text(script: str, *run: Any) -> str:
        text = original(script, *run)
        if script == name:
            for old, new in changes.items():
                if old not in text:
                    raise LookupError(f"the mutant of {name}.lua finds no {old!r} there any more")
                text = text.replace(old, new)
        return text

    @contextmanager
    def applied() -> Iterator[None]:
        connection.script_sha.cache_clear()
        try:
            with mock.patch.object(connection, "script_text", changed_text):
                yield
        finally:
            connection.script_sha.cache_clear()

    return applied


def _patch(target: Any, attribute: str, new: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.object(target, attribute, new)


_NOTES_GAP = "(st[7] and st[7] .. ',' or '') .. int(log_end) .. '-' .. int(gap_end)"

_copy = HotRows.__call__


def _copy_and_trim(self: HotRows, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
    yield from _copy(self, hot_range)
    self.source.open().trim(hot_range.topic_partition, hot_range.end_offset)


def _trim_everything(topic: object, hot: Mapping[int, HotOffsets], *_: object) -> dict[int, int]:
    return {number: seen.log_end for number, seen in hot.items()}


_encode_fields = fields_entry.encode_fields


def _encode_null_headers_as_empty(row: fields_entry.Row, flatten: bool) -> object:
    timestamp_ms, key, value, headers = row
    headers = [(name, data or b"") for name, data in headers]
    return _encode_fields((timestamp_ms, key, value, headers), flatten)


@contextmanager
def _crc_unchecked() -> Iterator[None]:
    with ExitStack() as stack:
        for module, name in ((arrow_entry, "crc32c"), (fields_entry, "crc32c_of_parts")):
            stack.enter_context(mock.patch.object(module, name, return_value=b"00000000"))
        yield


MUTANTS = (
    Mutant(
        "trim before commit",
        "copy, commit, then trim: a crash between them loses nothing",
        _patch(HotRows, "__call__", _copy_and_trim),
    ),
    Mutant(
        "no sequence check",
        "a record appended once, also through a resend, is in the log once",
        _script(
            "append",
            {
                "    if same then": "    if false then",
                "first_sequence ~= expected": "false",
            },
        ),
    ),
    Mutant(
        "no register check",
        "two archivers at once never duplicate a record",
        _patch(path_table, "_standing", lambda change, *_: change.partitions),
    ),
    Mutant(
        "base id off by one",
        "offsets are dense at append",
        _script(
            "append", {"local last = p.log_end + e.count - 1": "local last = p.log_end + e.count"}
        ),
    ),
    Mutant(
        "time index floor off by one",
        "a search by timestamp finds the earliest offset",
        _script("find_timestamp", {"tonumber(floor) + 1": "tonumber(floor) + 2"}),
    ),
    Mutant(
        "recover without the span",
        "no offset names two records, also when the tail was lost",
        _script(
            "recover",
            {"GAP_SPAN = 16777216": "GAP_SPAN = 1", "APPENDS_PER_MS = 16384": "APPENDS_PER_MS = 0"},
        ),
    ),
    Mutant(
        "gap not noted",
        "a hole is declared, or it is an error",
        _script("recover", {_NOTES_GAP: "st[7] or ''"}),
    ),
    Mutant(
        "clean mark not removed",
        "only a server that lost nothing goes on without a gap",
        _script(
            "pause",
            {
                "redis.call('HDEL', state, 'clean')": "local kept = true",
                "if st[2] ~= RUN_ID or st[3] then": "if st[2] ~= RUN_ID then",
            },
        ),
    ),
    Mutant(
        "null header value lost",
        "headers come back byte for byte, null is not empty",
        _patch(codec, "encode_fields", _encode_null_headers_as_empty),
    ),
    Mutant("CRC unchecked", "damaged bytes are an error, never records", _crc_unchecked),
    Mutant(
        "no fencing",
        "an older epoch of a producer writes no more",
        _script("append", {"elseif epoch < known_epoch then": "elseif false then"}),
    ),
    Mutant(
        "resent as new after a change of server",
        "unknown is not failed: what may have been written is not sent as new",
        _script("append", {"if sent_under ~= '' and sent_under ~= RUN_ID": "if false"}),
    ),
    Mutant(
        "trim ignores what is archived",
        "nothing unarchived is dropped",
        _patch(archiver, "trim_points", _trim_everything),
    ),
)
