"""Which records a command reads: the options that say so, and what they mean in each partition."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..errors import InvalidArgumentError
from .record_output import check_output

if TYPE_CHECKING:
    from datetime import tzinfo

    import pyarrow as pa

    from ..read.topic_log import TopicLog
    from ..read.where import Where
    from ..values.offsets import LogOffsets, Position

POSITIONS = """\
A position is an offset (250), the last records (-5), a time (2013-12-30T12:00:00Z, 'yesterday 18:30
UTC'), epoch milliseconds (@1388404800000), a distance from now (-10m, '10 minutes ago'), or one of
earliest, latest, earliest-local, latest-tiered, earliest-pending-upload, max-timestamp.
A time is the first record at or after it, as in Kafka: where times go back and forth, records of a
day are --where 'time >= "2013-12-30" and time < "2013-12-31"'.
"""

#: Offsets by partition, [start, end).
Spans = dict[int, tuple[int, int]]


def add_range_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("-p", "--partition", type=int, help="only this one (default: all)")
    added.add_argument("--from", dest="start", metavar="POSITION", help="default: earliest")
    added.add_argument("--to", dest="end", metavar="POSITION", help="exclusive; default: latest")
    added.add_argument(
        "--zone",
        help="of times without one, such as Europe/Berlin (without it, --where takes them as UTC, "
        "and --from and --to take none)",
    )
    added.add_argument("--max", type=int, metavar="N", help="stop after N records")
    added.add_argument("--where", metavar="EXPR", help="only records that match")
    added.add_argument("--key", help="only records with this key, whole")
    added.add_argument(
        "--stored-values",
        action="store_true",
        help="encrypted values as they are stored, which takes no key",
    )


class RecordQuery:
    """The options of a range, an expression, a form and a number, read once for any topics.

    Args:
        text: what records must match as well; None: nothing.

    Raises:
        InvalidArgumentError: options that cannot be read, or do not go together.
    """

    def __init__(self, arguments: argparse.Namespace, text: Where | None = None) -> None:
        from ..read.where import Always
        from ..read.where.expression import All
        from ..values.typed_time import zone_named

        check_output(arguments)
        zone = None if arguments.zone is None else zone_named(arguments.zone)
        self.limit = RowLimit(arguments.max)
        self.where = _where_of(arguments, zone)
        if text is not None:
            self.where = text if isinstance(self.where, Always) else All((self.where, text))
        self._start = _read(arguments.start or "earliest", zone)
        self._end = _read(arguments.end or "latest", zone)
        self._partition = arguments.partition

    def partitions(self, log: TopicLog) -> list[int]:
        """Those that are asked for.

        Raises:
            UnknownTopicOrPartitionError: the topic has no such partition.
        """
        if self._partition is None:
            return list(range(log.topic.partitions))
        return [log.topic.partition(self._partition).partition]

    def spans(self, log: TopicLog) -> Spans:
        """What is asked for of each partition.

        Raises:
            InvalidArgumentError: a range ends before it begins.
            OffsetOutOfRangeError: an offset outside the only partition that was asked for.
        """
        held = log.offsets(self.partitions(log))
        starts, ends = _places(log, self._start, held), _places(log, self._end, held)
        spans = {}
        for number in held:
            start, end = starts[number], ends[number]
            if start is None:  # no record has that position, so none is from there on
                start = end = held[number].log_end if end is None else end
            elif end is None:
                end = max(start, held[number].log_end) if _is_time(self._end) else start
            if end < start:
                log.read(number, start, end)  # which refuses it
            spans[number] = (start, end)
        return spans

    def found(self, log: TopicLog, *, merged: bool) -> Iterator[pa.Table]:
        """`FOUND` tables; over all topics no more records than ``--max`` says.

        Args:
            merged: in the order of time; else partition by partition.
        """
        spans = self.spans(log)
        for part in [spans] if merged else [{number: span} for number, span in spans.items()]:
            yield from self.limit.limited(log.search_ranges(part, self.where))


class RowLimit:
    """``--max``: how many rows are still wanted, of one table after the other.

    Args:
        most: None: all.

    Raises:
        InvalidArgumentError: a count that is none.
    """

    def __init__(self, most: int | None) -> None:
        if most is not None and most < 0:
            raise InvalidArgumentError(f"--max {most} is negative")
        self._left = most

    def limited(self, tables: Iterable[Any]) -> Iterator[Any]:
        """Arrow's tables or batches, as far as they are wanted; none is asked for once there are
        enough.
        """
        if self._left == 0:
            return
        for table in tables:
            if self._left is None:
                yield table
                continue
            wanted = table.slice(0, self._left)
            self._left -= wanted.num_rows
            yield wanted
            if self._left == 0:
                return


def _where_of(arguments: argparse.Namespace, zone: tzinfo | None) -> Where:
    """What ``--where`` and ``--key`` ask for."""
    from datetime import timezone

    from ..read.where import parse
    from ..read.where.expression import All, Always, Bytes, Compare

    where = parse(arguments.where or "", zone or timezone.utc)
    if arguments.key is None:
        return where
    by_key = Compare(Bytes("key"), "=", arguments.key)
    return by_key if isinstance(where, Always) else All((by_key, where))


class _Last(Struct, frozen=True):
    """So many records before the end of each partition."""

    records: int


def _read(text: str, zone: tzinfo | None) -> Position | _Last:
    """A position; how the text was taken is said on standard error, if it leaves that open."""
    from ..values.offsets import understood

    if last := re.fullmatch(r"-(\d{1,15})", text.strip()):
        return _Last(int(last[1]))
    where, said = understood(text, zone)
    if said is not None:
        print(said, file=sys.stderr)
    return where


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
