"""A tenant's topics through Spark: read, written to, and told apart from those of others."""

from __future__ import annotations

import pytest

from lakelog import Lakelog
from lakelog.errors import UnknownTopicOrPartitionError
from lakelog.spark import read


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
