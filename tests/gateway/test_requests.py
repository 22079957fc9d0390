"""Requests one by one, as no client sends them: every version, in any order, and what is none."""

from __future__ import annotations

import logging
import os
import struct
import time
from typing import Any
from uuid import uuid4

import pytest

from lakelog import Lakelog
from lakelog.codec.kafka_entry import batches_of
from lakelog.gateway.dispatch import API_VERSIONS, PRODUCE, SERVED
from lakelog.gateway.gateway import Gateway
from lakelog.gateway.protocol.codes import ErrorCode
from lakelog.gateway.protocol.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeLogDirsRequest,
    DescribeTopicPartitionsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListConfigResourcesRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from lakelog.gateway.protocol.wire import API
from lakelog.testing.eventually import eventually
from tests.gateway.raw_client import RawClient

VERSIONS = [
    (key, version)
    for key in sorted(SERVED)
    for version in range(API[key].min_version, API[key].max_version + 1)
]


def batch(lake: Lakelog, count: int = 1) -> bytes:
    """A batch as a client sends it."""
    name = f"made-{uuid4().hex}"
    lake.topics.create(name, 1)
    with lake.producer() as producer:
        for number in range(count):
            producer.send(name, b"%d" % number)
    (found,) = batches_of(next(iter(lake.log(name).read(0))))
    return found


def produce(batch: bytes | None, name: str = "orders", partition: int = 0) -> ProduceRequest:
    told = ProduceRequest
    data = told.TopicProduceData(name, [told.PartitionProduceData(partition, batch)])
    return ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[data])


def produced(response: Any) -> Any:
    return response.responses[0].partition_responses[0]


def connected(gateway: Gateway) -> RawClient:
    return RawClient(gateway.bootstrap_servers)


