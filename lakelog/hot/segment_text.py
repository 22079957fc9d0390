"""A closed segment as ``:segments`` holds it."""

from __future__ import annotations

from ..values.offsets import HotSegment


def segment_text(segment: HotSegment) -> str:
    """Its numbers, in the order of `HotSegment`'s fields."""
    return (
        f"{segment.base_offset} {segment.end_offset} {segment.size_bytes} "
        f"{segment.first_timestamp_ms} {segment.max_timestamp_ms} {segment.created_ms} "
        f"{segment.modified_ms}"
    )
