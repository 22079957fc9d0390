"""Kafka Connect on a gateway: files in and out, and MirrorMaker 2 from a broker. Needs Maven.

``pytest -m slow tests/gateway/clients/test_connect.py --kafka PATH``
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from lakelog import Lakelog
from lakelog.testing.eventually import eventually
from tests.gateway.clients.kafka_tools import TOPICS
from tests.gateway.clients.programs import needed, run
from tests.support.kafka_broker import KafkaBroker
from tests.support.servers import free_port

pytestmark = pytest.mark.slow

#: What `tool` has no jars of.
CONNECTORS = ("connect-file", "connect-mirror", "connect-mirror-client")


@pytest.fixture(scope="session")
def plugins(kafka_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the connectors, of the version that the tools have."""
    mvn = needed("mvn", "Debian: apt-get install maven")
    version = run([kafka_folder / "tool", TOPICS, "--version"]).split()[0]
    folder = tmp_path_factory.mktemp("plugins")
    for name in CONNECTORS:
        artifact = f"-Dartifact=org.apache.kafka:{name}:{version}"
        run([mvn, "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder / 'all'}"])
    return folder


class Worker:
    """A worker of Connect, whose own topics and group lie on the gateway too."""

    def __init__(self, kafka_folder: Path, plugins: Path, servers: str, folder: Path) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        self._log = folder / "connect.log"
        settings = {
            "bootstrap.servers": servers,
            "group.id": "connect",
            "plugin.path": plugins,
            "listeners": self._url,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.flush.interval.ms": "500",
            **{f"{one}.storage.topic": f"connect-{one}" for one in ("config", "offset", "status")},
            **{f"{one}.storage.replication.factor": 1 for one in ("config", "offset", "status")},
        }
        file = folder / "worker.properties"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._command = [
            kafka_folder / "tool",
            "org.apache.kafka.connect.cli.ConnectDistributed",
            file,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        eventually(lambda: self.ask("GET", "/connectors") is not None, said=self._said)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, how)
            self._process.wait()
            self._process = None

    def run(self, name: str, config: Mapping[str, object]) -> None:
        """Runs a connector, once its task does."""
        assert self.ask("PUT", f"/connectors/{name}/config", config) is not None, self._said()
        eventually(lambda: self.states(name) == ["RUNNING", "RUNNING"], said=self._said)

    def states(self, name: str) -> list[str]:
        """Of a connector and its tasks."""
        told = self.ask("GET", f"/connectors/{name}/status")
        return [] if told is None else [one["state"] for one in (told["connector"], *told["tasks"])]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What the REST API says; None: nothing, by now."""
        assert self._process is not None
        assert self._process.poll() is None, self._said()
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def _said(self) -> str:
        return self._log.read_text("utf-8")[-8_000:]


@pytest.fixture
def worker(
    kafka_folder: Path, plugins: Path, gateway_servers: str, tmp_path: Path
) -> Iterator[Worker]:
    worker = Worker(kafka_folder, plugins, gateway_servers, tmp_path)
    try:
        worker.start()
        yield worker
    finally:
        worker.stop(signal.SIGKILL)


def values(lake: Lakelog, topic: str) -> list[bytes]:
    """Of a topic, by partition and offset."""
    if topic not in {one.name for one in lake.topics.list()}:
        return []
    log = lake.log(topic)
    partitions = range(lake.topics.get(topic).partitions)
    return [
        value
        for one in partitions
        for value in log.read(one).to_arrow().column("value").to_pylist()
    ]


def test_a_file_is_copied_by_way_of_a_topic(
    lake: Lakelog, worker: Worker, gateway_servers: str, tmp_path: Path
) -> None:
    """The worker goes on where it was after it was killed, by what it keeps in the log."""
    lake.topics.create("lines", 1, {"lakelog.entry.format": "kafka"})
    source, copy = tmp_path / "source.txt", tmp_path / "copy.txt"
    source.write_text("".join(f"line {number}\n" for number in range(500)))
    kind = "org.apache.kafka.connect.file.FileStream"
    of_source = {"connector.class": f"{kind}SourceConnector", "file": str(source)}
    worker.run("source", {**of_source, "topic": "lines"})
    of_sink = {"connector.class": f"{kind}SinkConnector", "file": str(copy)}
    worker.run("sink", {**of_sink, "topics": "lines"})
    eventually(lambda: copy.exists() and copy.read_text() == source.read_text())
    assert values(lake, "lines") == source.read_bytes().splitlines()
    worker.stop()
    assert [one.group_id for one in lake.groups.list()] == ["connect", "connect-sink"]
    with source.open("a") as file:
        file.writelines(f"line {number}\n" for number in range(500, 800))
    lake.archive()
    worker.start()
    eventually(lambda: copy.read_text() == source.read_text())
    assert values(lake, "lines") == source.read_bytes().splitlines()


def test_mirror_maker_copies_a_brokers_topics(
    lake: Lakelog, worker: Worker, kafka: KafkaBroker, gateway_servers: str
) -> None:
    topic = f"moved-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    settings = {"retention.ms": "86400000"}
    admin.create_topics([NewTopic(topic, 3, 1, config=settings)])[topic].result(30)
    producer = ck.Producer({"bootstrap.servers": kafka.servers, "compression.type": "zstd"})
    for number in range(900):
        producer.produce(topic, b"%d" % number, b"%d" % number, partition=number % 3)
    assert producer.flush(30) == 0
    consumer = ck.Consumer({"bootstrap.servers": kafka.servers, "group.id": topic})
    offsets = [ck.TopicPartition(topic, partition, 300) for partition in range(3)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    bytes_ = "org.apache.kafka.connect.converters.ByteArrayConverter"
    mirror = "org.apache.kafka.connect.mirror."
    of_both = {
        "source.cluster.alias": "broker",
        "target.cluster.alias": "lake",
        "source.cluster.bootstrap.servers": kafka.servers,
        "target.cluster.bootstrap.servers": gateway_servers,
        "topics": topic,
        "groups": topic,
        "replication.factor": 1,
        "offset-syncs.topic.replication.factor": 1,
        "checkpoints.topic.replication.factor": 1,
        "offset-syncs.topic.location": "target",
        "offset.lag.max": 0,  # else a commit is known of as below the last record's offset
        "key.converter": bytes_,
        "value.converter": bytes_,
    }
    worker.run("source", {"connector.class": f"{mirror}MirrorSourceConnector", **of_both})
    mirrored = f"broker.{topic}"
    eventually(lambda: len(values(lake, mirrored)) == 900)
    expected = [b"%d" % number for part in range(3) for number in range(part, 900, 3)]
    assert values(lake, mirrored) == expected
    made = lake.topics.get(mirrored)
    assert made.partitions == 3
    assert made.config.text("retention.ms") == "86400000"
    intervals = {"emit.checkpoints.interval.seconds": 1, "sync.group.offsets.interval.seconds": 1}
    worker.run(
        "checkpoints",
        {
            "connector.class": f"{mirror}MirrorCheckpointConnector",
            "sync.group.offsets.enabled": "true",
            **intervals,
            **of_both,
        },
    )
    eventually(lambda: topic in {one.group_id for one in lake.groups.list()})
    reader = ck.Consumer({"bootstrap.servers": gateway_servers, "group.id": topic})
    wanted = [ck.TopicPartition(mirrored, partition) for partition in range(3)]
    eventually(lambda: [one.offset for one in reader.committed(wanted, 30)] == [300] * 3)
    reader.close()
