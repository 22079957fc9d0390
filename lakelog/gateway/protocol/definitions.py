"""Kafka's own definitions of its messages, as its jars have them, and which of them are served.

Source: the README of Kafka's ``clients/src/main/resources/common/message``.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_DEFINITIONS = "common/message/"
_VERSION = "kafka/kafka-version.properties"
_NOTICE = "Of Apache Kafka, Copyright The Apache Software Foundation, Apache License 2.0"
KINDS = ("Request", "Response")

#: name of an API → its first and last version that are served
SERVED: dict[str, tuple[int, int]] = {
    "Produce": (3, 12),
    "Fetch": (4, 17),
    "ListOffsets": (1, 10),
    "Metadata": (0, 13),
    "OffsetCommit": (2, 9),
    "OffsetFetch": (1, 9),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "SaslHandshake": (0, 1),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "DescribeAcls": (1, 3),
    "CreateAcls": (1, 3),
    "DeleteAcls": (1, 3),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "DescribeLogDirs": (1, 4),
    "SaslAuthenticate": (0, 2),
    "CreatePartitions": (0, 3),
    "DeleteGroups": (0, 2),
    "ElectLeaders": (0, 2),
    "IncrementalAlterConfigs": (0, 1),
    "AlterPartitionReassignments": (0, 1),
    "ListPartitionReassignments": (0, 0),
    "OffsetDelete": (0, 0),
    "DescribeClientQuotas": (0, 1),
    "AlterClientQuotas": (0, 1),
    "DescribeUserScramCredentials": (0, 0),
    "AlterUserScramCredentials": (0, 0),
    "DescribeCluster": (0, 2),
    "DescribeProducers": (0, 0),
    "DescribeTransactions": (0, 0),
    "ListTransactions": (0, 2),
    "ConsumerGroupHeartbeat": (0, 1),
    "ConsumerGroupDescribe": (0, 1),
    "GetTelemetrySubscriptions": (0, 0),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
    "ShareGroupHeartbeat": (1, 1),
    "ShareGroupDescribe": (1, 1),
    "ShareFetch": (1, 1),
    "ShareAcknowledge": (1, 1),
    "DescribeShareGroupOffsets": (0, 0),
    "AlterShareGroupOffsets": (0, 0),
}


class Definitions(NamedTuple):
    """Kafka's definitions of the messages that are served."""

    kafka_version: str
    messages: Mapping[str, Any]  # by name, sorted

    @classmethod
    def of_jar(cls, path: Path) -> Definitions:
        """Those in a jar of kafka-clients, without their comments."""
        with zipfile.ZipFile(path) as jar:
            properties = jar.read(_VERSION).decode()
            messages = {
                name: _without_comments(
                    json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
                )
                for name in sorted(f"{api}{kind}" for api in SERVED for kind in KINDS)
                for text in [jar.read(f"{_DEFINITIONS}{name}.json").decode()]
            }
        (version,) = re.findall(r"^version=(\S+)", properties, flags=re.MULTILINE)
        return cls(version, messages)

    def json(self) -> str:
        """As a file, a message a line, which `of_json` reads."""
        lines = [
            f"{json.dumps(name)}: {json.dumps(message, separators=(',', ':'))}"
            for name, message in self.messages.items()
        ]
        messages = ",\n".join(lines)
        head = f'"notice": "{_NOTICE}", "kafka": "{self.kafka_version}"'
        return f'{{{head}, "messages": {{\n{messages}\n}}}}\n'

    @classmethod
    def of_json(cls, text: str) -> Definitions:
        read = json.loads(text)
        return cls(read["kafka"], read["messages"])


def _without_comments(definition: Any) -> Any:
    if isinstance(definition, list):
        return [_without_comments(one) for one in definition]
    if isinstance(definition, dict):
        unread = {"about", "entityType", "ignorable", "listeners", "mapKey"}
        return {k: _without_comments(v) for k, v in definition.items() if k not in unread}
    return definition


class Versions(NamedTuple):
    """From the first to the last, both inclusive."""

    first: int
    last: int

    @classmethod
    def of(cls, text: str | None) -> Versions:
        """``4``, ``4-17``, ``4+`` or ``none``."""
        if text is None or text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), sys.maxsize)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __bool__(self) -> bool:
        return self.first <= self.last

    def __and__(self, other: Versions) -> Versions:
        return Versions(max(self.first, other.first), min(self.last, other.last))

    def of_all(self, served: Versions) -> str:
        """As a comment beside a field, empty if all served versions are meant."""
        meant = self & served
        if meant == served:
            return ""
        if meant.last == served.last:
            return f"  # {meant.first}+"
        return f"  # {meant.first}" + ("" if meant.first == meant.last else f"-{meant.last}")


def snake(name: str) -> str:
    """``NumPartitions`` as ``num_partitions``."""
    return re.sub(r"(?<!^)(?=[A-Z][a-z])|(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
