"""``lakelog consume``: print records from one position to another, or follow the tail."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .connect import open_archived, say_where_it_ends
from .output import FILE_FORMS, Lines, Message

if TYPE_CHECKING:
    from datetime import tzinfo

    import pyarrow as pa

    from ..cold_log import ColdLog
    from ..offsets import LogOffsets, Position
    from ..read.topic_log import TopicLog
    from ..read.where import Where
    from ..record_lines import Lines as LinesOf

_EPILOG = """\
A position is an offset (250), the last records (-5), a time (2013-12-30T12:00:00Z, 'yesterday 18:30
UTC'), epoch milliseconds (@1388404800000), a distance from now (-10m, '10 minutes ago'), or one of
earliest, latest, earliest-local, latest-tiered, earliest-pending-upload, max-timestamp.

What to search for is a text, or an expression: key = "N229JB" and value.dep_delay > 60,
header.source = "x" or not time >= "2013-07-04 12:00", offset in (1, 2), value.legs[0].to exists.

examples:
  lakelog --dir ./log consume flights --from 250 --max 5
  lakelog --dir ./log consume flights --from 2013-12-30T12:00:00Z --to 2013-12-30T13:00:00Z --merge
  lakelog --dir ./log consume flights --where 'value.dep_delay > 60' --output json | jq .value
  lakelog --dir ./log consume orders --from -10m --output parquet -o orders.parquet
  lakelog --dir ./log consume orders -f '%p %o %k=%s\\n' --from -5
  lakelog --dir ./log consume orders --follow
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "consume",
        parents=[common],
        help="print or search records, by offset or by time, or follow the tail",
        description="Print records, partition by partition or merged by time.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topic")
    added.add_argument("-p", "--partition", type=int, help="only this one (default: all)")
    added.add_argument("--from", dest="start", metavar="POSITION", help="default: earliest")
    added.add_argument("--to", dest="end", metavar="POSITION", help="exclusive; default: latest")
    added.add_argument("--zone", help="of times without one, such as Europe/Berlin")
    added.add_argument("--max", type=int, metavar="N", help="stop after N records")
    added.add_argument("--where", metavar="EXPR", help="only records that match")
    added.add_argument("--key", help="only records with this key, whole")
    added.add_argument("--merge", action="store_true", help="all partitions in the order of time")
    added.add_argument(
        "--follow", action="store_true", help="go on with what is appended (from: latest)"
    )
    added.add_argument(
        "-f", "--format", metavar="FORMAT", help="kcat's: %%t %%p %%o %%T %%k %%s %%h"
    )
    added.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="kafka-console-consumer's: print.key, key.separator, null.literal, …; repeatable",
    )
    added.add_argument(
        "--raw", action="store_true", help="texts as they are, also what a terminal obeys"
    )
    added.add_argument("-o", "--output-file", metavar="FILE", help="default: standard output")
    added.set_defaults(run=_run, forms=("text", "json", *FILE_FORMS))


def _run(arguments: argparse.Namespace) -> Iterator[Any]:
    _check(arguments)
    where = _where(arguments)
    with ExitStack() as stack:
        log = stack.enter_context(open_archived(arguments))
        say_where_it_ends(log)
        topic = log.topics.get(arguments.topic)
        if arguments.partition is not None:
            topic.partition(arguments.partition)
        found = _limited(
            _follow(log, arguments, where)
            if arguments.follow
            else _range(log.log(arguments.topic), arguments, where),
            arguments.max,
        )
        if arguments.output in ("parquet", "arrow"):
            yield from _to_file(found, arguments)
            return
        write = None
        if arguments.output_file is not None:
            write = stack.enter_context(Path(arguments.output_file).open("w", encoding="utf-8"))
        records = 0
        for text, rows in _lines(found, arguments):
            records += rows
            if write is None:
                yield Lines(text)
            else:
                write.write(text)
        if write is not None:
            yield _written(records, arguments)


def _check(arguments: argparse.Namespace) -> None:
    from ..errors import InvalidArgumentError

    if arguments.follow and arguments.end is not None:
        raise InvalidArgumentError("--follow has no end; leave out --to")
    if arguments.max is not None and arguments.max < 0:
        raise InvalidArgumentError(f"--max {arguments.max} is negative")
    if arguments.format is not None and arguments.output != "text":
        raise InvalidArgumentError("-f is a form of text; leave out --output")
    if arguments.property and (arguments.format is not None or arguments.output != "text"):
        raise InvalidArgumentError("--property is of text without -f")
    if arguments.output == "parquet" and arguments.output_file is None:
        raise InvalidArgumentError("Parquet goes into a file: give -o FILE")
    if arguments.follow and arguments.output == "parquet":
        raise InvalidArgumentError("a Parquet file has an end, and --follow has none")


def _zone(arguments: argparse.Namespace) -> tzinfo | None:
    from ..typed_time import zone_named

    return None if arguments.zone is None else zone_named(arguments.zone)


def _where(arguments: argparse.Namespace) -> Where:
    from datetime import timezone

    from ..read.where import parse
    from ..read.where.expression import All, Always, Bytes, Compare

    where = parse(arguments.where or "", _zone(arguments) or timezone.utc)
    if arguments.key is None:
        return where
    by_key = Compare(Bytes("key"), "=", arguments.key)
    return by_key if isinstance(where, Always) else All((by_key, where))


