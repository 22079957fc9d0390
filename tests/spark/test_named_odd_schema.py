"""A schema whose name SQL takes in backticks alone, on a server that has such names.

Unity Catalog's open server takes ASCII letters, digits, ``_`` and ``-``; for the other names that
Databricks takes, see tests/cold/test_named_location.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from spark_log import SPARKS_OWN, SparkLog, rows_of

from lakelog import Lakelog
from lakelog.cold.by_name.names import quoted

TOPIC = "Web.Orders-2"


@pytest.fixture
def schema(spark: Any, catalog: str) -> Iterator[str]:
    if catalog == SPARKS_OWN:
        pytest.skip("Spark's own catalog takes letters, digits and _ alone")
    name = quoted(catalog, "logs-1")
    spark.sql(f"CREATE SCHEMA {name}")
    yield f"{catalog}.logs-1"
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def test_a_log_is_archived_read_restored_and_cleaned_in_it(
    redis_url: str, redis_client: redis.Redis, schema: str, tables_at: str, spark: Any
) -> None:
    log = SparkLog(redis_url, schema, TOPIC).create(
        2, cleanup_policy="compact", min_cleanable_dirty_ratio=0, segment_ms=10_000
    )
    for partition in (0, 1):
        for _ in range(3):
            log.append(20, partition)
            log.archive()
    archived = log.expected()
    log.append(5)
    read = [record.value for record in log.lakelog.log(TOPIC).read(0).records()]
    assert read == [row[3] for row in log.expected() if row[0] == 0]
    assert rows_of(log.lakelog.dataframe(TOPIC)) == log.expected()
    frame = spark.read.format("lakelog").options(**log.options(tablesAt=tables_at)).load()
    assert rows_of(frame) == log.expected()
    view = quoted(*schema.split("."), "web_orders_2_view")  # of Web.Orders-2
    assert spark.table(view).count() == len(archived)

    redis_client.flushall()
    (restored,) = log.lakelog.restore()
    assert restored.topic.name == TOPIC
    assert rows_of(log.lakelog.dataframe(TOPIC)) == archived
    with Lakelog.connect(None, schema) as alone:
        assert [topic.name for topic in alone.topics.list()] == [TOPIC]
        (report,) = alone.cleanup()
        assert not report.failures
        assert sum(one.records_dropped for one in report.compacted) > 0
    kept = rows_of(log.lakelog.dataframe(TOPIC))
    assert {row[:3] for row in kept} < {row[:3] for row in archived}
    latest = {(row[0], row[2]): row for row in archived}
    assert set(latest.values()) <= set(kept)
    log.lakelog.close()
