"""Somebody drops the table of a topic by name, and a new process goes on."""

from __future__ import annotations

from typing import Any

import pytest
from spark_log import SparkLog, rows_of

from lakelog import Lakelog
from lakelog.errors import ContradictionError, LakelogError

pytestmark = pytest.mark.slow


def test_what_redis_still_has_is_archived_once_more(log: SparkLog, spark: Any, schema: str) -> None:
    log.create(1, local_retention_ms=-1).append(10)
    log.archive()
    spark.sql(f"DROP TABLE {schema}.orders")
    log.append(5)
    with Lakelog.connect(log.url, schema, engine="inline") as anew:
        with anew.consumer(auto_offset_reset="earliest", consumer_timeout_ms=1000) as consumer:
            consumer.assign([("orders", 0)])
            assert [record.offset for record in consumer] == list(range(15))
        assert anew.archive("orders")[0].records == 15
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()


def test_what_was_trimmed_is_said_to_be_gone_and_the_rest_stays_in_redis(
    log: SparkLog, spark: Any, schema: str
) -> None:
    log.create(1).append(10)
    log.archive()
    spark.sql(f"DROP TABLE {schema}.orders")
    log.append(5)
    with Lakelog.connect(log.url, schema, engine="inline") as anew:
        with pytest.raises(ContradictionError, match=r"orders-0 cannot be archived from offset 0"):
            anew.archive("orders")
        orders = anew.log("orders")
        with pytest.raises(LakelogError, match="orders-0"):
            list(orders.read(0, 0).records())
        assert [one.offset for one in orders.read(0, 10).records()] == list(range(10, 15))
