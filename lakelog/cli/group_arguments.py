"""What commands on groups of either kind share: arguments, and tables under Kafka's headings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .output import Failed, Message, Table, describe

if TYPE_CHECKING:
    from ..groups.description import GroupState
    from ..groups.reset import ResetOffset, Scenario
    from ..lakelog import Lakelog
    from ..values.topic_partition import TopicPartition


class Listed(Protocol):
    """A group of either kind, as it is listed."""

    @property
    def group_id(self) -> str: ...

    @property
    def state(self) -> GroupState: ...


def add_states(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "--state", nargs="?", const="", metavar="STATE[,…]", help="with their states, or only those"
    )


def add_scenarios(added: argparse.ArgumentParser) -> Any:
    """Those that both kinds have; what is given back takes more."""
    scenario = added.add_mutually_exclusive_group(required=True)
    scenario.add_argument("--to-earliest", action="store_true", help="the log start")
    scenario.add_argument("--to-latest", action="store_true", help="the log end")
    scenario.add_argument("--to-offset", type=int, metavar="N")
    scenario.add_argument("--to-datetime", metavar="TIME", help="YYYY-MM-DDTHH:mm:SS.sss[Z]")
    scenario.add_argument("--by-duration", metavar="P…", help="so long ago: PnDTnHnMnS")
    return scenario


def add_groups(added: argparse.ArgumentParser) -> None:
    which = added.add_mutually_exclusive_group(required=True)
    which.add_argument("--group", action="append", metavar="ID", help="repeatable")
    which.add_argument("--all-groups", action="store_true")


def add_topics(added: argparse.ArgumentParser, required: bool = False) -> None:
    added.add_argument(
        "--topic",
        action="append",
        required=required,
        metavar="TOPIC[:N,…]",
        help="all its partitions, or some; repeatable",
    )


def add_action(added: argparse.ArgumentParser) -> None:
    action = added.add_mutually_exclusive_group()
    action.add_argument("--dry-run", action="store_true", help="only show it: the default")
    action.add_argument("--execute", action="store_true", help="do it")


def kafka_table(arguments: argparse.Namespace, rows: list[dict[str, Any]], empty: str) -> Table:
    """Under Kafka's headings; as JSON by names as usual."""
    if arguments.output == "json":
        return Table(rows)
    shown = [
        {key.replace("_count", "s").upper().replace("_", "-"): v for key, v in row.items()}
        for row in rows
    ]
    return Table(shown, empty=empty, spaced=False)


def lag_ms_column(arguments: argparse.Namespace, lag_ms: int | None) -> dict[str, Any]:
    """Besides what Kafka's tools show, so only to who asks for more."""
    if arguments.verbose or arguments.output == "json":
        return {"lag_ms": lag_ms}
    return {}


def of_topics(lake: Lakelog, given: list[str]) -> list[TopicPartition]:
    """``orders`` is all partitions of it, ``orders:0,1`` those two."""
    from ..errors import InvalidArgumentError

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


def scenario_of(arguments: argparse.Namespace) -> Scenario:
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


# -- what is said of them ------------------------------------------------------------------------


def groups_of(arguments: argparse.Namespace, listed: Callable[[], Iterable[Listed]]) -> list[str]:
    """The ids that were given, or all there are."""
    if arguments.all_groups:
        return [one.group_id for one in listed()]
    return [*dict.fromkeys(arguments.group)]


def list_table(arguments: argparse.Namespace, found: Iterable[Listed], empty: str) -> Table:
    """Those in the states that were asked for."""
    wanted = {state.strip().lower() for state in (arguments.state or "").split(",") if state}
    rows: list[dict[str, Any]] = []
    for one in found:
        if wanted and one.state.value.lower() not in wanted:
            continue
        row: dict[str, Any] = {"group": one.group_id}
        if arguments.state is not None or arguments.output == "json":
            row["state"] = one.state.value
        rows.append(row)
    return kafka_table(arguments, rows, empty)


def delete_each(group_ids: Iterable[str], delete: Callable[[str], object]) -> Message:
    """What was deleted.

    Raises:
        Failed: some were not; the others were.
    """
    from ..errors import LakelogError

    done, failed = [], []
    for group_id in group_ids:
        try:
            delete(group_id)
            done.append(group_id)
        except LakelogError as error:  # the others can go
            failed.append(describe(error))
    message = Message(
        f"deleted: {', '.join(done)}" if done else "no group was deleted", {"deleted": done}
    )
    if failed:
        raise Failed(message, "\n".join(failed))
    return message


def forgotten_table(
    arguments: argparse.Namespace, gone: Mapping[TopicPartition, bool], absent: str
) -> Table:
    """Of which partitions an offset went, and where there was none: `absent`."""
    rows = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "status": "deleted" if was_there else absent,
        }
        for tp, was_there in gone.items()
    ]
    return kafka_table(arguments, rows, "no partition was named")


def moved_rows(planned: Mapping[str, Sequence[ResetOffset]]) -> list[dict[str, Any]]:
    return [
        {
            "group": group_id,
            "topic": one.topic_partition.topic,
            "partition": one.topic_partition.partition,
            "new_offset": one.offset,
        }
        for group_id, moves in planned.items()
        for one in moves
    ]


def warn(planned: Mapping[str, Sequence[ResetOffset]]) -> None:
    """What lies elsewhere than was asked for."""
    for moves in planned.values():
        for move in moves:
            if move.warning:
                print(f"lakelog: {move.warning}", file=sys.stderr)


def moved_table(
    arguments: argparse.Namespace, planned: Mapping[str, Sequence[ResetOffset]]
) -> Table:
    """Where the groups go, or would."""
    if not arguments.execute:
        print("lakelog: nothing was changed; --execute does it", file=sys.stderr)
    return kafka_table(arguments, moved_rows(planned), "nothing to move")
