"""An axis of offsets without the wide stretches in which there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from . import words
from .style import TEXT

Numbers = np.ndarray[Any, Any]

#: A stretch without segments is cut when it is wider than this share of those with.
_WIDE = 0.2
_LEFT = 0.06  # what is left of it, as a share of the same


class OffsetScale(Struct, frozen=True, eq=False):
    """Where offsets are drawn. A gap spans millions, which would squeeze all else flat."""

    bottom: int
    top: int
    jumps: Numbers  # rows of (end of the segment below, base of the one above)
    held: int  # offsets that the segments cover

    @classmethod
    def of(cls, base: Numbers, end: Numbers) -> OffsetScale:
        """The scale for segments of these ranges."""
        if not len(base):
            return cls(0, 0, np.empty((0, 2), np.int64), 0)
        order = np.argsort(base, kind="stable")
        base, reach = base[order], np.maximum.accumulate(end[order])
        wide = base[1:] - reach[:-1]
        held = int(reach[-1] - base[0] - np.maximum(0, wide).sum())
        at = np.flatnonzero(wide > _WIDE * max(1, held))
        return cls(int(base[0]), int(reach[-1]), np.column_stack([reach[at], base[at + 1]]), held)

    def drawn(self, offsets: Numbers) -> Numbers:
        """The places of offsets on the axis."""
        passed = np.searchsorted(self.jumps[:, 1], offsets, side="right")
        inside_up_to = np.append(self.jumps[:, 0] + self._left, np.iinfo(np.int64).max)[passed]
        found: Numbers = np.minimum(offsets, inside_up_to) - self._cuts[passed]
        return found

    def offsets(self, drawn: Numbers) -> Numbers:
        """The offsets at places on the axis; within a jump, the one that it leads to."""
        passed = np.searchsorted(self.drawn(self.jumps[:, 0]), drawn, side="right")
        least = np.append(self.bottom, self.jumps[:, 1])[passed]
        found: Numbers = np.maximum(drawn + self._cuts[passed], least)
        return found

    def ticks(self) -> dict[str, Any]:
        """The axis's ticks, labelled with the real offsets."""
        step = 10 ** int(np.floor(np.log10(max(1, self.held / 4))))
        step *= next(times for times in (1, 2, 5, 10) if step * times >= self.held / 6)
        edges = [self.bottom, *self.jumps.reshape(-1).tolist(), self.top]
        at: list[int] = []
        for low, high in zip(edges[::2], edges[1::2], strict=True):
            inside = list(range(-(-low // step) * step, high + 1, step))
            at += inside or [low]
        drawn = self.drawn(np.array(at)).tolist()
        return {"tickvals": drawn, "ticktext": [words.count(offset) for offset in at]}

    def lines(self, axis: str) -> list[dict[str, Any]]:
        """A dotted line across each jump."""
        return [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "yref": axis,
                "y0": y,
                "y1": y,
                "line": {"color": TEXT, "width": 1, "dash": "dot"},
            }
            for y in self._middles()
        ]

    def lines_down(self) -> list[dict[str, Any]]:
        """As `lines`, where the axis of offsets is the horizontal one."""
        return [
            {
                "type": "line",
                "xref": "x",
                "x0": x,
                "x1": x,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": TEXT, "width": 1, "dash": "dot"},
            }
            for x in self._middles()
        ]

    def says(self, axis: str) -> list[dict[str, Any]]:
        """A text at each jump: which offsets it leaves out."""
        return [
            {
                "xref": "paper",
                "x": 1,
                "xanchor": "right",
                "yref": axis,
                "y": y,
                "yanchor": "top",
                "showarrow": False,
                "font": {"color": TEXT, "size": 11},
                "text": f"no segments in [{low:,}, {high:,})",
            }
            for y, (low, high) in zip(self._middles(), self.jumps.tolist(), strict=True)
        ]

    @property
    def _cuts(self) -> Numbers:
        """How many offsets are left out below the first jump, and above each jump."""
        return np.append(0, np.cumsum(self.jumps[:, 1] - self.jumps[:, 0] - self._left))

    @property
    def _left(self) -> int:
        return int(_LEFT * self.held)

    def _middles(self) -> list[float]:
        return [y + self._left / 2 for y in self.drawn(self.jumps[:, 0]).tolist()]
