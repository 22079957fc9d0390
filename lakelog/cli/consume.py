"""``lakelog consume``: print records from one position to another, or follow the tail."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .connect import open_to_read
from .output import FILE_FORMS
from .record_output import add_output_options, written
from .record_query import RecordQuery
from .record_range import POSITIONS, add_range_options
from .without_pandas import starting

if TYPE_CHECKING:
    import pyarrow as pa

    from ..cold_log import ColdLog
    from ..read.topic_log import TopicLog

_EPILOG = f"""\
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
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "consume",
        parents=[common],
        description="Print records, partition by partition or merged by time.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topic")
    add_range_options(added)
    added.add_argument("--merge", action="store_true", help="all partitions in the order of time")
    added.add_argument(
        "--follow", action="store_true", help="go on with what is appended (from: latest)"
    )
    add_output_options(added)
    added.set_defaults(run=_run, forms=("text", "json", *FILE_FORMS))


def _run(arguments: argparse.Namespace) -> Iterator[Any]:
    _check(arguments)
    with starting():  # what reads an expression is not imported yet
        query = RecordQuery(arguments)
    with open_to_read(arguments) as log:
        topic = log.log(arguments.topic, stored_values=arguments.stored_values)
        if arguments.follow:
            found = query.limit.limited(_follow(log, topic, query, arguments))
        else:
            found = query.found(topic, merged=arguments.merge)
        yield from written(((arguments.topic, table) for table in found), arguments)


def _check(arguments: argparse.Namespace) -> None:
    from ..errors import InvalidArgumentError

    if arguments.follow and arguments.end is not None:
        raise InvalidArgumentError("--follow has no end; leave out --to")
    if arguments.follow and arguments.output == "parquet":
        raise InvalidArgumentError("a Parquet file has an end, and --follow has none")


def _follow(
    log: ColdLog, topic: TopicLog, query: RecordQuery, arguments: argparse.Namespace
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
                found = matching(query.where, batch, topic_partition.partition)
                if found.num_rows:
                    yield with_partition(found, topic_partition.partition)
