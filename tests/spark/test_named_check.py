"""A table by name is checked by its rows, also where the catalog hides its files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
import pytest
import strangers
from spark_log import SparkLog

from lakelog.cold.schema import FILE_SCHEMA
from lakelog.operate.check.cold_verification import FOOTERS_NOT_CHECKED
from lakelog.operate.check.finding import Finding

pytestmark = pytest.mark.slow

OTHERS = "timestamp, timestampType, key, value, headers"
COLUMNS = f"partition, segment, offset, {OTHERS}"

Told = tuple[str, str, int | None, list[tuple[int, int]]]


def told(found: tuple[Finding, ...]) -> list[Told]:
    return sorted(
        (one.kind.value, one.tier, one.partition, [(start, end) for start, end in one.offsets])
        for one in found
    )


def flip_value_byte(path: Path) -> None:
    """Changes a byte of a page of values, as a disk may."""
    # By its place, since a catalog may have columns called otherwise in files.
    values = pq.ParquetFile(path).metadata.row_group(0).column(FILE_SCHEMA.names.index("value"))
    content = bytearray(path.read_bytes())
    content[values.data_page_offset + values.total_compressed_size - 1] ^= 1
    path.write_bytes(content)


class Damaged:
    """A topic of segments of twenty records, and somebody with SQL on its table."""

    def __init__(
        self, redis_url: str, schema: str, spark: Any, partitions: int, **settings: Any
    ) -> None:
        self.spark = spark
        self.table = f"{schema}.orders"
        log = SparkLog(redis_url, schema).create(
            partitions, internal_segment_bytes=1_300, **settings
        )
        for partition in range(partitions):
            log.append(60, partition, batch=20)
        log.archive()
        self.lake = log.lakelog

    def sql(self, statement: str) -> list[Any]:
        return list(self.spark.sql(statement.format(table=self.table)).collect())

    def move_rows(self) -> None:
        """One damage a partition, but for the first."""
        self.sql(
            "DELETE FROM {table} WHERE partition = 1 AND offset IN (7, 8, 31) "
            "OR partition = 2 AND offset = 59"
        )
        self.sql(
            "UPDATE {table} SET "
            "timestamp = CASE partition WHEN 3 THEN timestamp - INTERVAL 1 DAY WHEN 7 THEN NULL "
            "ELSE timestamp END, offset = IF(partition = 4, offset + 1, offset) "
            "WHERE partition IN (3, 4, 7) AND offset = 7"
        )
        self.sql(
            f"INSERT INTO {{table}} ({COLUMNS}) "
            f"SELECT {COLUMNS} FROM {{table}} WHERE partition = 5 AND offset = 9 UNION ALL "
            f"SELECT partition, 20L AS segment, offset, {OTHERS} FROM {{table}} "
            "WHERE partition = 6 AND offset = 5 UNION ALL "
            f"SELECT partition, segment, offset + 10, {OTHERS} FROM {{table}} "
            "WHERE partition = 8 AND offset = 59"
        )

    def forge(self) -> None:
        """Rows moved under a note of lakelog's, so that nobody looks at them again."""
        history = self.sql("DESCRIBE HISTORY {table}")
        (note,) = [row["userMetadata"] for row in history if row["userMetadata"]]
        name = "spark.databricks.delta.commitInfo.userMetadata"
        self.spark.conf.set(name, note)
        try:
            self.sql("UPDATE {table} SET value = key WHERE partition = 0 AND offset = 5")
            self.sql(
                f"INSERT INTO {{table}} ({COLUMNS}) "
                f"SELECT {COLUMNS} FROM {{table}} WHERE partition = 0 AND offset = 23"
            )
        finally:
            self.spark.conf.unset(name)

    def file(self, partition: int) -> Path:
        """That of the second segment."""
        rows = self.spark.table(self.table).where(f"partition = {partition} AND segment = 20")
        (place,) = [urlsplit(unquote(one)) for one in rows.inputFiles()]
        if place.scheme != "file":
            pytest.skip("its files are not this machine's")
        return Path(place.path)


@pytest.fixture
def make_damaged(redis_url: str, schema: str, spark: Any) -> Iterator[Callable[..., Damaged]]:
    made: list[Damaged] = []

    def make(partitions: int, **settings: Any) -> Damaged:
        made.append(Damaged(redis_url, schema, spark, partitions, **settings))
        return made[-1]

    yield make
    for one in made:
        one.lake.close()


@pytest.fixture(params=["through_spark", pytest.param("where_it_lies", marks=pytest.mark.slow)])
def way(request: pytest.FixtureRequest) -> None:
    """Each of the ways to get the rows."""
    if request.param == "through_spark":
        request.getfixturevalue("through_spark")


@pytest.mark.usefixtures("way")
def test_damage_that_no_commit_tells_of_is_found_and_named(
    make_damaged: Callable[..., Damaged],
) -> None:
    damaged = make_damaged(4, local_retention_ms=-1)
    changed, gone = damaged.file(1), damaged.file(2)
    damaged.forge()
    flip_value_byte(changed)
    gone.unlink()

    report = damaged.lake.check()
    assert told(report.findings) == [
        ("corrupt", "cold", 1, [(20, 40)]),
        ("differs", "both", 0, [(5, 6)]),
        ("doubled", "cold", 0, [(23, 24)]),
        ("missing-file", "cold", 2, [(20, 40)]),
    ]  # but no statistics: the newest rows are measured when they are looked at
    said = [f"{one.where} {one.what}" for one in report.findings]
    assert changed.name in said[-2]
    assert re.search("CRC|Checksum error", said[-2])  # pages have one, and Hadoop keeps its own
    assert gone.name in said[-1]
    assert [one.verdict for one in report.partitions] == ["faults", "faults", "faults", "ok"]
    assert {one.not_checked for one in report.partitions} == {FOOTERS_NOT_CHECKED}


@pytest.mark.slow
@pytest.mark.usefixtures("way")
def test_rows_that_somebody_moved_are_found_and_named(make_damaged: Callable[..., Damaged]) -> None:
    damaged = make_damaged(10)
    assert damaged.lake.check().findings == ()
    damaged.move_rows()

    report = damaged.lake.check()
    assert told(report.findings) == [
        ("corrupt", "cold", 7, [(0, 20)]),  # a row without its time
        ("doubled", "cold", 4, [(8, 9)]),
        ("doubled", "cold", 5, [(9, 10)]),
        ("doubled", "cold", 6, [(5, 6)]),
        ("hole", "cold", 1, [(7, 9)]),
        ("hole", "cold", 1, [(31, 32)]),
        ("hole", "cold", 2, [(59, 60)]),
        ("hole", "cold", 4, [(7, 8)]),
        ("hole", "cold", 8, [(60, 69)]),
        ("order", "cold", 6, [(5, 20)]),  # of its segment, up to which it does not go
        ("register", "cold", 8, [(60, 70)]),
        ("statistics", "cold", 3, [(0, 20)]),
    ]
    ok = {one.partition for one in report.partitions if one.verdict == "ok"}
    assert ok == {0, 9}
    if not strangers.is_managed(damaged.table):  # else Spark goes on after a row without its time
        assert {one.not_checked for one in report.partitions} == {FOOTERS_NOT_CHECKED}
