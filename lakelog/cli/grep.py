"""``lakelog grep``: records of any topics that have a text in key or value."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .connect import no_topics, open_to_read
from .output import Failed, Table
from .record_output import add_output_options, written
from .record_query import RecordQuery
from .record_range import POSITIONS, add_range_options
from .without_pandas import starting

if TYPE_CHECKING:
    import pyarrow as pa

    from ..cold_log import ColdLog
    from ..read.where import Where

_EPILOG = f"""\
The text is taken as it is, byte by byte: nothing in it is special. --where says more of the record,
as in `lakelog consume`. Records of one topic come in the order of time. The exit code is 1 where
nothing is found.

{POSITIONS}
examples:
  lakelog --dir ./log grep N229JB
  lakelog --dir ./log grep 'delayed by' flights orders --from yesterday --output json
  lakelog --dir ./log grep timeout web.log -v --where 'header.level = "error"' --max 20
  lakelog --dir ./log grep N229JB -c
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "grep",
        parents=[common],
        description="Print the records that have a text in key or value.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("text", help="what to look for, as it is")
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    added.add_argument(
        "-v", "--invert-match", action="store_true", help="records that do not have it"
    )
    added.add_argument("-c", "--count", action="store_true", help="only how many, by topic")
    add_range_options(added)
    add_output_options(added)
    added.is_intermixed = True
    added.set_defaults(run=_run, forms=("text", "json", "csv"))


def _run(arguments: argparse.Namespace) -> Iterator[Any] | Table:
    from ..errors import InvalidArgumentError

    if not arguments.text:
        raise InvalidArgumentError("there is no text to look for: `lakelog consume` shows them all")
    with starting():  # what reads an expression is not imported yet
        query = RecordQuery(arguments, _text(arguments))
    if not arguments.count:
        return _shown(query, arguments)
    if arguments.output == "csv":
        raise InvalidArgumentError("-c counts, as text or as JSON; leave out --output csv")
    with open_to_read(arguments) as log:
        search = _Search(query, arguments, log)
        for _ in search.found():
            pass
        table = Table(
            [{"topic": topic, "records": count} for topic, count in search.counts.items()],
            empty=no_topics(log),
        )
    if not any(search.counts.values()):
        raise Failed(table)
    return table


def _shown(query: RecordQuery, arguments: argparse.Namespace) -> Iterator[Any]:
    with open_to_read(arguments) as log:
        search = _Search(query, arguments, log)
        yield from written(search.found(), arguments)
    if not any(search.counts.values()):
        raise Failed(None)


class _Search:
    """The query of each topic, and how many records of it were found.

    Attributes:
        counts: by topic.
    """

    def __init__(self, query: RecordQuery, arguments: argparse.Namespace, log: ColdLog) -> None:
        names = dict.fromkeys(arguments.topics) or [topic.name for topic in log.topics.list()]
        self._query = query
        are_stored = arguments.stored_values
        self._logs = {name: log.log(name, stored_values=are_stored) for name in names}
        self.counts = dict.fromkeys(names, 0)

    def found(self) -> Iterator[tuple[str, pa.Table]]:
        """Topic by topic, `FOUND` tables of each."""
        for name, log in self._logs.items():
            for table in self._query.found(log, merged=True):
                self.counts[name] += table.num_rows
                yield name, table


def _text(arguments: argparse.Namespace) -> Where:
    from ..read.where.expression import Not, Text

    text = Text(os.fsencode(arguments.text))
    return Not(text) if arguments.invert_match else text
