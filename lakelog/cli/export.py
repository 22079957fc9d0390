"""``lakelog export``: write topics out of the log, as a folder or as one archive file."""

from __future__ import annotations

import argparse
from typing import Any

from .connect import open_to_read
from .output import BytesProgress, Table

_EPILOG = """\
A topic leaves as it is at one moment: as a Delta table that any engine reads, with all of its log
(also what is not archived yet), its settings, and how far groups have come. manifest.json names
each file with its checksum and is written last. Archivers, producers and cleanups may go on.
What was cut short is finished by the same command; an export that is there is brought up to date.

examples:
  lakelog --dir ./log export orders --to ./orders-export
  lakelog --dir ./log export orders clicks --to backup.tar   one file
  lakelog --dir ./log export --to ./everything               all topics
  lakelog --cold s3://bucket/log export orders --to ./orders what is archived, without its Redis
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "export",
        parents=[common],
        description="Write topics out of the log, as a folder or as one archive file.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    added.add_argument(
        "--to",
        required=True,
        metavar="PATH",
        help="a folder, an object store's URL, or a file whose name ends in .tar",
    )
    added.set_defaults(run=_run, recorded="export")


def _run(arguments: argparse.Namespace) -> Table:
    with open_to_read(arguments) as log, BytesProgress() as progress:
        manifest = log.export(
            arguments.to,
            arguments.topics or None,
            progress=lambda seen: progress.show(seen.done_bytes, seen.total_bytes),
        )
    rows = [
        {
            "topic": one.topic.name,
            "partitions": one.topic.partitions,
            "records": one.records,
            "files": len(one.files),
            "bytes": one.size_bytes,
            "groups": len({(group.group_id, group.group_type) for group in one.groups}),
        }
        for one in manifest.topics
    ]
    return Table(rows, empty="there are no topics", title=f"exported to {arguments.to}:")
