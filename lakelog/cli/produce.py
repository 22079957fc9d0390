"""``lakelog produce``: records from standard input."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .connect import open_log
from .output import Message

if TYPE_CHECKING:
    from ..ingest.delivery import SendResult

CHUNK_RECORDS = 10_000

_EPILOG = """\
Each line is a value; with --key-separator, key and value. With --format json, each is an object:
  {"key": "N14228", "value": "…", "headers": [["source", "cli"]],
   "timestamp": "2013-12-31T23:59:00Z", "partition": 0}
value and key are text, null, or (as key_base64, value_base64) any bytes; any other
JSON, such as an object or a number, is stored as it is written, byte for byte; a
timestamp is ISO with a zone or epoch milliseconds. What
`lakelog consume --output json` prints can be fed back.

examples:
  echo hello | lakelog --dir ./log produce orders
  lakelog --dir ./log produce orders --key-separator : < pairs.txt
  lakelog --dir ./log produce orders --format json < records.jsonl
"""

_FIELDS = {"key", "value", "key_base64", "value_base64", "headers", "timestamp", "partition"}
#: Fields that `consume --output json` adds; they do not say where a record goes.
_READ_ONLY = {"topic", "offset", "timestamp_ms"}


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "produce",
        parents=[common],
        help="append records from standard input",
        description="Append records from standard input.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topic")
    added.add_argument("--format", choices=["lines", "json"], default="lines")
    added.add_argument("--key-separator", metavar="TEXT", help="splits a line into key and value")
    added.add_argument("-p", "--partition", type=int, help="for all records; default: by key")
    added.add_argument("--acks", default="memory", help="memory, replicas=N or fsync")
    added.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Message:
    from ..errors import InvalidArgumentError, UnknownTopicOrPartitionError

    if arguments.key_separator == "":
        raise InvalidArgumentError("--key-separator is empty; give the text between key and value")
    appended = 0
    pending: list[tuple[int, SendResult]] = []  # with the numbers of their lines
    with open_log(arguments) as log, log.producer(acks=arguments.acks) as producer:
        log.topics.get(arguments.topic)
        for number, line in enumerate(sys.stdin.buffer, 1):
            try:
                record = _record(line.rstrip(b"\r\n"), arguments)
                if record is None:
                    continue
                pending.append((number, producer.send(arguments.topic, **record)))
            except (InvalidArgumentError, UnknownTopicOrPartitionError) as error:
                appended += _settle(pending)
                raise replace(
                    error,
                    message=f"line {number}: {error.message}. The {appended:,} records before it "
                    "were appended",
                ) from error
            if len(pending) >= CHUNK_RECORDS:
                appended += _settle(pending)
        appended += _settle(pending)
    return Message(
        f"appended {appended:,} records to {arguments.topic}",
        {"topic": arguments.topic, "records": appended},
    )


def _settle(pending: list[tuple[int, SendResult]]) -> int:
    """Waits for the answers, drops the results, and returns how many records there were.

    Raises:
        LakelogError: the error of the first that failed, with its line and how many others did.
    """
    from ..errors import LakelogError

    settled = list(pending)
    pending.clear()
    failed = [(n, error) for n, result in settled if (error := result.exception()) is not None]
    if not failed:
        return len(settled)
    number, error = failed[0]
    if not isinstance(error, LakelogError):
        raise error
    raise replace(
        error,
        message=f"line {number}: {error.message}. Of the {len(settled):,} records of lines "
        f"{settled[0][0]:,} to {settled[-1][0]:,} {len(failed):,} failed; the others, and those of "
        "the lines before, were appended",
    ) from error


def _record(line: bytes, arguments: argparse.Namespace) -> dict[str, Any] | None:
    """The keyword arguments of ``Producer.send`` for a line; None for an empty JSON line."""
    if arguments.format == "json":
        if not line.strip():
            return None
        record = json_record(line)
    elif arguments.key_separator is None:
        record = {"value": line}
    else:
        record = _keyed(line, arguments.key_separator.encode())
    if arguments.partition is not None:
        record["partition"] = arguments.partition
    return record


def _keyed(line: bytes, separator: bytes) -> dict[str, Any]:
    from ..errors import InvalidArgumentError

    key, found, value = line.partition(separator)
    if not found:
        raise InvalidArgumentError(f"no separator {separator.decode()!r} in {line[:80]!r}")
    return {"key": key, "value": value}


def json_record(line: bytes) -> dict[str, Any]:
    """The record a JSON line describes, as keyword arguments of ``Producer.send``.

    Raises:
        InvalidArgumentError: not such an object.
    """
    from ..errors import InvalidArgumentError
    from ..ingest.given_values import as_timestamp_ms
    from .json_source import members_with_source

    try:
        sourced = members_with_source(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"not a JSON object, as a record is: {error}") from None
    fields = {name: member for name, (member, _) in sourced.items()}
    unknown = set(fields) - _FIELDS - _READ_ONLY
    if unknown or not {"value", "value_base64"} & set(fields):
        what = f"unknown field {sorted(unknown)[0]!r}" if unknown else "no value (null deletes)"
        raise InvalidArgumentError(f"{what}; fields are {', '.join(sorted(_FIELDS))}")
    record: dict[str, Any] = {
        "value": _bytes(sourced, "value"),
        "key": _bytes(sourced, "key"),
        "headers": _headers(fields.get("headers") or []),
        "partition": fields.get("partition"),
    }
    if fields.get("timestamp") is not None:
        record["timestamp_ms"] = as_timestamp_ms(fields["timestamp"])
    elif fields.get("timestamp_ms") is not None:
        record["timestamp_ms"] = fields["timestamp_ms"]
    return record


def _bytes(sourced: dict[str, tuple[Any, str]], name: str) -> bytes | str | None:
    encoded, _ = sourced.get(f"{name}_base64", (None, ""))
    if encoded is not None:
        return _decoded(f"{name}_base64", encoded)
    member, source = sourced.get(name, (None, ""))
    return member if member is None or isinstance(member, str) else source


def _headers(headers: Any) -> list[tuple[str, bytes | str | None]]:
    from ..errors import InvalidArgumentError

    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    if not isinstance(pairs, list):
        raise InvalidArgumentError(f"headers are [name, value] pairs, not {headers!r}")
    result: list[tuple[str, bytes | str | None]] = []
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InvalidArgumentError(f"headers are [name, value] pairs, not {pair!r}")
        name, value = pair
        if isinstance(value, dict) and set(value) == {"base64"}:
            value = _decoded(f"base64 of header {name!r}", value["base64"])
        elif value is not None and not isinstance(value, str):
            raise InvalidArgumentError(f"header {name!r} must be text, null or {{'base64': …}}")
        result.append((name, value))
    return result


def _decoded(name: str, encoded: Any) -> bytes:
    import base64

    from ..errors import InvalidArgumentError

    try:
        return base64.b64decode(encoded, validate=True)
    except (TypeError, ValueError) as error:  # binascii.Error is a ValueError
        raise InvalidArgumentError(f"{name} is not base64: {error}") from None
