"""The axes of a still picture: places, and ticks at round numbers and times."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone

from msgspec import Struct

_TICKS = 7  # at most, about
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_S, _MIN, _H, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
#: Steps in ms, up to those that are counted in months.
_STEPS = (
    *(_S * n for n in (1, 2, 5, 10, 15, 30)),
    *(_MIN * n for n in (1, 2, 5, 10, 15, 30)),
    *(_H * n for n in (1, 2, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 7, 14)),
)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)

Ticks = list[tuple[float, str]]


class Axis(Struct, frozen=True):
    """Where values are drawn."""

    low: float
    high: float
    start: float  # px of the low one
    end: float  # px of the high one
    ticks: Ticks

    def px(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1)
        return self.start + share * (self.end - self.start)


def number_ticks(low: float, high: float, suffix: str = "") -> Ticks:
    """Round numbers from one to the other."""
    if not high > low:
        return [(low, f"{low:,.6g}{suffix}")]
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)
    digits = max(0, -math.floor(math.log10(step)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [(n * step, f"{n * step:,.{digits}f}{suffix}") for n in range(first, last + 1)]


def date_ticks(low_ms: float, high_ms: float) -> Ticks:
    """Round moments from one to the other, in UTC; none beyond the calendar."""
    rough = max(1.0, (high_ms - low_ms) / _TICKS)
    try:
        first, last = (_EPOCH + timedelta(milliseconds=at) for at in (low_ms, high_ms))
    except OverflowError:
        return []
    step = next((step for step in _STEPS if step >= rough), None)
    if step is None:
        return _month_ticks(first, last, rough / _DAY / 30)
    shown = "%Y-%m-%d" if step >= _DAY else "%H:%M" if step >= _MIN else "%H:%M:%S"
    found: Ticks = []
    for n in range(math.ceil(low_ms / step), math.floor(high_ms / step) + 1):
        at = _EPOCH + timedelta(milliseconds=n * step)
        label = at.strftime(shown)
        if step < _DAY and (not found or n * step % _DAY < step):
            label += at.strftime(" (%d %b)") if found else at.strftime(" (%d %b %Y)")
        found.append((n * step, label))
    return found


def _month_ticks(first: datetime, last: datetime, rough: float) -> Ticks:
    step = next((months for months in _MONTHS if months >= rough), _MONTHS[-1])
    found: Ticks = []
    month = -(-(first.year * 12 + first.month - 1) // step) * step
    while month // 12 < min(9999, last.year + 1):
        at = datetime(max(1, month // 12), month % 12 + 1, 1, tzinfo=timezone.utc)
        if at > last:
            break
        if at >= first:
            label = f"{at:%Y}" if step % 12 == 0 else f"{at:%b %Y}"
            found.append(((at - _EPOCH) / timedelta(milliseconds=1), label))
        month += step
    return found
