"""A tenant's topics through Spark: read, written to, and told apart from those of others."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.errors import (
    ArchiveFailedError,
    QuotaExceededError,
    TenantNotEmptyError,
    UnknownTenantError,
    UnknownTopicOrPartitionError,
)
from lakelog.spark import read
from lakelog.values.config import QUOTA_COLD_BYTES, QUOTA_TOPICS


@pytest.mark.slow
def test_source_sink_and_frames_go_by_the_tenant(redis_url, tmp_path, spark) -> None:
    cold = str(tmp_path / "cold")
    lake = Lakelog.connect(redis_url, cold, engine="inline")
    lake.tenants.create("acme")
    lake.topics.create("orders", 1)  # of the same name, and nobody's
    place = {"redis": redis_url, "cold": cold, "tenant": "acme"}
    acme = Lakelog.connect(redis_url, cold, tenant="acme", engine="inline")
    acme.topics.create("orders", 1, {"local.retention.ms": 0})
    sent = spark.createDataFrame([(f"v{number}",) for number in range(3)], "value string")
    write = sent.coalesce(1).write.format("lakelog").mode("append")
    write.options(**place, topic="orders").save()
    acme.archive("orders")
    with acme.producer() as producer:
        producer.send("orders", b"v3")

    frame = spark.read.format("lakelog").options(**place, subscribe="orders").load()
    found = [bytes(row.value) for row in frame.orderBy("offset").collect()]
    assert found == [b"v0", b"v1", b"v2", b"v3"]
    assert read(spark, redis_url, cold, "orders", tenant="acme").count() == 4
    assert read(spark, None, cold, "orders", tenant="acme").count() == 3  # what is archived
    assert [*lake.log("orders").read(0).records()] == []
    with pytest.raises(UnknownTopicOrPartitionError):
        read(spark, redis_url, cold, "orders", tenant="other")
    acme.close()
    lake.close()


@pytest.mark.slow
def test_by_name_a_tenant_is_a_schema(redis_url: str, schema: str, spark: Any) -> None:
    """Created, listed, described, bounded and deleted; its tables meet nobody's."""

    def sent(lake: Lakelog, *values: bytes) -> None:
        with lake.producer() as producer:
            for value in values:
                producer.send("orders", value)

    def held(lake: Lakelog) -> list[bytes | None]:
        return [record.value for record in lake.log("orders").read(0).records()]

    own_schema = f"{schema}_acme"
    lake = Lakelog.connect(redis_url, schema)
    try:
        lake.tenants.create("acme", {"topics": 1}, {"log.retention.hours": 48})
        assert [one.name for one in lake.tenants.list()] == ["acme"]
        acme = Lakelog.connect(redis_url, schema, tenant="acme")
        for log, value in ((lake, b"of the log"), (acme, b"of acme")):
            log.topics.create("orders", 1, {"local.retention.ms": 0})
            sent(log, value)
            log.archive()
            assert held(log) == [value]
        for where, value in ((schema, b"of the log"), (own_schema, b"of acme")):
            rows = spark.table(f"{where}.orders").select("value").collect()
            assert [bytes(row.value) for row in rows] == [value]
        assert acme.topics.get("orders").config["retention.ms"] == 48 * 3_600_000
        with pytest.raises(QuotaExceededError, match="one too many"):
            acme.topics.create("more", 1)

        lake.tenants.set_quotas("acme", {"cold.bytes": 1, "topics": None})
        sent(acme, b"one too many")
        with pytest.raises(ArchiveFailedError, match=r"quota\.cold\.bytes=1"):
            acme.archive()
        described = lake.tenants.describe("acme")
        used = {one.quota: (one.used, one.limit) for one in described.quotas}
        assert used[QUOTA_TOPICS] == (1, None)
        assert (used[QUOTA_COLD_BYTES][0] or 0) > 1
        assert used[QUOTA_COLD_BYTES][1] == 1
        assert own_schema in described.place
        assert held(acme) == [b"of acme", b"one too many"]  # Redis keeps it
        lake.tenants.set_quotas("acme", {"cold.bytes": None})
        acme.archive()
        assert spark.table(f"{own_schema}.orders").count() == 2

        with pytest.raises(TenantNotEmptyError):
            lake.tenants.delete("acme")
        acme.close()
        assert lake.tenants.delete("acme", topics=True, purge=True).is_gone
        assert lake.tenants.list() == []
        assert held(lake) == [b"of the log"]
        assert not spark.catalog.tableExists(f"{own_schema}.orders")
        with pytest.raises(UnknownTenantError):
            Lakelog.connect(redis_url, schema, tenant="acme")
    finally:
        lake.close()
        spark.sql(f"DROP SCHEMA IF EXISTS {own_schema} CASCADE")
