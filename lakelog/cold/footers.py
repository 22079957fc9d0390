"""What Parquet footers say of row groups, parsed once: the sparse index within a file."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..config import MIB
from ..record import MAX_OFFSET
from .tombstones import Tombstones

#: Footer bytes kept, as they lie in the files; parsed, they take several times that. At 1–2 KB a
#: row group this is some ten thousand of them.
CACHE_BYTES = 16 * MIB


UNKNOWN_TIME_US = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RowGroup:
    """The ranges of one row group; as wide as can be where it has no statistics."""

    index: int
    rows: int
    size_bytes: int  # uncompressed
    first: int  # smallest offset
    last: int  # largest, inclusive
    max_time_us: int  # UNKNOWN_TIME_US: look into it


@dataclass(frozen=True, slots=True)
class Footer:
    metadata: Any  # pq.FileMetaData
    row_groups: tuple[RowGroup, ...]
    tombstones: Tombstones | None  # None: whoever wrote the file does not say


class FooterCache:
    """The footers used last, by path. Files never change, so none is ever stale. Thread-safe."""

    def __init__(self, limit_bytes: int = CACHE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._footers: OrderedDict[str, Footer] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str) -> Footer | None:
        with self._lock:
            footer = self._footers.get(path)
            if footer is not None:
                self._footers.move_to_end(path)
            return footer

    def put(self, path: str, footer: Footer) -> None:
        with self._lock:
            if path in self._footers:
                return
            self._footers[path] = footer
            self._held_bytes += footer.metadata.serialized_size
            while self._held_bytes > self._limit_bytes and len(self._footers) > 1:
                _, oldest = self._footers.popitem(last=False)
                self._held_bytes -= oldest.metadata.serialized_size


def parse_footer(metadata: Any) -> Footer:
    """The row groups of a `pq.FileMetaData`.

    Raises:
        pa.ArrowInvalid: it is not of a file of this table.
    """
    places = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    if not {"offset", "timestamp"} <= places.keys():
        raise pa.ArrowInvalid("it has no columns offset and timestamp")
    unit_us = time_unit_us(metadata.schema.column(places["timestamp"]))
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    return Footer(
        metadata,
        tuple(
            _row_group(
                index,
                group,
                group.column(places["offset"]).statistics,
                group.column(places["timestamp"]).statistics,
                unit_us,
            )
            for index, group in enumerate(groups)
        ),
        Tombstones.from_metadata(metadata.metadata or {}),
    )


def _row_group(index: int, group: Any, offsets: Any, times: Any, unit_us: int | None) -> RowGroup:
    known = offsets is not None and offsets.has_min_max
    timed = times is not None and times.has_min_max and unit_us
    return RowGroup(
        index,
        group.num_rows,
        group.total_byte_size,
        offsets.min if known else 0,
        offsets.max if known else MAX_OFFSET,
        # Raw, since a datetime has no place for years after 9999.
        times.max_raw * unit_us if timed else UNKNOWN_TIME_US,
    )


def time_unit_us(column: Any) -> int | None:
    """How many µs a stored time counts; None for those without an order (Spark's INT96)."""
    if column.physical_type != "INT64":
        return None
    unit = json.loads(column.logical_type.to_json()).get("timeUnit")
    return {"milliseconds": 1000, "microseconds": 1}.get(unit)
