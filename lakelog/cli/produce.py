"""``lakelog produce``: records from standard input, and rows of files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
from .connect import open_log
from .options import Offer, add_config_option, parse_settings
from .output import Failed, Message, row
from .progress import ConsoleProgress
from .stop_signals import HeldInterrupt

if TYPE_CHECKING:
    from ..errors import LakelogError
    from ..ingest.delivery import SendResult
    from ..ingest.producer import Producer

CHUNK_RECORDS = 10_000
CHUNK_BYTES = 8 * 2**20

_EPILOG = """\
Rows of a FILE become JSON values, each with all of its fields. A file's name tells its format:
.csv, .tsv, .jsonl, .json (an object a line, which is the value byte for byte), .parquet, .arrow;
text also with .gz, .zst or .bz2 behind. A load that is broken off goes on where it was by --resume.

From standard input, each line is a value; with --key-separator, key and value. With --format json,
each is an object:
  {"key": "N14228", "value": "…", "headers": [["source", "cli"]],
   "timestamp": "2013-12-31T23:59:00Z", "partition": 0}
value and key are text, null, or (as key_base64, value_base64) any bytes; any other
JSON, such as an object or a number, is stored as it is written, byte for byte; a
timestamp is ISO with a zone or epoch milliseconds. What
`lakelog consume --output json` prints can be fed back.

examples:
  lakelog --dir ./log produce orders orders.csv --create --key-field customer
  lakelog --dir ./log produce orders orders.csv --timestamp-field at --zone Europe/Berlin
  lakelog --dir ./log produce orders rows.jsonl.gz --rejects bad.jsonl
  echo hello | lakelog --dir ./log produce orders
  lakelog --dir ./log produce orders --key-separator : < pairs.txt
  lakelog --dir ./log produce orders --format json < records.jsonl
