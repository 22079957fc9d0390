"""Files of segments, and the index that finds the one that holds an offset."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One Parquet file of one segment, as the table's log describes it."""

    partition: int
    segment: int  # the segment's base offset
    path: str  # relative to the table
    size_bytes: int
    records: int
    start_offset: int  # the range it covers: a gap before its first record included
    end_offset: int  # exclusive
    min_timestamp_ms: int  # -1: the records have none
    max_timestamp_ms: int  # -1: none; 2^63-1: not known without a look into the file


class SegmentIndex:
    """The files of a topic by partition and offset. Immutable."""
