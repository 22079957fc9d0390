"""Offsets as JSON, as Spark's Kafka source writes them, and what a checkpoint needs besides.

| member                            |                                                            |
|-----------------------------------|------------------------------------------------------------|
| ``"orders": {"0": 23, "1": 7}``   | the next offset of each partition; options take -2 for     |
|                                   | earliest and -1 for latest                                 |
| ``"@id orders": {"0": 2864, …}``  | of which creation of the topic the offsets are: its id in  |
|                                   | words of 32 bits, the highest first                        |
| ``"@initial": {"0": 1}``          | where a stream without a checkpoint would begin            |
| ``"@since orders": {"0": 20, …}`` | in the first micro-batch's end: where that one began       |
| ``"@gaps orders 0": {"20": 99}``  | in a micro-batch's end: the ranges of offsets in it that   |
|                                   | were skipped after an unclean stop, as known when it was   |
|                                   | planned; start and end, which is exclusive                 |
| ``"@bytes orders": {"0": 4096}``  | likewise: what a record of the topic took then, about;     |
|                                   | without it, `ASSUMED_BYTES`                                |

No topic's name has an ``@``. The members beside the topics look like topics all the same: whoever
walks over a query's progress as over Kafka's, from topics to partitions to offsets, meets nothing
else. An id is alike in all offsets, so it adds nothing to a lag.

``@since`` is there because Spark keeps where a micro-batch ends but not where the first one began:
it asks again after a restart, and "latest" would be another place by then, with the records in
between lost. ``@gaps`` and ``@bytes`` are there because a micro-batch is cut for its tasks by its
records, and in the same way when it is run again: what a log knows of its gaps changes as cleanup
merges segments, and what is stored as records are archived.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec import Struct, field

from ..base.json_text import parse_json
from ..errors import InvalidArgumentError
from ..values.record import MAX_OFFSET
from ..values.topic import check_topic_name
from ..values.topic_partition import OffsetRange, TopicPartition

EARLIEST = -2
LATEST = -1

_ID = "@id"
_INITIAL = "@initial"
_SINCE = "@since"
_GAPS = "@gaps"
_BYTES = "@bytes"

#: Of a record, where a micro-batch's end does not say it.
ASSUMED_BYTES = 128

_WORD_BITS = 32
_WORDS = 128 // _WORD_BITS

_PARTITION_DIGITS = 10

Offsets = Mapping[TopicPartition, int]
Gaps = Mapping[TopicPartition, tuple[OffsetRange, ...]]


class StreamOffset(Struct, frozen=True):
    """How far a stream has come. Equal ones give the same JSON: Spark compares texts."""

    offsets: Offsets
    topic_ids: Mapping[str, UUID] = field(default_factory=dict)
    initial: bool = False
    since: Offsets | None = None
    gaps: Gaps = field(default_factory=dict)  # of the partitions that have some
    record_bytes: Mapping[str, int] = field(default_factory=dict)  # of topics with larger records

    def to_json(self) -> dict[str, Any]:
        """The members of the table above, in one order."""
        members = _nested(self.offsets)
        for name in sorted(self.topic_ids):
            members[f"{_ID} {name}"] = _words(self.topic_ids[name])
        if self.initial:
            members[_INITIAL] = {"0": 1}
        if self.since is not None:
            since = _nested(self.since)
            members |= {f"{_SINCE} {name}": since[name] for name in since} or {_SINCE: {}}
        for name, partition in sorted(self.gaps):
            gaps = self.gaps[TopicPartition(name, partition)]
            members[f"{_GAPS} {name} {partition}"] = {str(gap.start): gap.end for gap in gaps}
        for name in sorted(self.record_bytes):
            members[f"{_BYTES} {name}"] = {"0": self.record_bytes[name]}
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
            return _parsed(_as_written_now(members))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
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


def _parsed(members: Mapping[str, Any]) -> StreamOffset:
    offsets: dict[TopicPartition, int] = {}
    since: dict[TopicPartition, int] | None = None
    topic_ids, gaps, record_bytes = {}, {}, {}
    for name, member in members.items():
        kind, *of = name.split(" ")
        if not name.startswith("@"):
            offsets |= _flat(name, member)
        elif kind == _ID:
            topic_ids[check_topic_name(*of)] = _uuid(member)
        elif kind == _SINCE:
            since = since or {}
            for topic in of:
                since |= _flat(topic, member)
        elif kind == _GAPS:
            topic, partition = of
            gaps[TopicPartition(check_topic_name(topic), _partition(partition))] = tuple(
                OffsetRange(_offset(int(start)), _offset(end)) for start, end in member.items()
            )
        elif kind == _BYTES:
            record_bytes[check_topic_name(*of)] = max(1, _offset(member["0"]))
    return StreamOffset(offsets, topic_ids, _INITIAL in members, since, gaps, record_bytes)


def _as_written_now(members: Mapping[str, Any]) -> dict[str, Any]:
    """What lakelog wrote into checkpoints before members beside the topics looked like topics."""
    now = {**members}
    for name, text in now.pop("@topic_ids", {}).items():
        now[f"{_ID} {name}"] = _words(UUID(text))
    if now.get(_SINCE):
        now |= {f"{_SINCE} {name}": offsets for name, offsets in now.pop(_SINCE).items()}
    for name, partitions in now.pop(_GAPS, {}).items():
        for partition, gaps in partitions.items():
            now[f"{_GAPS} {name} {partition}"] = {str(start): end for start, end in gaps}
    return now


def _words(topic_id: UUID) -> dict[str, int]:
    shifts = range(128 - _WORD_BITS, -1, -_WORD_BITS)
    return {str(n): topic_id.int >> shift & 2**_WORD_BITS - 1 for n, shift in enumerate(shifts)}


def _uuid(words: Mapping[str, int]) -> UUID:
    number = 0
    for n in range(_WORDS):
        if not 0 <= words[str(n)] < 2**_WORD_BITS:
            raise ValueError(f"{words!r} is no topic's id")
        number = number << _WORD_BITS | words[str(n)]
    return UUID(int=number)


def _flat(topic: str, partitions: Mapping[str, Any]) -> dict[TopicPartition, int]:
    check_topic_name(topic)
    return {
        TopicPartition(topic, _partition(number)): _offset(offset)
        for number, offset in partitions.items()
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
