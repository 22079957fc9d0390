"""What a file's footer says of its tombstones, so that compaction need not read its values.

| footer key                      | value                                                     |
|---------------------------------|-----------------------------------------------------------|
| lakelog.tombstones              | records with a null value and no delete horizon yet       |
| lakelog.min_delete_horizon_ms   | the earliest delete horizon; absent: none has one         |
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
from msgspec import Struct

from ..base import compute as pc

TOMBSTONE_COLUMNS = ["value", "delete_horizon"]

_WITHOUT_HORIZON = b"lakelog.tombstones"
_MIN_HORIZON = b"lakelog.min_delete_horizon_ms"


class Tombstones(Struct, frozen=True):
    """The tombstones of a file or of some rows."""

    without_horizon: int = 0
    min_horizon_ms: int | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Tombstones:
        """Those among rows with at least `TOMBSTONE_COLUMNS`."""
        values, horizons = (batch.column(name) for name in TOMBSTONE_COLUMNS)
        if not values.null_count:
            return cls()
        fresh = values.null_count
        earliest_us = None
        if horizons.null_count < len(horizons):
            fresh = pc.sum(pc.and_(pc.is_null(values), pc.is_null(horizons))).as_py()
            earliest_us = pc.min(horizons.cast(pa.timestamp("us", "UTC")).cast(pa.int64())).as_py()
        return cls(fresh, None if earliest_us is None else earliest_us // 1000)

    @classmethod
    def from_metadata(cls, metadata: Mapping[bytes, bytes]) -> Tombstones | None:
        """From a Parquet footer's key-value metadata; None if it says nothing, or no numbers."""
        numbers = [metadata.get(_WITHOUT_HORIZON), metadata.get(_MIN_HORIZON, b"0")]
        if not all(text is not None and re.fullmatch(rb"-?\d{1,18}", text) for text in numbers):
            return None
        horizon = metadata.get(_MIN_HORIZON)
        return cls(int(metadata[_WITHOUT_HORIZON]), None if horizon is None else int(horizon))

    def to_metadata(self) -> dict[str, str]:
        """For a Parquet footer."""
        metadata = {_WITHOUT_HORIZON.decode(): str(self.without_horizon)}
        if self.min_horizon_ms is not None:
            metadata[_MIN_HORIZON.decode()] = str(self.min_horizon_ms)
        return metadata

    def __add__(self, other: Tombstones) -> Tombstones:
        horizons = [h for h in (self.min_horizon_ms, other.min_horizon_ms) if h is not None]
        return Tombstones(self.without_horizon + other.without_horizon, min(horizons, default=None))
