"""Filters on what Spark reads: the same rows whatever Spark hands over, and how to read less."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from spark_log import EPOCH_MS, SparkLog, files_read

from lakelog.spark.datasource import LakelogReader
from lakelog.spark.options import parse

FILTERS = [
    " and ".join(filter(None, parts)) or "true"
    for parts in product(
        ("", "partition in (0, 7)", "partition = 1"),  # the last one planned would be read by all
        ("", "offset >= 15 and offset < 45"),
        ("", "timestamp < timestamp'2023-11-14T22:14:00Z'"),
    )
]


@pytest.fixture
def log(make_log: Any) -> SparkLog:
    """Two partitions of sixty records: twenty in each of two files, twenty in Redis."""
    log: SparkLog = make_log(2)
    for _ in range(2):
        for partition in (0, 1):
            log.append(20, partition)
        log.archive()
    for partition in (0, 1):
        log.append(20, partition)
    return log


@pytest.fixture(
    params=[pytest.param("true", marks=pytest.mark.slow), "false"],
    ids=["filters handed over", "as Spark is set up"],
)
def handed_over(request: Any, spark: Any) -> Iterator[None]:
    name = "spark.sql.python.filterPushdown.enabled"
    spark.conf.set(name, request.param)
    yield
    spark.conf.unset(name)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["frame", pytest.param("source", marks=pytest.mark.slow)])
def test_one_frame_under_many_filters_has_the_rows_of_each(log, spark, handed_over, kind) -> None:
    if kind == "frame":
        frame = log.lakelog.dataframe("orders")
    else:
        frame = spark.read.format("lakelog").options(**log.options()).load()
    frame = frame.select("partition", "offset", "timestamp")
    rows = spark.createDataFrame(frame.collect(), frame.schema)
    assert rows.count() == 120

    def found(of: Any, number: int) -> Any:
        return of.where(FILTERS[number]).selectExpr(f"{number} filter", "partition", "offset")

    # In one query, where Spark plans the same relation once for each.
    for one in range(3):
        numbers = range(one, len(FILTERS), 3)
        wanted, got = (
            [tuple(row) for number in numbers for row in found(of, number).collect()]
            for of in (rows, frame)
        )
        together = found(frame, one)
        for number in numbers[1:]:
            together = together.union(found(frame, number))
        assert sorted(got) == sorted(wanted)
        assert sorted(tuple(row) for row in together.collect()) == sorted(wanted)


def records_planned(log: SparkLog, **options: Any) -> int:
    """How many offsets the tasks of a batch read."""
    tasks = LakelogReader(parse(log.options(**options), streaming=False)).partitions()
    return sum(one.end_offset - one.start_offset for task in tasks for one in task.ranges)


def test_options_say_what_is_read_where_a_filter_does_not(log) -> None:
    assert records_planned(log) == 120
    assert records_planned(log, assign='{"orders": [1]}') == 60
    offsets = {
        "assign": '{"orders": [1]}',
        "startingOffsets": '{"orders": {"1": 15}}',
        "endingOffsets": '{"orders": {"1": 45}}',
    }
    assert records_planned(log, **offsets) == 30
    times = {"startingTimestamp": EPOCH_MS + 10_000, "endingTimestamp": EPOCH_MS + 50_000}
    assert records_planned(log, **times) == 80


def test_what_is_archived_of_a_frame_is_filtered_by_its_files(log) -> None:
    def files(where: str) -> int:
        return files_read(log.lakelog.dataframe("orders").where(where))

    assert files("true") == 4
    assert files("partition = 1") == 2
    assert files("offset >= 15 and offset < 18") == 2
    assert files("partition = 1 and timestamp < timestamp'2023-11-14T22:13:30Z'") == 1
    assert files("partition = 7") == 0
