"""Where things lie in a log: positions one may ask for, and the offsets each tier answers with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import NoReturn

from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import InvalidArgumentError
from . import reservation
from .arguments import checked_duration, duration, moment_ms, whole, whole_ms
from .producer_calls import ProducerCall
from .record import MAX_OFFSET
from .topic_partition import OffsetRange
from .typed_time import TypedTime, read_time, rounded_up_ms, time_or_none

# -- positions ---------------------------------------------------------------------------------


class Position(Struct, frozen=True):
    """A place in a partition, resolved to an offset by ``TopicLog.seek``."""


class Earliest(Position, frozen=True):
    """The log start offset, across both tiers."""


class Latest(Position, frozen=True):
    """The log end offset: the offset of the next record."""


class EarliestLocal(Position, frozen=True):
    """The local log start offset: the first offset the hot tier holds."""


class LatestTiered(Position, frozen=True):
    """The highest offset in the cold tier (inclusive, as Kafka has it); none if it is empty."""


class EarliestPendingUpload(Position, frozen=True):
    """The first offset that the cold tier does not hold yet; none without a cold tier."""


class MaxTimestamp(Position, frozen=True):
    """The first record that carries the largest timestamp."""


class AtOffset(Position, frozen=True):
    """That offset."""

    offset: int

    def __post_init__(self) -> None:
        force_setattr(self, "offset", check_offset(self.offset))


class AtTimestamp(Position, frozen=True):
    """The earliest offset whose timestamp is at or after this one."""

    timestamp_ms: int  # UTC epoch, ≥ 0, below 2^63; made of a time, if it is given one

    def __post_init__(self) -> None:
        at_ms = whole_ms(self.timestamp_ms)
        if at_ms is None:
            raise InvalidArgumentError(
                "a timestamp is whole milliseconds since 1970-01-01 UTC, or an aware datetime, not "
                f"{self.timestamp_ms!r:.200}"
            )
        force_setattr(self, "timestamp_ms", at_ms)
        if self.timestamp_ms < 0:
            raise InvalidArgumentError(
                f"timestamp {self.timestamp_ms} is negative; for the special targets use "
                f"one of {', '.join(NAMED_POSITIONS)}"
            )
        if self.timestamp_ms >= 2**63:
            raise InvalidArgumentError(
                f"timestamp {self.timestamp_ms} is out of bounds: milliseconds since 1970-01-01 "
                "UTC stay below 2^63"
            )


class Ago(Position, frozen=True):
    """So long before now, by the asker's clock."""

    duration: timedelta

    def __post_init__(self) -> None:
        force_setattr(self, "duration", checked_duration("duration", self.duration))


NAMED_POSITIONS: dict[str, Position] = {
    "earliest": Earliest(),
    "latest": Latest(),
    "earliest-local": EarliestLocal(),
    "latest-tiered": LatestTiered(),
    "earliest-pending-upload": EarliestPendingUpload(),
    "max-timestamp": MaxTimestamp(),
}

PositionLike = Position | int | str | date | timedelta  # a datetime is a date

_POSITIONS = (
    "give an offset (250), a time (an aware datetime, '2013-12-30 12:00 UTC', 'yesterday 18:30 "
    "Europe/Berlin'), epoch milliseconds ('@1388404800000'), a distance ('-10m', '10 minutes ago', "
    f"a timedelta), or one of {', '.join(NAMED_POSITIONS)}"
)


def position(value: PositionLike, zone: tzinfo | None = None) -> Position:
    """What people write, as a `Position`.

    A whole number is an offset; a time is a timestamp (see `moment_ms`: a datetime needs a zone, a
    date is UTC); a timedelta is so long before now; a text is an offset, one of `NAMED_POSITIONS`,
    or a time in any way that `typed_time` reads.

    Args:
        zone: of a time without one; None refuses it.

    Raises:
        InvalidArgumentError: none of these, a negative offset, or a time without a zone.
    """
    if isinstance(value, Position):
        return value
    if isinstance(value, str):
        return understood(value, zone)[0]
    if (offset := whole(value)) is not None:
        return AtOffset(offset)
    if (at_ms := moment_ms(value)) is not None:
        return AtTimestamp(at_ms)
    if (ago := duration(value)) is not None:
        return Ago(abs(ago))
    raise InvalidArgumentError(f"{value!r:.200} is not a position: {_POSITIONS}", value=value)


