"""Times as people type and read them, in a zone of their choice."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from ...errors import InvalidArgumentError
from ...offsets import AtTimestamp, Position, position, timestamp_ms
from ...record import NO_TIMESTAMP_MS

UTC = "UTC"

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LOCAL = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ]+(\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,6})?)?))?(?:\s+([A-Za-z]\S*))?"
)


def zone(name: str) -> tzinfo:
    """The zone of that name.

    Raises:
        InvalidArgumentError: this machine knows no such zone.
    """
    name = name.strip() or UTC
    if name.upper() in {"UTC", "Z"}:
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise InvalidArgumentError(
            f"{name!r} is not a time zone known here; write UTC, or a name such as Europe/Berlin"
        ) from None


def moment(text: str, zone_name: str = UTC) -> Position:
    """The position for a typed time: ``2013-07-04 12:00``, the same followed by a zone, an ISO
    text with an offset, ``10 minutes ago``, ``-10m``, ``@1372939200000``.

    If the clocks of a zone show a time twice, the first of the two counts.

    Args:
        zone_name: the zone of a time without one.

    Raises:
        InvalidArgumentError: none of these.
    """
    text = text.strip()
    local = _LOCAL.fullmatch(text)
    if local is None:
        return position(text)
    day, time, named = local.groups()
    if named is not None:
        zone_name = named
    digits = (time or "00:00").replace(",", ".")
    if "." in digits:  # Python 3.10 takes only three or six of them
        whole, _, fraction = digits.partition(".")
        digits = f"{whole}.{fraction:0<6}"
    try:
        at = datetime.fromisoformat(f"{day}T{digits}")
    except ValueError:
        raise InvalidArgumentError(f"{text!r} is not a date and time of the calendar") from None
    return AtTimestamp(timestamp_ms(at.replace(tzinfo=zone(zone_name))))


def clock_time(time_ms: int, where: tzinfo) -> str:
    """A timestamp as the zone's clocks show it, to the millisecond, with its offset from UTC."""
    if time_ms == NO_TIMESTAMP_MS:
        return "–"
    try:
        at = (_EPOCH + timedelta(milliseconds=time_ms)).astimezone(where)
    except OverflowError:
        return f"@{time_ms}"
    text = at.strftime("%Y-%m-%d %H:%M:%S") + f".{at.microsecond // 1000:03d}"
    distance = at.strftime("%z")
    return f"{text}Z" if where is timezone.utc else f"{text}{distance[:3]}:{distance[3:5]}"
