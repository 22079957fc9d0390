"""Times as people type them. Every box, option and argument that takes a time reads it here."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from fractions import Fraction
from typing import NoReturn
from zoneinfo import ZoneInfo

from msgspec import Struct

from ..errors import InvalidArgumentError

UTC = "UTC"

_MAX_LENGTH = 200  # Python reads numbers of up to 4,300 digits
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MS = timedelta(milliseconds=1)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: What a number counts, by its digits: those of the years 1973 to 5138 in each unit, and how many
#: of it a millisecond has. A shorter one is no time of our days in seconds either.
_COUNTED = (
    (8, "milliseconds", Fraction(1)),
    (11, "seconds", Fraction(1, 1_000)),
    (14, "milliseconds", Fraction(1)),
    (17, "microseconds", Fraction(1_000)),
)
_LONGEST = {False: ("nanoseconds", Fraction(1_000_000)), True: ("milliseconds", Fraction(1))}

# Texts, which `re` compiles when a time is first read: many processes never read one.
_ASCII = re.ASCII | re.IGNORECASE | re.VERBOSE
_AGO = r"""-\s*(?P<back>\d+)\s*(?P<unit>[smhdw])
      | (?P<count>\d+)\s*(?P<named>second|minute|hour|day|week|sec|min|s|m|h|d|w)s?\s+ago"""
_WEEK = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAY = rf"""(?:(?P<year>\d{{4}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})
      | (?P<word>today|yesterday)|last[ ]+(?P<weekday>{"|".join(_WEEK)}))"""
_CLOCK = (
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?)?"
)
_ZONE = r"""(?:[ ]*(?P<offset>z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)|[ ]+(?P<zone>[a-z][\w+/-]*))?"""
_MOMENT = rf"{_DAY}(?:(?:T|[ ]+){_CLOCK})?{_ZONE}"
_TODAY = rf"(?=\d+:){_CLOCK}{_ZONE}"

#: Of Kafka's commands: ISO-8601 durations, and one way to write a time.
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?=.)(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_KAFKAS_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?:Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)


class TypedTime(Struct, frozen=True):
    """What a text means: a moment, or a distance back from now."""

    timestamp_ms: int | None  # UTC epoch; None: `ago` says when
    ago: timedelta | None = None
    said: str | None = None  # what the text leaves open and how it was taken; None: nothing


def read_time(text: str, zone: tzinfo | None, now: datetime) -> TypedTime:
    """The time that a text means.

    ====================================================  =================================
    ``2013-07-04T12:00:00.5Z``  ``2013-07-04 12:00``      a day with a time
    ``2013-07-04T12``  ``2013-07-04``                     its begin, where a part is left out
    ``today``  ``yesterday 18:30``  ``12:00``             a time alone is today's
    ``last tuesday``  ``last friday 18:30``               the last one before today
    ``… Z``  ``… +02:00``  ``… Europe/Berlin``            in that zone, else in `zone`
    ``now``  ``-10m``  ``10 minutes ago``                 from now
    ``1372939200``  ``1372939200000``  ``@1372939200000`` epoch s, ms, µs or ns, by its digits
    ====================================================  =================================

    More than 14 digits after ``@`` are milliseconds all the same, for so times after the year 9999
    are printed.
    What is finer than a millisecond is rounded up, so that a search never finds an earlier record.
    Of a time that the clocks of a zone show twice the first counts.

    Args:
        zone: of a time that does not say its own; None refuses such a time.
        now: aware; whose day is today.

    Raises:
        InvalidArgumentError: none of these, or a time without a zone.
    """
    found = time_or_none(text, zone, now)
    if found is not None:
        return found
    raise InvalidArgumentError(
        f"{text.strip()[:_MAX_LENGTH]!r} is not a time: write 2013-07-04 12:00, with a zone if it "
        "is another (… Europe/Berlin, … +02:00, …Z), 12:00 or yesterday 18:30, 10 minutes ago or "
        "-10m, or epoch milliseconds (@1372939200000)",
        value=text,
    )


def time_or_none(text: str, zone: tzinfo | None, now: datetime) -> TypedTime | None:
    """As `read_time`; None for what is not meant as a time at all."""
    text = text.strip()
    if len(text) > _MAX_LENGTH:
        return None
    if text.lower() == "now":
        return TypedTime(None, timedelta(0))
    if found := re.fullmatch(_AGO, text, _ASCII):
        return _ago(found, text)
    if re.fullmatch(r"@\d+|\d+(?:\.\d+)?", text, re.ASCII):
        return _counted(text)
    if found := re.fullmatch(_MOMENT, text, _ASCII) or re.fullmatch(_TODAY, text, _ASCII):
        return _moment(found.groupdict(), text, zone, now)
    return None


def parse_duration(text: str) -> timedelta:
    """An ISO-8601 duration of days and smaller units: ``PT10M``, ``P1DT2H3.5S``.

    Raises:
        InvalidArgumentError: not of that form (weeks, months and years have no fixed place in it),
            or too long.
    """
    found = _DURATION.fullmatch(text)
    if not found:
        raise InvalidArgumentError(
            f"{text!r} is not an ISO-8601 duration of days, hours, minutes and seconds, such as "
            "PT10M or P1DT12H"
        )
    try:
        duration = timedelta(
            days=int(found["days"] or 0),
            hours=int(found["hours"] or 0),
            minutes=int(found["minutes"] or 0),
            seconds=float((found["seconds"] or "0").replace(",", ".")),
        )
    except OverflowError:
        raise InvalidArgumentError(f"the duration {text!r} is too long") from None
    return -duration if found["sign"] == "-" else duration


def parse_kafka_time(text: str) -> int:
    """Epoch milliseconds of a time as Kafka's commands take it: ``2013-07-04T12:00:00.000``, with
    ``Z``, ``+02``, ``+0200`` or ``+02:00`` behind it, or in UTC.

    Raises:
        InvalidArgumentError: not of that form (seconds without milliseconds, microseconds), or no
            time of the calendar.
    """
    if _KAFKAS_MOMENT.fullmatch(text):
        found = read_time(text, timezone.utc, _EPOCH).timestamp_ms
        if found is not None:
            return found
    raise InvalidArgumentError(
        f"{text[:_MAX_LENGTH]!r} is not a time as Kafka's commands take it: write "
        "2013-07-04T12:00:00.000, with Z, +02 or +02:00 behind it if it is not UTC",
        value=text,
    )


def zone_named(name: str) -> tzinfo:
    """The zone of that name; without one, UTC.

    Raises:
        InvalidArgumentError: this machine knows no such zone.
    """
    name = name.strip() or UTC
    if name.upper() in {UTC, "Z", "GMT"}:
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise InvalidArgumentError(
            f"{name!r} is not a time zone known here; write UTC, or a name such as Europe/Berlin",
            value=name,
        ) from None


def on_clock(naive: datetime, where: tzinfo) -> datetime:
    """The moment when a zone's clocks show that; of an hour that is there twice, the first.

    Raises:
        InvalidArgumentError: they never do.
    """
    moment = naive.replace(tzinfo=where)
    if moment.astimezone(timezone.utc).astimezone(where).replace(tzinfo=None) != naive:
        raise InvalidArgumentError(
            f"{naive} is no time of {where}, whose clocks are put forward across it", value=naive
        )
    return moment


def rounded_up_ms(moment: datetime) -> int:
    """Epoch milliseconds of an aware datetime; what is finer is rounded up.

    Raises:
        InvalidArgumentError: it has no zone.
    """
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidArgumentError(
            f"{moment.isoformat()} has no time zone, so it names no moment; if it is UTC, say "
            f"{moment.isoformat()}Z or datetime(..., tzinfo=timezone.utc)"
        )
    return -((_EPOCH - moment) // _MS)


def clock_text(time_ms: int, where: tzinfo, timespec: str = "auto") -> str:
    """A timestamp as a zone's clocks show it, with its offset from UTC; after 9999 as ``@`` and ms.

    Args:
        timespec: seconds, milliseconds, or auto: as fine as it is.
    """
    try:
        at = (_EPOCH + time_ms * _MS).astimezone(where)
    except OverflowError:
        return f"@{time_ms}"
    if timespec == "auto":
        timespec = "milliseconds" if at.microsecond else "seconds"
    text = at.replace(tzinfo=None).isoformat(" ", timespec)
    distance = at.strftime("%z")
    return text + ("Z" if not at.utcoffset() else f"{distance[:3]}:{distance[3:5]}")


# -- from now ----------------------------------------------------------------------------------


def _ago(found: re.Match[str], text: str) -> TypedTime:
    count = int(found["back"] or found["count"])
    unit = (found["unit"] or found["named"])[0].lower()
    try:
        return TypedTime(None, timedelta(**{_UNITS[unit]: count}))
    except OverflowError:
        raise InvalidArgumentError(f"{text!r} reaches back too far", value=text) from None


# -- counted from the epoch --------------------------------------------------------------------


def _counted(text: str) -> TypedTime:
    is_marked = text.startswith("@")
    digits = len(text.lstrip("@").partition(".")[0].lstrip("0"))
    known = _COUNTED[:3] if is_marked else _COUNTED
    unit, per_ms = next(
        ((unit, per) for most, unit, per in known if digits <= most), _LONGEST[is_marked]
    )
    # A fraction: a float has no room for microseconds.
    at_ms = math.ceil(Fraction(text.lstrip("@")) / per_ms)
    if at_ms >= 2**63:
        raise InvalidArgumentError(
            f"timestamp {text} is out of bounds: milliseconds since 1970-01-01 UTC stay below 2^63",
            value=text,
        )
    said = f"{text} was taken as epoch {unit}: {clock_text(at_ms, timezone.utc)}"
    return TypedTime(at_ms, said=None if is_marked and unit == "milliseconds" else said)


# -- by the calendar ---------------------------------------------------------------------------


def _moment(
    parts: dict[str, str | None], text: str, zone: tzinfo | None, now: datetime
) -> TypedTime:
    # What the calendar does not have is told first: no zone would mend it.
    clock, finer = _clock(parts, text)
    _day(parts, text, now.date())
    where = _zone(parts, text, zone)
    said: list[str] = []
    day = _day(parts, text, now.astimezone(where).date())
    at = datetime.combine(day, clock, where)
    try:
        utc = at.astimezone(timezone.utc)
    except OverflowError:
        _not_of_the_calendar(text)
    if utc.astimezone(where).replace(tzinfo=None) != at.replace(tzinfo=None):
        said.append(f"the clocks of {where} skip {clock:%H:%M} on that day")
    timestamp_ms = -((_EPOCH - utc - finer) // _MS)
    if said or parts.get("year") is None:
        said.append(f"{text} was taken as {clock_text(timestamp_ms, where)}")
    if timestamp_ms < 0:
        raise InvalidArgumentError(
            f"{text!r} is before 1970-01-01 UTC, where timestamps begin", value=text
        )
    return TypedTime(timestamp_ms, said="; ".join(said) or None)


def _zone(parts: dict[str, str | None], text: str, zone: tzinfo | None) -> tzinfo:
    if parts.get("zone"):
        return zone_named(str(parts["zone"]))
    offset = parts.get("offset")
    if offset is None:
        if zone is None:
            raise InvalidArgumentError(
                f"{text!r} has no time zone, so it names no moment; if it is UTC, say '{text} UTC'",
                name="zone",
                value=text,
            )
        return zone
    if offset in "zZ":
        return timezone.utc
    digits = offset[1:].replace(":", "")
    hours, minutes, seconds = (int(digits[at : at + 2] or 0) for at in (0, 2, 4))
    ahead = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if ahead >= timedelta(days=1) or minutes > 59 or seconds > 59:
        _not_of_the_calendar(text)
    return timezone(-ahead if offset[0] == "-" else ahead)


def _clock(parts: dict[str, str | None], text: str) -> tuple[time, timedelta]:
    """The time of the day, and what is finer than its microseconds, rounded up."""
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    fraction = (parts["fraction"] or "").ljust(9, "0")
    try:
        clock = time(hour, minute, second, int(fraction[:6]))
    except ValueError:
        _not_of_the_calendar(text, "times go from 00:00:00 to 23:59:59")
    return clock, timedelta(microseconds=1 if int(fraction[6:]) else 0)


def _day(parts: dict[str, str | None], text: str, today: date) -> date:
    year = parts.get("year")
    if year is None:
        if weekday := parts.get("weekday"):
            return today - timedelta((today.weekday() - _WEEK.index(weekday.lower()) - 1) % 7 + 1)
        is_yesterday = (parts.get("word") or "").lower() == "yesterday"
        return today - timedelta(days=1) if is_yesterday else today
    year_number, month, day = int(year), int(parts["month"] or 0), int(parts["day"] or 0)
    try:
        return date(year_number, month, day)
    except ValueError:
        if year_number < 1:
            why = "there is no year 0"
        elif not 1 <= month <= 12:
            why = f"there is no month {month}"
        else:
            why = f"{date(2000, month, 1):%B} {year} has no day {day}"
        _not_of_the_calendar(text, why)


def _not_of_the_calendar(text: str, why: str | None = None) -> NoReturn:
    more = f": {why}" if why else ""
    raise InvalidArgumentError(
        f"{text!r} is not a date and time of the calendar{more}", value=text
    ) from None