@pytest.fixture
def client(gateway: Gateway) -> Any:
    with connected(gateway) as found:
        yield found


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_every_version_of_every_request_is_answered(
    shared_gateway: Gateway, key: int, version: int
) -> None:
    with connected(shared_gateway) as client:
        request = API[key].request()
        if key == PRODUCE:
            request.acks = 1  # type: ignore[attr-defined]
        client.ask(request, version)
        assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def test_versions_that_nobody_knows_are_told_in_the_first(client: RawClient) -> None:
    frame = struct.pack(">hhih", API_VERSIONS, 99, 7, -1) + b"\0\0\0"
    client.send(struct.pack(">i", len(frame)) + frame)
    number, response = client.take(ApiVersionsRequest, 0)
    assert (number, response.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert {one.api_key for one in response.api_keys} == SERVED


def test_answers_come_in_the_order_of_requests(lake: Lakelog, client: RawClient) -> None:
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    sent = batch(lake)
    numbers = [client.begin(produce(sent), 9) for _ in range(50)]
    numbers.append(client.begin(MetadataRequest(), 12))
    offsets = []
    for number in numbers[:-1]:
        answered, response = client.take(ProduceRequest, 9)
        assert answered == number
        offsets.append(produced(response).base_offset)
    assert offsets == list(range(50))
    assert client.take(MetadataRequest, 12)[0] == numbers[-1]


def test_a_batch_that_is_none_is_refused_and_the_others_are_appended(
    lake: Lakelog, client: RawClient
) -> None:
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    sent = batch(lake)
    damaged = sent[:-1] + bytes([sent[-1] ^ 1])
    for wrong, code in (
        (damaged, ErrorCode.CORRUPT_MESSAGE),
        (None, ErrorCode.CORRUPT_MESSAGE),
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (sent + sent, ErrorCode.INVALID_RECORD),
        (sent[:16] + b"\x01" + sent[17:], ErrorCode.INVALID_RECORD),
    ):
        answer = produced(client.ask(produce(wrong), 9))
        assert answer.error_code == code
        assert answer.error_message
    assert produced(client.ask(produce(sent), 9)).base_offset == 0
    unknown = produced(client.ask(produce(sent, "nothing"), 9))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    beyond = produced(client.ask(produce(sent, partition=4), 9))
    assert beyond.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def fetch(topic_id: Any, offset: int, **more: Any) -> FetchRequest:
    told = FetchRequest
    one = told.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    topic = told.FetchTopic(topic_id=topic_id, partitions=[one])
    return FetchRequest(**{"max_wait_ms": 0, "max_bytes": 1 << 20, **more}, topics=[topic])


def test_a_fetch_waits_for_as_long_as_it_says_and_no_longer_than_for_news(
    lake: Lakelog, client: RawClient
) -> None:
    topic = lake.topics.create("orders", 1)
    began_s = time.monotonic()
    response = client.ask(fetch(topic.topic_id, 0, max_wait_ms=200, min_bytes=1), 13)
    assert time.monotonic() - began_s >= 0.2
    assert not response.responses[0].partitions[0].records
    client.begin(fetch(topic.topic_id, 0, max_wait_ms=60_000, min_bytes=1), 13)
    with lake.producer() as producer:
        producer.send("orders", b"news")
    _, response = client.take(FetchRequest, 13)
    assert b"news" in bytes(response.responses[0].partitions[0].records)


def test_offsets_outside_of_the_log_are_said(lake: Lakelog, client: RawClient) -> None:
    topic = lake.topics.create("orders", 1)
    for offset in (-1, 5):
        (part,) = client.ask(fetch(topic.topic_id, offset), 13).responses[0].partitions
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    (part,) = client.ask(fetch(uuid4(), 0), 13).responses[0].partitions
    assert part.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_what_a_fetch_brings_is_bounded(lake: Lakelog, client: RawClient) -> None:
    topic = lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    with lake.producer(linger_ms=0) as producer:
        for _ in range(20):
            producer.send("orders", os.urandom(100_000)).result()
    (part,) = client.ask(fetch(topic.topic_id, 0, max_bytes=250_000), 13).responses[0].partitions
    assert 100_000 < len(part.records) <= 250_000
    (part,) = client.ask(fetch(topic.topic_id, 0, max_bytes=1), 13).responses[0].partitions
    assert len(part.records) > 100_000  # one at least, or nobody would ever get it


def test_there_are_no_transactions_and_who_wants_one_is_told(
    lake: Lakelog, client: RawClient
) -> None:
    lake.topics.create("orders", 1)
    asked = FindCoordinatorRequest(key_type=1, coordinator_keys=["mine"])
    (told,) = client.ask(asked, 4).coordinators
    assert told.error_code == ErrorCode.INVALID_REQUEST
    assert "transaction" in told.error_message
    request = produce(batch(lake))
    request.transactional_id = "mine"
    assert produced(client.ask(request, 9)).error_code == ErrorCode.INVALID_REQUEST


def test_topics_are_told_page_by_page(lake: Lakelog, client: RawClient) -> None:
    for name in ("a", "b", "c"):
        lake.topics.create(name, 3)
    found: list[tuple[str, int]] = []
    request = DescribeTopicPartitionsRequest(response_partition_limit=4)
    while True:
        response = client.ask(request, 0)
        found += [(t.name, p.partition_index) for t in response.topics for p in t.partitions]
        if response.next_cursor is None:
            break
        told = response.next_cursor
        request.cursor = DescribeTopicPartitionsRequest.Cursor(
            told.topic_name, told.partition_index
        )
    assert found == [(name, partition) for name in "abc" for partition in range(3)]


def test_a_topic_that_is_only_checked_is_not_made(lake: Lakelog, client: RawClient) -> None:
    told = CreateTopicsRequest
    request = CreateTopicsRequest(
        topics=[told.CreatableTopic("orders", 2, 1), told.CreatableTopic("none", 0, 1)],
        validate_only=True,
    )
    could, could_not = client.ask(request, 7).topics
    assert (could.error_code, could_not.error_code) == (0, ErrorCode.INVALID_PARTITIONS)
    assert lake.topics.list() == []


def test_what_there_is_little_to_say_of(lake: Lakelog, client: RawClient) -> None:
    lake.topics.create("orders", 2)
    with lake.producer() as producer:
        producer.send("orders", b"v", partition=1)
    (dir_,) = client.ask(DescribeLogDirsRequest(topics=None), 1).results
    (topic,) = dir_.topics
    assert [one.partition_size > 0 for one in topic.partitions] == [False, True]
    quotas = AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.EntryData()])
    (entry,) = client.ask(quotas, 1).entries
    assert "lakelog.quota" in entry.error_message
    moved = client.ask(AlterPartitionReassignmentsRequest(), 0)
    assert moved.error_code == ErrorCode.INVALID_REQUEST
    resources = client.ask(ListConfigResourcesRequest(resource_types=[2]), 1)
    assert [one.resource_name for one in resources.config_resources] == ["orders"]


def test_times_that_are_none_are_refused(lake: Lakelog, client: RawClient) -> None:
    lake.topics.create("orders", 1)
    told = ListOffsetsRequest
    for timestamp, code in ((-99, ErrorCode.UNSUPPORTED_VERSION), (-5, 0), (-4, 0), (-3, 0)):
        asked = told.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[told.ListOffsetsTopic("orders", [asked])])
        (answer,) = client.ask(request, 9).topics[0].partitions
        assert answer.error_code == code, timestamp


