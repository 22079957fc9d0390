"""``lakelog skip``: take one bad entry or file out of the log, so that its partition goes on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .connect import open_log
from .output import Message, Table, utc_text

if TYPE_CHECKING:
    from ..operate.skip import Skip
_EPILOG = """\
The bytes of an entry, or the name of a file, are saved to a new file: --save-to names it, by
default it is in the current folder, named by the partition and the entry or file. The offsets
become a gap, which readers skip and report; appends, archives and cleanup go on (but compaction of
that partition, if a file was skipped). A skipped file stays in the table's folder for
file.delete.delay.ms: copy it, if something of it may still be read. Nothing is put back; what can
be saved is produced again.

examples:
  lakelog --dir ./log skip add orders -p 0 --entry 1999-100 --dry-run
  lakelog --dir ./log skip add orders -p 0 --entry 1999-100 --reason "bit flip, host 7"
  lakelog --dir ./log skip add orders -p 0 --file archive-00000000000000001000-….parquet
  lakelog --dir ./log skip list orders
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    noun = commands.add_parser(
        "skip", description="Skip a bad entry or file; list what was skipped."
    )
    verbs = noun.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, run, text in (
        ("add", _add, "skip a bad entry or file"),
        ("list", _list, "what was skipped"),
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
            added.add_argument("--reason", default="", help="default: what is wrong")
            added.add_argument("--save-to", metavar="FILE", help="a file that is not there yet")
            added.add_argument("--dry-run", action="store_true", help="only say what would go")
        added.set_defaults(run=run, recorded=None if run is _list else "skip add")


def _add(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        skips = log.skips(arguments.topic, arguments.partition)
        how: dict[str, Any] = {"save_to": arguments.save_to, "dry_run": arguments.dry_run}
        if arguments.entry is not None:
            skip = skips.skip_entry(arguments.entry, arguments.reason, **how)
        else:
            skip = skips.skip_file(arguments.file, arguments.reason, **how)
    row = _row(skip)
    kind = "entry" if skip.tier == "hot" else "file"
    verb = "would be skipped, and" if arguments.dry_run else "is skipped, and"
    speaks = f"its offsets {row['offsets']}" if row["offsets"] else "it speaks for no offsets"
    what = "its bytes" if skip.tier == "hot" else "its name"
    return Message(
        f"{kind} {skip.name} {verb} {what} saved to {skip.saved_to} ({speaks}, {skip.size_bytes} "
        f"bytes): {skip.reason}",
        row,
    )


def _list(arguments: argparse.Namespace) -> Table:
    with open_log(arguments) as log:
        topic = log.topics.get(arguments.topic)
        numbers = range(topic.partitions) if arguments.partition is None else [arguments.partition]
        skips = [one for number in numbers for one in log.skips(topic, number).list()]
    rows = [_row(one) for one in skips]
    if arguments.output != "json":
        rows = [{**_row(one), "skipped_at": utc_text(one.skipped_ms)} for one in skips]
    columns = ["partition", "tier", "id", "offsets", "size_bytes", "skipped_at", "who", "reason"]
    return Table(rows, [*columns, "saved_to"], empty="nothing was skipped")


def _row(one: Skip) -> dict[str, Any]:
    return {
        "topic": one.topic_partition.topic,
        "partition": one.topic_partition.partition,
        "tier": one.tier,
        "id": one.name,
        "offsets": f"{one.gap.start}..{one.gap.end - 1}" if one.gap.start < one.gap.end else "",
        "size_bytes": one.size_bytes,
        "skipped_at_ms": one.skipped_ms,
        "who": one.who,
        "reason": one.reason,
        "saved_to": one.saved_to,
    }
