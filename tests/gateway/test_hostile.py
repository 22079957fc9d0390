"""Bytes that are no requests, and clients that are slow, many or greedy: each costs its connection
and one line of the log, and others are served as before.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from collections.abc import Callable, Iterator
from random import Random
from typing import Any
from uuid import UUID

import confluent_kafka as ck
import pytest

from lakelog import Lakelog
from lakelog.base.address import Address
from lakelog.gateway.dispatch import SERVED_WITH_SASL
from lakelog.gateway.gateway import Gateway
from lakelog.gateway.protocol.codes import ErrorCode
from lakelog.gateway.protocol.messages import (
    ApiVersionsRequest,
    FetchRequest,
    HeartbeatRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)
from lakelog.gateway.protocol.wire import API, ApiMessage
from lakelog.testing.eventually import eventually
from tests.gateway.message_values import MessageValues
from tests.gateway.raw_client import RawClient, frame, framed

AT_ONCE = 16
#: Without an answer for so long, a client goes: it may have asked to wait.
PATIENCE_S = 0.25


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Callable[[], list[logging.LogRecord]]:
    """What the gateway has logged so far, as warnings or worse."""
    caplog.set_level(logging.INFO, "lakelog.gateway")
    return lambda: [
        record
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name.startswith("lakelog.gateway")
    ]


def real_requests(batch: bytes) -> Iterator[tuple[ApiMessage, int]]:
    """Requests as clients make them, of which more than the form is looked at."""
    produce = ProduceRequest(acks=-1, timeout_ms=1_000)
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    produce.topic_data = [ProduceRequest.TopicProduceData(name="orders", partition_data=[data])]
    fetch = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20)
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    fetch.topics = [FetchRequest.FetchTopic(topic="orders", partitions=[wanted])]
    listed = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    offsets = ListOffsetsRequest(
        topics=[ListOffsetsRequest.ListOffsetsTopic(name="orders", partitions=[listed])]
    )
    committed = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1
    )
    commit = OffsetCommitRequest(group_id="g")
    commit.topics = [OffsetCommitRequest.OffsetCommitRequestTopic("orders", partitions=[committed])]
    for version in (3, 7, 9):
        yield produce, version
    for version in (4, 8, 12):
        yield fetch, version
    for version in (1, 5):
        yield offsets, version
    yield commit, 8
    yield MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")]), 9
    yield OffsetFetchRequest(group_id="g", topics=None), 5
    yield HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 3


def frames(random: Random, batch: bytes, count: int) -> Iterator[bytes]:
    """So many frames with bytes that were changed: of real requests, and of random ones."""
    real = [frame(request, version) for request, version in real_requests(batch)]
    for number in range(count):
        if number % 2:
            good = random.choice(real)
        else:
            api = API[random.choice(sorted(SERVED_WITH_SASL))]
            version = random.randint(api.min_version, api.max_version)
            values = MessageValues(random.random(), tame=random.random() < 0.5)
            good = frame(values.message(api.request, version), version)
        yield mutated(random, good)


def mutated(random: Random, good: bytes) -> bytes:
    """The frame with some bytes changed, cut out or put in; its length fits, but for some."""
    data = bytearray(good[4:])
    for _ in range(random.choice([1, 1, 2, 3, 8])):
        begin = 13 if random.random() < 0.9 else 0  # behind the header, which is soon refused
        at = random.randrange(begin, max(begin + 1, len(data)))
        match random.randrange(5):
            case 0 if data:
                data[at % len(data)] ^= 1 << random.randrange(8)
            case 1:
                data[at : at + 1] = random.randbytes(1)
            case 2:
                data[at : at + 4] = random.choice([b"\xff" * 4, b"\x7f\xff\xff\xff", bytes(4)])
            case 3:
                del data[at : at + random.randint(1, 9)]
            case 4:
                data[at:at] = random.randbytes(random.randint(1, 9))
    if random.random() < 0.05:
        return struct.pack(">i", random.choice([-1, 0, 2**31 - 1, len(data) + 9])) + bytes(data)
    return framed(bytes(data))


class Counts:
    """What became of connections."""

    def __init__(self) -> None:
        self.answered = self.closed = self.left = 0


async def send_all(where: Address, all_frames: Iterator[bytes], counts: Counts) -> None:
    """Each on a connection of its own, some at once."""

    async def work() -> None:
        for one in all_frames:
            reader, writer = await asyncio.open_connection(where.host, where.port)
            try:
                writer.write(one)
                if await asyncio.wait_for(reader.read(1), PATIENCE_S):
                    counts.answered += 1
                else:
                    counts.closed += 1
            except asyncio.TimeoutError:
                counts.left += 1
            except ConnectionError:
                counts.closed += 1
            finally:
                writer.transport.abort()

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


@pytest.mark.parametrize(
    "count", [2_000, pytest.param(100_000, marks=pytest.mark.slow)], ids=lambda count: f"{count}"
)
def test_changed_bytes_cost_their_connection_and_nothing_else(
    lake: Lakelog, gateway: Gateway, said: Any, count: int, request: pytest.FixtureRequest
) -> None:
    seed = 7 + count
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    producer = ck.Producer({"bootstrap.servers": gateway.bootstrap_servers})
    producer.produce("orders", b"value", b"key")
    assert producer.flush(30) == 0
    counts = Counts()
    where = Address.parse(gateway.bootstrap_servers)
    random = Random(seed)
    asyncio.run(send_all(where, frames(random, stored(gateway), count), counts))
    del producer
    eventually(lambda: gateway.connection_count == 0, said=lambda: gateway)
    eventually(lambda: gateway.memory_taken_bytes == 0, said=lambda: gateway.memory_taken_bytes)
    lines = said()
    failed = [line.getMessage() for line in lines if line.levelno >= logging.ERROR]
    assert not failed, failed[:5]
    closed = [line for line in lines if ": closed: " in line.getMessage()]
    assert counts.closed > count / 10
    assert counts.answered > count / 10
    # Of those that did not wait, some may have been closed as they went.
    assert counts.closed <= len(closed) <= counts.closed + counts.left, vars(counts)
    assert all("\n" not in line.getMessage() for line in lines)
    assert stored(gateway)


@pytest.mark.parametrize("version", [10, 11, 12])
def test_a_topic_of_an_id_that_nobody_has_is_told_in_every_version(
    gateway: Gateway, version: int
) -> None:
    asked = MetadataRequest.MetadataRequestTopic(topic_id=UUID(int=7), name=None)
    with RawClient(gateway.bootstrap_servers) as client:
        (told,) = client.ask(MetadataRequest(topics=[asked]), version).topics
    assert told.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert not told.name


def stored(gateway: Gateway) -> bytes:
    """The first batch of ``orders``, as it is fetched."""
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    asked = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 20)
    asked.topics = [FetchRequest.FetchTopic(topic="orders", partitions=[wanted])]
    with RawClient(gateway.bootstrap_servers) as client:
        (topic,) = client.ask(asked, 11).responses
    records = bytes(topic.partitions[0].records)
    return records[: 12 + struct.unpack_from(">i", records, 8)[0]]


# -- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "why"),
    [
        (struct.pack(">i", 2**31 - 1), "a request of 2147483647 bytes"),
        (struct.pack(">i", -1), "a request of -1 bytes"),
        (struct.pack(">i", 0), "a request of 0 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "it is HTTP"),
        (framed(b"\x03"), "are no request"),
        (framed(struct.pack(">hhih", 999, 0, 1, -1)), "asks for API 999, which is not served"),
        (framed(struct.pack(">hhih", 3, 99, 1, -1)), "Metadata of version 99"),
        (framed(struct.pack(">hhih", 3, 1, 1, -1)), "end within it"),
    ],
)
def test_what_is_no_request_is_one_line(
    gateway: Gateway, said: Any, start: bytes, why: str
) -> None:
    with RawClient(gateway.bootstrap_servers) as client:
        client.send(start)
        assert client.is_closed()
    (line,) = said()
    assert why in line.getMessage()
    assert gateway.memory_taken_bytes == 0


def test_a_request_that_does_not_come_whole_ends_with_the_idle_time(
    make_gateway: Any, said: Any
) -> None:
    gateway = make_gateway(max_idle_s=0.3)
    with RawClient(gateway.bootstrap_servers) as client:
        client.send(struct.pack(">i", 1_000))
        client.socket.settimeout(0.02)
        while True:  # a byte now and then does not help
            try:
                client.send(b"\0")
                if client.socket.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
    (line,) = said()
    assert "did not come whole within 0.3 s" in line.getMessage()
    assert gateway.memory_taken_bytes == 0


def test_who_is_idle_is_closed_without_a_warning(make_gateway: Any, said: Any) -> None:
    gateway = make_gateway(max_idle_s=0.3)
    with RawClient(gateway.bootstrap_servers) as client:
        client.ask(ApiVersionsRequest(), 3)
        assert client.is_closed()
    assert said() == []


def test_who_does_not_say_in_time_who_it_is_is_closed(make_gateway: Any, said: Any) -> None:
    gateway = make_gateway(max_idle_s=0.3, sasl_mechanisms=("PLAIN",))
    with RawClient(gateway.bootstrap_servers) as client:
        assert client.is_closed()
    (line,) = said()
    assert "did not say in time who it is" in line.getMessage()


@pytest.mark.slow
def test_who_takes_no_answers_is_closed(lake: Lakelog, make_gateway: Any, said: Any) -> None:
    for number in range(200):
        lake.topics.create(f"a-topic-whose-name-is-not-short-{number}", 20)
    gateway = make_gateway(max_idle_s=0.3)
    with RawClient(gateway.bootstrap_servers) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.send(frame(MetadataRequest(topics=None), 9) * 200)
        eventually(lambda: said())
        eventually(lambda: gateway.connection_count == 0)
    (line,) = said()
    assert "takes nothing of what it was answered" in line.getMessage()
    assert gateway.memory_taken_bytes == 0


def test_answers_hold_memory_until_they_are_taken(lake: Lakelog, gateway: Gateway) -> None:
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    value, count = bytes(900_000), 8
    producer = ck.Producer({"bootstrap.servers": gateway.bootstrap_servers, "linger.ms": 0})
    for _ in range(4):
        producer.produce("orders", value)
        assert producer.flush(30) == 0
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=3 << 20)
    asked = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=3 << 20)
    asked.topics = [FetchRequest.FetchTopic(topic="orders", partitions=[wanted])]
    with RawClient(gateway.bootstrap_servers) as client:
        client.send(frame(asked, 11) * count)
        eventually(lambda: gateway.memory_taken_bytes > len(value))
        for _ in range(count):
            assert len(client.answer()) > 3 * len(value)
        eventually(lambda: gateway.memory_taken_bytes == 0)


def test_a_fetch_that_waits_holds_no_memory(lake: Lakelog, make_gateway: Any) -> None:
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    gateway = make_gateway(max_memory_bytes=1 << 20)
    wanted = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    asked = FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20)
    asked.topics = [FetchRequest.FetchTopic(topic="orders", partitions=[wanted])]
    clients = [RawClient(gateway.bootstrap_servers) for _ in range(8)]
    for client in clients:
        client.send(frame(asked, 11))
    eventually(lambda: gateway.connection_count == len(clients))
    producer = ck.Producer({"bootstrap.servers": gateway.bootstrap_servers})
    producer.produce("orders", b"value")
    assert producer.flush(30) == 0
    for client in clients:
        assert b"value" in client.answer()
        client.socket.close()


def test_there_are_no_more_connections_than_may_be(make_gateway: Any, said: Any) -> None:
    gateway = make_gateway(max_connections=2)
    where = gateway.bootstrap_servers
    with RawClient(where) as first, RawClient(where) as second:
        for client in (first, second):
            client.ask(ApiVersionsRequest(), 3)
        with RawClient(where) as third:
            assert third.is_closed()
        first.ask(ApiVersionsRequest(), 3)
    (line,) = said()
    assert "max_connections=2" in line.getMessage()
    eventually(lambda: gateway.connection_count == 0)
    with RawClient(where) as client:
        client.ask(ApiVersionsRequest(), 3)


def test_requests_wait_for_memory_and_are_answered(make_gateway: Any, said: Any) -> None:
    gateway = make_gateway(max_memory_bytes=10_000)
    large = framed(frame(ApiVersionsRequest(), 3)[4:] + bytes(9_000))
    clients = [RawClient(gateway.bootstrap_servers) for _ in range(8)]
    for client in clients:
        client.send(large[:-1])
    for client in clients:
        client.send(large[-1:])
    for client in clients:
        assert client.answer()
        client.socket.close()
    eventually(lambda: gateway.memory_taken_bytes == 0)
    assert said() == []