@dataclass(frozen=True, slots=True)
class _Last:
    """So many records before the end of each partition."""

    records: int


def _ends(arguments: argparse.Namespace) -> tuple[Position | _Last, Position | _Last]:
    return (
        _end(arguments.start or "earliest", arguments),
        _end(arguments.end or "latest", arguments),
    )


def _end(text: str, arguments: argparse.Namespace) -> Position | _Last:
    """As it was typed; how it was taken is said, if it leaves that open."""
    from ..offsets import understood

    if last := re.fullmatch(r"-(\d{1,15})", text.strip()):
        return _Last(int(last[1]))
    where, said = understood(text, _zone(arguments))
    if said is not None:
        print(said, file=sys.stderr)
    return where


def _range(log: TopicLog, arguments: argparse.Namespace, where: Where) -> Iterator[pa.Table]:
    ranges = _spans(log, arguments)
    if arguments.merge:
        yield from log.search_ranges(ranges, where)
    else:
        for number, span in ranges.items():
            yield from log.search_ranges({number: span}, where)


def _partitions(log: TopicLog, arguments: argparse.Namespace) -> list[int]:
    if arguments.partition is not None:
        return [arguments.partition]
    return list(range(log.topic.partitions))


def _spans(log: TopicLog, arguments: argparse.Namespace) -> dict[int, tuple[int, int]]:
    """What is asked for of each partition."""
    asked = _partitions(log, arguments)
    ends = _ends(arguments)
    held = log.offsets(asked)
    spans = {}
    for number in asked:
        first, last = (_place(log, number, end, held[number], len(asked) == 1) for end in ends)
        found = log.read(number, first, last)
        spans[number] = (found.start_offset, found.end_offset)
    return spans


def _place(
    log: TopicLog, number: int, end: Position | _Last, held: LogOffsets, only: bool
) -> Position | int:
    """An offset that one of several partitions does not have is where it begins or ends."""
    from ..offsets import AtOffset

    if isinstance(end, _Last):
        return log.last(number, end.records)
    if not isinstance(end, AtOffset) or held.log_start <= end.offset <= held.log_end:
        return end
    if only:
        log.seek(number, end)  # which refuses it
    taken = min(max(end.offset, held.log_start), held.log_end)
    print(
        f"partition {number} holds [{held.log_start}, {held.log_end}): {end.offset} was taken as "
        f"{taken}",
        file=sys.stderr,
    )
    return taken


def _limited(tables: Iterable[pa.Table], most: int | None) -> Iterator[pa.Table]:
    if most == 0:
        return
    left = most
    for table in tables:
        if left is not None:
            table = table.slice(0, left)
            left -= table.num_rows
        yield table
        if left == 0:
            return


def _follow(log: ColdLog, arguments: argparse.Namespace, where: Where) -> Iterator[pa.Table]:
    from ..read.search import with_partition
    from ..read.where.expression import matching

    unified = log.log(arguments.topic)
    with log.consumer() as consumer:
        partitions = [unified.topic.partition(n) for n in _partitions(unified, arguments)]
        consumer.assign(partitions)
        spans = {} if arguments.start is None else _spans(unified, arguments)
        for topic_partition, offsets in zip(
            partitions, unified.offsets(_partitions(unified, arguments)).values(), strict=True
        ):
            start, _ = spans.get(topic_partition.partition, (offsets.log_end, None))
            consumer.seek(topic_partition, start)
        while True:
            for topic_partition, batch in consumer.poll_arrow(timeout_ms=1000).items():
                found = matching(where, batch, topic_partition.partition)
                if found.num_rows:
                    yield with_partition(found, topic_partition.partition)


# -- what comes out ------------------------------------------------------------------------------


def _lines(tables: Iterable[pa.Table], arguments: argparse.Namespace) -> Iterator[tuple[str, int]]:
    from .. import record_lines

    lines_of: LinesOf
    if arguments.format is not None:
        lines_of = record_lines.format_lines(arguments.format, raw=arguments.raw)
    elif arguments.output == "json":
        lines_of = record_lines.json_lines
    elif arguments.output == "csv":
        lines_of = record_lines.csv_lines
        yield record_lines.CSV_HEADING, 0
    else:
        properties = record_lines.read_properties(arguments.property)
        lines_of = record_lines.text_lines(properties, raw=arguments.raw)
    for table in tables:
        yield lines_of(arguments.topic, table), table.num_rows


def _to_file(tables: Iterable[pa.Table], arguments: argparse.Namespace) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ..read.search import FOUND

    sink = arguments.output_file or sys.stdout.buffer
    records = 0
    if arguments.output == "parquet":
        writer: Any = pq.ParquetWriter(sink, FOUND, compression="zstd")
    else:
        writer = pa.ipc.new_stream(sink, FOUND)
    with writer:
        for table in tables:
            writer.write_table(table)
            records += table.num_rows
    if arguments.output_file is not None:
        yield _written(records, arguments)


def _written(records: int, arguments: argparse.Namespace) -> Message:
    return Message(
        f"{records:,} records written to {arguments.output_file}",
        {"records": records, "file": arguments.output_file},
    )
