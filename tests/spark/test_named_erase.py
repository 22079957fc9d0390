"""`lakelog erase` of a topic whose table has a name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from spark_log import SparkLog, rows_of

import lakelog.spark

pytestmark = pytest.mark.slow


@pytest.fixture
def log(redis_url: str, schema: str) -> Iterator[SparkLog]:
    named = SparkLog(redis_url, schema)
    yield named
    named.lakelog.close()


def test_records_go_from_both_tiers_and_the_catalog_has_the_rest(
    log: SparkLog, spark: Any, schema: str
) -> None:
    log.create()
    log.append(20)
    log.archive()
    log.append(20)
    where = "offset in (3, 4, 19, 25)"
    assert log.lakelog.erase("orders", where=where, dry_run=True).records == 4

    erased = log.lakelog.erase("orders", where=where)

    assert erased.records == 4
    left = [row for row in log.expected() if row[1] not in (3, 4, 19, 25)]
    orders = log.lakelog.log("orders")
    assert [record.offset for record in orders.read(0).records()] == [row[1] for row in left]
    assert rows_of(spark.table(f"{schema}.orders")) == left
    assert rows_of(log.lakelog.dataframe("orders")) == left
    assert rows_of(lakelog.spark.read(spark, None, schema, "orders")) == left
    assert erased.hot is not None
    assert erased.hot.ends[0] == 40
    assert any("VACUUM once they were removed" in one for one in erased.beyond)
    assert log.lakelog.erase("orders", where=where).records == 0
    log.append(5)
    log.archive()
    assert orders.offsets()[0].archived_end == 45
