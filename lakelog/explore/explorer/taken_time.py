"""How a time was taken that somebody typed, beside its box."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo
from html import escape

from ...values.typed_time import TypedTime, clock_text

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def taken_html(time: TypedTime, zone: tzinfo, now: datetime) -> str:
    """The moment as the zone's clocks show it, and what the text left open.

    Args:
        now: aware; what a distance back counts from.
    """
    if time.said is not None:
        text = time.said
    else:
        at_ms = time.timestamp_ms
        if at_ms is None:
            at_ms = (now - (time.ago or timedelta(0)) - _EPOCH) // timedelta(milliseconds=1)
        text = f"= {clock_text(at_ms, zone)}"
    return f'<span class="ll-kind">{escape(text)}</span>'
