"""Queries that measure the rows of a table by name, where no task has measured them.

Runs on: driver.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..store_errors import one_line
from .commit import where_segments
from .notes import FOUND, Slice
from .query_errors import is_unreadable

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

logger = logging.getLogger(__name__)

_MEASURES = (
    "_metadata.file_path AS path, max(_metadata.file_size) AS size_bytes, count(*) AS records, "
    "min(offset) AS first, max(offset) AS last, unix_micros(min(timestamp)) AS min_us, "
    "unix_micros(max(timestamp)) AS max_us"
)


def look_up(spark: SparkSession, name: str, version: int, slices: Sequence[Slice]) -> list[Slice]:
    """The slices with measures of their rows, by one query over them.

    For slices whose measures their writers have not noted yet, and where no task's measure came.

    A slice's size is its share of the files it lies in. If its file is damaged or gone, a slice is
    `Slice.assumed` to have all its records, so that no other rows are out of reach.
    """
    try:
        return _look_up(spark, name, version, slices)
    except Exception as error:  # see `naming`
        if not is_unreadable(error):
            raise
        if len(slices) > 1:
            return [found for one in slices for found in look_up(spark, name, version, [one])]
        logger.warning("%s of %s cannot be read: %s", slices[0].path, name, one_line(error)[:300])
        return [slices[0].assumed()]


def _look_up(spark: SparkSession, name: str, version: int, slices: Sequence[Slice]) -> list[Slice]:
    values = ", ".join(
        f"({number}, {one.partition}, {one.segment}L, {one.start_offset}L, {one.end_offset}L)"
        for number, one in enumerate(slices)
    )
    segments: dict[int, set[int]] = {}
    for one in slices:
        segments.setdefault(one.partition, set()).add(one.segment)
    rows = spark.sql(
        f"SELECT /*+ BROADCAST(s) */ number, {_MEASURES} "
        f"FROM {name} VERSION AS OF {version} AS t "
        f"JOIN VALUES {values} AS s(number, p, g, low, high) "
        "ON t.partition = s.p AND t.segment = s.g AND t.offset >= s.low AND t.offset < s.high "
        f"WHERE {where_segments(segments)} GROUP BY number, path"
    ).collect()
    in_file: dict[str, int] = {}
    of_slice: dict[int, list[Row]] = {}
    for row in rows:
        in_file[row["path"]] = in_file.get(row["path"], 0) + row["records"]
        of_slice.setdefault(row["number"], []).append(row)
    return [_known(one, of_slice.get(number, ()), in_file) for number, one in enumerate(slices)]


def find(
    spark: SparkSession, name: str, version: int, known: Mapping[str, Slice]
) -> dict[str, Slice]:
    """The slices of a table after a foreign commit, by one query over all of its rows.

    A segment keeps its slices if its rows have the number and the first and last offset that the
    slices say. Any other segment becomes one slice of what was found. A segment with a damaged or
    missing file keeps its slices until it can be read.
    """
    said: dict[tuple[int, int], list[Slice]] = {}
    for one in known.values():
        said.setdefault((one.partition, one.segment), []).append(one)
    slices: list[Slice] = []
    try:
        rows = _measured(spark, name, version, "true")
    except Exception as error:  # see `naming`
        if not is_unreadable(error):
            raise
        rows = []
        for place in sorted(said):
            where = where_segments({place[0]: {place[1]}})
            try:
                rows += _measured(spark, name, version, where)
            except Exception as failure:
                if not is_unreadable(failure):
                    raise
                logger.warning(
                    "segment %s of %s cannot be read: %s", place, name, one_line(failure)
                )
                slices += said.pop(place)
    found: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row["partition"], row["segment"]), []).append(row)
    now_ms = time.time_ns() // 1_000_000
    for place in sorted(found.keys() | said.keys()):
        there, before = found.get(place, []), said.get(place, [])
        if _extent(there) == _said(before):
            slices += before
        elif there:
            _, first, last = _extent(there)
            modified_ms = max((one.modified_ms for one in before), default=now_ms)
            new = Slice(*place, FOUND, first, last + 1, "", version, modified_ms)
            slices.append(_known(new, there, {row["path"]: row["records"] for row in there}))
    return {one.key: one for one in slices}


def _measured(spark: SparkSession, name: str, version: int, where: str) -> list[Row]:
    rows: list[Row] = spark.sql(
        f"SELECT partition, segment, {_MEASURES} FROM {name} VERSION AS OF {version} "
        f"WHERE {where} GROUP BY partition, segment, path"
    ).collect()
    return rows


def _known(one: Slice, rows: Sequence[Row], in_file: Mapping[str, int]) -> Slice:
    if not rows:
        return replace(one, records=0, first=one.start_offset, size_bytes=0)
    records, first, last = _extent(rows)
    return replace(
        one,
        records=records,
        first=first,
        last=last,
        min_timestamp_ms=min(row["min_us"] for row in rows) // 1000,
        max_timestamp_ms=max(row["max_us"] for row in rows) // 1000,
        size_bytes=sum(
            row["size_bytes"] * row["records"] // max(1, in_file[row["path"]]) for row in rows
        ),
    )


def _extent(rows: Sequence[Row]) -> tuple[int, int, int]:
    return (
        sum(row["records"] for row in rows),
        min((row["first"] for row in rows), default=-1),
        max((row["last"] for row in rows), default=-1),
    )


def _said(slices: Sequence[Slice]) -> tuple[int, int, int]:
    filled = [one for one in slices if one.records]
    return (
        sum(one.records for one in filled),
        min((one.first for one in filled), default=-1),
        max((one.last for one in filled), default=-1),
    )
