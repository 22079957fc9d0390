"""``lakelog groups``, ``share-groups``: who reads what, how far, and moving that, like
kafka-consumer-groups and kafka-share-groups.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
from ..errors import GroupIdNotFoundError, InvalidArgumentError, LakelogError
from .connect import open_log
from .options import Offer
from .output import Failed, Lines, Message, Result, Table, describe, row

if TYPE_CHECKING:
    from ..groups.admin import GroupAdmin, ShareGroupAdmin, ShareGroupDescription
    from ..groups.group_values import GroupListing
    from ..groups.reset import ResetOffset, Scenario
    from ..lakelog import Lakelog
    from ..operate.group_offsets import GroupPartition
    from ..values.topic_partition import TopicPartition

    Groups = Iterable[GroupListing | ShareGroupDescription]  # of either kind, as they are listed
    Moves = Mapping[str, Sequence[ResetOffset]]  # by group

_GROUPS = """\
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

_SHARE_GROUPS = """\
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


def add_groups(offer: Offer) -> None:
    verb = offer.verbs("Look at groups of consumers, and move how far they have come.", _GROUPS)
    described = verb("describe", _describe, "how far groups have come, and who is in them")
    _add_described(described, members="who is in the group", state="the state and the assignor")
    listed, added, scenario = _add_verbs(
        partial(verb, shares=False),
        ("list", "the groups there are"),
        ("delete", "remove groups without members, with their offsets"),
        ("delete-offsets", "forget offsets of topics that nobody reads"),
        ("reset-offsets", "move the offsets of groups without members"),
        all_topics="of which it has committed",
    )
    listed.add_argument(
        "--type", action="store_true", help="with the protocol of their members: classic, consumer"
    )
    scenario.add_argument("--to-current", action="store_true", help="what is committed")
    scenario.add_argument("--shift-by", type=int, metavar="N", help="so many further, or back")
    scenario.add_argument("--from-file", metavar="FILE", help="a CSV; - for stdin")
    added.add_argument("--export", action="store_true", help="print the CSV; change nothing")
    _add_groups(verb("export", _export, "print what is committed, as CSV"))
    verb("record", _record, "keep what is committed under the cold root too, as archiving does")
    added = verb("import", _import, "commit what a CSV says", shares=False)
    added.add_argument("file", metavar="FILE", help="as `export` prints it; - for stdin")
    _add_groups(added)
    _add_action(added)


def add_share_groups(offer: Offer) -> None:
    verb = offer.verbs("Look at share groups, and move where they begin.", _SHARE_GROUPS)
    described = verb("describe", _describe_shares, "where groups stand, and who holds records")
    _add_described(described, members="who holds records", state="the state")
    _add_verbs(
        partial(verb, shares=True),
        ("list", "the share groups there are"),
        ("delete", "remove groups of which nobody holds records"),
        ("delete-offsets", "forget where a group is in topics"),
        ("reset-offsets", "move where groups begin"),
        all_topics="in which it is",
    )


# -- arguments of either kind ----------------------------------------------------------------------


def _add_verbs(verb: Callable[..., Any], *named: tuple[str, str], all_topics: str) -> Any:
    """The verbs that both kinds have, by name and text; gives back `list`, and what takes more
    scenarios.
    """
    runs = {
        "list": _list,
        "delete": _delete,
        "delete-offsets": _delete_offsets,
        "reset-offsets": _reset,
    }
    listed, deleted, forgotten, reset = (verb(name, runs[name], text) for name, text in named)
    listed.add_argument(
        "--state", nargs="?", const="", metavar="STATE[,…]", help="with their states, or only those"
    )
    _add_groups(deleted)
    forgotten.add_argument("--group", required=True)
    _add_topics(forgotten, required=True)
    _add_groups(reset)
    _add_topics(reset)
    reset.add_argument("--all-topics", action="store_true", help=all_topics)
    _add_action(reset)
    # Last, as the usage tells apart only what is added without anything in between.
    scenario = reset.add_mutually_exclusive_group(required=True)
    scenario.add_argument("--to-earliest", action="store_true", help="the log start")
    scenario.add_argument("--to-latest", action="store_true", help="the log end")
    scenario.add_argument("--to-offset", type=int, metavar="N")
    scenario.add_argument("--to-datetime", metavar="TIME", help="YYYY-MM-DDTHH:mm:SS.sss[Z]")
    scenario.add_argument("--by-duration", metavar="P…", help="so long ago: PnDTnHnMnS")
    return listed, reset, scenario


def _add_groups(added: argparse.ArgumentParser) -> None:
    which = added.add_mutually_exclusive_group(required=True)
    which.add_argument("--group", action="append", metavar="ID", help="repeatable")
    which.add_argument("--all-groups", action="store_true")


def _add_described(added: argparse.ArgumentParser, *, members: str, state: str) -> None:
    _add_groups(added)
    shown = added.add_mutually_exclusive_group()
    shown.add_argument("--offsets", action="store_true", help="the default")
    shown.add_argument("--members", action="store_true", help=members)
    shown.add_argument("--state", action="store_true", help=state)


def _add_topics(added: argparse.ArgumentParser, *, required: bool = False) -> None:
    added.add_argument(
        "--topic",
        action="append",
        required=required,
        metavar="TOPIC[:N,…]",
        help="all its partitions, or some; repeatable",
    )


def _add_action(added: argparse.ArgumentParser) -> None:
    action = added.add_mutually_exclusive_group()
    action.add_argument("--dry-run", action="store_true", help="only show it: the default")
    action.add_argument("--execute", action="store_true", help="do it")


def _of_topics(lake: Lakelog, given: list[str]) -> list[TopicPartition]:
    """``orders`` is all partitions of it, ``orders:0,1`` those two."""
    found = []
    for text in given:
        name, colon, numbers = text.partition(":")
        topic = lake.topics.get(name)
        if not colon:
            found += topic.topic_partitions()
            continue
        for number in numbers.split(","):
            if not (number.isascii() and number.isdecimal()):
                raise InvalidArgumentError(
                    f"--topic {text}: {number!r} is not the number of a partition; give {name}:0,1"
                )
            found.append(topic.partition(int(number)))
    return [*dict.fromkeys(found)]


def _scenario_of(arguments: argparse.Namespace) -> Scenario:
    """Where offsets go, by the options that the command has of them."""
    from ..groups import reset
    from ..values.typed_time import parse_duration, parse_kafka_time

    if arguments.to_earliest:
        return reset.ToEarliest()
    if arguments.to_latest:
        return reset.ToLatest()
    if getattr(arguments, "to_current", False):
        return reset.ToCurrent()
    if arguments.to_offset is not None:
        return reset.ToOffset(arguments.to_offset)
    if getattr(arguments, "shift_by", None) is not None:
        return reset.ShiftBy(arguments.shift_by)
    if arguments.to_datetime is not None:
        return reset.ToDatetime(parse_kafka_time(arguments.to_datetime))
    return reset.ByDuration(parse_duration(arguments.by_duration))


def _groups_of(arguments: argparse.Namespace, listed: Callable[[], Groups]) -> list[str]:
    """The ids that were given, or all there are."""
    if arguments.all_groups:
        return [one.group_id for one in listed()]
    return [*dict.fromkeys(arguments.group)]


# -- tables of either kind -------------------------------------------------------------------------


def _kafka_table(rows: list[dict[str, Any]], empty: str, *, without: str = "") -> Message:
    """Under Kafka's headings; as JSON by names as usual.

    Args:
        without: a column that Kafka's tools do not have, so that text leaves it out.
    """
    shown = [
        {
            key.replace("_count", "s").upper().replace("_", "-"): value
            for key, value in one.items()
            if key != without
        }
        for one in rows
    ]
    return Message(Table(shown, empty=empty, is_ours=False), rows)


def _without_lag_ms(arguments: argparse.Namespace) -> str:
    return "" if arguments.verbose else "lag_ms"


def _moved_rows(planned: Moves) -> list[dict[str, Any]]:
    return [
        {"group": group_id, **row(one, "topic_partition new_offset=offset")}
        for group_id, moves in planned.items()
        for one in moves
    ]


def _not_there(group_id: str, kind: str, command: str) -> GroupIdNotFoundError:
    return GroupIdNotFoundError(
        f"there is no {kind} {group_id!r}; `lakelog {command} list` names those there are",
        group_id=group_id,
    )


# -- what both kinds do ----------------------------------------------------------------------------


def _of_kind(lake: Lakelog, arguments: argparse.Namespace) -> GroupAdmin | ShareGroupAdmin:
    return lake.share_groups if arguments.shares else lake.groups


def _list(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        found = _of_kind(lake, arguments).list()
    wanted = {state.strip().lower() for state in (arguments.state or "").split(",") if state}
    fields = "group=group_id state"
    if getattr(arguments, "type", False):
        fields += " type=group_type"
    rows = [row(one, fields) for one in found if not wanted or one.state.value.lower() in wanted]
    empty = "no share groups" if arguments.shares else "no groups"
    return _kafka_table(rows, empty, without="state" if arguments.state is None else "")


def _delete(arguments: argparse.Namespace) -> Result:
    done, failed = [], []
    with open_log(arguments) as lake:
        groups = _of_kind(lake, arguments)
        for group_id in _groups_of(arguments, groups.list):
            try:
                groups.delete(group_id)
                done.append(group_id)
            except LakelogError as error:  # the others can go
                failed.append(describe(error))
    said = f"deleted: {', '.join(done)}" if done else "no group was deleted"
    message = Message(said, {"deleted": done})
    if failed:
        raise Failed(message, "\n".join(failed))
    return message


def _delete_offsets(arguments: argparse.Namespace) -> Result:
    with open_log(arguments) as lake:
        asked = _of_topics(lake, arguments.topic)
        forgetting = lake.share_group_offsets if arguments.shares else lake.groups
        gone = forgetting.delete_offsets(arguments.group, asked)
    absent = "the group was not there" if arguments.shares else "nothing was committed"
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "status": "deleted" if was_there else absent}
        for tp, was_there in gone.items()
    ]
    return _kafka_table(rows, "no partition was named")


def _reset(arguments: argparse.Namespace) -> Result:
    file, export = getattr(arguments, "from_file", None), getattr(arguments, "export", False)
    if arguments.topic and arguments.all_topics:
        raise InvalidArgumentError("give --topic or --all-topics, not both")
    if file is None and not (arguments.topic or arguments.all_topics):
        raise InvalidArgumentError("give --topic TOPIC[:N,…], or --all-topics; one of them")
    if file is not None and arguments.topic:
        raise InvalidArgumentError(
            "the file says which partitions are moved; give --from-file without --topic"
        )
    if export and arguments.execute:
        raise InvalidArgumentError("--export changes nothing: give it without --execute")
    with open_log(arguments) as lake:
        offsets = lake.share_group_offsets if arguments.shares else lake.group_offsets
        groups = _groups_of(arguments, _of_kind(lake, arguments).list)
        by_group = (
            dict.fromkeys(groups, _scenario_of(arguments))
            if file is None
            else _of_file(file, groups, arguments.all_groups)
        )
        planned: dict[str, Sequence[ResetOffset]] = {}
        for group_id, scenario in by_group.items():
            partitions: Iterable[TopicPartition] = ()
            if arguments.topic:
                partitions = _of_topics(lake, arguments.topic)
            elif arguments.all_topics:
                partitions = (
                    lake.share_group_offsets.partitions(group_id)
                    if arguments.shares
                    else lake.group_offsets.committed(group_id)
                )
            planned[group_id] = offsets.plan(group_id, scenario, partitions)
        if arguments.execute:
            for group_id, moves in planned.items():
                offsets.apply(group_id, moves)
    for move in (move for moves in planned.values() for move in moves):
        if move.warning:  # it lies elsewhere than was asked for
            print(f"lakelog: {move.warning}", file=sys.stderr)
    if export:
        return _csv(arguments, planned)
    if not arguments.execute:
        print("lakelog: nothing was changed; --execute does it", file=sys.stderr)
    return _kafka_table(_moved_rows(planned), "nothing to move")


# -- groups ----------------------------------------------------------------------------------------


def _describe(arguments: argparse.Namespace) -> Result:
    from ..groups.group_values import GroupState
    from ..groups.protocol import Assignment

    rows: list[dict[str, Any]] = []
    with open_log(arguments) as lake:
        groups = [lake.groups.describe(one) for one in _groups_of(arguments, lake.groups.list)]
        for group in groups:
            if group.state is GroupState.DEAD:
                raise _not_there(group.group_id, "group", "groups")
            if arguments.state:
                fields = "group=group_id assignment_strategy=protocol_name state"
                one = row(group, fields, generation=group.generation_id)
                one["assignment_strategy"] = group.protocol_name or None
                rows.append({**one, "#member_count": len(group.members)})
            for member in group.members if arguments.members else ():
                partitions = Assignment.decode(member.assignment).partitions
                one = {
                    "group": group.group_id,
                    **row(member, "consumer_id=member_id group_instance_id=instance_id"),
                    "host": member.client_host or None,
                    "client_id": member.client_id,
                    "#partition_count": len(partitions),
                }
                if arguments.verbose:
                    one["assignment"] = _assigned(partitions)
                rows.append(one)
        if arguments.state:
            return _kafka_table(rows, "no groups")
        if not arguments.members:
            for group, found in zip(groups, lake.group_offsets.described(groups), strict=True):
                rows += [_offset_row(group.group_id, one) for one in found]
    idle = [f"group {one.group_id!r} has no active members" for one in groups if not one.members]
    if idle and rows and arguments.output != "json":
        print("; ".join(idle), file=sys.stderr)
    empty = "; ".join(idle) or "nothing is committed"
    return _kafka_table(rows, empty, without=_without_lag_ms(arguments))


def _assigned(partitions: Iterable[tuple[str, int]]) -> str:
    by_topic: dict[str, list[str]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(str(number))
    return ", ".join(f"{topic}({','.join(numbers)})" for topic, numbers in by_topic.items())


def _offset_row(group_id: str, one: GroupPartition) -> dict[str, Any]:
    if one.is_beyond_end:
        print(
            f"lakelog: group {group_id!r} has committed {one.committed} of {one.topic_partition}, "
            f"beyond the log end {one.log_end}; who reads on goes by auto_offset_reset. "
            "`reset-offsets` moves it",
            file=sys.stderr,
        )
    fields = "topic_partition current_offset=committed log_end_offset=log_end lag=lag_records"
    return {
        "group": group_id,
        **row(one, f"{fields} consumer_id=member.member_id"),
        "host": (one.member and one.member.client_host) or None,
        **row(one, "client_id=member.client_id lag_ms"),
    }


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
                for group_id in _groups_of(arguments, lake.groups.list)
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
        row(found, "groups offsets is_new"),
    )


def _csv(arguments: argparse.Namespace, planned: Moves) -> Result:
    from ..groups.reset_csv import write_csv

    if arguments.output == "json":
        return Table(_moved_rows(planned))
    offsets = {
        group: {one.topic_partition: one.offset for one in moves}
        for group, moves in planned.items()
    }
    return iter([Lines(write_csv(offsets))])


def _of_file(path: str, groups: list[str], are_all: bool) -> dict[str, Scenario]:
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


# -- share groups ----------------------------------------------------------------------------------


def _describe_shares(arguments: argparse.Namespace) -> Result:
    from ..groups.share.share_values import RangeState

    rows: list[dict[str, Any]] = []
    with open_log(arguments) as lake:
        groups = lake.share_groups.described(_groups_of(arguments, lake.share_groups.list))
        for group in groups:
            if not group.partitions:
                raise _not_there(group.group_id, "share group", "share-groups")
            if arguments.state:
                many = {"#member_count": len(group.member_ids)}
                rows.append(row(group, "group=group_id state") | many)
            for member_id in sorted(group.member_ids) if arguments.members else ():
                rows += [
                    {
                        "group": group.group_id,
                        "consumer_id": member_id,
                        **row(one, "topic_partition"),
                        "held_offsets": one.held_offsets(member_id),
                    }
                    for one in group.partitions
                    if one.held_offsets(member_id)
                ]
        if not (arguments.state or arguments.members):
            left = lake.share_group_offsets.described(groups)
            for group, partitions in zip(groups, left, strict=True):
                rows += [
                    {
                        "group": group.group_id,
                        **row(
                            one.description, "topic_partition start_offset log_end_offset=log_end"
                        ),
                        "lag": one.lag_records,
                        "in_flight": one.description.offsets(RangeState.ACQUIRED),
                        "lag_ms": one.lag_ms,
                    }
                    for one in partitions
                ]
    return _kafka_table(rows, "nobody holds records", without=_without_lag_ms(arguments))
