"""Where the tiers of a partition lie, as a thin bar with the page marked on it.

Bar and slider share one scale. Offsets that were skipped after an unclean stop take little room on
it: they may be a million times as many as the log's records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...offsets import LogOffsets
from ..charts.offset_scale import OffsetScale

SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Part:
    """Offsets that the same tiers hold."""

    kind: str  # cold, both, hot or skipped
    start: int
    end: int  # exclusive


def parts(offsets: LogOffsets) -> list[Part]:
    """[log start, log end), cut where a tier or a gap begins or ends; no part is empty."""
    found: list[Part] = []
    at = offsets.log_start
    for gap in offsets.gaps:
        found += _held(offsets, at, max(at, gap.start))
        start, at = max(at, gap.start), max(at, min(gap.end, offsets.log_end))
        if start < at:
            found.append(Part(SKIPPED, start, at))
    return [*found, *_held(offsets, at, offsets.log_end)]


def _held(offsets: LogOffsets, start: int, end: int) -> Iterator[Part]:
    archived_end, local_log_start = offsets.archived_end, offsets.local_log_start
    for kind, first, last in (
        ("cold", start, min(end, local_log_start)),
        ("both", max(start, local_log_start), min(end, archived_end)),
        ("hot", max(start, local_log_start, archived_end), end),
    ):
        if first < last:
            yield Part(kind, first, last)


def scale_of(offsets: LogOffsets) -> OffsetScale:
    """Where an offset is on the bar and the slider above it; a wide gap takes little room."""
    held = [part for part in parts(offsets) if part.kind != SKIPPED]
    low, high = offsets.log_start, max(offsets.log_start, offsets.log_end)
    starts, ends = ([getattr(part, edge) for part in held] for edge in ("start", "end"))
    return OffsetScale.of(
        np.array([low, *starts, high], np.int64), np.array([low, *ends, high], np.int64)
    )


def map_html(offsets: LogOffsets, start: int, end: int) -> str:
    """The bar, the page [start, end) on it, and a line that says the same in numbers."""
    found = parts(offsets)
    scale = scale_of(offsets)
    edges = [offsets.log_start, offsets.log_end, start, end, *(part.end for part in found)]
    low, high, page_start, page_end, *stops = scale.drawn(np.array(edges, np.int64)).tolist()
    width = max(1, high - low)
    bars = "".join(
        f'<span class="ll-part ll-{part.kind}" style="flex-grow:{stop - before}"'
        f' title="{part.kind} [{part.start:,}, {part.end:,})"></span>'
        for part, before, stop in zip(found, [low, *stops], stops, strict=False)
    )
    left = min(100.0, max(0.0, 100 * (page_start - low) / width))
    span = min(100.0 - left, max(0.0, 100 * (page_end - page_start) / width))
    marker = f'<span class="ll-here" style="left:{left:.3f}%;width:{span:.3f}%"></span>'
    legend = " ".join(
        f'<span class="ll-legend"><span class="ll-swatch ll-{kind}"></span>{kind} {ranges}</span>'
        for kind, ranges in _ranges(found)
    )
    return (
        f'<div class="ll-map">{bars}{marker}</div><div class="ll-legends">{legend or "empty"}</div>'
    )


def _ranges(found: list[Part]) -> Iterator[tuple[str, str]]:
    for kind in ("cold", "both", "hot", SKIPPED):
        of_kind = [part for part in found if part.kind == kind]
        if of_kind:
            first, more = of_kind[0], len(of_kind) - 1
            yield kind, f"[{first.start:,}, {first.end:,})" + (f" +{more}" if more else "")
