"""``lakelog skip``: take one bad entry or file out of the log, so that its partition goes on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .connect import open_log
from .options import Offer
from .output import Message, Table, row

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


def add_skip(offer: Offer) -> None:
    verb = offer.verbs("Skip a bad entry or file; list what was skipped.")
    added = verb("add", _add, "skip a bad entry or file", _EPILOG, recorded="skip add")
    added.add_argument("topic")
    added.add_argument("-p", "--partition", type=int, required=True)
    what = added.add_mutually_exclusive_group(required=True)
    what.add_argument("--entry", metavar="ID", help="of the stream, as errors show it")
    what.add_argument("--file", metavar="PATH", help="of the table, or the end of its path")
    added.add_argument("--reason", default="", help="default: what is wrong")
    added.add_argument("--save-to", metavar="FILE", help="a file that is not there yet")
    added.add_argument("--dry-run", action="store_true", help="only say what would go")
    listed = verb("list", _list, "what was skipped", _EPILOG)
    listed.add_argument("topic")
    listed.add_argument("-p", "--partition", type=int, help="default: all partitions")


def _add(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        skips = log.skips(arguments.topic, arguments.partition)
        how: dict[str, Any] = {"save_to": arguments.save_to, "dry_run": arguments.dry_run}
        if arguments.entry is not None:
            skip = skips.skip_entry(arguments.entry, arguments.reason, **how)
        else:
            skip = skips.skip_file(arguments.file, arguments.reason, **how)
    values = _row(skip)
    kind, what = ("entry", "bytes") if skip.tier == "hot" else ("file", "name")
    verb = "would be skipped, and" if arguments.dry_run else "is skipped, and"
    offsets = values["offsets"]
    speaks = f"its offsets {offsets}" if offsets else "it speaks for no offsets"
    return Message(
        f"{kind} {skip.name} {verb} its {what} saved to {skip.saved_to} ({speaks}, "
        f"{skip.size_bytes} bytes): {skip.reason}",
        values,
    )


def _list(arguments: argparse.Namespace) -> Table:
    with open_log(arguments) as log:
        topic = log.topics.get(arguments.topic)
        numbers = range(topic.partitions) if arguments.partition is None else [arguments.partition]
        skips = [one for number in numbers for one in log.skips(topic, number).list()]
    columns = ["partition", "tier", "id", "offsets", "size_bytes", "skipped_at_ms", "who", "reason"]
    return Table(map(_row, skips), [*columns, "saved_to"], empty="nothing was skipped")


def _row(one: Skip) -> dict[str, Any]:
    offsets = f"{one.gap.start}..{one.gap.end - 1}" if one.gap.start < one.gap.end else ""
    return {
        **row(one, "topic_partition tier id=name"),
        "offsets": offsets,
        **row(one, "size_bytes skipped_at_ms=skipped_ms who reason saved_to"),
    }
