"""What commands on groups of either kind share: arguments, and tables under Kafka's headings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from .output import Table

if TYPE_CHECKING:
    from ..groups.reset import Scenario
    from ..lakelog import Lakelog
    from ..record import TopicPartition


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
    from ..typed_time import parse_duration, parse_kafka_time

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
