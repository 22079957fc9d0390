"""``lakelog groups``: groups of consumers and their offsets, like kafka-consumer-groups."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
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
    moved_rows,
    moved_table,
    of_topics,
    scenario_of,
    warn,
)
from .output import Lines, Message, Result, Table
from .verbs import verbs_of

if TYPE_CHECKING:
    from ..groups.description import GroupDescription
    from ..groups.reset import ResetOffset, Scenario
    from ..lakelog import Lakelog
    from ..operate.group_offsets import GroupPartition
    from ..values.topic_partition import TopicPartition

_EPILOG = """\
Scenarios, actions and the CSV are those of kafka-consumer-groups. Offsets are moved only while the
group has no members. What lies outside the log lands at its start or end, with a warning.

examples:
  lakelog groups list --state
  lakelog groups describe --group nightly
  lakelog groups describe --all-groups --members --verbose
  lakelog groups delete --group nightly
  lakelog groups delete-offsets --group nightly --topic orders:0,1
  lakelog groups reset-offsets --group nightly --topic orders --to-earliest           only shows it
  lakelog groups reset-offsets --group nightly --all-topics --to-datetime 2024-01-01T00:00:00.000Z --execute
  lakelog groups reset-offsets --group nightly --topic orders:0 --shift-by=-100 --execute
  lakelog groups export --all-groups > offsets.csv
  lakelog groups import offsets.csv --all-groups --execute
  lakelog groups record                                                  what `restore` brings back
