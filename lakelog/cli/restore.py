"""``lakelog restore``: bring back topics that Redis has lost."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .connect import open_log
from .output import Failed, Message, Page, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..operate.group_recorder import RestoredGroup
    from ..operate.restore import RestoredTopic

_EPILOG = """\
After a total loss of Redis (FLUSHALL, a new server, a disk that is gone) the archived records lie
in the cold root, and the tables there tell the topics: ids, partitions, settings, the keyspace's
defaults. This makes the topics again. Their logs go on above every offset that was ever given out.
Without TOPIC, all that were lost. Topics that are there stay as they are. The groups come back too,
all of them, as they were recorded last: offsets that Redis has not, or only an earlier commit of.
--dry-run lists both.

examples:
  lakelog --redis redis://localhost --cold ./cold restore --dry-run
  lakelog --redis redis://localhost --cold ./cold restore
  lakelog --redis redis://localhost --cold ./cold restore orders
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "restore",
        parents=[common],
        description="Make the topics again that Redis has lost, from their tables.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that were lost")
    added.add_argument("--dry-run", action="store_true", help="show what would come back")
    added.set_defaults(run=_run, recorded="restore")


_WOULD = "would be restored:"


def _run(arguments: argparse.Namespace) -> Page:
    from ..errors import RestoreFailedError
    from .output import describe

    with open_log(arguments) as log:
        if arguments.dry_run:
            lost = [
                {"topic": topic.name, "partitions": topic.partitions, "id": str(topic.topic_id)}
                for topic in log.restorable()
                if not arguments.topics or topic.name in arguments.topics
            ]
            parts: dict[str, Any] = {
                "would_be_restored": Table(lost, empty="no topic was lost", title=_WOULD)
            }
            return Page(parts | _groups(log.restorable_groups(), "groups that would come back:"))
        try:
            restored = log.restore(arguments.topics or None)
        except RestoreFailedError as error:
            said = [f"{name}: {describe(one)}" for name, one in error.errors.items()]
            raise Failed(_page(error.restored, error.groups), "\n".join(said)) from error
    return _page(restored, restored.groups)


def _page(restored: Sequence[RestoredTopic], groups: Sequence[RestoredGroup]) -> Page:
    from ..operate.restore import NOT_RESTORED

    rows = [
        {
            "topic": one.topic.name,
            "partition": found.partition,
            "log_start": found.log_start,
            "archived_end": found.archived_end,
            "goes_on_at": found.log_end,
        }
        for one in restored
        for found in one.partitions
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
            "group": group.group_id,
            "type": group.group_type.value,
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "goes_on_at": one.committed.offset,
        }
        for group in groups
        for one in group.offsets
    ]
    return {"groups": Table(offsets, title=title)} if offsets else {}
