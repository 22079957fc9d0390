"""``lakelog share-groups``: share groups and where they begin, like kafka-share-groups."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
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
    lag_ms_column,
    list_table,
    moved_table,
    of_topics,
    scenario_of,
    warn,
)
from .output import Result
from .verbs import verbs_of

if TYPE_CHECKING:
    from ..groups.share.admin import ShareGroupDescription
    from ..operate.group_offsets import ShareGroupPartition

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


# -- looking -----------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        return list_table(arguments, lake.share_groups.list(), "no share groups")


def _describe(arguments: argparse.Namespace) -> Result:
    from ..errors import GroupIdNotFoundError

    rows: list[dict[str, Any]] = []
    with open_log(arguments) as lake:
        groups = lake.share_groups.described(groups_of(arguments, lake.share_groups.list))
        for group in groups:
            if not group.partitions:
                raise GroupIdNotFoundError(
                    f"there is no share group {group.group_id!r}; `lakelog share-groups list` "
                    "names those there are",
                    group_id=group.group_id,
                )
            if arguments.state:
                count = len(group.member_ids)
                row = {"group": group.group_id, "state": group.state.value, "#member_count": count}
                rows.append(row)
            elif arguments.members:
                rows += _member_rows(group)
        if not (arguments.state or arguments.members):
            left = lake.share_group_offsets.described(groups)
            for group, partitions in zip(groups, left, strict=True):
                rows += _offset_rows(arguments, group.group_id, partitions)
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


def _offset_rows(
    arguments: argparse.Namespace, group_id: str, partitions: Iterable[ShareGroupPartition]
) -> list[dict[str, Any]]:
    from ..groups.share.share_values import RangeState

    return [
        {
            "group": group_id,
            "topic": one.description.topic_partition.topic,
            "partition": one.description.topic_partition.partition,
            "start_offset": one.description.start_offset,
            "log_end_offset": one.description.log_end,
            "lag": one.lag_records,
            "in_flight": one.description.offsets(RangeState.ACQUIRED),
            **lag_ms_column(arguments, one.lag_ms),
        }
        for one in partitions
    ]


# -- taking away, moving -----------------------------------------------------------------------


def _delete(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        return delete_each(groups_of(arguments, lake.share_groups.list), lake.share_groups.delete)


def _delete_offsets(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        asked = of_topics(lake, arguments.topic)
        gone = lake.share_group_offsets.delete_offsets(arguments.group, asked)
    return forgotten_table(arguments, gone, "the group was not there")


def _reset(arguments: argparse.Namespace) -> Result:
    from ..errors import InvalidArgumentError

    if bool(arguments.topic) == arguments.all_topics:
        raise InvalidArgumentError("give --topic TOPIC[:N,…], or --all-topics; one of them")
    scenario = scenario_of(arguments)
    with open_log(arguments) as lake:
        offsets, planned = lake.share_group_offsets, {}
        for group_id in groups_of(arguments, lake.share_groups.list):
            partitions = (
                of_topics(lake, arguments.topic)
                if arguments.topic
                else offsets.partitions(group_id)
            )
            planned[group_id] = offsets.plan(group_id, scenario, partitions)
        if arguments.execute:
            for group_id, moves in planned.items():
                offsets.apply(group_id, moves)
    warn(planned)
    return moved_table(arguments, planned)
