"""``lakelog consume``: print records from one position to another, or follow the tail."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..text_table import printable
from .connect import open_archived, say_where_it_ends

if TYPE_CHECKING:
    from ..cold_log import ColdLog
    from ..record import Record

_EPILOG = """\
A position is an offset (250), a time with its zone (2013-12-30T12:00:00Z), epoch milliseconds
(@1388404800000), a distance from now (-10m, '10 minutes ago'), or one of earliest, latest,
earliest-local, latest-tiered, earliest-pending-upload, max-timestamp. Write --from=-10m, with the
equals sign.

examples:
  lakelog --dir ./log consume flights --from 250 --max 5
  lakelog --dir ./log consume flights --from 2013-12-30T12:00:00Z --to 2013-12-30T13:00:00Z
  lakelog --dir ./log consume orders --from=-10m --output json | jq .value
  lakelog --dir ./log consume orders --follow
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "consume",
        parents=[common],
        help="print records, by offset or by time, or follow the tail",
        description="Print records of a topic, partition by partition.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topic")
    added.add_argument("-p", "--partition", type=int, help="only this one (default: all)")
    added.add_argument("--from", dest="start", metavar="POSITION", help="default: earliest")
    added.add_argument("--to", dest="end", metavar="POSITION", help="exclusive; default: latest")
    added.add_argument("--max", type=int, metavar="N", help="stop after N records")
    added.add_argument(
        "--follow", action="store_true", help="go on with what is appended (from: latest)"
    )
    added.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Iterator[Any]:
    from ..errors import InvalidArgumentError

    if arguments.follow and arguments.end is not None:
        raise InvalidArgumentError("--follow has no end; leave out --to")
    if arguments.max is not None and arguments.max < 0:
        raise InvalidArgumentError(f"--max {arguments.max} is negative")
    with open_archived(arguments) as log:
        say_where_it_ends(log)
        topic = log.topics.get(arguments.topic)
        if arguments.partition is not None:
            topic.partition(arguments.partition)
        left = arguments.max
        as_json = arguments.output == "json"
        if left == 0:
            return
        for record in _follow(log, arguments) if arguments.follow else _range(log, arguments):
            yield as_object(record) if as_json else as_line(record)
            if left is not None:
                left -= 1
                if left == 0:
                    return


def _partitions(log: ColdLog, arguments: argparse.Namespace) -> list[int]:
    if arguments.partition is not None:
        return [arguments.partition]
    return list(range(log.topics.get(arguments.topic).partitions))


def _range(log: ColdLog, arguments: argparse.Namespace) -> Iterator[Record]:
    unified = log.log(arguments.topic)
    start, end = arguments.start or "earliest", arguments.end or "latest"
    for partition in _partitions(log, arguments):
        yield from unified.read(partition, start, end).records()


def _follow(log: ColdLog, arguments: argparse.Namespace) -> Iterator[Record]:
    unified = log.log(arguments.topic)
    with log.consumer() as consumer:
        partitions = [unified.topic.partition(n) for n in _partitions(log, arguments)]
        consumer.assign(partitions)
        for topic_partition in partitions:
            offset = unified.seek(topic_partition.partition, arguments.start or "latest")
            if offset is None:
                offset = unified.offsets([topic_partition.partition])[
                    topic_partition.partition
                ].log_end
            consumer.seek(topic_partition, offset)
        while True:
            for records in consumer.poll(timeout_ms=1000).values():
                yield from records


def as_line(record: Record) -> str:
    """``topic-partition@offset  time  key  value``, and the headers if there are any."""
    parts = [
        f"{record.topic}-{record.partition}@{record.offset}",
        "no timestamp" if record.timestamp_ms < 0 else record.timestamp.isoformat(),
        _text(record.key),
        _text(record.value),
    ]
    if record.headers:
        parts.append(
            " ".join(f"{printable(name)}={_text(value)}" for name, value in record.headers)
        )
    return "\t".join(parts)


def as_object(record: Record) -> dict[str, Any]:
    """The record as JSON values; bytes that are not UTF-8 come as ``…_base64``."""
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


def _named(name: str, value: bytes | None) -> dict[str, Any]:
    import base64

    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode()}


def _header(value: bytes | None) -> Any:
    named = _named("base64", value)  # text (which may be empty) and null stand for themselves
    return named["base64"] if "base64" in named else {"base64": named["base64_base64"]}


def _text(value: bytes | None) -> str:
    if value is None:
        return "null"
    try:
        return printable(value.decode())
    except UnicodeDecodeError:
        return f"0x{value.hex()}"
