"""``lakelog consume``, ``grep``: print the records of a range, or those that have a text."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import InvalidArgumentError
from .connect import no_topics, open_to_read
from .options import Offer
from .output import FILE_FORMS, Failed, Table
from .quiet_start import starting
from .record_output import add_output_options, written
from .records import POSITIONS, RecordQuery, add_range_options

if TYPE_CHECKING:
    import pyarrow as pa

    from ..lakelog import Lakelog
    from ..read.topic_log import TopicLog

_CONSUME = f"""\
{POSITIONS}
What to search for is a text, or an expression: key = "N229JB" and value.dep_delay > 60,
header.source = "x" or not time >= "2013-07-04 12:00", offset in (1, 2), value.legs[0].to exists.

examples:
  lakelog --dir ./log consume flights --from 250 --max 5
  lakelog --dir ./log consume flights --from 2013-12-30T12:00:00Z --to 2013-12-30T13:00:00Z --merge
  lakelog --dir ./log consume flights --where 'value.dep_delay > 60' --output json | jq .value
  lakelog --dir ./log consume orders --from -10m --output parquet -o orders.parquet
  lakelog --dir ./log consume orders -f '%p %o %k=%s\\n' --from -5
  lakelog --dir ./log consume orders --follow
  lakelog --dir ./log consume orders --columns --output csv -o orders.csv
"""

_GREP = f"""\
The text is taken as it is, byte by byte: nothing in it is special. --where says more of the record,
as in `lakelog consume`. Records of one topic come in the order of time. The exit code is 1 where
nothing is found.

{POSITIONS}
examples:
  lakelog --dir ./log grep N229JB
  lakelog --dir ./log grep 'delayed by' flights orders --from 'yesterday UTC'
  lakelog --dir ./log grep timeout web.log -v --where 'header.level = "error"' --max 20
  lakelog --dir ./log grep N229JB -c
