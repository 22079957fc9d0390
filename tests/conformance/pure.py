"""The actions of conformance cases that need no log: settings, sizes, hashes, grammars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from lakelog.cleanup.retention import plan_retention
from lakelog.cli.offsets import PartitionFilter, time_position
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.segment import COLUMNS, SegmentIndex, file_name
from lakelog.cold.table import ColdSnapshot
from lakelog.errors import InvalidConfigError
from lakelog.ingest.partitioner import murmur2
from lakelog.read.consumer_config import OffsetReset
from lakelog.values.config import TopicConfig
from lakelog.values.keyspace_defaults import KeyspaceDefaults
from lakelog.values.offsets import HotSegment, HotSegments
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition


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


def do_retention_size(given: Mapping[str, int]) -> int:
    """The bytes that are too many, as the segments say that go: all are of ten bytes."""
    cold_end = given["cold"] // 10
    rows = [
        {
            "partition": 0,
            "segment": at,
            "path": f"partition=0/segment={at}/{file_name('archive', at, at + 1, f'{at:032x}')}",
            "size_bytes": 10,
            "records": 1,
            "start_offset": at,
            "end_offset": at + 1,
            "min_timestamp_ms": 0,
            "max_timestamp_ms": 0,
            "modified_ms": 0,
            "first": at,
            "last": at,
            "ours": True,
        }
        for at in range(cold_end)
    ]
    files = SegmentIndex(pa.Table.from_pylist(rows, schema=COLUMNS))
    cold = ColdSnapshot(1, files, {ArchivedEnd(0): cold_end})
    open_segment = HotSegment(cold_end, cold_end + 1, given["hot_only"], 0, 0, 0, 0)
    hot = HotSegments(cold_end, cold_end + 1, 0, given["hot_only"], segments=(open_segment,))
    config = TopicConfig.of(retention_ms=-1, retention_bytes=given["retention.bytes"])
    (plan,) = plan_retention(Topic("orders", UUID(int=1), 1, config), cold, 0, {0: hot})
    return plan.size_bytes


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
