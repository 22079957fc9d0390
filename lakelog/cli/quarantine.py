"""``lakelog quarantine``: move one bad entry or file aside, so that its partition goes on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .connect import open_log
from .output import Message, Table, utc_text

if TYPE_CHECKING:
    from ..cold.by_path.quarantine import QuarantinedFile
    from ..hot.quarantine import QuarantinedEntry
_EPILOG = """\
What is moved aside is kept byte for byte: an entry in Redis, in the key
{<stream>}:quarantine; a file below _quarantine/ in the topic's table. Its offsets become a gap,
which readers skip and report; appends, archives and cleanup go on (but compaction of that
partition, while a file is held).

examples:
  lakelog --dir ./log quarantine add orders -p 0 --entry 1999-100 --dry-run
  lakelog --dir ./log quarantine add orders -p 0 --entry 1999-100 --reason "bit flip, host 7"
  lakelog --dir ./log quarantine add orders -p 0 --file archive-00000000000000001000-….parquet
  lakelog --dir ./log quarantine list orders
  lakelog --dir ./log quarantine release orders -p 0 --entry 1999-100
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    noun = commands.add_parser(
        "quarantine",
        description="Move a bad entry or file aside; list and release what was.",
    )
    verbs = noun.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, run, text in (
        ("add", _add, "move a bad entry or file aside"),
        ("list", _list, "what lies in quarantine"),
        ("release", _release, "put back what is sound again"),
    ):
        added = verbs.add_parser(
            name,
            parents=[common],
            help=text,
            description=text,
            epilog=_EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        added.add_argument("topic")
        if name == "list":
            added.add_argument("-p", "--partition", type=int, help="default: all partitions")
        else:
            added.add_argument("-p", "--partition", type=int, required=True)
            what = added.add_mutually_exclusive_group(required=True)
            what.add_argument("--entry", metavar="ID", help="of the stream, as errors show it")
            what.add_argument("--file", metavar="PATH", help="of the table, or the end of its path")
            added.add_argument("--dry-run", action="store_true", help="only say what would move")
        if name == "add":
            added.add_argument(
                "--reason", default="", help="kept beside it; default: what is wrong"
            )
        added.set_defaults(run=run, recorded=None if run is _list else f"quarantine {name}")


def _add(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        held = log.quarantine(arguments.topic, arguments.partition)
        if arguments.entry is not None:
            row = _row(held.add_entry(arguments.entry, arguments.reason, dry_run=arguments.dry_run))
        else:
            row = _row(held.add_file(arguments.file, arguments.reason, dry_run=arguments.dry_run))
    verb = "would go into quarantine" if arguments.dry_run else "is in quarantine"
    return _message(row, verb)


def _release(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        held = log.quarantine(arguments.topic, arguments.partition)
        if arguments.entry is not None:
            row = _row(held.release_entry(arguments.entry, dry_run=arguments.dry_run))
        else:
            row = _row(held.release_file(arguments.file, dry_run=arguments.dry_run))
    return _message(row, "would go back" if arguments.dry_run else "is back")


def _list(arguments: argparse.Namespace) -> Table:
    with open_log(arguments) as log:
        topic = log.topics.get(arguments.topic)
        numbers = range(topic.partitions) if arguments.partition is None else [arguments.partition]
        held = [one for number in numbers for one in log.quarantine(topic, number).held()]
    rows = [{**_row(one), "moved_at": utc_text(one.moved_at_ms)} for one in held]
    if arguments.output == "json":
        rows = [_row(one) for one in held]
    columns = ["partition", "tier", "id", "offsets", "size_bytes", "moved_at", "who", "reason"]
    return Table(rows, columns, empty="nothing lies in quarantine")


def _message(row: dict[str, Any], verb: str) -> Message:
    kind = "entry" if row["tier"] == "hot" else "file"
    speaks = f"its offsets {row['offsets']}" if row["offsets"] else "it speaks for no offsets"
    text = f"{kind} {row['id']} {verb} ({speaks}, {row['size_bytes']} bytes): {row['reason']}"
    return Message(text, row)


def _row(one: QuarantinedEntry | QuarantinedFile) -> dict[str, Any]:
    from ..hot.quarantine import QuarantinedEntry

    hot = isinstance(one, QuarantinedEntry)
    return {
        "topic": one.topic_partition.topic,
        "partition": one.topic_partition.partition,
        "tier": "hot" if hot else "cold",
        "id": one.entry_id if isinstance(one, QuarantinedEntry) else one.path,
        "offsets": f"{one.gap.start}..{one.gap.end - 1}" if one.gap.start < one.gap.end else "",
        "size_bytes": one.size_bytes,
        "moved_at_ms": one.moved_at_ms,
        "who": one.who,
        "reason": one.reason,
    }
