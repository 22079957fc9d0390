"""Consumers with ``group.protocol=consumer`` (KIP-848): librdkafka's, through two gateways."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from lakelog import Lakelog
from lakelog.gateway.gateway import Gateway
from lakelog.gateway.protocol.codes import ErrorCode
from lakelog.gateway.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from lakelog.gateway.protocol.wire import API, ApiMessage
from lakelog.groups.group_values import GroupState
from lakelog.groups.recorded_offset import GroupType
from lakelog.testing.eventually import eventually

TIMEOUT_S = 30


@pytest.fixture(autouse=True)
def _quick(lake: Lakelog) -> None:
    lake.topics.set_defaults(
        {
            "group.consumer.session.timeout.ms": 2_000,
            "group.consumer.heartbeat.interval.ms": 200,
            "group.initial.rebalance.delay.ms": 0,
        }
    )
    lake.topics.create("orders", 4)
    with lake.producer() as producer:
        for number in range(40):
            producer.send("orders", b"%d" % number, partition=number % 4)


@pytest.fixture
def consumers() -> Iterator[Callable[..., ck.Consumer]]:
    """``consumers(gateway, **config)``, which reads ``orders``; closed at the end."""
    made: list[ck.Consumer] = []

    def make(gateway: Gateway, topic: str = "orders", **config: Any) -> ck.Consumer:
        settings = {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": "g",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
        made.append(ck.Consumer(settings))
        made[-1].subscribe([topic])
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


@pytest.fixture
def ask(gateway: Gateway) -> Iterator[Callable[[ApiMessage, int], Any]]:
    """``ask(request, version)``: the response, to a request whose version has tagged fields."""
    host, _, port = gateway.bootstrap_servers.rpartition(":")
    api_of = {api.request: (key, api) for key, api in API.items()}
    with socket.create_connection((host, int(port)), TIMEOUT_S) as wire:

        def answered(request: ApiMessage, version: int) -> Any:
            key, api = api_of[type(request)]
            header = struct.pack(">hhihb", key, version, 1, -1, 0)
            frame = header + request.encode(version)
            wire.sendall(struct.pack(">i", len(frame)) + frame)
            with wire.makefile("rb") as read:
                (length,) = struct.unpack(">i", read.read(4))
                return api.response.decode(version, memoryview(read.read(length)), 5)

        yield answered


def polled_until(holds: Callable[[], bool], *polled: ck.Consumer) -> list[bytes | None]:
    """The values that come meanwhile, without errors."""
    values: list[bytes | None] = []
    for _ in range(TIMEOUT_S * 20):
        for consumer in polled:
            if (message := consumer.poll(0.05)) is not None:
                assert message.error() is None, message.error()
                values.append(message.value())
        if holds():
            return values
    raise AssertionError(f"after {TIMEOUT_S} s: {[one.assignment() for one in polled]}")


def has(consumer: ck.Consumer, count: int) -> Callable[[], bool]:
    return lambda: len(consumer.assignment()) == count


def test_members_at_two_gateways_share_commit_and_come_back(
    lake: Lakelog, make_gateway: Any, consumers: Any
) -> None:
    one, other = make_gateway(), make_gateway()
    first, second = consumers(one), consumers(other)
    values = polled_until(lambda: has(first, 2)() and has(second, 2)(), first, second)
    seen = {(tp.topic, tp.partition) for tp in first.assignment() + second.assignment()}
    assert seen == {("orders", number) for number in range(4)}
    while len(set(values)) < 40:
        values += polled_until(lambda: True, first, second)
    (listed,) = lake.groups.list()
    assert (listed.group_type, listed.protocol_type) == (GroupType.CONSUMER, "consumer")
    for consumer in (first, second):
        consumer.commit(asynchronous=False)
    second.close()
    polled_until(has(first, 4), first)
    first.close()
    assert lake.groups.describe("g").state is GroupState.EMPTY
    with lake.producer() as producer:
        producer.send("orders", b"new", partition=3)
    third = consumers(other)
    assert third.poll(TIMEOUT_S).value() == b"new"


def test_who_is_gone_without_a_word_is_out_when_its_session_ends(
    lake: Lakelog, gateway: Gateway, ask: Any, consumers: Any
) -> None:
    first = consumers(gateway)
    polled_until(has(first, 4), first)
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="second",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    assert ask(joining, 1).error_code == ErrorCode.NONE
    polled_until(has(first, 2), first)
    assert len(lake.groups.describe("g").members) == 2
    polled_until(has(first, 4), first)
    assert len(lake.groups.describe("g").members) == 1


def test_a_member_goes_on_by_another_gateway(
    lake: Lakelog, gateway: Gateway, make_gateway: Any, consumers: Any
) -> None:
    doomed = make_gateway()
    first, second = consumers(gateway), consumers(doomed)
    polled_until(lambda: has(first, 2)() and has(second, 2)(), first, second)
    doomed.close()  # the only one that the second was told of by its user
    with lake.producer() as producer:
        sent = [b"after %d" % number for number in range(40)]
        for number, value in enumerate(sent):
            producer.send("orders", value, partition=number % 4)
    values: list[bytes | None] = []
    for _ in range(TIMEOUT_S):
        values += polled_until(lambda: True, *[first, second] * 10)
        if set(sent) <= set(values):
            break
    assert set(sent) <= set(values)
    assert len(lake.groups.describe("g").members) == 2


def test_a_regex_and_new_partitions_are_followed(
    lake: Lakelog, gateway: Gateway, consumers: Any
) -> None:
    consumer = consumers(gateway, "^ord.*")
    polled_until(has(consumer, 4), consumer)
    lake.topics.add_partitions("orders", 5)
    lake.topics.create("ordinary", 1)
    polled_until(has(consumer, 6), consumer)


def test_a_static_member_comes_back(lake: Lakelog, gateway: Gateway, consumers: Any) -> None:
    first = consumers(gateway, **{"group.instance.id": "one"})
    polled_until(has(first, 4), first)
    epoch = lake.groups.describe("g").generation_id
    first.close()
    again = consumers(gateway, **{"group.instance.id": "one"})
    polled_until(has(again, 4), again)
    assert lake.groups.describe("g").generation_id == epoch


def test_the_two_kinds_do_not_mix(lake: Lakelog, gateway: Gateway, consumers: Any) -> None:
    consumer = consumers(gateway)
    polled_until(has(consumer, 4), consumer)
    classic = consumers(gateway, **{"group.protocol": "classic"})
    message = None
    while message is None:
        message = classic.poll(0.1)
    assert message.error().code() == ck.KafkaError.INCONSISTENT_GROUP_PROTOCOL
    consumer.close()
    while message is not None and message.error() is not None:  # what it was told before
        assert message.error().code() == ck.KafkaError.INCONSISTENT_GROUP_PROTOCOL
        message = classic.poll(2.0)
    polled_until(has(classic, 4), classic)
    assert lake.groups.describe("g").group_type is GroupType.CLASSIC


def test_groups_are_described_to_their_tools(
    lake: Lakelog, gateway: Gateway, consumers: Any, ask: Any
) -> None:
    consumer = consumers(gateway, **{"client.id": "reader"})
    polled_until(has(consumer, 4), consumer)
    eventually(lambda: lake.groups.describe("g").state is GroupState.STABLE)
    group, absent = ask(ConsumerGroupDescribeRequest(["g", "absent"]), 1).groups
    assert (group.group_state, group.assignor_name, absent.error_code) == ("Stable", "uniform", 69)
    (member,) = group.members
    assert (member.client_id, member.member_type) == ("reader", 1)
    assert member.assignment == member.target_assignment
    assert member.assignment.topic_partitions[0].topic_name == "orders"
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap_servers})
    (listed,) = admin.list_consumer_groups().result(TIMEOUT_S).valid
    assert (listed.group_id, listed.type.name) == ("g", "CONSUMER")


def test_the_first_version_gives_members_their_ids(ask: Any) -> None:
    joining = ConsumerGroupHeartbeatRequest(
        group_id="v0",
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    told = ask(joining, 0)
    assert told.member_id
    assert (told.member_epoch, told.heartbeat_interval_ms) == (1, 200)
    assert sorted(told.assignment.topic_partitions[0].partitions) == [0, 1, 2, 3]
    assert ask(joining, 1).error_code == 42
