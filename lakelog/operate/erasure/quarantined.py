"""The entries in quarantine that records are erased from: told, or given up as a whole.

What lies there was damaged when it was moved aside. One that can be read after all and holds no
match stays; of one that cannot be read, nobody can say what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ...errors import CorruptRecordError, ForeignEntryError
from ...hot.hot_log import HotLog
from ...hot.quarantine import QuarantinedEntry
from ...values.topic import Topic
from .condition import RecordCondition

_WHY = "its bytes were given up by an erasure"


class Suspect(Struct, frozen=True):
    """An entry in quarantine that holds a match, or cannot be read."""

    entry: QuarantinedEntry
    is_readable: bool


def quarantined_suspects(
    topic: Topic, hot: HotLog, condition: RecordCondition
) -> tuple[Suspect, ...]:
    """The entries in quarantine that hold a match or cannot be read, by partition and offset.

    Raises:
        ForeignEntryError: somebody else wrote to the quarantine.
    """
    found = []
    for topic_partition in topic.topic_partitions():
        for entry in hot.quarantine(topic_partition, topic.topic_id).held():
            if not entry.fields:
                continue  # it was missing, or was given up
            try:
                records = entry.records()
            except (CorruptRecordError, ForeignEntryError):
                found.append(Suspect(entry, is_readable=False))
                continue
            if condition.holds(records, topic_partition.partition).any():
                found.append(Suspect(entry, is_readable=True))
    return tuple(found)


def give_up(topic: Topic, hot: HotLog, suspects: Sequence[Suspect]) -> None:
    """Drops the bytes of each; their offsets stay declared gaps."""
    for one in suspects:
        hot.quarantine(one.entry.topic_partition, topic.topic_id).give_up(one.entry, _WHY)


def given_up(suspects: Sequence[Suspect]) -> Mapping[int, tuple[str, ...]]:
    """Their ids, by partition."""
    found: dict[int, tuple[str, ...]] = {}
    for one in suspects:
        number = one.entry.topic_partition.partition
        found[number] = (*found.get(number, ()), one.entry.entry_id)
    return found


def said_of(suspects: Sequence[Suspect]) -> tuple[str, ...]:
    """That they stay, in sentences."""
    said = []
    for number in given_up(suspects):
        ours = [one for one in suspects if one.entry.topic_partition.partition == number]
        readable = sum(one.is_readable for one in ours)
        parts = [f"{readable:,} hold a match"] if readable else []
        parts += [f"{len(ours) - readable:,} cannot be read"] if readable < len(ours) else []
        said.append(
            f"entries in quarantine of {ours[0].entry.topic_partition}: {', '.join(parts)}. Erase "
            "again with --quarantine to give them up; or `lakelog quarantine release` what is "
            "sound, and erase again"
        )
    return tuple(said)
