"""How far the hot tier may forget what cold holds: ``local.retention.ms`` and ``.bytes``."""

from __future__ import annotations

from collections.abc import Mapping

from ..cold.table import ColdSnapshot
from ..config import TopicConfig
from ..offsets import HotOffsets, HotSegment
from ..topic import Topic
from .plan import archive_start


def trim_points(
    topic: Topic, hot: Mapping[int, HotOffsets], cold: ColdSnapshot, now_ms: int
) -> dict[int, int]:
    """The offset below which each partition's hot records go; those that keep all are left out.

    Never above max(archived_end, log_start): what only Redis holds stays. Below that, whole
    segments go by Kafka's rules, oldest first, while their largest timestamp is older than
    ``local.retention.ms`` or the partition is larger than ``local.retention.bytes`` without them.
    Other than in Kafka, the open segment goes too once all of it is archived and expired, and
    ``local.retention.ms=0`` frees everything archived, also part of a segment.
    """
    points = {}
    for partition, offsets in hot.items():
        held_by_cold = min(archive_start(cold, partition), offsets.log_end)
        forgotten = min(cold.log_start(partition), offsets.log_end)
        point = max(forgotten, _retention_point(topic.config, offsets, held_by_cold, now_ms))
        if point > offsets.local_log_start:
            points[partition] = point
    return points


def _retention_point(
    config: TopicConfig, offsets: HotOffsets, held_by_cold: int, now_ms: int
) -> int:
    if config.local_retention_ms == 0:
        return held_by_cold
    excess_bytes = offsets.size_bytes - config.local_retention_bytes
    by_size = config.local_retention_bytes >= 0
    for segment in offsets.segments:
        excess_bytes -= segment.size_bytes
        too_large = by_size and excess_bytes >= 0
        if segment.end_offset > held_by_cold or not (
            too_large or _expired(segment, config.local_retention_ms, now_ms)
        ):
            return min(segment.base_offset, held_by_cold)
    return held_by_cold


def _expired(segment: HotSegment, retention_ms: int, now_ms: int) -> bool:
    if retention_ms < 0:
        return False
    newest_ms = segment.max_timestamp_ms if segment.max_timestamp_ms >= 0 else segment.modified_ms
    return now_ms - newest_ms > retention_ms
