"""``lakelog export``, ``import``, ``restore``: topics that leave, come in, or come back."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .connect import open_log, open_to_read
from .options import Offer, add_config_option, parse_settings
from .output import Failed, Message, Page, Table, row, said_of_each
from .progress import bytes_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operate.group_recorder import RestoredGroup
    from ..operate.restore import RestoredTopic

_EXPORT = """\
A topic leaves as it is at one moment: as a Delta table with all of its log, also what is not
archived yet, its settings, and how far groups have come. What was cut short is finished by the same
command; an export that is there is brought up to date. More: `lakelog help transfer`.

examples:
  lakelog --dir ./log export orders --to ./orders-export
  lakelog --dir ./log export orders clicks --to backup.tar   one file
  lakelog --dir ./log export --to ./everything               all topics
  lakelog --cold s3://bucket/log export orders --to ./orders what is archived, without its Redis
"""

_IMPORT = """\
Each topic gets an id of its own, and keeps its offsets, times and settings; its log goes on where
the export ends. An export that is damaged or unfinished is refused, and nothing is changed. What
was cut short is finished by the same command. More: `lakelog help transfer`. (Topics that Redis has
lost come back under their own ids: lakelog restore.)

examples:
  lakelog --dir ./other import ./orders-export
  lakelog --dir ./other import backup.tar orders             one topic of several
  lakelog --dir ./log import backup.tar orders --as orders-of-may
  lakelog --dir ./other import backup.tar --config retention.ms=-1
"""

_RESTORE = """\
After a total loss of Redis (FLUSHALL, a new server, a disk that is gone) the tables in the cold
root tell the topics. This makes them again; their logs go on above every offset ever given out.
Topics that are there stay as they are. All groups come back too, as they were recorded last.
More: `lakelog help when redis is lost`.

examples:
  lakelog --redis redis://localhost --cold ./cold restore --dry-run
  lakelog --redis redis://localhost --cold ./cold restore
  lakelog --redis redis://localhost --cold ./cold restore orders
"""


def add_export(offer: Offer) -> None:
    added = offer.command(
        _export,
        "Write topics out of the log, as a folder or as one archive file.",
        _EXPORT,
        recorded="export",
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all")
    added.add_argument(
        "--to",
        required=True,
        metavar="PATH",
        help="a folder, an object store's URL, or a file whose name ends in .tar",
    )


def _export(arguments: argparse.Namespace) -> Table:
    with open_to_read(arguments) as log, bytes_progress() as progress:
        manifest = log.export(arguments.to, arguments.topics or None, progress=progress)
    rows = [
        row(
            one,
            "topic=topic.name partitions=topic.partitions records",
            files=len(one.files),
            bytes=one.size_bytes,
            groups=len({(group.group_id, group.group_type) for group in one.groups}),
        )
        for one in manifest.topics
    ]
    return Table(rows, empty="there are no topics", title=f"exported to {arguments.to}:")


def add_import(offer: Offer) -> None:
    added = offer.command(
        _import,
        "Bring topics in that `lakelog export` wrote.",
        _IMPORT,
        makes_log=True,
        recorded="import",
    )
    added.add_argument("source", metavar="PATH", help="what was given as --to")
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that are in it")
    added.add_argument(
        "--as", dest="name", metavar="NAME", help="what the one topic is called here"
    )
    add_config_option(added)


def _import(arguments: argparse.Namespace) -> Table:
    config = parse_settings("--config", arguments.config)
    with open_log(arguments) as log, bytes_progress() as progress:
        imported = log.import_topics(
            arguments.source,
            arguments.topics or None,
            name=arguments.name,
            config=config,
            progress=progress,
        )
    rows = [
        {
            "topic": one.topic.name,
            "partition": number,
            "log_start": log_start,
            "goes_on_at": log_end,
            "groups": one.groups,
            "was": "imported" if one.is_new else "there already",
        }
        for one in imported
        for number, log_start, log_end in one.partitions
    ]
    return Table(rows, empty="the export has no topics")


def add_restore(offer: Offer) -> None:
    added = offer.command(
        _restore,
        "Make the topics again that Redis has lost, from their tables.",
        _RESTORE,
        recorded="restore",
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that were lost")
    added.add_argument("--dry-run", action="store_true", help="show what would come back")


def _restore(arguments: argparse.Namespace) -> Page:
    from ..errors import PartlyFailedError

    with open_log(arguments) as log:
        if arguments.dry_run:
            lost = [
                row(topic, "topic=name partitions", id=str(topic.topic_id))
                for topic in log.restorable()
                if not arguments.topics or topic.name in arguments.topics
            ]
            table = Table(lost, empty="no topic was lost", title="would be restored:")
            groups = _groups(log.restorable_groups(), "groups that would come back:")
            return Page({"would_be_restored": table, **groups})
        try:
            restored = log.restore(arguments.topics or None)
        except PartlyFailedError as error:
            page = _restored(error.restored, error.groups)
            raise Failed(page, said_of_each(error.errors)) from error
    return _restored(restored, restored.groups)


def _restored(restored: Sequence[RestoredTopic], groups: Sequence[RestoredGroup]) -> Page:
    from ..operate.restore import NOT_RESTORED

    rows = [
        {
            "topic": one.topic.name,
            **row(part, "partition log_start archived_end goes_on_at=log_end"),
        }
        for one in restored
        for part in one.partitions
    ]
    parts: dict[str, Any] = {"restored": Table(rows, empty="no topic was lost")}
    parts |= _groups(groups, "groups:")
    if rows:
        note = f"not restored, since no table tells it: {NOT_RESTORED}"
        parts["not_restored"] = Message(note, {"not_restored": NOT_RESTORED})
    return Page(parts)


def _groups(groups: Sequence[RestoredGroup], title: str) -> dict[str, Any]:
    offsets = [
        {
            **row(group, "group=group_id type=group_type"),
            **row(one, "topic_partition goes_on_at=committed.offset"),
        }
        for group in groups
        for one in group.offsets
    ]
    return {"groups": Table(offsets, title=title)} if offsets else {}
