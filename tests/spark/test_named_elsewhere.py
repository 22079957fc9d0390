"""Two schemas over one keyspace: a topic is archived into one table, whoever archives."""

from __future__ import annotations

import uuid

import pytest
from spark_log import SparkLog

from lakelog import Lakelog
from lakelog.errors import ArchivedElsewhereError

pytestmark = pytest.mark.slow


@pytest.fixture
def other_schema(spark, schema, tmp_path):
    """Beside `schema`, in the same catalog."""
    catalog, _ = schema.split(".")
    name = f"{catalog}.s{uuid.uuid4().hex[:8]}"
    place = f"LOCATION '{tmp_path}/other'" if catalog == "spark_catalog" else ""
    spark.sql(f"CREATE SCHEMA {name} {place}")
    yield name
    spark.sql(f"DROP SCHEMA {name} CASCADE")


def test_another_schema_and_a_root_are_refused_and_hold_nothing(
    redis_url, schema, other_schema, spark, tmp_path
):
    log = SparkLog(redis_url, schema).create()
    log.append(10)
    log.archive()
    log.append(5)
    for cold in (other_schema, tmp_path / "root"):
        with (
            Lakelog.connect(redis_url, cold, engine="inline") as other,
            pytest.raises(ArchivedElsewhereError, match=r"archived into the table at .*orders"),
        ):
            other.archive("orders")
    assert not spark.catalog.tableExists(f"{other_schema}.orders")
    assert not (tmp_path / "root" / "orders").exists()
    log.archive()
    assert spark.table(f"{schema}.orders").count() == 15
    log.lakelog.close()


def test_what_is_archived_by_name_is_adopted_by_another_schema_while_redis_has_it(
    redis_url, schema, other_schema, spark
):
    log = SparkLog(redis_url, schema).create(local_retention_ms=-1)
    log.append(10)
    log.archive()
    spark.sql(f"DROP TABLE {schema}.orders")
    with Lakelog.connect(redis_url, other_schema, engine="inline") as other:
        with pytest.raises(ArchivedElsewhereError, match="--adopt"):
            other.archive("orders")
        assert other.archive("orders", adopt=True)[0].records == 10
    assert spark.table(f"{other_schema}.orders").count() == 10
    log.lakelog.close()
