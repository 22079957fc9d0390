"""Look-ups by timestamp in a cold tier: its index says which files, a reader which record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from ..values.record import OffsetAndTimestamp
from .segment import SegmentFile
from .table import ColdSnapshot


class TimestampReader(Protocol):
    """Looks into files, in the order that an index gives them."""

    def first_at_or_after(
        self, files: Iterable[SegmentFile], timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """The earliest offset from `from_offset` on whose timestamp is at or after a time."""
        ...

    def newest(self, files: Iterable[SegmentFile], from_offset: int) -> OffsetAndTimestamp | None:
        """The record from `from_offset` on with the largest timestamp, the earliest of several."""
        ...


Reader = TypeVar("Reader", bound=TimestampReader)


class TimestampLookup(Generic[Reader]):
    """The look-ups that every `ColdTable` shares; a table gives its `_reader`."""

    _reader: Reader

    def offset_for_timestamp(
        self, snapshot: ColdSnapshot, partition: int, timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """See `ColdTable.offset_for_timestamp`."""
        from_offset = max(from_offset, snapshot.log_start(partition))
        files = snapshot.files.first_with_timestamp(partition, timestamp_ms, from_offset)
        return self._reader.first_at_or_after(files, timestamp_ms, from_offset)

    def max_timestamp(
        self, snapshot: ColdSnapshot, partition: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """See `ColdTable.max_timestamp`."""
        from_offset = max(from_offset, snapshot.log_start(partition))
        return self._reader.newest(snapshot.files.newest_first(partition, from_offset), from_offset)
