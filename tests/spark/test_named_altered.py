"""Tables by name with Delta features that lakelog has none of, be they somebody's or demanded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from spark_log import SparkLog, rows_of

from lakelog import Lakelog
from lakelog.errors import ArchiveFailedError, ContradictionError, InvalidConfigError
from lakelog.spark import read

pytestmark = pytest.mark.slow

COLUMNS = "lakelog.value.columns"

#: What Unity Catalog demands of its own tables.
DEMANDED = {
    "enableDeletionVectors": "true",
    "columnMapping.mode": "name",
    "enableRowTracking": "true",
    "enableInCommitTimestamps": "true",
}
DELETION_VECTORS = "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"


class Altered:
    """A compacted log of [0, 60) cold and [60, 90) hot, and somebody with SQL on its table."""

    def __init__(self, log: SparkLog, spark: Any, table: str) -> None:
        self.log, self.spark, self.table = log, spark, table
        log.create(
            cleanup_policy="compact,delete",
            min_cleanable_dirty_ratio=0,
            segment_ms=15_000,
        )
        log.append(60, batch=20)
        log.archive()
        log.append(30)

    def sql(self, statement: str) -> list[Any]:
        return list(self.spark.sql(statement.format(table=self.table)).collect())

    def version(self) -> int:
        return int(self.sql("DESCRIBE HISTORY {table} LIMIT 1")[0]["version"])

    def check_read(self, expected: list[Any]) -> None:
        log = self.log
        assert [r.value for r in log.lakelog.log("orders").read(0).records()] == [
            row[3] for row in expected
        ]
        assert rows_of(log.lakelog.dataframe("orders")) == expected
        cold = [row for row in expected if row[1] < 60]
        assert rows_of(read(self.spark, None, str(log.cold), "orders", 0, 60)) == cold

    def check_goes_on(self) -> None:
        """The rest is archived, and compaction leaves the last record of each key."""
        log = self.log
        log.archive()
        assert rows_of(log.lakelog.dataframe("orders")) == log.expected()
        (report,) = log.lakelog.cleanup("orders")
        assert report.compacted[0].records_dropped > 0
        cleaned = log.lakelog.log("orders").table.snapshot().cleaned_end(0)
        last = {row[2]: row for row in log.rows if row[1] < cleaned}
        kept = sorted([*last.values(), *(row for row in log.rows if row[1] >= cleaned)])
        assert rows_of(log.lakelog.dataframe("orders")) == kept
        assert rows_of(self.spark.table(self.table)) == kept


@pytest.fixture
def altered(redis_url: str, schema: str, spark: Any) -> Iterator[Altered]:
    log = SparkLog(redis_url, schema)
    yield Altered(log, spark, f"{schema}.orders")
    log.lakelog.close()


@pytest.mark.slow
def test_with_deletion_vectors_everything_goes_on(altered: Altered) -> None:
    log = altered.log
    altered.sql(DELETION_VECTORS)
    sound = altered.version()
    altered.check_read(log.expected())
    altered.sql("DELETE FROM {table} WHERE offset = 5")
    with pytest.raises(ContradictionError, match="lost records"):
        log.lakelog.log("orders").seek(0, 7)
    altered.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {sound}")
    altered.sql("UPDATE {table} SET value = CAST('changed' AS BINARY) WHERE offset = 5")
    log.rows[5] = (*log.rows[5][:3], b"changed")
    altered.check_read(log.expected())
    altered.check_goes_on()


@pytest.fixture
def demanded(spark: Any) -> Iterator[dict[str, str]]:
    """Properties that every new table gets."""
    names = [f"spark.databricks.delta.properties.defaults.{name}" for name in DEMANDED]
    for name, value in zip(names, DEMANDED.values(), strict=True):
        spark.conf.set(name, value)
    yield {f"delta.{name}": value for name, value in DEMANDED.items()}
    for name in names:
        spark.conf.unset(name)


@pytest.mark.slow
def test_what_a_catalog_demands_is_taken_and_everything_goes_on(
    demanded: dict[str, str], altered: Altered
) -> None:
    properties = dict(altered.sql("SHOW TBLPROPERTIES {table}"))
    assert demanded.items() <= properties.items()
    altered.check_read(altered.log.expected())
    altered.check_goes_on()


def test_a_value_column_that_clashes_with_somebody_s_is_refused_and_may_be_renamed(
    altered: Altered, redis_url: str
) -> None:
    log = altered.log
    topics = log.lakelog.topics
    altered.sql("ALTER TABLE {table} ADD COLUMN Origin string")
    with pytest.raises(InvalidConfigError, match=r"Origin.*give the value column another name"):
        topics.alter("orders", {COLUMNS: "origin string"})

    with Lakelog.connect(redis_url) as elsewhere:  # which does not see the table
        elsewhere.topics.alter("orders", {COLUMNS: "origin string"})
    with pytest.raises((ContradictionError, ArchiveFailedError), match="leave it out"):
        log.archive()
    altered.check_read(log.expected())

    topics.alter("orders", {COLUMNS: "origin2 string"})
    altered.check_goes_on()
    names = altered.spark.table(altered.table).columns
    assert names[-3:] == ["Origin", "origin2", "value_error"]
