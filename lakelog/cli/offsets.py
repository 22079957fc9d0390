"""``lakelog offsets``: where partitions begin and end, or the offset of a position."""

from __future__ import annotations

import argparse
from typing import Any

from .connect import open_log
from .output import Table

_EPILOG = """\
examples:
  lakelog --dir ./log offsets                               every topic, both tiers
  lakelog --dir ./log offsets flights --time 2013-12-30T12:00:00Z
  lakelog --dir ./log offsets flights --time latest-tiered
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "offsets",
        parents=[common],
        help="where partitions begin and end, in either tier",
        description="Show where partitions begin and end, or the offset at a position.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topic", nargs="?", help="default: all")
    added.add_argument("-p", "--partition", type=int)
    added.add_argument(
        "--time", metavar="POSITION", help="a position as of `lakelog consume`; the offset there"
    )
    added.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Table:
    rows: list[dict[str, Any]] = []
    with open_log(arguments) as log:
        topics = [log.topics.get(arguments.topic)] if arguments.topic else log.topics.list()
        for topic in topics:
            unified = log.log(topic)
            partitions = list(range(topic.partitions))
            if arguments.partition is not None:
                partitions = [topic.partition(arguments.partition).partition]
            if arguments.time is not None:
                rows += [
                    {"topic": topic.name, "partition": n, "offset": unified.seek(n, arguments.time)}
                    for n in partitions
                ]
                continue
            rows += [
                {
                    "topic": topic.name,
                    "partition": number,
                    "log_start": seen.log_start,
                    "local_log_start": seen.local_log_start,
                    "archived_end": seen.archived_end if topic.config.tiered else None,
                    "log_end": seen.log_end,
                }
                for number, seen in unified.offsets(partitions).items()
            ]
    return Table(rows, empty="no topics yet")
