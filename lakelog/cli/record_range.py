"""Which records a command reads: the options that say so, and what they mean in each partition."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo

    from ..read.topic_log import TopicLog
    from ..read.where import Where
    from ..values.offsets import LogOffsets, Position

POSITIONS = """\
A position is an offset (250), the last records (-5), a time (2013-12-30T12:00:00Z, 'yesterday 18:30
UTC'), epoch milliseconds (@1388404800000), a distance from now (-10m, '10 minutes ago'), or one of
earliest, latest, earliest-local, latest-tiered, earliest-pending-upload, max-timestamp.
"""

#: Offsets by partition, [start, end).
Spans = dict[int, tuple[int, int]]


def add_range_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("-p", "--partition", type=int, help="only this one (default: all)")
    added.add_argument("--from", dest="start", metavar="POSITION", help="default: earliest")
    added.add_argument("--to", dest="end", metavar="POSITION", help="exclusive; default: latest")
    added.add_argument("--zone", help="of times without one, such as Europe/Berlin")
    added.add_argument("--max", type=int, metavar="N", help="stop after N records")
    added.add_argument("--where", metavar="EXPR", help="only records that match")
    added.add_argument("--key", help="only records with this key, whole")
    added.add_argument(
        "--stored-values",
        action="store_true",
        help="encrypted values as they are stored, which takes no key",
    )


def where_of(arguments: argparse.Namespace) -> Where:
    """What ``--where`` and ``--key`` ask for.

    Raises:
        InvalidArgumentError: an expression that cannot be read, or no such zone.
    """
    from datetime import timezone

    from ..read.where import parse
    from ..read.where.expression import All, Always, Bytes, Compare

    where = parse(arguments.where or "", _zone(arguments) or timezone.utc)
    if arguments.key is None:
        return where
    by_key = Compare(Bytes("key"), "=", arguments.key)
    return by_key if isinstance(where, Always) else All((by_key, where))


@dataclass(frozen=True, slots=True)
class _Last:
    """So many records before the end of each partition."""

    records: int


@dataclass(frozen=True, slots=True)
class TypedRange:
    """``--from`` and ``--to`` as they were typed, read once however many topics they are for."""

    start: Position | _Last
    end: Position | _Last

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> TypedRange:
        """How a text was taken is said on standard error, if it leaves that open.

        Raises:
            InvalidArgumentError: not a position.
        """
        return cls(
            _read(arguments.start or "earliest", arguments),
            _read(arguments.end or "latest", arguments),
        )

    def spans(self, log: TopicLog, asked: list[int]) -> Spans:
        """What is asked for of each partition.

        Raises:
            InvalidArgumentError: a range ends before it begins.
            OffsetOutOfRangeError: an offset outside the only partition that was asked for.
        """
        held = log.offsets(asked)
        starts = _places(log, self.start, held)
        ends = _places(log, self.end, held)
        spans = {}
        for number in asked:
            start, end = starts[number], ends[number]
            if start is None:  # no record has that position, so none is from there on
                start = end = held[number].log_end if end is None else end
            elif end is None:
                end = max(start, held[number].log_end) if _is_time(self.end) else start
            if end < start:
                log.read(number, start, end)  # which refuses it
            spans[number] = (start, end)
        return spans


def _read(text: str, arguments: argparse.Namespace) -> Position | _Last:
    from ..values.offsets import understood

    if last := re.fullmatch(r"-(\d{1,15})", text.strip()):
        return _Last(int(last[1]))
    where, said = understood(text, _zone(arguments))
    if said is not None:
        print(said, file=sys.stderr)
    return where


def _zone(arguments: argparse.Namespace) -> tzinfo | None:
    from ..values.typed_time import zone_named

    return None if arguments.zone is None else zone_named(arguments.zone)


def _is_time(where: Position | _Last) -> bool:
    from ..values.offsets import Ago, AtTimestamp

    return isinstance(where, (AtTimestamp, Ago))


def _places(
    log: TopicLog, where: Position | _Last, held: dict[int, LogOffsets]
) -> dict[int, int | None]:
    """Where a position is in each partition; None where no record has it."""
    from ..values.offsets import AtOffset

    if isinstance(where, _Last):
        return {number: log.last(number, where.records) for number in held}
    if isinstance(where, AtOffset):
        return {
            number: _place(log, number, where.offset, offsets, only=len(held) == 1)
            for number, offsets in held.items()
        }
    return log.seek_each(where, held)


def _place(log: TopicLog, number: int, offset: int, held: LogOffsets, *, only: bool) -> int:
    """An offset that one of several partitions does not have is where that one begins or ends."""
    if held.log_start <= offset <= held.log_end:
        return offset
    if only:
        log.seek(number, offset)  # which refuses it
    taken = min(max(offset, held.log_start), held.log_end)
    print(
        f"{log.topic.partition(number)} holds [{held.log_start}, {held.log_end}): {offset} was "
        f"taken as {taken}",
        file=sys.stderr,
    )
    return taken
