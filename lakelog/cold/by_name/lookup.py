"""Measures of the rows of a table by name: who has which rows where.

A view reads the rows; here it is decided what they say of slices.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..store_errors import one_line
from .notes import FOUND, Slice
from .spark_errors import is_unreadable

logger = logging.getLogger(__name__)


class Measured(Struct, frozen=True):
    """What some rows of one file are like."""

    of: int | tuple[int, int]  # the slice, by its number; or the partition and segment
    path: str
    size_bytes: int  # of the whole file
    records: int
    first: int  # offsets
    last: int
    min_us: int
    max_us: int


class View(Protocol):
    """What tells of rows; see `LogView`."""

    def measured_slices(self, version: int, slices: Sequence[Slice]) -> list[Measured]: ...

    def measured_segments(
        self, version: int, only: tuple[int, int] | None = None
    ) -> list[Measured]: ...


def look_up(view: View, name: str, version: int, slices: Sequence[Slice]) -> list[Slice]:
    """The slices with measures of their rows, by one look at them.

    For those of the newest commits: each notes what was looked up of the ones before it.

    A slice's size is its share of the files it lies in. If its file is damaged or gone, a slice is
    `Slice.assumed` to have all its records, so that no other rows are out of reach.
    """
    try:
        return _look_up(view, version, slices)
    except Exception as error:  # see `naming`
        if not is_unreadable(error):
            raise
        if len(slices) > 1:
            return [found for one in slices for found in look_up(view, name, version, [one])]
        logger.warning("%s of %s cannot be read: %s", slices[0].path, name, one_line(error)[:300])
        return [slices[0].assumed()]


def _look_up(view: View, version: int, slices: Sequence[Slice]) -> list[Slice]:
    rows = view.measured_slices(version, slices)
    in_file: dict[str, int] = {}
    of_slice: dict[object, list[Measured]] = {}
    for row in rows:
        in_file[row.path] = in_file.get(row.path, 0) + row.records
        of_slice.setdefault(row.of, []).append(row)
    return [_known(one, of_slice.get(number, ()), in_file) for number, one in enumerate(slices)]


def find(view: View, name: str, version: int, known: Mapping[str, Slice]) -> dict[str, Slice]:
    """The slices of a table after a foreign commit, by one look at all of its rows.

    A segment keeps its slices if its rows have the number and the first and last offset that the
    slices say. Any other segment becomes one slice of what was found. A segment with a damaged or
    missing file keeps its slices until it can be read.
    """
    said: dict[tuple[int, int], list[Slice]] = {}
    for one in known.values():
        said.setdefault((one.partition, one.segment), []).append(one)
    slices: list[Slice] = []
    try:
        rows = view.measured_segments(version)
    except Exception as error:  # see `naming`
        if not is_unreadable(error):
            raise
        rows = []
        for place in sorted(said):
            try:
                rows += view.measured_segments(version, place)
            except Exception as failure:
                if not is_unreadable(failure):
                    raise
                logger.warning(
                    "segment %s of %s cannot be read: %s", place, name, one_line(failure)
                )
                slices += said.pop(place)
    found: dict[tuple[int, int], list[Measured]] = {}
    for row in rows:
        assert isinstance(row.of, tuple)  # a segment
        found.setdefault(row.of, []).append(row)
    now_ms = time.time_ns() // 1_000_000
    for place in sorted(found.keys() | said.keys()):
        there, before = found.get(place, []), said.get(place, [])
        if _extent(there) == _said(before):
            slices += before
        elif there:
            _, first, last = _extent(there)
            modified_ms = max((one.modified_ms for one in before), default=now_ms)
            new = Slice(*place, FOUND, first, last + 1, "", version, modified_ms)
            slices.append(_known(new, there, {row.path: row.records for row in there}))
    return {one.key: one for one in slices}


def _known(one: Slice, rows: Sequence[Measured], in_file: Mapping[str, int]) -> Slice:
    if not rows:
        return replace(one, records=0, first=one.start_offset, size_bytes=0)
    records, first, last = _extent(rows)
    return replace(
        one,
        records=records,
        first=first,
        last=last,
        min_timestamp_ms=min(row.min_us for row in rows) // 1000,
        max_timestamp_ms=max(row.max_us for row in rows) // 1000,
        size_bytes=sum(row.size_bytes * row.records // max(1, in_file[row.path]) for row in rows),
    )


def _extent(rows: Sequence[Measured]) -> tuple[int, int, int]:
    return (
        sum(row.records for row in rows),
        min((row.first for row in rows), default=-1),
        max((row.last for row in rows), default=-1),
    )


def _said(slices: Sequence[Slice]) -> tuple[int, int, int]:
    filled = [one for one in slices if one.records]
    return (
        sum(one.records for one in filled),
        min((one.first for one in filled), default=-1),
        max((one.last for one in filled), default=-1),
    )
