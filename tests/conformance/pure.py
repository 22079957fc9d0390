"""The actions of conformance cases that need no log: settings, hashes, grammars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lakelog.cli.offsets import time_position
from lakelog.cli.partition_filter import PartitionFilter
from lakelog.config import TopicConfig
from lakelog.errors import InvalidConfigError
from lakelog.ingest.partitioner import murmur2
from lakelog.keyspace_defaults import KeyspaceDefaults
from lakelog.read.policy import OffsetReset
from lakelog.record import TopicPartition


def do_settings(given: Mapping[str, Any]) -> TopicConfig:
    """A topic's settings; ``broker`` among them is what the keyspace sets for all topics."""
    topic = {name: value for name, value in given.items() if name != "broker"}
    broker = KeyspaceDefaults().replace({k: str(v) for k, v in given.get("broker", {}).items()})
    return TopicConfig.of(topic).with_defaults(broker.for_topics)


def do_accepted(values: Mapping[str, Sequence[Any]]) -> list[str]:
    """Which of many values of single settings a topic takes."""
    return [
        f"{name}={value}"
        for name, several in values.items()
        for value in several
        if _is_legal({name: value})
    ]


def do_offset_reset(text: object) -> str:
    return OffsetReset.parse(text).text


def do_murmur2(texts: Sequence[str]) -> list[int]:
    """As Java's signed numbers."""
    return [(murmur2(text.encode()) + 2**31) % 2**32 - 2**31 for text in texts]


def do_partition_filter(options: Mapping[str, str]) -> PartitionFilter:
    """What ``lakelog offsets`` makes of these options."""
    if "topic_partitions" in options:
        return PartitionFilter.of_list(options["topic_partitions"])
    return PartitionFilter.of_options(options.get("topic"), options.get("partitions"))


def do_time_position(text: str) -> str:
    return repr(time_position(text))


def see_allowed_topics(allowed: PartitionFilter, wanted: Mapping[str, bool]) -> dict[str, bool]:
    return {topic: allowed.allows_topic(topic) for topic in wanted}


def see_allowed(
    allowed: PartitionFilter, wanted: Mapping[str, Mapping[int, bool]]
) -> dict[str, dict[int, bool]]:
    """By topic and partition."""
    return {
        topic: {number: allowed.allows(TopicPartition(topic, number)) for number in numbers}
        for topic, numbers in wanted.items()
    }


def _is_legal(settings: Mapping[str, Any]) -> bool:
    try:
        TopicConfig.of(settings)
    except InvalidConfigError:
        return False
    return True
