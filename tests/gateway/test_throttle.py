"""Clients are held back by quotas and where Redis is nearly full, and nothing is refused for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import confluent_kafka as ck
import redis

from lakelog import Lakelog
from lakelog.testing.eventually import eventually
from lakelog.values.config import MIB
from tests.gateway.raw_client import RawClient
from tests.gateway.test_requests import batch, produce
from tests.support.servers import RedisServer

KAFKA = {"lakelog.entry.format": "kafka"}


def test_a_quota_holds_a_producer_back(lake: Lakelog) -> None:
    lake.topics.set_defaults({"lakelog.quota.producer.byte.rate": 100_000})
    lake.topics.create("orders", 1, KAFKA)
    failed = []
    with lake.gateway("127.0.0.1:0") as gateway:
        producer = ck.Producer(
            {
                "bootstrap.servers": gateway.bootstrap_servers,
                "enable.idempotence": True,
                "batch.size": 20_000,
            }
        )
        for number in range(300):
            value = b"%04d" % number + os.urandom(1_000)
            producer.produce(
                "orders", value, on_delivery=lambda error, _: error and failed.append(error)
            )
        assert producer.flush(60) == 0
    assert failed == []
    values = [record.value for record in lake.log("orders").read(0).records()]
    assert [int(value[:4]) for value in values] == list(range(300))


def test_a_quota_that_is_used_up_for_long_is_told_so_that_clients_try_again(lake: Lakelog) -> None:
    lake.topics.set_defaults({"lakelog.quota.producer.byte.rate": 1})
    lake.topics.create("orders", 1, KAFKA)
    sent = batch(lake, 1)
    codes = []
    with lake.gateway("127.0.0.1:0") as gateway, RawClient(gateway.bootstrap_servers) as client:
        for _ in range(20):
            asked = produce(sent)
            asked.timeout_ms = 1
            response = client.ask(asked, 9)
            codes.append(response.responses[0].partition_responses[0].error_code)
            if codes[-1]:
                break
    assert codes[-1] == 56  # KAFKA_STORAGE_ERROR, after which every client sends it again


def test_a_redis_that_is_nearly_full_slows_clients_down(
    make_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    server = make_redis()
    client = redis.Redis.from_url(server.url)
    with Lakelog.connect(server.url, str(tmp_path), engine="inline") as lake:
        lake.topics.create("orders", 1, KAFKA)
        sent = produce(batch(lake, 100))
        client.setrange("ballast", 64 * MIB, "b")
        client.config_set("maxmemory", int(client.info("memory")["used_memory"] / 0.95))
        responses = []

        def is_held_back() -> bool:  # Redis is asked how full it is every tenth of a second
            responses.append(raw.ask(sent, 9))
            return responses[-1].throttle_time_ms > 0

        with lake.gateway("127.0.0.1:0") as gateway, RawClient(gateway.bootstrap_servers) as raw:
            eventually(is_held_back)
    for response in responses:
        assert response.responses[0].partition_responses[0].error_code == 0