"""


def add_consume(offer: Offer) -> None:
    added = offer.command(
        _consume,
        "Print records, partition by partition or merged by time.",
        _CONSUME,
        forms=("text", "json", *FILE_FORMS),
    )
    added.add_argument("topic")
    add_range_options(added)
    added.add_argument("--merge", action="store_true", help="all partitions in the order of time")
    added.add_argument(
        "--follow", action="store_true", help="go on with what is appended (from: latest)"
    )
    added.add_argument(
        "--columns",
        action="store_true",
        help="members of JSON values as columns: the topic's, else those that values have",
    )
    add_output_options(added)


def _consume(arguments: argparse.Namespace) -> Iterator[Any]:
    if arguments.follow and arguments.end is not None:
        raise InvalidArgumentError("--follow has no end; leave out --to")
    if arguments.follow and arguments.output == "parquet":
        raise InvalidArgumentError("a Parquet file has an end, and --follow has none")
    if arguments.columns and (arguments.format is not None or arguments.property):
        raise InvalidArgumentError("-f and --property are of records; leave out --columns")
    if arguments.columns and arguments.follow and arguments.output == "text":
        raise InvalidArgumentError("a table of --columns has an end: --follow takes --output json")
    with starting():  # what reads an expression is not imported yet
        query = RecordQuery(arguments)
    with open_to_read(arguments) as log:
        topic = log.log(arguments.topic, stored_values=arguments.stored_values)
        if arguments.follow:
            found = query.limit.limited(_follow(log, topic, query, arguments))
        else:
            found = query.found(topic, merged=arguments.merge)
        if arguments.columns:
            yield from _in_columns(topic, found, arguments)
        else:
            shown = _readable(topic, found, arguments)
            yield from written(((arguments.topic, table) for table in shown), arguments)


def _readable(
    topic: TopicLog, found: Iterable[pa.Table], arguments: argparse.Namespace
) -> Iterator[pa.Table]:
    """The records as people read them, unless they are asked for as they are stored."""
    from ..read.frames import readable

    for table in found:
        yield table if arguments.stored_values else readable(table, topic.topic.config)


def _in_columns(
    topic: TopicLog, found: Iterable[pa.Table], arguments: argparse.Namespace
) -> Iterator[Any]:
    from ..codec.formats.decoders import decoded
    from ..codec.infer import infer
    from ..read.found import FOUND
    from ..read.frames import in_columns
    from .sql import rows_written

    config = topic.topic.config
    sample = decoded(topic.sample().column("value"), config.value_format).values
    columns = config.value_columns or infer(sample).ddl
    if not columns:
        raise InvalidArgumentError(
            f"topic {arguments.topic!r} has no columns: a sample of its values has no JSON object. "
            "Leave out --columns"
        )
    schema = in_columns(FOUND.empty_table(), columns, config).schema
    tables = (in_columns(table, columns, config) for table in found)
    batches = (batch for table in tables for batch in table.combine_chunks().to_batches())
    yield from rows_written(schema, batches, arguments)


def _follow(
    log: Lakelog, topic: TopicLog, query: RecordQuery, arguments: argparse.Namespace
) -> Iterator[pa.Table]:
    from ..read.found import with_partition
    from ..read.where.expression import matching

    asked = query.partitions(topic)
    with log.consumer(stored_values=arguments.stored_values) as consumer:
        consumer.assign([topic.topic.partition(number) for number in asked])
        starts = {number: held.log_end for number, held in topic.offsets(asked).items()}
        if arguments.start is not None:
            starts = {number: start for number, (start, _) in query.spans(topic).items()}
        for number, start in starts.items():
            consumer.seek(topic.topic.partition(number), start)
        while True:
            for topic_partition, batch in consumer.poll_arrow(timeout_ms=1000).items():
                form = topic.topic.config.value_format
                found = matching(query.where, batch, topic_partition.partition, form)
                if found.num_rows:
                    yield with_partition(found, topic_partition.partition)


def add_grep(offer: Offer) -> None:
    added = offer.command(
        _grep,
        "Print the records that have a text in key or value.",
        _GREP,
        forms=("text", "json", "csv"),
    )
    added.add_argument("text", metavar="TEXT", help="what to look for, as it is")
    added.add_argument("topics", nargs="*", default=[], metavar="TOPIC", help="default: all")
    added.add_argument(
        "-v", "--invert-match", action="store_true", help="records that do not have it"
    )
    added.add_argument("-c", "--count", action="store_true", help="only how many, by topic")
    add_range_options(added)
    add_output_options(added)
    added.is_intermixed = True


def _grep(arguments: argparse.Namespace) -> Iterator[Any] | Table:
    from ..read.where.expression import Not, Text

    if not arguments.text:
        raise InvalidArgumentError("there is no text to look for: `lakelog consume` shows them all")
    if arguments.count and arguments.output == "csv":
        raise InvalidArgumentError("-c counts, as text or as JSON; leave out --output csv")
    with starting():  # what reads an expression is not imported yet
        text = Text(os.fsencode(arguments.text))
        query = RecordQuery(arguments, Not(text) if arguments.invert_match else text)
    counts: dict[str, int] = {}
    if not arguments.count:
        return _shown(query, arguments, counts)
    with open_to_read(arguments) as log:
        for _ in _found(log, query, arguments, counts):
            pass
        rows = [{"topic": topic, "records": count} for topic, count in counts.items()]
        table = Table(rows, empty=no_topics(log))
    if not any(counts.values()):
        raise Failed(table)
    return table


def _shown(
    query: RecordQuery, arguments: argparse.Namespace, counts: dict[str, int]
) -> Iterator[Any]:
    with open_to_read(arguments) as log:
        yield from written(_found(log, query, arguments, counts), arguments)
    if not any(counts.values()):
        raise Failed(None)


def _found(
    log: Lakelog, query: RecordQuery, arguments: argparse.Namespace, counts: dict[str, int]
) -> Iterator[tuple[str, pa.Table]]:
    """Topic by topic, `FOUND` tables of each; ``counts`` gets how many records are in them."""
    names = dict.fromkeys(arguments.topics) or [topic.name for topic in log.topics.list()]
    logs = {name: log.log(name, stored_values=arguments.stored_values) for name in names}
    counts |= dict.fromkeys(names, 0)
    for name, topic in logs.items():
        for table in query.found(topic, merged=True):
            counts[name] += table.num_rows
            yield from ((name, shown) for shown in _readable(topic, [table], arguments))