"""

_FIELD_HELP = {
    "key": "the field that is the key, too",
    "timestamp": "the field that is the record's time, too: ISO, or epoch milliseconds",
    "partition": "the field that says the partition",
    "value": "the field that alone is the value, as it is",
}
_FIELDS = {"key", "value", "key_base64", "value_base64", "headers", "timestamp", "partition"}
#: Fields that `consume --output json` adds; they do not say where a record goes.
_READ_ONLY = {"topic", "offset", "timestamp_ms"}


def add_produce(offer: Offer) -> None:
    added = offer.command(
        _run, "Append records from standard input, or the rows of a file.", _EPILOG
    )
    added.add_argument("topic")
    added.add_argument("file", nargs="?", metavar="FILE", help="of rows; default: standard input")
    added.add_argument(
        "--format",
        choices=["lines", "json", "csv", "jsonl", "parquet", "arrow"],
        help="default: as FILE's name tells; of standard input: lines",
    )
    added.add_argument(
        "--create",
        action="store_true",
        help="make the topic if it is not there; of rows, with columns",
    )
    added.add_argument(
        "--partitions", type=int, metavar="N", help="of one that is made; default: 1"
    )
    add_config_option(added, "a setting of one that is made; repeatable")
    rows = added.add_argument_group("rows of a file")
    for name in ("key", "timestamp", "partition", "value"):
        rows.add_argument(f"--{name}-field", metavar="NAME", help=_FIELD_HELP[name])
    rows.add_argument("--zone", help="of times without one, such as Europe/Berlin")
    rows.add_argument(
        "--time-format",
        metavar="FORM",
        help="of times that are not ISO, such as '%%d.%%m.%%Y %%H:%%M'; s: epoch seconds",
    )
    rows.add_argument("--encoding", help="of text that is not UTF-8, such as cp1252")
    rows.add_argument(
        "--null",
        action="append",
        metavar="TEXT",
        help="stands for no value in CSV, such as NA; repeatable",
    )
    rows.add_argument("--rejects", metavar="FILE", help="takes rows that cannot be appended")
    rows.add_argument("--resume", metavar="ID", help="go on with a load that was broken off")
    added.add_argument("--key-separator", metavar="TEXT", help="splits a line into key and value")
    added.add_argument("-p", "--partition", type=int, help="for all records; default: by key")
    added.add_argument("--acks", default="memory", help="memory, replicas=N or fsync")


def _run(arguments: argparse.Namespace) -> Message:
    from ..errors import InvalidArgumentError, LakelogError

    if (arguments.partitions is not None or arguments.config) and not arguments.create:
        name = "--config" if arguments.config else "--partitions"
        raise InvalidArgumentError(
            f"{name} is of a topic that is made: give --create, too. `lakelog topics alter "
            f"{arguments.topic} {name} …` changes one that is there"
        )
    if arguments.file is None and Path(arguments.topic).is_file():
        raise InvalidArgumentError(
            f"{arguments.topic!r} is a file: name the topic before it, as in `lakelog produce "
            f"TOPIC {arguments.topic}`"
        )
    if arguments.file == "-":
        arguments.file = None
    config = parse_settings("--config", arguments.config)
    arguments.partitions = 1 if arguments.partitions is None else arguments.partitions
    arguments.makes_log = arguments.create
    if arguments.file is not None or arguments.format in ("csv", "jsonl", "parquet", "arrow"):
        return _load(arguments, config)
    given = next((name for name in _OF_ROWS if getattr(arguments, name) is not None), None)
    if given is not None:
        raise InvalidArgumentError(
            f"--{given.replace('_', '-')} is of rows of a file: give one, or --format csv, jsonl, "
            "parquet or arrow for those of standard input"
        )
    arguments.format = arguments.format or "lines"
    if arguments.key_separator == "":
        raise InvalidArgumentError("--key-separator is empty; give the text between key and value")
    with open_log(arguments) as log, HeldInterrupt().holding() as interrupt:
        if arguments.create:
            log.topics.create(arguments.topic, arguments.partitions, config, if_not_exists=True)
        log.topics.get(arguments.topic)
        if sys.stdin.isatty():
            print("from here on, each line is a record; Ctrl-D ends", file=sys.stderr)
        producer = log.producer(acks=arguments.acks)
        appended = _Appended(arguments.topic, interrupt)
        refused: LakelogError | None = None
        try:
            try:
                _send_all(producer, arguments, appended)
            except LakelogError as error:
                refused = error
            appended.settle()
        except KeyboardInterrupt:
            appended.finish(producer)
            raise Failed(appended.said(), appended.reason("stopped"), code=130) from None
        finally:
            producer.close(timeout_ms=0)  # nothing is under way any more
    if refused is not None:
        reason = f"line {appended.line:,}: {refused.message}"
        raise Failed(appended.said(), appended.reason(reason)) from refused
    if appended.first_error is not None:
        raise Failed(appended.said(), appended.reason(None)) from appended.first_error
    return appended.said()


#: Options of rows.
_OF_ROWS = (
    *("key_field", "timestamp_field", "partition_field", "value_field"),
    *("zone", "time_format", "encoding", "null", "rejects", "resume"),
)


def _load(arguments: argparse.Namespace, config: dict[str, Any]) -> Message:
    from ..errors import InvalidArgumentError, LakelogError

    if arguments.format in ("lines", "json"):
        raise InvalidArgumentError(
            f"--format {arguments.format} is of standard input: `< {arguments.file}` gives the file"
        )
    if arguments.partition is not None or arguments.key_separator is not None:
        raise InvalidArgumentError(
            "-p and --key-separator are of lines; of rows, --partition-field and --key-field say it"
        )
    begun: list[str] = []

    def begin(load_id: str) -> None:
        begun.append(load_id)
        print(f"load {load_id}: --resume {load_id} goes on with it", file=sys.stderr)

    with open_log(arguments) as log, _file_of(arguments) as path:
        try:
            with ConsoleProgress().step(f"loading {path.name}") as step:
                loaded = log.load(
                    arguments.topic,
                    path,
                    key=arguments.key_field,
                    timestamp=arguments.timestamp_field,
                    partition=arguments.partition_field,
                    value=arguments.value_field,
                    zone=arguments.zone,
                    time_format=arguments.time_format,
                    create=arguments.create,
                    partitions=arguments.partitions,
                    config=config,
                    format=arguments.format,
                    encoding=arguments.encoding,
                    null=arguments.null or (),
                    rejects=arguments.rejects,
                    resume=arguments.resume,
                    acks=arguments.acks,
                    on_begin=begin,
                    on_rows=step.advance,
                )
        except (LakelogError, KeyboardInterrupt) as error:
            if not begun:
                raise
            said = Message(
                f"load {begun[0]} of {arguments.topic} ended before its end",
                {"topic": arguments.topic, "load_id": begun[0]},
            )
            why = error.message if isinstance(error, LakelogError) else "stopped"
            how = f"To go on where it was: the same command with --resume {begun[0]}"
            code = 1 if isinstance(error, LakelogError) else 130
            raise Failed(said, f"{why}. {how}", code=code) from error
        columns = log.topics.get(arguments.topic).config.value_columns if arguments.create else ""
    text = f"topic {loaded.topic} has {counted(loaded.rows, 'row')} of {path.name}"
    if loaded.rejected:
        text += f"; {counted(loaded.rejected, 'line')} put aside: {arguments.rejects}"
    if columns:
        text += f"; columns: {columns}"
    return Message(text, row(loaded, "topic load_id rows rejected"))


@contextmanager
def _file_of(arguments: argparse.Namespace) -> Iterator[Path]:
    """The file; of standard input, what it gives."""
    if arguments.file is not None:
        yield Path(arguments.file)
        return
    import tempfile

    if sys.stdin.isatty():
        print(f"reading {arguments.format} from here on; Ctrl-D ends", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="lakelog-load-") as folder:
        path = Path(folder, f"stdin.{arguments.format}")
        with path.open("wb") as file:
            given: Any = sys.stdin.buffer
            for piece in iter(given.read1, b""):  # so that one Ctrl-D ends it
                file.write(piece)
        yield path


def _send_all(producer: Producer, arguments: argparse.Namespace, appended: _Appended) -> None:
    while line := appended.read_line():
        record = _record(line.rstrip(b"\r\n"), arguments)
        if record is None:
            continue
        appended.add(producer.send(arguments.topic, **record), len(line))
        if appended.is_full and not appended.settle():
            return


class _Appended:
    """What became of the records so far."""

    def __init__(self, topic: str, interrupt: HeldInterrupt) -> None:
        self.topic = topic
        self.line = 0  # the last that was read
        self.records = 0  # that are in the log
        self.not_written = 0
        self.unknown = 0  # that may be in the log
        self.first_error: LakelogError | None = None
        self._first_line = 0  # that the error is about
        self._interrupt = interrupt
        self._pending: list[tuple[int, SendResult]] = []
        self._pending_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether to wait for answers, before the producer's buffer is full and makes one wait."""
        return len(self._pending) >= CHUNK_RECORDS or self._pending_bytes >= CHUNK_BYTES

    def read_line(self) -> bytes:
        """The next line of standard input; empty at its end."""
        self._interrupt.wait()
        line = sys.stdin.buffer.readline()
        self._interrupt.go_on()
        self.line += bool(line)
        return line

    def add(self, result: SendResult, size_bytes: int) -> None:
        self._pending.append((self.line, result))
        self._pending_bytes += size_bytes

    def settle(self) -> bool:
        """Waits for all answers; False if there was an error, then or before."""
        self._interrupt.wait()
        for _, result in self._pending:
            result.exception()
        self._interrupt.go_on()
        for line, result in self._pending:
            self._count(line, result.exception())
        self._pending.clear()
        self._pending_bytes = 0
        return self.first_error is None

    def finish(self, producer: Producer) -> None:
        """After an interrupt: wait for what is under way, until there is another."""
        from ..errors import DeliveryError

        left = sum(not result.done() for _, result in self._pending)
        try:
            if left:
                print(f"finishing {counted(left, 'record')}; again to stop now", file=sys.stderr)
            self.settle()
        except KeyboardInterrupt:
            with suppress(DeliveryError):  # each record has its own
                producer.close(timeout_ms=0)
            self.settle()

    def said(self) -> Message:
        values = {"topic": self.topic, "records": self.records}
        if self.not_written or self.unknown:
            values |= {"not_written": self.not_written, "unknown": self.unknown}
        return Message(f"appended {counted(self.records, 'record')} to {self.topic}", values)

    def reason(self, first: str | None) -> str:
        """Why it ended, and what is not in the log, as sentences."""
        parts = [] if first is None else [first]
        if self.first_error is not None:
            parts.append(f"line {self._first_line:,}: {self.first_error.message}")
        if self.not_written:
            count = self.not_written
            read = f"{counted(count, 'record')} that {'was' if count == 1 else 'were'} read"
            parts.append(f"{read} {'is' if count == 1 else 'are'} not in the log")
        if self.unknown:
            parts.append(
                f"{self.unknown:,} {'more' if self.not_written else 'records'} may or may not be "
                "in the log: look at its end before you send them again"
            )
        return ". ".join(parts)

    def _count(self, line: int, error: Exception | None) -> None:
        from ..errors import DeliveryError, LakelogError, NotEnoughReplicasAfterAppendError

        if error is None:
            self.records += 1
            return
        if not isinstance(error, LakelogError):
            raise error
        if isinstance(error, NotEnoughReplicasAfterAppendError) or (
            isinstance(error, DeliveryError) and error.unknown
        ):
            self.unknown += 1
        else:
            self.not_written += 1
        if self.first_error is None:
            self.first_error, self._first_line = error, line