def test_every_producer_has_an_id_of_its_own(client: RawClient) -> None:
    """As by a broker, whatever a client says that it had: @platformatic/kafka says 0 at first."""
    request = InitProducerIdRequest(transaction_timeout_ms=1, producer_id=0, producer_epoch=0)
    request.transactional_id = None
    answers = [client.ask(request, 4) for _ in range(2)]
    assert [one.producer_epoch for one in answers] == [0, 0]
    assert len({0, *(one.producer_id for one in answers)}) == 3


def test_a_negative_offset_takes_back_what_a_group_has_committed(
    lake: Lakelog, client: RawClient
) -> None:
    """KafkaJS resets groups by -1 and -2, of which a broker's clients make that there is none."""
    lake.topics.create("orders", 2)
    told, asked = OffsetCommitRequest, OffsetFetchRequest
    for offsets in ((5, 7), (-2, 8), (-1, -1), (-1, 9)):
        parts = [told.OffsetCommitRequestPartition(*one) for one in enumerate(offsets)]
        topics = [told.OffsetCommitRequestTopic("orders", parts)]
        response = client.ask(told(group_id="g", topics=topics), 5)
        assert [one.error_code for one in response.topics[0].partitions] == [0, 0]
        of_both = [asked.OffsetFetchRequestTopic("orders", [0, 1])]
        (topic,) = client.ask(asked(group_id="g", topics=of_both), 5).topics
        assert [one.committed_offset for one in topic.partitions] == [max(-1, o) for o in offsets]


def test_lakelogs_own_settings_stay_where_all_are_replaced(
    lake: Lakelog, client: RawClient
) -> None:
    """Clients that replace settings name all they know of, which are Kafka's."""
    own = {"lakelog.entry.format": "kafka", "lakelog.max.decoded.bytes": "5000000"}
    lake.topics.create("orders", 1, {**own, "retention.ms": "1", "cleanup.policy": "compact"})
    told = AlterConfigsRequest
    for given, found in (
        ({"retention.ms": "2"}, {**own, "retention.ms": "2"}),
        ({"lakelog.entry.format": "auto"}, {**own, "lakelog.entry.format": "auto"}),
    ):
        configs = [told.AlterableConfig(*one) for one in given.items()]
        request = told(resources=[told.AlterConfigsResource(2, "orders", configs)])
        (answer,) = client.ask(request, 2).responses
        assert answer.error_code == ErrorCode.NONE
        assert dict(lake.topics.get("orders").config.overrides) == found


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (struct.pack(">i", 2**31 - 1), "2147483647 bytes"),
        (struct.pack(">i", 0), "0 bytes"),
        (struct.pack(">i", -1), "-1 bytes"),
        (struct.pack(">ihhih", 10, 3, 99, 1, -1), "Metadata of version 99"),
        (struct.pack(">ihhih", 10, 9_999, 0, 1, -1), "API 9999"),
        (struct.pack(">ihhih", 10, 3, 1, 1, -1), "end within it"),
    ],
)
def test_bytes_that_are_no_request_close_that_connection_alone(
    gateway: Gateway, client: RawClient, caplog: pytest.LogCaptureFixture, data: bytes, said: str
) -> None:
    with (
        caplog.at_level(logging.WARNING, "lakelog.gateway"),
        connected(gateway) as bad,
    ):
        bad.send(data)
        assert bad.is_closed()
    (line,) = [one.getMessage() for one in caplog.records]
    assert said in line
    assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def test_no_more_connections_than_are_allowed(make_gateway: Any) -> None:
    gateway = make_gateway(max_connections=2)
    with connected(gateway) as one, connected(gateway) as two:
        for client in (one, two):
            client.ask(ApiVersionsRequest(), 0)
        with connected(gateway) as three:
            assert three.is_closed()
        one.ask(ApiVersionsRequest(), 0)
    eventually(lambda: gateway.connection_count == 0)


def test_idle_ones_are_closed_even_amid_a_frame(make_gateway: Any) -> None:
    gateway = make_gateway(max_idle_s=0.2)
    with connected(gateway) as idle, connected(gateway) as slow:
        slow.send(struct.pack(">i", 1_000) + b"a")
        assert idle.is_closed()
        assert slow.is_closed()


def test_memory_is_bounded_and_given_back(make_gateway: Any, lake: Lakelog) -> None:
    gateway = make_gateway(max_memory_bytes=2_000_000, max_request_bytes=1_500_000)
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    request = produce(batch(lake))
    with (
        connected(gateway) as one,
        connected(gateway) as two,
        connected(gateway) as three,
    ):
        for client in (one, two):  # each holds most of the memory, and does not go on
            client.send(struct.pack(">i", 1_400_000) + bytes(10))
        sent_at = three.begin(request, 9)
        two.socket.close()
        one.socket.close()
        number, response = three.take(ProduceRequest, 9)
        assert number == sent_at
        assert produced(response).base_offset == 0
