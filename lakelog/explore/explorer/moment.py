"""Times as the explorer shows them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo

from ...values.record import NO_TIMESTAMP_MS

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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
