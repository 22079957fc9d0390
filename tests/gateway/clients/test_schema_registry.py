"""Records whose schemas lie in a registry, by confluent-kafka's serialiser for Avro."""

from __future__ import annotations

from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from lakelog import Lakelog

pytestmark = pytest.mark.slow

SCHEMA = """{
  "type": "record",
  "name": "Order",
  "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}]
}"""
ORDERS: list[dict[str, Any]] = [{"id": 1, "note": "gift"}, {"id": 2, "note": None}]
TIMEOUT_S = 30


@pytest.fixture
def registry() -> SchemaRegistryClient:
    """One in memory, which the client comes with."""
    return SchemaRegistryClient.new_client({"url": "mock://orders"})


def test_what_is_serialised_is_read_with_its_schema(
    registry: SchemaRegistryClient, servers: str, topic: str
) -> None:
    value = SerializationContext(topic, MessageField.VALUE)
    serialize = AvroSerializer(registry, SCHEMA)
    producer = ck.Producer({"bootstrap.servers": servers})
    for order in ORDERS:
        producer.produce(topic, serialize(order, value), partition=0)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = ck.Consumer({"bootstrap.servers": servers, "group.id": topic})
    consumer.assign([ck.TopicPartition(topic, 0, 0)])
    messages = consumer.consume(len(ORDERS), TIMEOUT_S)
    consumer.close()
    deserialize = AvroDeserializer(registry)
    assert [deserialize(message.value(), value) for message in messages] == ORDERS


def test_readers_of_lakelog_deserialise_it_too(
    registry: SchemaRegistryClient, lake: Lakelog, gateway_servers: str
) -> None:
    lake.topics.create("orders", 1, {"lakelog.entry.format": "kafka"})
    value = SerializationContext("orders", MessageField.VALUE)
    serialize = AvroSerializer(registry, SCHEMA)
    producer = ck.Producer({"bootstrap.servers": gateway_servers})
    for order in ORDERS:
        producer.produce("orders", serialize(order, value))
    assert producer.flush(TIMEOUT_S) == 0
    lake.archive("orders")
    deserialize = AvroDeserializer(registry)
    read = lake.log("orders").read(0).to_arrow().column("value").to_pylist()
    assert [deserialize(one, value) for one in read] == ORDERS