def _record(line: bytes, arguments: argparse.Namespace) -> dict[str, Any] | None:
    """The keyword arguments of ``Producer.send`` for a line; None for an empty JSON line."""
    if arguments.format == "json":
        if not line.strip():
            return None
        record = json_record(line)
    elif arguments.key_separator is None:
        record = {"value": line}
    else:
        record = _keyed(line, os.fsencode(arguments.key_separator))
    if arguments.partition is not None:
        record["partition"] = arguments.partition
    return record


def _keyed(line: bytes, separator: bytes) -> dict[str, Any]:
    from ..errors import InvalidArgumentError

    key, found, value = line.partition(separator)
    if not found:
        raise InvalidArgumentError(f"no separator {os.fsdecode(separator)!r} in {line[:80]!r}")
    return {"key": key, "value": value}


def json_record(line: bytes) -> dict[str, Any]:
    """The record a JSON line describes, as keyword arguments of ``Producer.send``.

    Raises:
        InvalidArgumentError: not such an object.
    """
    from ..errors import InvalidArgumentError
    from ..ingest.given_values import as_timestamp_ms

    try:
        sourced = members_with_source(line)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"not a JSON object, as a record is: {error}") from None
    fields = {name: member for name, (member, _) in sourced.items()}
    unknown = set(fields) - _FIELDS - _READ_ONLY
    if unknown or not {"value", "value_base64"} & set(fields):
        what = f"unknown field {sorted(unknown)[0]!r}" if unknown else "no value (null deletes)"
        raise InvalidArgumentError(
            f"{what}; fields of records are {', '.join(sorted(_FIELDS))}. Where each line is a row "
            "of your own, --format jsonl has it be the value"
        )
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


def members_with_source(line: bytes) -> dict[str, tuple[Any, str]]:
    """The members of the object in a line: as Python reads each, and as it is written.

    Raises:
        ValueError: it is not a JSON object, or names a member twice.
        RecursionError: it is nested too deep.
    """
    from ..base.json_text import sourced_members

    found: dict[str, tuple[Any, str]] = {}
    for name, member, source in sourced_members(line.decode("utf-8-sig")):
        if name in found:
            raise ValueError(f"field {name!r} is there twice")
        found[name] = member, source
    return found


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
