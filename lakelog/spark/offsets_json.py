"""Offsets as JSON, as Spark's Kafka source writes them, and what a checkpoint needs besides.

| member                          |                                                              |
|---------------------------------|--------------------------------------------------------------|
| ``"orders": {"0": 23, "1": 7}`` | the next offset of each partition; options take -2 for       |
|                                 | earliest and -1 for latest                                   |
| ``"@topic_ids": {"orders": …}`` | of which creation of the topic the offsets are               |
| ``"@initial": true``            | where a stream without a checkpoint would begin              |
| ``"@since": {"orders": {…}}``   | in the first micro-batch's end: where that one began         |
| ``"@gaps": {"orders": {"0":``   | in a micro-batch's end: the ranges of offsets in it that     |
| ``[[20, 4711]]}}``              | were skipped after an unclean stop, as known when it was     |
|                                 | planned; their ends are exclusive                            |

No topic's name has an ``@``. ``@since`` is there because Spark keeps where a micro-batch ends but
not where the first one began: it asks again after a restart, and "latest" would be another place by
then, with the records in between lost. ``@gaps`` is there because a micro-batch is cut for its
tasks by its records, and in the same way when it is run again: what a log knows of its gaps changes
as cleanup merges segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from ..errors import InvalidArgumentError
from ..json_text import parse_json
from ..record import MAX_OFFSET, OffsetRange, TopicPartition
from ..topic import check_topic_name

EARLIEST = -2
LATEST = -1

_TOPIC_IDS = "@topic_ids"
_INITIAL = "@initial"
_SINCE = "@since"
_GAPS = "@gaps"

_PARTITION_DIGITS = 10

Offsets = Mapping[TopicPartition, int]
Gaps = Mapping[TopicPartition, tuple[OffsetRange, ...]]


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """How far a stream has come. Equal ones give the same JSON: Spark compares texts."""

    offsets: Offsets
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    initial: bool = False
    since: Offsets | None = None
    gaps: Gaps = field(default_factory=dict)  # of the partitions that have some

    def to_json(self) -> dict[str, Any]:
        """The members of the table above, in one order."""
        members = _nested(self.offsets)
        members[_TOPIC_IDS] = {name: str(self.topic_ids[name]) for name in sorted(self.topic_ids)}
        if self.initial:
            members[_INITIAL] = True
        if self.since is not None:
            members[_SINCE] = _nested(self.since)
        if self.gaps:
            members[_GAPS] = _nested({tp: [[*gap] for gap in self.gaps[tp]] for tp in self.gaps})
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any], what: str = "a stream's offset") -> StreamOffset:
        """What `to_json` made, or somebody who writes as Kafka does.

        Args:
            what: what the JSON is, for the error.

        Raises:
            InvalidArgumentError: it is something else.
        """
        try:
            since = members.get(_SINCE)
            ids = members.get(_TOPIC_IDS, {})
            return cls(
                _flat({name: members[name] for name in members if not name.startswith("@")}),
                {check_topic_name(name): UUID(ids[name]) for name in ids},
                members.get(_INITIAL) is True,
                None if since is None else _flat(since),
                _flat_gaps(members.get(_GAPS, {})),
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f'{what} should be JSON such as {{"orders": {{"0": 23, "1": -2}}}}: {error}'
            ) from None


def parse_offsets(text: str, what: str) -> StreamOffset:
    """The JSON of an option.

    Raises:
        InvalidArgumentError: it is not JSON, or says something else.
    """
    try:
        members = parse_json(text)
    except ValueError as error:
        raise InvalidArgumentError(f"{what}={text!r} is no JSON: {error}") from None
    return StreamOffset.from_json(members, what)


def _nested(values: Mapping[TopicPartition, Any]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for topic, partition in sorted(values):
        members.setdefault(topic, {})[str(partition)] = values[TopicPartition(topic, partition)]
    return members


def _flat(members: Mapping[str, Any]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(check_topic_name(topic), _partition(number)): _offset(offset)
        for topic, partitions in members.items()
        for number, offset in partitions.items()
    }


def _flat_gaps(members: Mapping[str, Any]) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
    return {
        TopicPartition(check_topic_name(topic), _partition(number)): tuple(
            OffsetRange(_offset(start), _offset(end)) for start, end in gaps
        )
        for topic, partitions in members.items()
        for number, gaps in partitions.items()
    }


def _partition(text: str) -> int:
    if not (text.isdecimal() and len(text) < _PARTITION_DIGITS):
        raise ValueError(f"{text!r} is no partition")
    return int(text)


def _offset(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is no offset")
    if not EARLIEST <= value <= MAX_OFFSET:
        raise ValueError(
            f"{value} is no offset: it is below -2 (earliest), -1 (latest), or above 2^53"
        )
    return value
