"""Segments to choose from, for a Dropdown beside a segment map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from . import words
from .facts import NULL, checked
from .segment_map import SEGMENTS, Boxes

DEFAULT_CHOICES = 500


def segment_choices(
    table: pa.Table, partition: int | None = None, *, most: int = DEFAULT_CHOICES
) -> list[tuple[str, tuple[int, int]]]:
    """The segments that can be read, the newest first: a label, and where to seek.

    They do what a click on a segment map would do, if a Figure could call Python::

        rows = charts.segment_rows(log)
        choice = ipywidgets.Dropdown(options=charts.segment_choices(rows))
        choice.observe(lambda change: seek(*change["new"]), "value")  # partition, offset

    Args:
        table: as `segment_rows` gives it.
        partition: its number; None for all.
        most: the largest number of choices; the oldest are left out.

    Returns:
        (label, (partition, offset)) for each; the offset is the segment's first that can be read.
        A segment in both tiers is one choice.

    Raises:
        InvalidArgumentError: the table has other columns.
    """
    boxes = Boxes.of(checked(table, SEGMENTS, "segment_rows"))
    rows = np.flatnonzero((boxes.place != 0) & (boxes.start < boxes.end))
    if partition is not None:
        rows = rows[boxes.partition[rows] == partition]
    newest = rows[np.lexsort((-boxes.end[rows], -boxes.max_us[rows]))][:most]
    several = partition is None and len(set(boxes.partition[rows].tolist())) > 1
    return [_choice(boxes, at, several) for at in newest.tolist()]


def _choice(boxes: Boxes, at: int, several: bool) -> tuple[str, tuple[int, int]]:
    partition, start = int(boxes.partition[at]), int(boxes.start[at])
    tier: Any = ("", "cold", "cold and hot", "hot")[int(boxes.place[at])]
    whose = f"partition {partition}: " if several else ""
    since = int(boxes.first_us[at])
    when = "" if since == NULL else f", from {words.moment(since // 1000)}"
    label = (
        f"{whose}[{start:,}, {int(boxes.end[at]):,}) {tier}, "
        f"{words.count(int(boxes.records[at]), 'record')}{when}"
    )
    return label, (partition, start)