"""  # noqa: E501, a command in one line


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs_of(
        commands,
        common,
        "groups",
        description="Look at groups of consumers, and move how far they have come.",
        epilog=_EPILOG,
    )
    add_states(verb("list", _list, "the groups there are"))
    added = verb("describe", _describe, "how far groups have come, and who is in them")
    add_groups(added)
    shown = added.add_mutually_exclusive_group()
    shown.add_argument("--offsets", action="store_true", help="the default")
    shown.add_argument("--members", action="store_true", help="who is in the group")
    shown.add_argument("--state", action="store_true", help="the state and the assignor")
    add_groups(verb("delete", _delete, "remove groups without members, with their offsets"))
    added = verb("delete-offsets", _delete_offsets, "forget offsets of topics that nobody reads")
    added.add_argument("--group", required=True)
    add_topics(added, required=True)
    added = verb("reset-offsets", _reset, "move the offsets of groups without members")
    add_groups(added)
    add_topics(added)
    added.add_argument("--all-topics", action="store_true", help="of which it has committed")
    scenario = add_scenarios(added)
    scenario.add_argument("--to-current", action="store_true", help="what is committed")
    scenario.add_argument("--shift-by", type=int, metavar="N", help="so many further, or back")
    scenario.add_argument("--from-file", metavar="FILE", help="a CSV; - for stdin")
    add_action(added)
    added.add_argument("--export", action="store_true", help="print the CSV; change nothing")
    add_groups(verb("export", _export, "print what is committed, as CSV"))
    verb("record", _record, "keep what is committed under the cold root too, as archiving does")
    added = verb("import", _import, "commit what a CSV says")
    added.add_argument("file", metavar="FILE", help="as `export` prints it; - for stdin")
    add_groups(added)
    add_action(added)


# -- looking -----------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        return list_table(arguments, lake.groups.list(), "no groups")


def _describe(arguments: argparse.Namespace) -> Result:
    from ..errors import GroupIdNotFoundError
    from ..groups.description import GroupState

    with open_log(arguments) as lake:
        groups = [lake.groups.describe(one) for one in groups_of(arguments, lake.groups.list)]
        for group in groups:
            if group.state is GroupState.DEAD:
                raise GroupIdNotFoundError(
                    f"there is no group {group.group_id!r}; `lakelog groups list` names those "
                    "there are",
                    group_id=group.group_id,
                )
        if arguments.state:
            return kafka_table(arguments, [_state_row(group) for group in groups], "no groups")
        rows: list[dict[str, Any]] = []
        if arguments.members:
            for group in groups:
                rows += _member_rows(group, arguments.verbose)
        else:
            for group, partitions in zip(groups, lake.group_offsets.described(groups), strict=True):
                _warn_of_ends(group.group_id, partitions)
                rows += _offset_rows(arguments, group.group_id, partitions)
    idle = [f"group {one.group_id!r} has no active members" for one in groups if not one.members]
    if idle and rows and arguments.output != "json":
        print("; ".join(idle), file=sys.stderr)
    return kafka_table(arguments, rows, "; ".join(idle) or "nothing is committed")


def _warn_of_ends(group_id: str, partitions: Iterable[GroupPartition]) -> None:
    for one in partitions:
        if one.is_beyond_end:
            print(
                f"lakelog: group {group_id!r} has committed {one.committed} of "
                f"{one.topic_partition}, beyond the log end {one.log_end}; who reads on goes by "
                "auto_offset_reset. `reset-offsets` moves it",
                file=sys.stderr,
            )


def _state_row(group: GroupDescription) -> dict[str, Any]:
    return {
        "group": group.group_id,
        "assignment_strategy": group.protocol_name or None,
        "state": group.state.value,
        "generation": group.generation_id,
        "#member_count": len(group.members),
    }


def _member_rows(group: GroupDescription, verbose: bool) -> list[dict[str, Any]]:
    from ..groups.protocol import Assignment

    rows = []
    for member in group.members:
        partitions = Assignment.decode(member.assignment).partitions
        row = {
            "group": group.group_id,
            "consumer_id": member.member_id,
            "group_instance_id": member.instance_id,
            "host": member.client_host or None,
            "client_id": member.client_id,
            "#partition_count": len(partitions),
        }
        if verbose:
            by_topic: dict[str, list[str]] = {}
            for topic, number in partitions:
                by_topic.setdefault(topic, []).append(str(number))
            row["assignment"] = ", ".join(f"{t}({','.join(n)})" for t, n in by_topic.items())
        rows.append(row)
    return rows


def _offset_rows(
    arguments: argparse.Namespace, group_id: str, partitions: Iterable[GroupPartition]
) -> list[dict[str, Any]]:
    return [
        {
            "group": group_id,
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "current_offset": one.committed,
            "log_end_offset": one.log_end,
            "lag": one.lag_records,
            "consumer_id": one.member and one.member.member_id,
            "host": (one.member and one.member.client_host) or None,
            "client_id": one.member and one.member.client_id,
            **lag_ms_column(arguments, one.lag_ms),
        }
        for one in partitions
    ]


# -- taking away -------------------------------------------------------------------------------


def _delete(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        return delete_each(groups_of(arguments, lake.groups.list), lake.groups.delete)


def _delete_offsets(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        asked = of_topics(lake, arguments.topic)
        gone = lake.groups.delete_offsets(arguments.group, asked)
    return forgotten_table(arguments, gone, "nothing was committed")


# -- moving ------------------------------------------------------------------------------------


def _reset(arguments: argparse.Namespace) -> Result:
    from ..errors import InvalidArgumentError

    is_from_file = arguments.from_file is not None
    if not is_from_file and not (arguments.topic or arguments.all_topics):
        raise InvalidArgumentError("give --topic TOPIC[:N,…], or --all-topics")
    if arguments.topic and arguments.all_topics:
        raise InvalidArgumentError("give --topic or --all-topics, not both")
    if is_from_file and arguments.topic:
        raise InvalidArgumentError(
            "the file says which partitions are moved; give --from-file without --topic"
        )
    if arguments.export and arguments.execute:
        raise InvalidArgumentError("--export changes nothing: give it without --execute")
    with open_log(arguments) as lake:
        groups = groups_of(arguments, lake.groups.list)
        if is_from_file:
            by_group = _of_file(arguments.from_file, groups, arguments.all_groups)
        else:
            scenario = scenario_of(arguments)
            by_group = dict.fromkeys(groups, scenario)
        planned = {
            group_id: lake.group_offsets.plan(
                group_id, scenario, _partitions(lake, arguments, group_id)
            )
            for group_id, scenario in by_group.items()
        }
        if arguments.execute:
            for group_id, moves in planned.items():
                lake.group_offsets.apply(group_id, moves)
    warn(planned)
    if arguments.export:
        return _csv(arguments, planned)
    return moved_table(arguments, planned)


def _export(arguments: argparse.Namespace) -> Result:
    from ..groups.reset import ResetOffset

    with open_log(arguments) as lake:
        return _csv(
            arguments,
            {
                group_id: tuple(
                    ResetOffset(tp, offset)
                    for tp, offset in lake.group_offsets.committed(group_id).items()
                )
                for group_id in groups_of(arguments, lake.groups.list)
            },
        )


def _import(arguments: argparse.Namespace) -> Result:
    arguments.from_file, arguments.export = arguments.file, False
    arguments.topic, arguments.all_topics = None, False
    return _reset(arguments)


def _record(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        found = lake.record_groups()
    said = "recorded" if found.is_new else "nothing has changed since the last recording"
    return Message(
        f"{said}: {counted(found.groups, 'group')}, {counted(found.offsets, 'offset')}",
        {"groups": found.groups, "offsets": found.offsets, "is_new": found.is_new},
    )


def _csv(arguments: argparse.Namespace, planned: dict[str, tuple[ResetOffset, ...]]) -> Result:
    from ..groups.reset_csv import write_csv

    if arguments.output == "json":
        return Table(moved_rows(planned))
    offsets = {
        group: {one.topic_partition: one.offset for one in moves}
        for group, moves in planned.items()
    }
    return iter([Lines(write_csv(offsets))])


def _partitions(
    lake: Lakelog, arguments: argparse.Namespace, group_id: str
) -> Iterable[TopicPartition]:
    if arguments.topic:
        return of_topics(lake, arguments.topic)
    return lake.group_offsets.committed(group_id) if arguments.all_topics else ()


def _of_file(path: str, groups: list[str], are_all: bool) -> dict[str, Scenario]:
    from ..errors import InvalidArgumentError
    from ..groups.reset import FromFile
    from ..groups.reset_csv import read_csv

    text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    found = read_csv(text)
    named = {name: FromFile(found[name]) for name in found if name is not None}
    if named:
        _check_named(path, named, groups, are_all)
        return {name: one for name, one in named.items() if name in groups}
    if len(groups) != 1:
        raise InvalidArgumentError(
            f"{path} has no column for groups, so it is for one: give it as --group"
        )
    return {groups[0]: FromFile(found[None])}


def _check_named(path: str, named: Iterable[str], groups: list[str], are_all: bool) -> None:
    """That no group which is meant is passed over in silence."""
    from ..errors import InvalidArgumentError

    absent = [name for name in groups if name not in named]
    if absent and not are_all:
        raise InvalidArgumentError(
            f"{path} says nothing of group {absent[0]!r}; it names {', '.join(sorted(named)[:5])}"
        )
    unknown = sorted(name for name in named if name not in groups)
    if unknown and are_all:
        raise InvalidArgumentError(
            f"{path} names groups that there are not: {', '.join(unknown[:5])}. --all-groups means "
            f"those that are there; give --group once for each that the file is to make"
        )
