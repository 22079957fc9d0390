"""Round times along an axis, and how to write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone, tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_S, _M, _H, _D = 1000, 60_000, 3_600_000, 86_400_000
#: Steps that clocks and calendars count in; months and years come after.
_STEPS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(_S, 2 * _S, 5 * _S, 10 * _S, 15 * _S, 30 * _S),
    *(_M, 2 * _M, 5 * _M, 10 * _M, 15 * _M, 30 * _M),
    *(_H, 2 * _H, 3 * _H, 6 * _H, 12 * _H),
    *(_D, 2 * _D, 7 * _D, 14 * _D),
)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
_MONTH_MS = 30.44 * _D


def ticks(start_ms: int, end_ms: int, zone: tzinfo, most: int) -> list[tuple[int, str]]:
    """At most so many round times in [start, end], each with its label.

    The first label of a day, or of a year, says which.
    """
    wide = max(1, end_ms - start_ms)
    for step in _STEPS:
        if wide / step <= most:
            times = _even(start_ms, end_ms, step, zone)
            return _labelled(times, step, zone)
    months = next((m for m in _MONTHS if wide / (m * _MONTH_MS) <= most), _MONTHS[-1])
    return _labelled(_months(start_ms, end_ms, months, zone)[:most], months * _MONTH_MS, zone)


def at(time_ms: int, zone: tzinfo) -> datetime:
    """A time on the zone's clocks; far away, the last that they can show."""
    try:
        return (_EPOCH + timedelta(milliseconds=time_ms)).astimezone(zone)
    except OverflowError:
        return datetime.max.replace(tzinfo=timezone.utc)


def written(time_ms: int, step_ms: float, zone: tzinfo) -> str:
    """A time, as fine as a step is."""
    moment = at(time_ms, zone)
    text = f"{moment.day} {moment:%b %Y}"
    if step_ms >= _D:
        return text
    clock = f"{moment:%H:%M}" if step_ms >= _M else f"{moment:%H:%M:%S}"
    if step_ms < _S:
        clock += f".{moment.microsecond // 1000:03d}"
    return f"{text} {clock}"


def _even(start_ms: int, end_ms: int, step: int, zone: tzinfo) -> list[int]:
    away = at(start_ms, zone).utcoffset() or timedelta()
    away_ms = away // timedelta(milliseconds=1)
    first = -(-(start_ms + away_ms) // step) * step - away_ms
    return list(range(first, end_ms + 1, step))


def _months(start_ms: int, end_ms: int, months: int, zone: tzinfo) -> list[int]:
    moment = at(start_ms, zone)
    count = (moment.year * 12 + moment.month - 1) // months * months
    found: list[int] = []
    while count // 12 <= 9999:
        year, month = divmod(count, 12)
        first = datetime(max(1, year), month + 1, 1, tzinfo=zone)
        first_ms = (first - _EPOCH) // timedelta(milliseconds=1)
        if first_ms > end_ms:
            break
        if first_ms >= start_ms:
            found.append(first_ms)
        count += months
    return found


def _labelled(times: list[int], step: float, zone: tzinfo) -> list[tuple[int, str]]:
    labels = []
    before: datetime | None = None
    for time_ms in times:
        moment = at(time_ms, zone)
        labels.append((time_ms, _label(moment, before, step)))
        before = moment
    return labels


def _label(moment: datetime, before: datetime | None, step: float) -> str:
    day = f"{moment.day} {moment:%b}"
    if step >= 360 * _D:
        return f"{moment.year}"
    is_new_year = before is None or before.year != moment.year
    if step >= 28 * _D:
        return f"{moment:%b} {moment.year}" if is_new_year else f"{moment:%b}"
    if step >= _D:
        return f"{day} {moment.year}" if is_new_year else day
    clock = f"{moment:%H:%M}" if step >= _M else f"{moment:%H:%M:%S}"
    if step < _S:
        clock += f".{moment.microsecond // 1000:03d}"
    is_new_day = before is None or before.date() != moment.date()
    return f"{day} {clock}" if is_new_day else clock
