"""The segments of a partition as the explorer shows them: a drawing, and places to go to."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...read.topic_log import TopicLog
from .. import charts


class SegmentMap(Struct, frozen=True):
    """The options of a list, and the content of an Output."""

    choices: list[tuple[str, int]]  # a label, and the offset to seek to; the newest first
    bundle: dict[str, Any]  # by mimetype: plotly's, and a table if it cannot be drawn


def segment_map(log: TopicLog, partition: int) -> SegmentMap:
    """The segments of both tiers as of now; reads no records."""
    rows = charts.segment_rows(log, [partition])
    choices = [(label, offset) for label, (_, offset) in charts.segment_choices(rows, partition)]
    drawn = charts.segment_map(rows)
    whole = getattr(drawn, "_repr_mimebundle_", None)
    if whole is not None:
        return SegmentMap(choices, dict(whole()))
    return SegmentMap(choices, {"text/html": drawn._repr_html_(), "text/plain": repr(drawn)})
