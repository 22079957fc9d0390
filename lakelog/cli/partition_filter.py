"""Which topic-partitions a command is about, in the grammar of Kafka's own tools.

| option | says |
|---|---|
| ``--topic`` | patterns of topics with a comma between them |
| ``--partitions`` | numbers of partitions with a comma between them |
| ``--topic-partitions`` | ``topic:partitions`` with a comma between them; either may be left out |

A pattern is a regular expression that the whole name must match. Partitions after the colon are one
(``3``) or a range: ``0-3`` (without 3), ``5-`` or ``-3``.

Source: Kafka's GetOffsetShell and its filters. It lets an empty item stand for everything; here
that is an error, since a comma too many is likelier.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import NoReturn

from ..errors import InvalidArgumentError
from ..values.topic_partition import TopicPartition

_ITEM = re.compile(r"(?P<topic>[^:]*)(?::(?:(?P<one>\d+)|(?P<low>\d*)-(?P<high>\d*))?)?")
_NUMBER = re.compile(r"\d{1,10}")
_EVERY_PARTITION = range(2**31)


@dataclass(frozen=True, slots=True)
class Rule:
    """Some partitions of the topics that match."""

    topic: re.Pattern[str]  # of the whole name
    partitions: Container[int] = _EVERY_PARTITION

    def allows_topic(self, topic: str) -> bool:
        return self.topic.fullmatch(topic) is not None


@dataclass(frozen=True, slots=True)
class PartitionFilter:
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
