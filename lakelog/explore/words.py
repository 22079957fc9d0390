"""Numbers as people read them: exact where it fits, never rounded up to all or down to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise

from msgspec import Struct

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_BYTES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_SPANS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))  # in ms


def count(number: float, noun: str = "", plural: str = "") -> str:
    """``1,204``, or with a noun ``1,204 offsets``."""
    text = f"{number:,.0f}"
    if not noun:
        return text
    return f"{text} {noun if text == '1' else plural or noun + 's'}"


def size(size_bytes: float) -> str:
    """``12.3 MiB``; whole bytes below a thousand."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} B"
    unit, factor = next((one for one in _BYTES if size_bytes >= one[1]), _BYTES[-1])
    return f"{size_bytes / factor:,.1f} {unit}"


def percent(part: float, whole: float) -> str:
    """``99.8 %``; ``100 %`` and ``0 %`` only for all and for nothing."""
    if not whole or part == whole:
        return "100 %" if whole else "0 %"
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "less than 0.1 %"
    if 99.9 < share < 100:
        return "more than 99.9 %"
    return f"{share:.1f} %" if share < 10 or share > 90 else f"{share:.0f} %"


def duration(milliseconds: float) -> str:
    """``350 ms``, ``12.5 s``, ``2 min``, ``3 h 20 min``: at most two units."""
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.3g} s" if milliseconds < 59_950 else "1 min"
    for (unit, factor), (small, part) in pairwise(_SPANS):
        whole, rest = divmod(round(milliseconds / part) * part, factor)
        if whole:
            tail = f" {rest // part:.0f} {small}" if rest else ""
            return f"{whole:,.0f} {unit}{tail}"
    raise AssertionError(milliseconds)


def moment(timestamp_ms: float) -> str:
    """``2013-07-05 20:55:00``, UTC; with the milliseconds if there are any."""
    try:
        at = _EPOCH + timedelta(milliseconds=float(timestamp_ms))
    except OverflowError:  # a timestamp is any 63-bit number, a calendar ends in the year 9999
        return f"{timestamp_ms:.0f} ms"
    return at.strftime("%Y-%m-%d %H:%M:%S") + (
        f".{at.microsecond // 1000:03}" if at.microsecond else ""
    )


def period(first_ms: float, last_ms: float) -> str:
    """``2023-11-14 to 2024-07-07``: no finer than it takes to tell the two apart."""
    first, last = moment(first_ms), moment(last_ms)
    if last_ms - first_ms > 3 * 86_400_000:
        return f"{first[:10]} to {last[:10]}"
    fine = 16 if last_ms - first_ms > 600_000 else 19
    second = last[11:fine] if first[:10] == last[:10] else last[:fine]
    return f"{first[:fine]} to {second} UTC" if first != last else f"{first} UTC"


class RateUnit(Struct, frozen=True):
    """The time that a rate counts by."""

    name: str
    short: str
    seconds: int

    def text(self, per_second: float, noun: str = "records") -> str:
        """``1,240 records/s``."""
        return f"{_digits(per_second * self.seconds)} {noun}/{self.short}"


_RATES = (
    RateUnit("second", "s", 1),
    RateUnit("minute", "min", 60),
    RateUnit("hour", "h", 3_600),
    RateUnit("day", "day", 86_400),
)


def rate_unit(per_second: float) -> RateUnit:
    """The shortest that counts at least one, up to a day."""
    if not per_second:
        return _RATES[0]
    return next((unit for unit in _RATES if per_second * unit.seconds >= 1), _RATES[-1])


def names(numbers: Sequence[int], noun: str = "partition", most: int = 3) -> str:
    """``partition 2``, ``partitions 0, 2 and 5``, or ``7 partitions`` if they are many."""
    if len(numbers) > most:
        return count(len(numbers), noun)
    texts = [str(number) for number in numbers]
    if len(texts) == 1:
        return f"{noun} {texts[0]}"
    return f"{noun}s {', '.join(texts[:-1])} and {texts[-1]}"


def _digits(number: float) -> str:
    """At least two significant digits."""
    return f"{number:,.0f}" if number >= 100 or number == round(number) else f"{number:.2g}"