def understood(text: str, zone: tzinfo | None) -> tuple[Position, str | None]:
    """As `position`; and how a time was taken that the text leaves open."""
    text = text.strip()
    if text in NAMED_POSITIONS:
        return NAMED_POSITIONS[text], None
    if re.fullmatch(r"[+-]?\d{1,200}", text, re.ASCII):
        return AtOffset(check_offset(int(text))), None
    found = time_or_none(text, zone, datetime.now(timezone.utc))
    if found is None:
        raise InvalidArgumentError(f"{text[:200]!r} is not a position: {_POSITIONS}")
    return at_time(found), found.said


def at_time(time: TypedTime) -> AtTimestamp | Ago:
    """The position of a time that was typed."""
    if time.ago is not None:
        return Ago(time.ago)
    assert time.timestamp_ms is not None
    return AtTimestamp(time.timestamp_ms)


def timestamp_ms(value: int | str | date) -> int:
    """Epoch milliseconds of a whole number, a time (see `moment_ms`), or one as `typed_time` reads
    it.

    What is finer than a millisecond is rounded up, so that a search by it never finds an earlier
    record. A distance from now counts from this process's clock.

    Raises:
        InvalidArgumentError: no zone, or not a time.
    """
    if not isinstance(value, str):
        found_ms = whole_ms(value)
        if found_ms is None:
            raise InvalidArgumentError(
                f"{value!r} is not a time: give epoch milliseconds, an aware datetime, or a text"
            )
        return found_ms
    now = datetime.now(timezone.utc)
    found = read_time(value, None, now)
    if found.ago is not None:
        return rounded_up_ms(now - found.ago)
    assert found.timestamp_ms is not None
    return found.timestamp_ms


def check_offset(offset: object) -> int:
    """The offset, if it is one.

    Raises:
        InvalidArgumentError: not an integer, negative, or 2^53 and above.
    """
    number = whole(offset)
    if number is None:
        _refuse_offset(offset, "an offset is a whole number")
    if number < 0:
        _refuse_offset(number, "offsets start at 0; use 'earliest' for the first one there is")
    if number > MAX_OFFSET:
        _refuse_offset(number, "offsets stay below 2^53")
    return number


def _refuse_offset(offset: object, rule: str) -> NoReturn:
    raise InvalidArgumentError(f"{offset!r} is not an offset: {rule}", value=offset)


# -- answers -----------------------------------------------------------------------------------

# Of 10,000 partitions, the garbage collector would visit each of these again and again. They are
# made of each other and of plain values, so none leads back to itself.


class HotSegment(Struct, frozen=True, gc=False):
    """A segment as the hot tier knows it; the last of a partition is open."""

    base_offset: int
    end_offset: int  # last record + 1; a gap lies between two segments
    size_bytes: int  # of its stored entries
    first_timestamp_ms: int  # largest of its first entry; -1: none
    max_timestamp_ms: int  # -1: none
    created_ms: int  # Redis's clock
    modified_ms: int  # the last append's, Redis's clock

    def bytes_from(self, offset: int) -> int:
        """Its stored bytes from that offset on: by its share of the offsets, rounded down."""
        start = max(offset, self.base_offset)
        if start >= self.end_offset:
            return 0
        offsets = self.end_offset - self.base_offset
        return self.size_bytes * (self.end_offset - start) // offsets


