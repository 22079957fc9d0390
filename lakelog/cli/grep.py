"""``lakelog grep``: records of any topics that have a text in key or value."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .connect import no_topics, open_archived, say_where_it_ends
from .output import Failed, Table
from .record_output import add_output_options, check_output, written
from .record_range import (
    POSITIONS,
    TypedRange,
    add_range_options,
    check_range,
    partitions_of,
    where_of,
)

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
        help="records of any topics that have a text in key or value",
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

    check_range(arguments)
    check_output(arguments)
    if not arguments.text:
        raise InvalidArgumentError("there is no text to look for: `lakelog consume` shows them all")
    if not arguments.count:
        return _shown(arguments)
    if arguments.output == "csv":
        raise InvalidArgumentError("-c counts, as text or as JSON; leave out --output csv")
    with open_archived(arguments) as log:
        say_where_it_ends(log, arguments)
        search = _Search(arguments, log)
        for _ in search.found():
            pass
        table = Table(
            [{"topic": topic, "records": count} for topic, count in search.counts.items()],
            empty=no_topics(log),
        )
    if not any(search.counts.values()):
        raise Failed(table)
    return table


def _shown(arguments: argparse.Namespace) -> Iterator[Any]:
    with open_archived(arguments) as log:
        say_where_it_ends(log, arguments)
        search = _Search(arguments, log)
        yield from written(search.found(), arguments)
    if not any(search.counts.values()):
        raise Failed(None)


@dataclass(init=False)
class _Search:
    """The search, and how many records of each topic it found."""

    counts: dict[str, int]

    def __init__(self, arguments: argparse.Namespace, log: ColdLog) -> None:
        names = dict.fromkeys(arguments.topics) or [topic.name for topic in log.topics.list()]
        self._logs = {name: log.log(name) for name in names}
        self._arguments = arguments
        self._where = _where(arguments)
        self._range = TypedRange.of(arguments)
        self.counts = dict.fromkeys(names, 0)

    def found(self) -> Iterator[tuple[str, pa.Table]]:
        """Topic by topic, `FOUND` tables of each; no more records than ``--max`` says."""
        left = self._arguments.max
        for name, log in self._logs.items():
            if left == 0:
                return
            spans = self._range.spans(log, partitions_of(log, self._arguments))
            for table in log.search_ranges(spans, self._where):
                if left is not None:
                    table = table.slice(0, left)
                    left -= table.num_rows
                self.counts[name] += table.num_rows
                yield name, table
                if left == 0:
                    return


def _where(arguments: argparse.Namespace) -> Where:
    from ..read.where import Always
    from ..read.where.expression import All, Not, Text

    text: Where = Text(os.fsencode(arguments.text))
    if arguments.invert_match:
        text = Not(text)
    rest = where_of(arguments)
    return text if isinstance(rest, Always) else All((rest, text))
