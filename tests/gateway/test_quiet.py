"""What a connection need not read again, and that it misses nothing by that."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from redis import Redis

from lakelog import Lakelog
from lakelog.gateway import quiet
from lakelog.gateway.gateway import Gateway
from lakelog.gateway.protocol.codes import ErrorCode
from lakelog.gateway.protocol.messages import FetchRequest, FetchResponse
from lakelog.testing.eventually import eventually
from tests.gateway.raw_client import RawClient

PARTITIONS = 4
_VERSION = 13


def fetch(topic_id: Any, positions: list[int], **more: int) -> FetchRequest:
    parts = [
        FetchRequest.FetchPartition(
            partition=number, fetch_offset=position, partition_max_bytes=1 << 20
        )
        for number, position in enumerate(positions)
    ]
    topic = FetchRequest.FetchTopic(topic_id=topic_id, partitions=parts)
    return FetchRequest(
        **{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **more}, topics=[topic]
    )


def parts(response: FetchResponse) -> list[FetchResponse.PartitionData]:
    return list(response.responses[0].partitions)


def test_partitions_without_news_are_not_read_again(
    lake: Lakelog, gateway: Gateway, redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "_MAX_AGE_S", 1e9)
    topic = lake.topics.create("orders", PARTITIONS)

    def reads() -> int:
        return int(redis_client.info("commandstats").get("cmdstat_xrange", {"calls": 0})["calls"])

    with RawClient(gateway.bootstrap_servers) as client, lake.producer(linger_ms=0) as producer:

        def is_followed() -> bool:  # a slow machine's reads may leave no time to wait for more
            before = reads()
            client.ask(fetch(topic.topic_id, [0] * PARTITIONS, max_wait_ms=20), _VERSION)
            return reads() == before

        eventually(is_followed)
        before = reads()
        told = parts(client.ask(fetch(topic.topic_id, [0] * PARTITIONS), _VERSION))
        assert reads() == before
        assert [(one.log_start_offset, one.high_watermark) for one in told] == [(0, 0)] * PARTITIONS
        client.begin(fetch(topic.topic_id, [0] * PARTITIONS, max_wait_ms=60_000), _VERSION)
        producer.send("orders", b"news", partition=2).result()
        found = parts(client.take(FetchRequest, _VERSION)[1])
        assert [bool(one.records) for one in found] == [False, False, True, False]
        assert reads() == before + 1


def test_what_is_appended_between_two_fetches_is_found(lake: Lakelog, gateway: Gateway) -> None:
    topic = lake.topics.create("orders", PARTITIONS)
    with RawClient(gateway.bootstrap_servers) as client, lake.producer(linger_ms=0) as producer:
        for count in range(20):
            positions = [count] * PARTITIONS
            client.ask(fetch(topic.topic_id, positions, max_wait_ms=1), _VERSION)
            for number in range(PARTITIONS):
                producer.send("orders", b"%d" % count, partition=number).result()
            seen = [False] * PARTITIONS
            while not all(seen):
                asked = fetch(topic.topic_id, positions, max_wait_ms=60_000)
                for number, one in enumerate(parts(client.ask(asked, _VERSION))):
                    seen[number] |= bool(one.records)


def test_a_topic_that_is_made_anew_is_another(lake: Lakelog, gateway: Gateway) -> None:
    topic = lake.topics.create("orders", 1)
    with RawClient(gateway.bootstrap_servers) as client:
        client.ask(fetch(topic.topic_id, [0], max_wait_ms=20), _VERSION)
        lake.topics.delete("orders")
        lake.topics.create("orders", 1)
        (part,) = parts(client.ask(fetch(topic.topic_id, [0]), _VERSION))
    assert part.error_code in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE)
    assert not part.records


@pytest.mark.parametrize("seed", range(4))
def test_a_consumer_gets_all_records_in_order(
    lake: Lakelog, gateway: Gateway, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Whatever happens between its fetches: appends, archiving that trims Redis, deletions."""
    monkeypatch.setattr(quiet, "_MAX_AGE_S", 1e9)  # or it would only come late
    dice = random.Random(seed)
    config = {"local.retention.bytes": "0", "internal.segment.bytes": "2000", "retention.ms": "-1"}
    topic = lake.topics.create("orders", PARTITIONS, config)
    log = lake.log("orders")
    appended, positions, starts = [0] * PARTITIONS, [0] * PARTITIONS, [0] * PARTITIONS

    def read(wait_ms: int) -> None:
        asked = fetch(topic.topic_id, positions, max_wait_ms=wait_ms)
        for number, one in enumerate(parts(client.ask(asked, _VERSION))):
            if one.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                assert positions[number] < starts[number]
                positions[number] = starts[number]
                continue
            assert one.error_code == ErrorCode.NONE
            found = [int(text) for text in re.findall(rb"no(\d+);", bytes(one.records or b""))]
            new = [value for value in found if value >= positions[number]]
            assert new == list(range(positions[number], positions[number] + len(new)))
            positions[number] += len(new)

    with RawClient(gateway.bootstrap_servers) as client, lake.producer(linger_ms=0) as producer:
        for _ in range(120):
            what, number = dice.random(), dice.randrange(PARTITIONS)
            if what < 0.45:
                for _ in range(dice.randint(1, 8)):
                    value = b"no%d;" % appended[number] + b"x" * 200
                    producer.send("orders", value, partition=number).result()
                    appended[number] += 1
            elif what < 0.5:
                lake.archive("orders")
            elif what < 0.55:
                starts[number] = dice.randint(starts[number], appended[number])
                log.raise_log_start(number, starts[number])
            else:
                read(dice.choice((0, 0, 5)))
        for _ in range(1_000):
            if positions == appended:
                break
            read(20)
    assert positions == appended
