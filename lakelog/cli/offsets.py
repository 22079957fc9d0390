"""``lakelog offsets``: the offset of a position in many partitions, like kafka-get-offsets."""

from __future__ import annotations

import argparse
import re
from collections.abc import Container
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec import Struct

from ..errors import InvalidArgumentError, LakelogError
from ..values.topic_partition import TopicPartition
from .connect import no_topics, open_to_read
from .options import Offer
from .output import Failed, Message, describe

if TYPE_CHECKING:
    from ..lakelog import Lakelog
    from ..values.offsets import Position

_EPILOG = """\
A line is topic:partition:offset; a partition without such an offset has none. The lines are sorted
by topic-partition as text, so that they can be compared with those of kafka-get-offsets.

--time is epoch milliseconds (the earliest record at or after them), a name or its number:
  -1 latest             the offset of the next record
  -2 earliest           the log start
  -3 max-timestamp      the first record with the largest time
  -4 earliest-local     the first in Redis
  -5 latest-tiered      the last in Delta
  -6 earliest-pending-upload    the first that is not in Delta yet
or a time with its zone (2013-12-30T12:00:00Z), or a distance from now (--time=-10m).

--topic is a list of regular expressions for whole names. --topic-partitions is a list of
topic:partitions, partitions being 3, 0-3 (without 3), 5- or -3; either side may be left out.

examples:
  lakelog --dir ./log offsets                                     where every partition ends
  lakelog --dir ./log offsets flights --time 2013-12-30T12:00:00Z
  lakelog --dir ./log offsets --topic 'web[.].*' --partitions 0,1 --time earliest
  lakelog --dir ./log offsets --topic-partitions 'orders:0-3,web[.].*:5-,:0' --time -5
  lakelog --dir ./log offsets --exclude-internal-topics --output json
"""

#: The numbers that Kafka's protocol has for positions (ListOffsetsRequest).
_NUMBERED = {
    "-1": "latest",
    "-2": "earliest",
    "-3": "max-timestamp",
    "-4": "earliest-local",
    "-5": "latest-tiered",
    "-6": "earliest-pending-upload",
}
_MAX_DIGITS = 20  # Python reads numbers of up to 4,300; times have 19
_NAMES = 10  # of topics, in an error


def add_offsets(offer: Offer) -> None:
    added = offer.command(
        _run, "Print the offset of a position in each partition, or its end.", _EPILOG
    )
    added.add_argument("name", nargs="?", metavar="TOPIC", help="by its name; default: all")
    added.add_argument("--topic", metavar="REGEX[,…]", help="the topics that match")
    added.add_argument("-p", "--partitions", metavar="N[,…]", help="default: all")
    added.add_argument(
        "--topic-partitions", metavar="ITEM[,…]", help="both at once: orders:0-3,web.*:5-,:0"
    )
    added.add_argument("--time", default="latest", help="default: latest")
    added.add_argument(
        "--exclude-internal-topics",
        action="store_true",
        help="leave out Kafka's own topics, such as __consumer_offsets",
    )


def _run(arguments: argparse.Namespace) -> Message | None:
    allowed, where = _filter(arguments), time_position(arguments.time)
    rows: list[dict[str, Any]] = []
    failed = []
    with open_to_read(arguments) as log:
        asked = _asked(log, allowed, arguments)
        for topic, numbers in asked.items():
            try:
                found = log.log(topic).seek_each(where, numbers)
            except LakelogError as error:  # the others are worth asking
                failed.append(f"topic {topic}: {describe(error)}")
                continue
            rows += [
                {"topic": topic, "partition": number, "offset": offset}
                for number, offset in found.items()
                if offset is not None
            ]
    rows.sort(key=lambda row: f"{row['topic']}-{row['partition']}")  # as Kafka's tool: t-10 < t-2
    lines = "\n".join("{topic}:{partition}:{offset}".format_map(row) for row in rows)
    result = Message(lines, rows) if rows or arguments.output == "json" else None
    if failed:
        raise Failed(result, "\n".join(failed))
    return result


def time_position(text: str) -> Position:
    """What ``--time`` says.

    Raises:
        InvalidArgumentError: none of Kafka's numbers and names, and not a time; or one without a
            zone.
    """
    from ..values.offsets import NAMED_POSITIONS, AtTimestamp, position

    text = text.strip()
    name = _NUMBERED.get(text, text)
    if name in NAMED_POSITIONS:
        return NAMED_POSITIONS[name]
    try:
        if re.fullmatch(rf"\+?\d{{1,{_MAX_DIGITS}}}", text):
            return AtTimestamp(int(text))
        if not re.fullmatch(r"[+-]?\d+", text):  # as a position that would be an offset
            return position(text)
    except InvalidArgumentError as error:
        if error.value is not None:  # it is meant as a time: the error says what it lacks
            raise
    numbered = ", ".join(f"{number} or {name}" for number, name in _NUMBERED.items())
    raise InvalidArgumentError(
        f"--time {text[:80]!r} cannot be read; give epoch milliseconds, a time with its zone "
        f"(2013-12-30T12:00:00Z), a distance from now (--time=-10m), or {numbered}"
    )


def _filter(arguments: argparse.Namespace) -> PartitionFilter:
    topics = (arguments.name, arguments.topic)
    if arguments.topic_partitions is not None:
        if any(one is not None for one in (*topics, arguments.partitions)):
            raise InvalidArgumentError(
                "--topic-partitions says which topics and partitions: give it without TOPIC, "
                "--topic and --partitions"
            )
        return PartitionFilter.of_list(arguments.topic_partitions)
    if None not in topics:
        raise InvalidArgumentError("give TOPIC for a topic by its name, or --topic, not both")
    named = None if arguments.name is None else re.escape(arguments.name)
    return PartitionFilter.of_options(named or arguments.topic, arguments.partitions)


