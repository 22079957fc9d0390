"""``lakelog import``: bring topics in that ``lakelog export`` wrote."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .connect import open_log
from .output import BytesProgress, Table
from .settings import add_config_option, parse_settings

if TYPE_CHECKING:
    from ..operate.transfer.importing import ImportedTopic

_EPILOG = """\
Each topic gets an id of its own, and keeps its offsets, times and settings; its log goes on where
the export ends. Groups come along, but for what they have committed since. The export is checked
first, each file against its checksum: what is damaged, forged or unfinished is refused, and nothing
is changed. No topic shows before all of it is there. What was cut short is finished by the same
command. (Topics that Redis has lost come back under their own ids: lakelog restore.)

examples:
  lakelog --dir ./other import ./orders-export
  lakelog --dir ./other import backup.tar orders             one topic of several
  lakelog --dir ./log import backup.tar orders --as orders-of-may
  lakelog --dir ./other import backup.tar --config retention.ms=-1
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "import",
        parents=[common],
        description="Bring topics in that `lakelog export` wrote.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("source", metavar="PATH", help="what was given as --to")
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that are in it")
    added.add_argument(
        "--as", dest="name", metavar="NAME", help="what the one topic is called here"
    )
    add_config_option(added)
    added.set_defaults(run=_run, makes_log=True, recorded="import")


def _run(arguments: argparse.Namespace) -> Table:
    config = parse_settings("--config", arguments.config)
    with open_log(arguments) as log, BytesProgress() as progress:
        imported = log.import_topics(
            arguments.source,
            arguments.topics or None,
            name=arguments.name,
            config=config,
            progress=lambda seen: progress.show(seen.done_bytes, seen.total_bytes),
        )
    return Table([row for one in imported for row in _rows(one)], empty="the export has no topics")


def _rows(one: ImportedTopic) -> list[dict[str, Any]]:
    return [
        {
            "topic": one.topic.name,
            "partition": number,
            "log_start": log_start,
            "goes_on_at": log_end,
            "groups": one.groups,
            "was": "imported" if one.is_new else "there already",
        }
        for number, log_start, log_end in one.partitions
    ]
