"""Clients as they are: librdkafka's, kafka-python's and aiokafka's, on a log of two tiers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from lakelog import Lakelog
from lakelog.gateway.gateway import Gateway
from lakelog.values.record import TimestampType

TIMEOUT_S = 30
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def admin(gateway: Gateway) -> AdminClient:
    return AdminClient({"bootstrap.servers": gateway.bootstrap_servers})


@pytest.fixture
def make_topic(admin: AdminClient) -> Callable[..., str]:
    """``make_topic(name="orders", partitions=1, **config)``; ``_`` in names for ``.``."""

    def make(name: str = "orders", partitions: int = 1, **config: str) -> str:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        (future,) = admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values()
        future.result(TIMEOUT_S)
        return name

    return make


def produced(gateway: Gateway, topic: str, records: list[dict[str, Any]], **config: Any) -> None:
    """Sends records (arguments of ``produce``), each of which has to arrive."""
    settings = {"bootstrap.servers": gateway.bootstrap_servers, "linger.ms": 5, **config}
    producer = ck.Producer(settings)
    failed: list[Any] = []
    for record in records:
        producer.produce(topic, on_delivery=lambda e, _: failed.append(e) if e else None, **record)
    assert producer.flush(TIMEOUT_S) == 0
    assert not failed


@pytest.fixture
def consumers() -> Iterator[Callable[..., ck.Consumer]]:
    """``consumers(gateway, group="g", **config)``; closed at the end."""
    made: list[ck.Consumer] = []

    def make(gateway: Gateway, group: str = "g", **config: Any) -> ck.Consumer:
        settings = {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
        made.append(ck.Consumer(settings))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


def taken(consumer: ck.Consumer, count: int) -> list[ck.Message]:
    """So many messages, as they come."""
    found: list[ck.Message] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), TIMEOUT_S)
        assert messages, f"{len(found)} of {count} came"
        for message in messages:
            assert message.error() is None, message.error()
        found += messages
    return found


# -- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry_format", ["kafka", "auto"])
def test_what_is_produced_is_consumed_and_read(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any, entry_format: str
) -> None:
    topic = make_topic(lakelog_entry_format=entry_format)
    records = [
        {"key": b"a", "value": b"1", "headers": [("h", b"x"), ("h", None)], "timestamp": 1_000},
        {"key": None, "value": None, "timestamp": 2_000},
        {"key": b"", "value": b"", "timestamp": 3_000},
        {"key": b"large", "value": bytes(range(256)) * 2_000, "timestamp": 4_000},
    ]
    produced(gateway, topic, records)
    consumer = consumers(gateway)
    consumer.subscribe([topic])
    found = taken(consumer, len(records))
    for offset, (message, record) in enumerate(zip(found, records, strict=True)):
        assert message.offset() == offset
        assert (message.key(), message.value()) == (record["key"], record["value"])
        assert message.timestamp() == (ck.TIMESTAMP_CREATE_TIME, record["timestamp"])
        assert (message.headers() or []) == record.get("headers", [])
    read = lake.log(topic).read(0).to_arrow()
    assert read.column("value").to_pylist() == [record["value"] for record in records]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_passes_through_and_is_archived(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any, codec: str
) -> None:
    topic = make_topic()
    values = [b"%d " % number * 20 for number in range(500)]
    produced(gateway, topic, [{"value": one} for one in values], **{"compression.type": codec})
    lake.archive(topic)
    consumer = consumers(gateway)
    consumer.subscribe([topic])
    assert [message.value() for message in taken(consumer, 500)] == values
    assert lake.log(topic).read(0).to_arrow().column("value").to_pylist() == values


def test_reads_go_over_both_tiers(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any
) -> None:
    topic = make_topic(local_retention_ms="0", segment_ms="1")
    produced(gateway, topic, [{"value": b"cold"}] * 10)
    lake.archive(topic)
    produced(gateway, topic, [{"value": b"hot"}] * 10)
    lake.archive(topic)
    offsets = lake.log(topic).offsets()[0]
    assert offsets.local_log_start > 0
    consumer = consumers(gateway)
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    found = taken(consumer, 20)
    assert [message.value() for message in found] == [b"cold"] * 10 + [b"hot"] * 10
    assert [message.offset() for message in found] == list(range(20))


def test_append_time_is_what_consumers_see(
    gateway: Gateway, make_topic: Any, consumers: Any
) -> None:
    topic = make_topic(message_timestamp_type="LogAppendTime")
    produced(gateway, topic, [{"value": b"1", "timestamp": 1_000}, {"value": b"2"}])
    consumer = consumers(gateway)
    consumer.subscribe([topic])
    for message in taken(consumer, 2):
        kind, timestamp_ms = message.timestamp()
        assert kind == ck.TIMESTAMP_LOG_APPEND_TIME
        assert timestamp_ms > 1_600_000_000_000


def test_lakelogs_own_records_are_consumed_and_own_consumers_read_theirs(
    lake: Lakelog, gateway: Gateway, consumers: Any
) -> None:
    lake.topics.create("mixed", 1)
    with lake.producer() as producer:
        for number in range(300):
            producer.send("mixed", b"own %d" % number, timestamp_ms=1_000 + number)
    produced(gateway, "mixed", [{"value": b"foreign"}])
    consumer = consumers(gateway)
    consumer.subscribe(["mixed"])
    values = [message.value() for message in taken(consumer, 301)]
    assert values == [b"own %d" % number for number in range(300)] + [b"foreign"]
    with lake.consumer("mixed", group_id="own", auto_offset_reset="earliest") as own:
        found: list[bytes | None] = []
        while len(found) < 301:
            polled = own.poll(1_000).values()
            found += [record.value for records in polled for record in records]
    assert found == values


def test_a_batch_without_a_key_is_refused_where_keys_are_needed(
    lake: Lakelog, gateway: Gateway, make_topic: Any
) -> None:
    topic = make_topic(cleanup_policy="compact")
    producer = ck.Producer({"bootstrap.servers": gateway.bootstrap_servers})
    errors: list[Any] = []
    producer.produce(topic, b"no key", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    assert errors[0].code() == ck.KafkaError.INVALID_RECORD
    assert lake.log(topic).offsets()[0].log_end == 0


def test_too_large_is_said_by_the_topics_bound(gateway: Gateway, make_topic: Any) -> None:
    topic = make_topic(max_message_bytes="1000")
    producer = ck.Producer({"bootstrap.servers": gateway.bootstrap_servers})
    errors: list[Any] = []
    producer.produce(topic, bytes(2_000), on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    assert errors[0].code() == ck.KafkaError.MSG_SIZE_TOO_LARGE


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_producers_without_an_id(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any, acks: str
) -> None:
    topic = make_topic()
    produced(gateway, topic, [{"value": b"%d" % one} for one in range(100)], acks=acks)
    consumer = consumers(gateway)
    consumer.subscribe([topic])
    assert len(taken(consumer, 100)) == 100
    assert not lake.hot.inspection().producer_calls(lake.topics.get(topic).partition(0))


# -- groups --------------------------------------------------------------------------------------


def test_a_group_goes_on_where_it_committed(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any
) -> None:
    topic = make_topic()
    produced(gateway, topic, [{"value": b"%d" % one} for one in range(10)])
    first = consumers(gateway)
    first.subscribe([topic])
    message = taken(first, 4)[-1]
    first.commit(message, asynchronous=False)
    first.close()
    second = consumers(gateway)
    second.subscribe([topic])
    assert taken(second, 1)[0].offset() == 4
    (partition,) = second.committed([ck.TopicPartition(topic, 0)], TIMEOUT_S)
    assert partition.offset == 4
    assert [group.group_id for group in lake.groups.list()] == ["g"]


def test_two_members_share_and_one_takes_over(
    gateway: Gateway, make_topic: Any, consumers: Any
) -> None:
    topic = make_topic(partitions=4)
    first, second = consumers(gateway), consumers(gateway)
    for consumer in (first, second):
        consumer.subscribe([topic])
    while not (len(first.assignment()) == len(second.assignment()) == 2):
        first.poll(0.05)
        second.poll(0.05)
    first.close()
    while len(second.assignment()) < 4:
        second.poll(0.05)


def test_own_and_foreign_consumers_are_in_one_group(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any
) -> None:
    topic = make_topic(partitions=4)
    foreign = consumers(gateway, **{"partition.assignment.strategy": "range"})
    foreign.subscribe([topic])
    with lake.consumer(
        topic, group_id="g", partition_assignment_strategy="range", auto_offset_reset="earliest"
    ) as own:
        while len(foreign.assignment()) != 2 or len(own.assignment()) != 2:
            foreign.poll(0.05)
            own.poll(50)
        seen = {tp.partition for tp in own.assignment()}
        assert seen | {tp.partition for tp in foreign.assignment()} == {0, 1, 2, 3}


def test_what_a_topic_of_that_name_had_committed_is_not_the_next_ones(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any, admin: AdminClient
) -> None:
    topic = make_topic()
    produced(gateway, topic, [{"value": b"1"}] * 3)
    first = consumers(gateway)
    first.subscribe([topic])
    first.commit(taken(first, 3)[-1], asynchronous=False)
    first.close()
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    lake.purge(topic)
    make_topic()
    second = consumers(gateway)
    (found,) = second.committed([ck.TopicPartition(topic, 0)], TIMEOUT_S)
    assert found.offset == ck.OFFSET_INVALID


def test_groups_are_listed_described_and_deleted(
    gateway: Gateway, make_topic: Any, consumers: Any, admin: AdminClient
) -> None:
    topic = make_topic()
    produced(gateway, topic, [{"value": b"1"}])
    consumer = consumers(gateway, **{"client.id": "reader"})
    consumer.subscribe([topic])
    consumer.commit(taken(consumer, 1)[0], asynchronous=False)
    described = admin.describe_consumer_groups(["g"])["g"].result(TIMEOUT_S)
    (member,) = described.members
    assert described.state.name == "STABLE"
    assert member.client_id == "reader"
    assert [tp.topic for tp in member.assignment.topic_partitions] == [topic]
    with pytest.raises(ck.KafkaException) as refused:
        admin.delete_consumer_groups(["g"])["g"].result(TIMEOUT_S)
    assert refused.value.args[0].code() == ck.KafkaError.NON_EMPTY_GROUP
    consumer.close()
    admin.delete_consumer_groups(["g"])["g"].result(TIMEOUT_S)
    assert not admin.list_consumer_groups().result(TIMEOUT_S).valid


# -- offsets and times ---------------------------------------------------------------------------


def test_offsets_of_times(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any, admin: AdminClient
) -> None:
    topic = make_topic(local_retention_ms="0", segment_ms="1")
    produced(gateway, topic, [{"value": b"v", "timestamp": 1_000 * one} for one in range(1, 6)])
    lake.archive(topic)
    produced(gateway, topic, [{"value": b"v", "timestamp": 6_000}])
    consumer = consumers(gateway)
    tp = ck.TopicPartition(topic, 0)
    assert consumer.get_watermark_offsets(tp, TIMEOUT_S) == (0, 6)
    for timestamp_ms, offset in ((0, 0), (2_500, 2), (6_000, 5), (6_001, ck.OFFSET_END)):
        (found,) = consumer.offsets_for_times([ck.TopicPartition(topic, 0, timestamp_ms)], 30)
        assert found.offset == offset, timestamp_ms
    spec = {tp: OffsetSpec.max_timestamp()}
    assert admin.list_offsets(spec)[tp].result(TIMEOUT_S).offset == 5


def test_the_largest_timestamp_is_found_in_whichever_tier_has_it(
    lake: Lakelog, gateway: Gateway, make_topic: Any, admin: AdminClient
) -> None:
    topic = make_topic(local_retention_ms="0", segment_ms="1")
    produced(gateway, topic, [{"value": b"v", "timestamp": one} for one in (1_000, 9_000)])
    lake.archive(topic)
    produced(gateway, topic, [{"value": b"v", "timestamp": 5_000}])
    tp = ck.TopicPartition(topic, 0)
    found = admin.list_offsets({tp: OffsetSpec.max_timestamp()})[tp].result(TIMEOUT_S)
    assert (found.offset, found.timestamp) == (1, 9_000)


def test_consumers_begin_behind_what_retention_deleted(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any
) -> None:
    topic = make_topic(segment_ms="1", retention_ms="60000")
    now_ms = time.time_ns() // 1_000_000
    for timestamp_ms in (1_000, 2_000, now_ms):
        produced(gateway, topic, [{"value": b"%d" % timestamp_ms, "timestamp": timestamp_ms}])
    lake.archive(topic)
    lake.cleanup(topic, steps=("retain",))
    consumer = consumers(gateway)
    assert consumer.get_watermark_offsets(ck.TopicPartition(topic, 0), TIMEOUT_S) == (2, 3)
    consumer.subscribe([topic])
    assert taken(consumer, 1)[0].value() == b"%d" % now_ms


def test_records_are_deleted_up_to_an_offset(
    lake: Lakelog, gateway: Gateway, make_topic: Any, consumers: Any, admin: AdminClient
) -> None:
    topic = make_topic()
    produced(gateway, topic, [{"value": b"v"}] * 5)
    admin.delete_records([ck.TopicPartition(topic, 0, 3)])
    consumer = consumers(gateway)
    consumer.subscribe([topic])
    assert taken(consumer, 1)[0].offset() == 3
    assert lake.log(topic).offsets()[0].log_start == 3


# -- topics and settings -------------------------------------------------------------------------


def test_topics_are_made_changed_and_deleted(
    lake: Lakelog, make_topic: Any, admin: AdminClient
) -> None:
    make_topic("orders", 2, retention_ms="1000")
    made = lake.topics.get("orders")
    assert made.partitions == 2
    assert made.config.text("retention.ms") == "1000"
    assert made.config.text("lakelog.entry.format") == "kafka"
    admin.create_partitions([NewPartitions("orders", 5)])["orders"].result(TIMEOUT_S)
    assert lake.topics.get("orders").partitions == 5
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        "orders",
        incremental_configs=[
            ConfigEntry("retention.ms", "2000", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry(
                "cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND
            ),
        ],
    )
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    described = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, "orders")])
    (found,) = (future.result(TIMEOUT_S) for future in described.values())
    assert found["retention.ms"].value == "2000"
    assert found["cleanup.policy"].value == "delete,compact"
    admin.delete_topics(["orders"])["orders"].result(TIMEOUT_S)
    assert [topic.name for topic in lake.topics.list()] == []
    assert [topic.name for topic in lake.deleted()] == ["orders"]


def test_what_is_not_set_may_be_taken_back(
    lake: Lakelog, make_topic: Any, admin: AdminClient
) -> None:
    make_topic("orders", retention_ms="1000")
    before = lake.topics.get("orders").config
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        "orders",
        incremental_configs=[
            ConfigEntry(name, None, incremental_operation=AlterConfigOpType.DELETE)
            for name in (
                "segment.ms",
                "unclean.leader.election.enable",
            )  # the second of brokers alone
        ],
    )
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    assert lake.topics.get("orders").config == before


@pytest.mark.parametrize(
    ("name", "partitions", "config", "code"),
    [
        ("no/name", 1, {}, ck.KafkaError.TOPIC_EXCEPTION),
        ("t", 0, {}, ck.KafkaError.INVALID_PARTITIONS),
        ("t", 1, {"retention.ms": "soon"}, ck.KafkaError.INVALID_CONFIG),
        ("t", 1, {"retention.msec": "1"}, ck.KafkaError.INVALID_CONFIG),
        ("there", 1, {}, ck.KafkaError.TOPIC_ALREADY_EXISTS),
    ],
)
def test_what_cannot_be_made_is_said(
    lake: Lakelog, admin: AdminClient, name: str, partitions: int, config: Any, code: int
) -> None:
    lake.topics.create("there", 1)
    new = NewTopic(name, partitions, 1, config=config)
    with pytest.raises(ck.KafkaException) as refused:
        admin.create_topics([new])[name].result(TIMEOUT_S)
    assert refused.value.args[0].code() == code
    assert refused.value.args[0].str()
    assert [topic.name for topic in lake.topics.list()] == ["there"]


def test_topics_are_made_when_asked_for_if_that_is_wanted(lake: Lakelog, make_gateway: Any) -> None:
    gateway = make_gateway(creates_topics=True, partitions=3)
    produced(gateway, "unasked", [{"value": b"1"}])
    assert lake.topics.get("unasked").partitions == 3


def test_brokers_settings_are_the_keyspaces(lake: Lakelog, admin: AdminClient) -> None:
    resource = ConfigResource(
        ConfigResource.Type.BROKER,
        "1",
        incremental_configs=[
            ConfigEntry("log.retention.hours", "5", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    assert dict(lake.topics.defaults()) == {"log.retention.hours": "5"}
    described = admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, "1")])
    (found,) = (future.result(TIMEOUT_S) for future in described.values())
    assert found["log.retention.hours"].value == "5"


# -- other clients -------------------------------------------------------------------------------


def test_kafka_python(gateway: Gateway, make_topic: Any) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    topic = make_topic()
    with KafkaProducer(bootstrap_servers=gateway.bootstrap_servers) as producer:
        sent = [producer.send(topic, value=b"%d" % one, key=b"k") for one in range(50)]
        assert [future.get(TIMEOUT_S).offset for future in sent] == list(range(50))
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=gateway.bootstrap_servers,
        group_id="kp",
        auto_offset_reset="earliest",
    )
    found = [next(consumer) for _ in range(50)]
    assert [record.offset for record in found] == list(range(50))
    consumer.close()


def test_aiokafka(gateway: Gateway, make_topic: Any) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    topic = make_topic()

    async def whole() -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=gateway.bootstrap_servers, enable_idempotence=True
        )
        await producer.start()
        for number in range(50):
            await producer.send_and_wait(topic, json.dumps(number).encode(), key=b"k")
        await producer.stop()
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=gateway.bootstrap_servers,
            group_id="aio",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        found = [await consumer.getone() for _ in range(50)]
        await consumer.stop()
        return [json.loads(record.value) for record in found]

    assert asyncio.run(asyncio.wait_for(whole(), TIMEOUT_S)) == list(range(50))


def test_what_lakelog_says_of_a_foreign_record(
    lake: Lakelog, gateway: Gateway, make_topic: Any
) -> None:
    topic = make_topic()
    produced(gateway, topic, [{"key": b"k", "value": b"v", "timestamp": 5_000}])
    (record,) = lake.log(topic).read(0)
    table = lake.log(topic).read(0).to_arrow()
    assert table.column("timestampType").to_pylist() == [TimestampType.CREATE_TIME]
    assert record is not None
