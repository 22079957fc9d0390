"""``lakelog share-groups``: share groups and where they begin, like kafka-share-groups."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .connect import open_log
from .group_arguments import (
    add_action,
    add_groups,
    add_scenarios,
    add_states,
    add_topics,
    delete_each,
    forgotten_table,
    groups_of,
    kafka_table,
    list_table,
    moved_table,
    of_topics,
    scenario_of,
    verbs_of,
    warn,
)
from .output import Result

if TYPE_CHECKING:
    from ..groups.share.admin import ShareGroupDescription
    from ..lakelog import Lakelog
    from ..operate.share_group_offsets import ShareGroupOffsets

_EPILOG = """\
A member is an id that holds records: there is no other trace of one. What moves or forgets where a
group begins is refused while somebody does.

examples:
  lakelog share-groups list --state
  lakelog share-groups describe --group workers
  lakelog share-groups describe --all-groups --members
  lakelog share-groups reset-offsets --group workers --topic jobs --to-earliest       only shows it
  lakelog share-groups reset-offsets --group workers --all-topics --to-latest --execute
  lakelog share-groups delete-offsets --group workers --topic jobs
  lakelog share-groups delete --group workers
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs_of(
        commands,
        common,
        "share-groups",
        help="share groups: who holds what of the queue, and where it begins",
        description="Look at share groups, and move where they begin.",
        epilog=_EPILOG,
    )
    add_states(verb("list", _list, "the share groups there are"))
    added = verb("describe", _describe, "where groups stand, and who holds records")
    add_groups(added)
    shown = added.add_mutually_exclusive_group()
    shown.add_argument("--offsets", action="store_true", help="the default")
    shown.add_argument("--members", action="store_true", help="who holds records")
    shown.add_argument("--state", action="store_true", help="the state")
    add_groups(verb("delete", _delete, "remove groups of which nobody holds records"))
    added = verb("delete-offsets", _delete_offsets, "forget where a group is in topics")
    added.add_argument("--group", required=True)
    add_topics(added, required=True)
    added = verb("reset-offsets", _reset, "move where groups begin")
    add_groups(added)
    add_topics(added)
    added.add_argument("--all-topics", action="store_true", help="in which it is")
    add_scenarios(added)
    add_action(added)


@dataclass(frozen=True, slots=True)
class _Opened:
    lake: Lakelog
    offsets: ShareGroupOffsets

    def groups(self, arguments: argparse.Namespace) -> list[str]:
        return groups_of(arguments, self.lake.share_groups.list)


@contextmanager
def _open(arguments: argparse.Namespace) -> Iterator[_Opened]:
    from ..groups.share.share_partitions import SharePartitions
    from ..operate.share_group_offsets import ShareGroupOffsets

    with open_log(arguments) as lake:

        def shares(group_id: str) -> SharePartitions:
            return SharePartitions(lake.hot.connections, group_id, lake.hot.keyspace)

        yield _Opened(lake, ShareGroupOffsets(lake.log, lake.share_groups, shares, lake.hot.now_ms))


# -- looking -----------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> Result:
    with _open(arguments) as opened:
        return list_table(arguments, opened.lake.share_groups.list(), "no share groups")


def _describe(arguments: argparse.Namespace) -> Result:
    from ..errors import GroupIdNotFoundError

    rows: list[dict[str, Any]] = []
    with _open(arguments) as opened:
        for group_id in opened.groups(arguments):
            group = opened.lake.share_groups.describe(group_id)
            if not group.partitions:
                raise GroupIdNotFoundError(
                    f"there is no share group {group_id!r}; `lakelog share-groups list` names "
                    "those there are",
                    group_id=group_id,
                )
            if arguments.state:
                count = len(group.member_ids)
                row = {"group": group_id, "state": group.state.value, "#member_count": count}
                rows.append(row)
            elif arguments.members:
                rows += _member_rows(group)
            else:
                rows += _offset_rows(group)
    return kafka_table(arguments, rows, "nobody holds records")


def _member_rows(group: ShareGroupDescription) -> list[dict[str, Any]]:
    return [
        {
            "group": group.group_id,
            "consumer_id": member_id,
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "held_offsets": one.held_offsets(member_id),
        }
        for member_id in sorted(group.member_ids)
        for one in group.partitions
        if one.held_offsets(member_id)
    ]


def _offset_rows(group: ShareGroupDescription) -> list[dict[str, Any]]:
    from ..groups.share.share_values import RangeState

    return [
        {
            "group": group.group_id,
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "start_offset": one.start_offset,
            "log_end_offset": one.log_end,
            "lag": one.lag,
            "in_flight": one.offsets(RangeState.ACQUIRED),
        }
        for one in group.partitions
    ]


# -- taking away, moving -----------------------------------------------------------------------


def _delete(arguments: argparse.Namespace) -> Result:
    with _open(arguments) as opened:
        return delete_each(opened.groups(arguments), opened.lake.share_groups.delete)


def _delete_offsets(arguments: argparse.Namespace) -> Result:
    with _open(arguments) as opened:
        asked = of_topics(opened.lake, arguments.topic)
        gone = opened.offsets.delete_offsets(arguments.group, asked)
    return forgotten_table(arguments, gone, "the group was not there")


def _reset(arguments: argparse.Namespace) -> Result:
    from ..errors import InvalidArgumentError

    if bool(arguments.topic) == arguments.all_topics:
        raise InvalidArgumentError("give --topic TOPIC[:N,…], or --all-topics; one of them")
    scenario = scenario_of(arguments)
    with _open(arguments) as opened:
        planned = {}
        for group_id in opened.groups(arguments):
            partitions = (
                of_topics(opened.lake, arguments.topic)
                if arguments.topic
                else opened.offsets.partitions(group_id)
            )
            planned[group_id] = opened.offsets.plan(group_id, scenario, partitions)
        if arguments.execute:
            for group_id, moves in planned.items():
                opened.offsets.apply(group_id, moves)
    warn(planned)
    return moved_table(arguments, planned)