class HotOffsets(Struct, frozen=True, gc=False):
    """One partition of the hot tier, read in one step, however many segments it has."""

    local_log_start: int
    log_end: int
    max_timestamp_ms: int  # over all that was ever appended; -1: none
    size_bytes: int  # of all segments, with what was trimmed of the oldest
    recovered: bool = True  # False: the server changed since the last append; see RecoveryNeeded
    gaps: tuple[OffsetRange, ...] = ()  # skipped after an unclean stop, oldest first
    unarchived_since_ms: int | None = (
        None  # no unarchived record was appended before; None: all archived
    )
    log_start: int = 0  # of an untiered log; a tiered one may start later, by its cold table
    paused: bool = False  # for a planned stop
    reserved_end: int | None = None  # appends stop here until more is reserved; None: nowhere
    lost_from: int | None = None  # where it went on after Redis had lost all of it; None: never
    tiered: bool = True  # whether there is a cold tier, which holds what is not here
    appended: int = 0  # records ever, as far as was counted: from 0 again where Redis was lost
    appended_bytes: int = 0  # stored, likewise
    #: The last calls of producers with checksums, if they were asked for; see `producer_calls`.
    calls: tuple[ProducerCall, ...] = ()
    segment_count: int = 1  # with the open one
    #: Of a topic's first partition: see `hot.archived_into`.
    archived_into: str | None = None

    def appended_from(self, offset: int) -> int:
        """How many offsets from there on were given to records that it holds, or held."""
        return appended(max(offset, self.local_log_start), self.log_end, self.gaps)

    def settled_end(self, archive_start: int) -> int:
        """Below it nothing is left to archive: `archive_start`, or the log end where no record
        follows that, but only offsets that were skipped.
        """
        if self.appended_from(archive_start):
            return archive_start
        return max(archive_start, self.log_end)

    def wanted(self) -> reservation.Wanted:
        """What to reserve beside what is reserved already."""
        few = self.reserved_end is not None and self.reserved_end < reservation.FIRST_OFFSETS
        least = max(self.log_end, self.reserved_end or 0)
        return reservation.Wanted(least, self.appended if few else None)

    @property
    def needs_room(self) -> bool:
        """Whether an archiver should reserve offsets; see `lakelog.reservation`."""
        return self.tiered and (
            self.reserved_end is None
            or self.reserved_end - self.log_end
            < reservation.least_room(self.reserved_end, self.appended)
        )


class HotSegments(HotOffsets, frozen=True, gc=False):
    """One partition of the hot tier with its segments."""

    #: Oldest first, the open one last; the first may begin below local_log_start.
    segments: tuple[HotSegment, ...] = ()

    @property
    def held_bytes(self) -> int:
        """The stored bytes from the local log start on.

        Redis counts whole segments: of one that is trimmed in part counts its share of the offsets.
        """
        return self.size_bytes - sum(
            segment.size_bytes - segment.bytes_from(self.local_log_start)
            for segment in self.segments
            if segment.base_offset < self.local_log_start
        )

    def bytes_from(self, offset: int) -> int:
        """The stored bytes from that offset on.

        Redis counts whole segments: of one that the offset lies in counts its share of the offsets,
        rounded down.
        """
        start = max(offset, self.local_log_start)
        return sum(segment.bytes_from(start) for segment in self.segments)


class LogOffsets(Struct, frozen=True, gc=False):
    """One partition across both tiers: cold holds [log_start, archived_end), hot holds
    [local_log_start, log_end).
    """

    log_start: int
    local_log_start: int
    archived_end: int
    log_end: int
    recovered: bool = True
    gaps: tuple[OffsetRange, ...] = ()

    @property
    def archive_start(self) -> int:
        """The first offset that is neither archived nor below the log start."""
        return max(self.archived_end, self.log_start)

    @property
    def unarchived(self) -> int:
        """Records that the hot tier alone holds (archive lag in records)."""
        return self.appended_between(max(self.archive_start, self.local_log_start), self.log_end)

    def unread(self, offset: int) -> int:
        """Records behind a position, at most: compaction may have removed some of them."""
        return self.appended_between(max(offset, self.log_start), self.log_end)

    def appended_between(self, start: int, end: int) -> int:
        """How many offsets of [start, end) were given to records: those of gaps were not.

        Some of these records may be deleted or compacted since.
        """
        return appended(start, end, self.gaps)

    def gaps_between(self, start: int, end: int) -> tuple[OffsetRange, ...]:
        """What of [start, end) was skipped after an unclean stop."""
        return tuple(_within(start, end, self.gaps))


def appended(start: int, end: int, gaps: Iterable[OffsetRange]) -> int:
    """How many offsets of [start, end) were given to records: those of gaps were not."""
    skipped = sum(gap.end - gap.start for gap in _within(start, end, gaps))
    return max(0, end - start - skipped)


def _within(start: int, end: int, gaps: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
    cut = (OffsetRange(max(gap.start, start), min(gap.end, end)) for gap in gaps)
    return (gap for gap in cut if gap.start < gap.end)
