"""The two sides of a script: a Kafka broker by kafka-python and Kafka's own tool, and lakelog."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from lakelog.cli import main as cli
from lakelog.lakelog import Lakelog
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

#: Of Kafka's tool, whose output has columns for people.
_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"

Row = dict[str, Any]


class Side(Protocol):
    """What a script needs. Names are of this run alone: other runs may have left theirs."""

    def name(self, name: str) -> str:
        """What a topic or a group is called here."""
        ...

    def create(self, topic: str, partitions: int) -> None: ...

    def append(self, topic: str, partition: int, times_ms: Sequence[int]) -> None:
        """One record for each timestamp."""
        ...

    def consumer(self, *topics: str, **settings: Any) -> Any:
        """kafka-python's `KafkaConsumer`, or what takes its place."""
        ...

    def tp(self, topic: str, partition: int) -> Any: ...

    def offset(self, offset: int, metadata: str = "") -> Any: ...

    def tool(self, verb: str, *options: str) -> list[Row] | str:
        """What the tool for groups says: rows, ``refused``, or the text of an export."""
        ...

    def close(self) -> None: ...


class LakelogSide:
    def __init__(self, url: str, cold: Path) -> None:
        self._where = ("--redis", url, "--cold", str(cold))
        self.lake = Lakelog.connect(url, cold, engine="inline")
        self._run = uuid4().hex[:8]

    def name(self, name: str) -> str:
        return f"{name}-{self._run}"

    def create(self, topic: str, partitions: int) -> None:
        self.lake.topics.create(self.name(topic), partitions, {"retention.ms": -1})

    def append(self, topic: str, partition: int, times_ms: Sequence[int]) -> None:
        with self.lake.producer() as producer:
            for time_ms in times_ms:
                value = f"at {time_ms}"
                producer.send(self.name(topic), value, partition=partition, timestamp_ms=time_ms)

    def consumer(self, *topics: str, **settings: Any) -> Any:
        return self.lake.consumer(*map(self.name, topics), **settings)

    def tp(self, topic: str, partition: int) -> TopicPartition:
        return TopicPartition(self.name(topic), partition)

    def offset(self, offset: int, metadata: str = "") -> OffsetAndMetadata:
        return OffsetAndMetadata(offset, metadata)

    def tool(self, verb: str, *options: str) -> list[Row] | str:
        as_text = verb == "export" or "--export" in options
        output = () if as_text else ("--output", "json")
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            try:
                code = cli.main([*self._where, "groups", verb, *options, *output])
            except SystemExit:  # what argparse refuses
                return "refused"
        if as_text:
            return said.getvalue() if code == 0 else "refused"
        rows = json.loads(said.getvalue()) if code == 0 and said.getvalue() else []
        return rows if code == 0 else "refused"

    def close(self) -> None:
        self.lake.close()


class KafkaSide:
    """A broker.

    Args:
        tool: the command that runs a class of Kafka's tools.
    """

    def __init__(self, servers: str, tool: str) -> None:
        from kafka.admin import KafkaAdminClient

        self._servers = servers
        self._tool = tool
        self._run = uuid4().hex[:8]
        self._admin = KafkaAdminClient(bootstrap_servers=servers)

    def name(self, name: str) -> str:
        return f"{name}-{self._run}"

    def create(self, topic: str, partitions: int) -> None:
        from kafka.admin import NewTopic

        topics = [NewTopic(self.name(topic), partitions, 1, topic_configs={"retention.ms": "-1"})]
        self._admin.create_topics(topics)

    def append(self, topic: str, partition: int, times_ms: Sequence[int]) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self._servers, acks="all")
        for time_ms in times_ms:
            value = b"at %d" % time_ms
            producer.send(self.name(topic), value, partition=partition, timestamp_ms=time_ms)
        producer.flush()
        producer.close()

    def consumer(self, *topics: str, **settings: Any) -> Any:
        from kafka import KafkaConsumer

        return KafkaConsumer(*map(self.name, topics), bootstrap_servers=self._servers, **settings)

    def tp(self, topic: str, partition: int) -> Any:
        from kafka import TopicPartition as Theirs

        return Theirs(self.name(topic), partition)

    def offset(self, offset: int, metadata: str = "") -> Any:
        from kafka.structs import OffsetAndMetadata as Theirs

        return Theirs(offset, metadata, -1)

    def tool(self, verb: str, *options: str) -> list[Row] | str:
        action = {
            "export": ["--reset-offsets", "--to-current", "--all-topics", "--export"],
            "import": ["--reset-offsets"],
        }.get(verb, [f"--{verb}"])
        command = [self._tool, _TOOL, "--bootstrap-server", self._servers, *action, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        said = done.stdout
        if done.returncode or "Error" in said or "Exception" in done.stderr:
            return "refused"
        if "--export" in action or "--export" in options:
            return "".join(f"{line}\n" for line in said.replace('"', "").split())
        return _columns(said)

    def close(self) -> None:
        self._admin.close()


def _columns(said: str) -> list[Row]:
    """Kafka's columns, by the names that lakelog's JSON has."""
    lines = [line for line in said.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if line.split()[0] in ("GROUP", "TOPIC")]
    if not starts:
        return [{"group": line} for line in lines]
    names = [
        _JSON_NAMES.get(word, word.lower().replace("-", "_")) for word in lines[starts[0]].split()
    ]
    rows = []
    for line in lines[starts[0] + 1 :]:
        values = [
            None if word == "-" else int(word) if word.isdigit() else word for word in line.split()
        ]
        rows.append(dict(zip(names, values, strict=False)))
    return rows


_JSON_NAMES: Mapping[str, str] = {"#PARTITIONS": "#partition_count", "#MEMBERS": "#member_count"}
