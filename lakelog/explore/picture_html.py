"""The picture of time as HTML: bars by tier, marks, the time that is chosen, and an axis."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone, tzinfo
from html import escape

import numpy as np

from .histogram import BOTH, COLD, HOT, TIERS, Histogram
from .picture import Mark
from .words import duration

_HEIGHT = 100.0
#: The least that a step with records is drawn as, of `_HEIGHT`.
_LEAST = 2.5
_TICKS = 8

#: A drag or a click in the picture says from which to which share of its width, and how often
#: something was said before, if the page runs scripts in HTML.
_SHARE = (
    "var box = this.getBoundingClientRect(), "
    "share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)); "
)
#: Where a drag began is kept by what outlives a redraw: the answer to a click may come amid it. It
#: holds as long as the times below the picture stay.
_DRAG = "var home = this.closest('.lakelog-explorer') || this, axis = this.nextElementSibling; "
#: What is prevented would leave a box that was typed into, which tells what was typed.
_DOWN = escape(
    _SHARE + _DRAG + "document.activeElement.blur(); "
    "home.dataset.from = share; home.dataset.axis = axis.textContent; "
    "event.preventDefault();"
)
_MOVE = escape(
    _DRAG
    + "if (home.dataset.axis === axis.textContent && event.buttons & 1) {"
    + _SHARE
    + "var drawn = this.querySelector('.ll-drawn'), from = +home.dataset.from; "
    "drawn.style.left = 100 * Math.min(from, share) + '%'; "
    "drawn.style.width = 100 * Math.abs(share - from) + '%'; }"
)
_UP = escape(
    _SHARE + _DRAG + "var from = home.dataset.from, "
    "is_same = home.dataset.axis === axis.textContent, "
    "said = home.querySelector('.lakelog-picked input'); "
    "delete home.dataset.from; delete home.dataset.axis; "
    "if (said && is_same) { "
    "var count = +((said.value.split(' ')[2]) || 0) + 1; "
    "said.value = Math.min(from, share) + ' ' + Math.max(from, share) + ' ' + count; "
    "said.dispatchEvent(new Event('input', {bubbles: true})); "
    "said.dispatchEvent(new Event('change', {bubbles: true})); }"
)


def picture_html(
    found: Histogram, marks: Iterable[Mark], zone: tzinfo, partition: int | None
) -> str:
    """Bars as wide as the box, the axis below them.

    Args:
        marks: outside the time, none is drawn.
        partition: that of the records; None: all.
    """
    start, end = int(found.edges_ms[0]), int(found.edges_ms[-1])
    steps = len(found.edges_ms) - 1
    top = float(found.totals.max()) or 1.0
    return (
        f'<div class="ll-time" onmousedown="{_DOWN}" onmousemove="{_MOVE}" onmouseup="{_UP}">'
        f'<svg viewBox="0 0 {steps} {_HEIGHT:.0f}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(summary(found, zone, partition))}">'
        f"{_bars(found, top)}{_hovers(found, zone)}</svg>"
        f"{_marks(marks, start, end)}"
        '<span class="ll-drawn"></span></div>'
        f'<div class="ll-axis">{_axis(start, end, zone)}</div>'
    )


def summary(found: Histogram, zone: tzinfo, partition: int | None) -> str:
    """How many records, when, how many at most in a step, and what is not drawn."""
    start, end = int(found.edges_ms[0]), int(found.edges_ms[-1])
    of = "" if partition is None else f" in partition {partition}"
    total = f"{found.records:,.0f}"
    about = "" if found.exact.all() else "about "
    first, last = written(start, found.step_ms, zone), written(end, found.step_ms, zone)
    text = f"{about}{total} {'record' if total == '1' else 'records'}{of}, {first} – {last}"
    text += f"; a bar is {duration(found.step_ms)}"
    if found.outside >= 1:
        text += f"; {found.outside:,.0f} before or after"
    if found.untimed >= 1:
        text += f"; {found.untimed:,.0f} without a known time"
    return text


def legend(found: Histogram, *, archived: bool, read: bool = False) -> str:
    """The tiers that are drawn, and what marks stand for."""
    shown = [tier for tier in (COLD, BOTH, HOT) if found.counts[tier].sum() > 0]
    names = {COLD: "Delta", BOTH: "in both", HOT: "Redis"}
    parts = [
        f'<span><i class="ll-swatch ll-{TIERS[tier]}"></i>{names[tier]}</span>' for tier in shown
    ]
    if archived:
        parts.append('<span><i class="ll-line"></i>archived up to here</span>')
    if read:
        parts.append('<span><i class="ll-line ll-of-group"></i>a group has read up to here</span>')
    return "".join(parts)


def _bars(found: Histogram, top: float) -> str:
    base = np.zeros(len(found.totals))
    drawn = []
    scale = np.where(found.totals > 0, np.maximum(_LEAST, _HEIGHT * found.totals / top), 0)
    for tier in (COLD, BOTH, HOT):
        share = found.counts[tier] / np.maximum(found.totals, 1e-9)
        height = share * scale
        path = "".join(
            f"M{step + 0.1:.1f} {_HEIGHT - low:.1f}h.8v-{high:.1f}h-.8z"
            for step, (low, high) in enumerate(zip(base, height, strict=True))
            if high > 0.05
        )
        if path:
            drawn.append(f'<path class="ll-{TIERS[tier]}" d="{path}"/>')
        base += height
    return "".join(drawn)


def _hovers(found: Histogram, zone: tzinfo) -> str:
    """What a step has is told when the pointer is over it."""
    parts = []
    for step, total in enumerate(found.totals):
        if total <= 0:
            continue
        when = written(int(found.edges_ms[step]), found.step_ms, zone)
        about = "" if found.exact[step] else "about "
        each = ", ".join(
            f"{found.counts[tier][step]:,.0f} {TIERS[tier]}"
            for tier in (COLD, BOTH, HOT)
            if found.counts[tier][step] >= 0.5
        )
        parts.append(
            f'<rect x="{step}" y="0" width="1" height="{_HEIGHT:.0f}" class="ll-hover">'
            f"<title>{escape(when)}: {about}{each}</title></rect>"
        )
    return "".join(parts)


def _marks(marks: Iterable[Mark], start: int, end: int) -> str:
    wide = end - start
    drawn = []
    for mark in marks:
        first = 100 * (mark.start_ms - start) / wide
        last = 100 * ((mark.start_ms if mark.end_ms is None else mark.end_ms) - start) / wide
        if last < 0 or first > 100:
            continue
        first, last = max(0.0, first), min(100.0, last)
        title = f' title="{escape(mark.text)}"' if mark.text else ""
        drawn.append(
            f'<span class="ll-mark ll-{mark.kind}" style="left:{first:.2f}%;'
            f'width:{last - first:.2f}%"{title}>{_label(mark, first)}</span>'
        )
    return "".join(drawn)


def _label(mark: Mark, left: float) -> str:
    """At the side of the mark where there is more room."""
    if not mark.label:
        return ""
    side = "ll-before" if left > 50 else "ll-after"
    return f'<b class="ll-label {side} ll-row{mark.row}">{escape(mark.label)}</b>'


def _axis(start: int, end: int, zone: tzinfo) -> str:
    parts = []
    placed = [
        (100 * (time_ms - start) / (end - start), time_ms, label)
        for time_ms, label in ticks(start, end, zone, _TICKS)
    ]
    placed = [one for one in placed if one[0] <= 95]  # others would not fit
    for (left, time_ms, label), right in zip(
        placed, [*(one[0] for one in placed[1:]), 100.0], strict=True
    ):
        moment = at(time_ms, zone)
        parts.append(
            # In a narrow page a label is cut, not written over the next one.
            f'<span style="left:{left:.2f}%;max-width:{right - left:.2f}%" '
            f'title="{escape(moment.isoformat())}">'
            f"{escape(label)}</span>"
        )
    return "".join(parts)


# -- round times along the axis -------------------------------------------------------------------

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
    return text if step_ms >= _D else f"{text} {_clock(moment, step_ms)}"


def _clock(moment: datetime, step_ms: float) -> str:
    if step_ms >= _M:
        return f"{moment:%H:%M}"
    finer = f".{moment.microsecond // 1000:03d}" if step_ms < _S else ""
    return f"{moment:%H:%M:%S}{finer}"


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
    moments = [at(time_ms, zone) for time_ms in times]
    texts = map(_tick, moments, [None, *moments], [step] * len(times))
    return list(zip(times, texts, strict=True))


def _tick(moment: datetime, before: datetime | None, step: float) -> str:
    day = f"{moment.day} {moment:%b}"
    if step >= 360 * _D:
        return f"{moment.year}"
    is_new_year = before is None or before.year != moment.year
    if step >= 28 * _D:
        return f"{moment:%b} {moment.year}" if is_new_year else f"{moment:%b}"
    if step >= _D:
        return f"{day} {moment.year}" if is_new_year else day
    is_new_day = before is None or before.date() != moment.date()
    clock = _clock(moment, step)
    return f"{day} {clock}" if is_new_day else clock
