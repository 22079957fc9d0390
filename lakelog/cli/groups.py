"""``lakelog groups``: groups of consumers and their offsets, like kafka-consumer-groups."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
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
    moved_rows,
    moved_table,
    of_topics,
    scenario_of,
    verbs_of,
    warn,
)
from .output import Lines, Message, Result, Table

if TYPE_CHECKING:
    from ..groups.description import GroupDescription
    from ..groups.reset import ResetOffset, Scenario
    from ..lakelog import Lakelog
    from ..operate.group_offsets import GroupOffsetsAdmin
    from ..record import TopicPartition

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
        help="groups of consumers: who reads what, how far, and moving that",
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


@dataclass(frozen=True, slots=True)
class _Opened:
    lake: Lakelog
    offsets: GroupOffsetsAdmin

    def groups(self, arguments: argparse.Namespace) -> list[str]:
        return groups_of(arguments, self.lake.groups.list)


@contextmanager
def _open(arguments: argparse.Namespace) -> Iterator[_Opened]:
    from ..groups.coordinator import GroupCoordinator
    from ..operate.group_offsets import GroupOffsetsAdmin

    with open_log(arguments) as lake:
        coordinator = GroupCoordinator(lake.hot.connections, lake.hot.keyspace)
        yield _Opened(lake, GroupOffsetsAdmin(lake.log, coordinator, lake.groups, lake.hot.now_ms))


# -- looking -----------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace) -> Result:
    with _open(arguments) as opened:
        return list_table(arguments, opened.lake.groups.list(), "no groups")


def _describe(arguments: argparse.Namespace) -> Result:
    from ..errors import GroupIdNotFoundError
    from ..groups.description import GroupState

    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    with _open(arguments) as opened:
        for group_id in opened.groups(arguments):
            group = opened.lake.groups.describe(group_id)
            if group.state is GroupState.DEAD:
                raise GroupIdNotFoundError(
                    f"there is no group {group_id!r}; `lakelog groups list` names those there are",
                    group_id=group_id,
                )
            if not group.members:
                notes.append(f"group {group_id!r} has no active members")
            if arguments.state:
                rows.append(_state_row(group))
            elif arguments.members:
                rows += _member_rows(group, arguments.verbose)
            else:
                rows += _offset_rows(opened, group)
    table = kafka_table(arguments, rows, "; ".join(notes) or "nothing is committed")
    if notes and rows and not arguments.state and arguments.output != "json":
        print("; ".join(notes), file=sys.stderr)
    return table


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


def _offset_rows(opened: _Opened, group: GroupDescription) -> list[dict[str, Any]]:
    return [
        {
            "group": group.group_id,
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "current_offset": one.committed,
            "log_end_offset": one.log_end,
            "lag": one.lag,
            "consumer_id": one.member and one.member.member_id,
            "host": (one.member and one.member.client_host) or None,
            "client_id": one.member and one.member.client_id,
        }
        for one in opened.offsets.describe(group)
    ]


# -- taking away -------------------------------------------------------------------------------


def _delete(arguments: argparse.Namespace) -> Result:
    with _open(arguments) as opened:
        return delete_each(opened.groups(arguments), opened.lake.groups.delete)


def _delete_offsets(arguments: argparse.Namespace) -> Result:
    with _open(arguments) as opened:
        asked = of_topics(opened.lake, arguments.topic)
        gone = opened.lake.groups.delete_offsets(arguments.group, asked)
    return forgotten_table(arguments, gone, "nothing was committed")


# -- moving ------------------------------------------------------------------------------------


def _reset(arguments: argparse.Namespace) -> Result:
    from ..errors import InvalidArgumentError

    is_from_file = arguments.from_file is not None
    if not is_from_file and not (arguments.topic or arguments.all_topics):
        raise InvalidArgumentError("give --topic TOPIC[:N,…], or --all-topics")
    if arguments.topic and arguments.all_topics:
        raise InvalidArgumentError("give --topic or --all-topics, not both")
    if arguments.export and arguments.execute:
        raise InvalidArgumentError("--export changes nothing: give it without --execute")
    with _open(arguments) as opened:
        if is_from_file:
            by_group = _of_file(arguments.from_file, opened.groups(arguments))
        else:
            scenario = scenario_of(arguments)
            by_group = dict.fromkeys(opened.groups(arguments), scenario)
        planned = {
            group_id: opened.offsets.plan(
                group_id, scenario, _partitions(opened, arguments, group_id)
            )
            for group_id, scenario in by_group.items()
        }
        if arguments.execute:
            for group_id, moves in planned.items():
                opened.offsets.apply(group_id, moves)
    warn(planned)
    if arguments.export:
        return _csv(arguments, planned)
    return moved_table(arguments, planned)


def _export(arguments: argparse.Namespace) -> Result:
    from ..groups.reset import ResetOffset

    with _open(arguments) as opened:
        groups = [opened.lake.groups.describe(one) for one in opened.groups(arguments)]
        return _csv(
            arguments,
            {
                group.group_id: tuple(
                    ResetOffset(one.topic_partition, one.committed)
                    for one in opened.offsets.describe(group)
                    if one.committed is not None
                )
                for group in groups
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
        f"{said}: {found.groups:,} groups, {found.offsets:,} offsets",
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
    opened: _Opened, arguments: argparse.Namespace, group_id: str
) -> list[TopicPartition]:
    if arguments.topic:
        return of_topics(opened.lake, arguments.topic)
    return opened.offsets.partitions(group_id) if arguments.all_topics else []


def _of_file(path: str, groups: list[str]) -> dict[str, Scenario]:
    from ..errors import InvalidArgumentError
    from ..groups.reset import FromFile
    from ..groups.reset_csv import read_csv

    text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8")
    found = read_csv(text)
    named = {name: FromFile(found[name]) for name in found if name is not None}
    if named:
        return {name: one for name, one in named.items() if name in groups}
    if len(groups) != 1:
        raise InvalidArgumentError(
            f"{path} has no column for groups, so it is for one: give it as --group"
        )
    return {groups[0]: FromFile(found[None])}