def _asked(
    log: Lakelog, allowed: PartitionFilter, arguments: argparse.Namespace
) -> dict[str, list[int]]:
    """The partitions of each topic that are asked for.

    Raises:
        UnknownTopicOrPartitionError: there is no topic of that name.
        InvalidArgumentError: no partition is asked for.
    """
    from ..values.topic import INTERNAL_TOPICS

    topics = log.topics.list() if arguments.name is None else [log.topics.get(arguments.name)]
    hidden = INTERNAL_TOPICS if arguments.exclude_internal_topics else frozenset()
    found = {
        topic.name: [one.partition for one in topic.topic_partitions() if allowed.allows(one)]
        for topic in topics
        if topic.name not in hidden
    }
    if not any(found.values()):
        names = ", ".join(topic.name for topic in topics[:_NAMES]) or no_topics(log)
        more = ", …" if len(topics) > _NAMES else ""
        raise InvalidArgumentError(
            f"no topic-partition is asked for: the log holds {names}{more}; loosen the filters"
        )
    return {topic: numbers for topic, numbers in found.items() if numbers}


# -- which partitions ------------------------------------------------------------------------------
#
# In the grammar of Kafka's own tools (GetOffsetShell and its filters):
#
# | option             | says                                                                   |
# |--------------------|------------------------------------------------------------------------|
# | --topic            | patterns of topics with a comma between them                           |
# | --partitions       | numbers of partitions with a comma between them                        |
# | --topic-partitions | topic:partitions with a comma between them; either may be left out     |
#
# A pattern is a regular expression that the whole name must match. Partitions after the colon are
# one (3) or a range: 0-3 (without 3), 5- or -3. Kafka lets an empty item stand for everything; here
# that is an error, since a comma too many is likelier.

_ITEM = re.compile(r"(?P<topic>[^:]*)(?::(?:(?P<one>\d+)|(?P<low>\d*)-(?P<high>\d*))?)?")
_NUMBER = re.compile(r"\d{1,10}")
_EVERY_PARTITION = range(2**31)


class Rule(Struct, frozen=True):
    """Some partitions of the topics that match."""

    topic: re.Pattern[str]  # of the whole name
    partitions: Container[int] = _EVERY_PARTITION

    def allows_topic(self, topic: str) -> bool:
        return self.topic.fullmatch(topic) is not None


class PartitionFilter(Struct, frozen=True):
    """The partitions that at least one of the rules allows."""

    rules: tuple[Rule, ...]

    @classmethod
    def of_options(cls, topics: str | None, partitions: str | None) -> PartitionFilter:
        """The filter of ``--topic`` and ``--partitions``; None: all.

        Raises:
            InvalidArgumentError: not a regular expression, or not a list of numbers.
        """
        patterns = [".*"] if topics is None else _items("--topic", topics)
        chosen = _EVERY_PARTITION if partitions is None else _numbers(partitions)
        return cls(tuple(Rule(_pattern("--topic", one), chosen) for one in patterns))

    @classmethod
    def of_list(cls, topic_partitions: str) -> PartitionFilter:
        """The filter of ``--topic-partitions``.

        Raises:
            InvalidArgumentError: an item does not follow the grammar.
        """
        return cls(tuple(map(_rule, _items("--topic-partitions", topic_partitions))))

    def allows_topic(self, topic: str) -> bool:
        """Whether the topic may have partitions that are allowed."""
        return any(rule.allows_topic(topic) for rule in self.rules)

    def allows(self, topic_partition: TopicPartition) -> bool:
        topic, number = topic_partition.topic, topic_partition.partition
        return any(rule.allows_topic(topic) and number in rule.partitions for rule in self.rules)


def _items(option: str, text: str) -> list[str]:
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise InvalidArgumentError(
            f"{option} {text!r} has an empty item; put one comma between two items, and .* for "
            "every topic"
        )
    return items


def _numbers(text: str) -> frozenset[int]:
    items = _items("--partitions", text)
    if not all(map(_NUMBER.fullmatch, items)):
        raise InvalidArgumentError(
            f"--partitions {text!r} is not a list of partition numbers such as 0,1,2; ranges go "
            "with --topic-partitions"
        )
    return frozenset(map(int, items))


def _rule(item: str) -> Rule:
    found = _ITEM.fullmatch(item)
    if found is None:
        _refuse_item(item)
    pattern = _pattern("--topic-partitions", found["topic"] or ".*")
    if found["one"]:
        first = _number(item, found["one"])
        return Rule(pattern, range(first, first + 1))
    low, high = found["low"], found["high"]
    return Rule(
        pattern,
        range(
            _number(item, low) if low else _EVERY_PARTITION.start,
            _number(item, high) if high else _EVERY_PARTITION.stop,
        ),
    )


def _number(item: str, digits: str) -> int:
    if not _NUMBER.fullmatch(digits):
        _refuse_item(item)
    return int(digits)


def _refuse_item(item: str) -> NoReturn:
    raise InvalidArgumentError(
        f"{item!r} is not of the form topic:partitions; write orders, orders:3, orders:0-3 (that "
        "is 0, 1 and 2), orders:5-, orders:-3 or :0, where orders may be a regular expression"
    )


def _pattern(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidArgumentError(
            f"{option} {text!r} is not a regular expression: {error}; for a topic by its name give "
            "the name alone"
        ) from None
