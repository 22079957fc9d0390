"""Kafka's own tools print of a gateway what they print of a broker.

``pytest -m slow tests/gateway/clients/test_kafka_tools.py --kafka PATH``
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from lakelog.testing.eventually import eventually
from tests.gateway.clients.kafka_tools import (
    CONFIGS,
    CONSUMER,
    DELETE_RECORDS,
    GROUPS,
    OFFSETS,
    PRODUCER,
    TOPICS,
    KafkaTools,
)
from tests.support.kafka_broker import KafkaBroker

pytestmark = pytest.mark.slow

NOON_MS = 1_700_000_000_000
#: Settings that lakelog alone has, or a new broker alone sets.
_OF_ONE_SIDE = ("  lakelog.", "  min.insync.replicas=")
#: Tells a story of a cluster, by what tools print.
Story = Callable[[KafkaTools], Any]


@pytest.fixture
def tools(kafka_folder: Path, gateway_servers: str) -> KafkaTools:
    return KafkaTools(kafka_folder, gateway_servers)


@pytest.fixture
def brokers(kafka_folder: Path, kafka: KafkaBroker) -> KafkaTools:
    """The tools on the broker."""
    return KafkaTools(kafka_folder, kafka.servers)


def lines(text: str) -> list[list[str]]:
    """Words line by line, without what a tool leaves empty."""
    return [line.split() for line in text.splitlines() if line.strip()]


def produced(tools: KafkaTools, topic: str, count: int, partition: int = 0) -> None:
    """Records whose timestamps are a second apart."""
    producer = Producer({"bootstrap.servers": tools.servers})
    for number in range(count):
        timestamp = NOON_MS + 1_000 * number
        producer.produce(topic, b"%d" % number, partition=partition, timestamp=timestamp)
    assert producer.flush(30) == 0


def made(tools: KafkaTools, topic: str, partitions: int = 1, **config: str) -> None:
    given = [f"--config={name.replace('_', '.')}={value}" for name, value in config.items()]
    tools(TOPICS, "--create", "--topic", topic, f"--partitions={partitions}", *given)


# -- topics --------------------------------------------------------------------------------------


def described(tools: KafkaTools, topic: str) -> list[list[str]]:
    """What the tool says of a topic, but its id, and settings that either side has by itself."""
    found = lines(re.sub(r"TopicId: \S+", "", tools(TOPICS, "--describe", "--topic", topic)))
    settings = found[0].pop().split(",")
    of_all = ("lakelog.", "min.insync.replicas=")
    return [*found, sorted(one for one in settings if not one.startswith(of_all))]


def topics(tools: KafkaTools) -> Iterable[object]:
    create = ("--create", "--topic", "orders", "--partitions", "3")
    yield tools(TOPICS, *create, "--config", "retention.ms=1000", "--config", "segment.ms=99000")
    yield tools.refused(TOPICS, *create)
    yield tools(TOPICS, *create, "--if-not-exists")
    yield tools.refused(TOPICS, "--create", "--topic", "other", "--config", "cleanup.policy=keep")
    yield tools.refused(TOPICS, "--create", "--topic", "." * 300)
    yield "orders" in tools(TOPICS, "--list").split()
    yield described(tools, "orders")
    for only in ("--under-replicated-partitions", "--unavailable-partitions"):
        yield tools(TOPICS, "--describe", only)
    yield tools(TOPICS, "--alter", "--topic", "orders", "--partitions", "5")
    yield tools.refused(TOPICS, "--alter", "--topic", "orders", "--partitions", "2")
    yield described(tools, "orders")
    yield tools(TOPICS, "--delete", "--topic", "orders")
    yield "orders" in tools(TOPICS, "--list").split()
    yield tools(TOPICS, "--delete", "--topic", "orders", "--if-exists")


# -- settings ------------------------------------------------------------------------------------


def configs(tools: KafkaTools) -> Iterable[object]:
    made(tools, "set", max_message_bytes="5000")
    of_topic = ("--entity-type", "topics", "--entity-name", "set")

    def told(*options: str) -> list[str]:
        text = tools(CONFIGS, "--describe", *options)
        own = [line.strip() for line in text.splitlines() if not line.startswith(_OF_ONE_SIDE)]
        return [re.sub(r" sensitive=.*", "", line) for line in own]

    def alter(*options: str) -> tuple[str, list[str]]:
        return tools(CONFIGS, *of_topic, "--alter", *options), told(*of_topic)

    yield alter("--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]")
    yield alter("--add-config", "retention.ms=6000", "--delete-config", "max.message.bytes")
    yield alter("--delete-config", "retention.ms,cleanup.policy")
    for wrong in ("retention.ms=soon", "retention.msec=1"):
        yield tools.refused(CONFIGS, *of_topic, "--alter", "--add-config", wrong)
    yield told(*of_topic)
    of_all = ("--entity-type", "brokers", "--entity-default")
    yield tools(CONFIGS, *of_all, "--alter", "--add-config", "log.retention.ms=7000")
    yield told(*of_all)
    yield [one for one in told(*of_topic, "--all") if one.startswith("retention.ms")]
    yield tools(CONFIGS, *of_all, "--alter", "--delete-config", "log.retention.ms")
    yield told(*of_all)


# -- records -------------------------------------------------------------------------------------


def console(tools: KafkaTools) -> Iterable[object]:
    made(tools, "console", 2)
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        yield tools(
            PRODUCER,
            *("--topic", "console", "--compression-codec", codec),
            *("--property", "parse.key=true", "--property", "parse.headers=true"),
            *("--property", "null.marker=NULL"),
            input=f"codec:{codec},n:\tkey\tvalue of {codec}\nNULL\tkey\tNULL\n",
        )
    shown = [f"--property=print.{one}=true" for one in ("key", "headers", "partition", "offset")]
    read = ("--topic", "console", "--timeout-ms", "20000", *shown)
    yield tools(CONSUMER, *read, "--from-beginning", "--max-messages", "10")
    yield tools(CONSUMER, *read, "--from-beginning", "--max-messages", "4", "--group", "console")
    yield tools(CONSUMER, *read, "--max-messages", "6", "--group", "console")
    by_consumer = ("--consumer-property", "group.protocol=consumer", "--group", "console-next")
    yield tools(CONSUMER, *read, "--from-beginning", "--max-messages", "10", *by_consumer)
    for partition in ("0", "1"):
        only = ("--partition", partition, "--offset", "earliest")
        yield tools(CONSUMER, "--topic", "console", *shown, *only, "--timeout-ms", "3000")


def offsets(tools: KafkaTools) -> Iterable[object]:
    made(tools, "offsets", 2, retention_ms="-1")
    produced(tools, "offsets", 10)
    produced(tools, "offsets", 3, partition=1)
    for time in ("-1", "-2", "-3", "-4", "-5", "earliest", "latest", f"{NOON_MS + 2_500}"):
        yield time, tools(OFFSETS, "--topic", "offsets", "--time", time)
    yield tools(OFFSETS, "--topic-partitions", "offsets:1", "--time", "max-timestamp")


def deleted_records(tools: KafkaTools, folder: Path) -> Iterable[object]:
    made(tools, "shorter", 2, retention_ms="-1")
    produced(tools, "shorter", 10)
    produced(tools, "shorter", 10, partition=1)
    file = folder / "offsets.json"
    for wanted in ((4, -1), (2, 10)):
        parts = [
            {"topic": "shorter", "partition": number, "offset": offset}
            for number, offset in enumerate(wanted)
        ]
        file.write_text(json.dumps({"partitions": parts, "version": 1}))
        # It tells of partitions in the order of their hashes.
        yield sorted(lines(tools(DELETE_RECORDS, "--offset-json-file", str(file))))
        yield tools(OFFSETS, "--topic", "shorter", "--time", "-2")


# -- groups --------------------------------------------------------------------------------------


def rows(text: str) -> list[dict[str, str]]:
    """The table that the tool prints, without what names a member of this moment."""
    found = [line for line in lines(text) if len(line) > 2]
    at = next((n for n, line in enumerate(found) if line[0] in ("GROUP", "TOPIC")), None)
    if at is None:
        return []
    columns = found[at]
    table = [dict(zip(columns, line, strict=False)) for line in found[at + 1 :]]
    for row in table:
        row.pop("COORDINATOR", None)
        row["HOST"] = row.get("HOST", "").removeprefix("/")  # Java's way to print an address
        if row.get("CONSUMER-ID", "-") != "-":
            row["CONSUMER-ID"] = re.sub(r"[0-9a-f-]{36}$", "…", row["CONSUMER-ID"])
    return sorted(table, key=str)


def groups(tools: KafkaTools) -> Iterable[object]:
    made(tools, "grouped", 2, retention_ms="-1")
    produced(tools, "grouped", 10)
    produced(tools, "grouped", 10, partition=1)
    read = ("--topic", "grouped", "--group", "readers", "--from-beginning")
    tools(CONSUMER, *read, "--timeout-ms", "10000", "--max-messages", "20")
    of_group = ("--group", "readers")

    def shown(*options: str) -> object:
        return rows(tools(GROUPS, "--describe", *of_group, *options))

    yield "readers" in tools(GROUPS, "--list").split()
    yield [line for line in lines(tools(GROUPS, "--list", "--state")) if line[0] == "readers"]
    yield [line for line in lines(tools(GROUPS, "--list", "--type")) if line[0] == "readers"]
    yield shown()
    yield shown("--state")
    yield shown("--members", "--verbose")
    for way in (
        ("--to-earliest",),
        ("--to-offset", "7"),
        ("--shift-by", "-2"),
        ("--to-datetime", "2023-11-14T22:13:23.500"),
        ("--to-latest",),
    ):
        reset = ("--reset-offsets", *of_group, *way, "--topic", "grouped")
        yield rows(tools(GROUPS, *reset, "--dry-run"))
        yield rows(tools(GROUPS, *reset, "--execute"))
        yield shown()
    yield tools(GROUPS, "--reset-offsets", *of_group, "--to-current", "--all-topics", "--export")
    with subprocess.Popen(
        tools.command(CONSUMER, *read, "--consumer-property", "client.id=reader"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as member:
        try:
            eventually(lambda: "reader-" in tools(GROUPS, "--describe", *of_group))
            yield shown()
            yield shown("--members", "--verbose")
            yield shown("--state")
            yield "Error" in tools(GROUPS, *reset, "--execute")
            yield "GroupNotEmpty" in tools(GROUPS, "--delete", *of_group)
        finally:
            member.terminate()
    yield tools(GROUPS, "--delete-offsets", *of_group, "--topic", "grouped:1")
    yield shown()
    yield tools(GROUPS, "--delete", *of_group)
    yield "readers" in tools(GROUPS, "--list").split()


# -- load ----------------------------------------------------------------------------------------


def performance(tools: KafkaTools) -> Iterable[object]:
    made(tools, "perf", 3)
    servers = f"bootstrap.servers={tools.servers}"
    said = tools(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "perf", "--num-records", "50000", "--record-size", "200"),
        *("--throughput", "-1", "--producer-props", servers, "compression.type=lz4"),
    )
    yield re.findall(r"^(\d+) records sent, .*99.9th", said, re.MULTILINE)
    found = tools(
        "org.apache.kafka.tools.ConsumerPerformance", *("--topic", "perf", "--messages", "50000")
    )
    header, values = (line.split(", ") for line in found.splitlines()[-2:])
    yield dict(zip(header, values, strict=True))["data.consumed.in.nMsg"]


def verifiable(tools: KafkaTools) -> Iterable[object]:
    def told(text: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in text.splitlines()]

    made(tools, "verified", 2)
    of_producer = ("--topic", "verified", "--max-messages", "2000", "--acks", "-1")
    sent = told(tools("org.apache.kafka.tools.VerifiableProducer", *of_producer))
    yield len({(one["partition"], one["offset"]) for one in sent if "offset" in one})
    yield {name: sent[-1][name] for name in ("name", "sent", "acked")}
    for protocol in ("classic", "consumer"):
        of_consumer = ("--topic", "verified", "--group-id", f"verified-{protocol}")
        seen = told(
            tools(
                "org.apache.kafka.tools.VerifiableConsumer",
                *(*of_consumer, "--max-messages", "2000", "--reset-policy", "earliest"),
                *("--group-protocol", protocol),
            )
        )
        yield sum(one["count"] for one in seen if one["name"] == "records_consumed")
        yield [one["success"] for one in seen if one["name"] == "offsets_committed"][-1]
        yield [one["name"] for one in seen if not one["name"].startswith(("records", "offsets"))]


# -- the cluster ---------------------------------------------------------------------------------


def cluster(tools: KafkaTools) -> Iterable[object]:
    made(tools, "sized", 2, retention_ms="-1")
    produced(tools, "sized", 10)
    yield "Cluster ID: " in tools("org.apache.kafka.tools.ClusterTool", "cluster-id")
    dirs = tools("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", "sized")
    (node,) = json.loads(dirs.splitlines()[-1])["brokers"]
    yield (
        node["broker"],
        [
            (one["partition"], one["size"] > 0)
            for log_dir in node["logDirs"]
            for one in sorted(log_dir["partitions"], key=lambda one: str(one["partition"]))
        ],
    )
    versions = tools("org.apache.kafka.tools.BrokerApiVersionsCommand")
    yield [line for line in lines(versions) if line[0].startswith("Fetch(")] != []
    yield "ERROR" in versions


@pytest.mark.parametrize(
    "story", [topics, configs, console, offsets, groups, performance, verifiable, cluster]
)
def test_tools_say_what_they_say_of_a_broker(
    tools: KafkaTools, brokers: KafkaTools, story: Story
) -> None:
    assert list(story(tools)) == list(story(brokers))


def test_records_are_deleted_as_by_a_broker(
    tools: KafkaTools, brokers: KafkaTools, tmp_path: Path
) -> None:
    assert list(deleted_records(tools, tmp_path)) == list(deleted_records(brokers, tmp_path))
