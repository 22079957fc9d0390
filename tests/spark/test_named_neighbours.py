"""Tables by name in a catalog that others use too: what they have there, take, give and forbid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from spark_log import SPARKS_OWN, SparkLog

from lakelog import Lakelog


@pytest.fixture
def log(redis_url: str, schema: str) -> Iterator[SparkLog]:
    named = SparkLog(redis_url, schema)
    yield named
    named.lakelog.close()


@pytest.mark.slow
def test_of_a_schema_with_a_thousand_tables_each_is_not_asked_about(
    log: SparkLog, spark: Any, schema: str, catalog: str, unity_server: Any, monkeypatch: Any
) -> None:
    for number in range(1000):
        name = f"foreign_{number}"
        if catalog == SPARKS_OWN:
            spark.sql(f"CREATE TABLE {schema}.{name} (a INT) USING parquet")
            continue
        unity_server.ask(
            "POST",
            "/tables",
            {
                "catalog_name": catalog,
                "schema_name": schema.split(".")[1],
                "name": name,
                "table_type": "EXTERNAL",
                "data_source_format": "PARQUET",
                "columns": [],
                "storage_location": f"file:///tmp/{schema}/{name}",
            },
        )
    log.create(1).append(3)
    log.archive()
    asked: list[str] = []
    sql = type(spark).sql
    monkeypatch.setattr(type(spark), "sql", lambda *of: asked.append(of[1]) or sql(*of))
    if unity_server is not None:
        unity_server.front.requests.clear()
    with Lakelog.connect(None, schema) as alone:
        assert [topic.name for topic in alone.topics.list()] == ["orders"]
    requests = [] if unity_server is None else unity_server.front.requests
    assert len(asked) + len(requests) < 100  # Unity Catalog lists them by pages
