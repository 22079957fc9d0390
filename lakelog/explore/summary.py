"""Where every partition stands: offsets in both tiers, archive lag, losses, and Redis's room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..hot import HotLog
from ..hot.server_info import ServerInfo
from ..offsets import LogOffsets
from ..read.unified_log import UnifiedLog
from ..record import OffsetRange, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition."""

    topic_partition: TopicPartition
    tiered: bool
    offsets: LogOffsets
    hot_size_bytes: int
    archive_lag_ms: int | None  # since the oldest unarchived append; None: nothing waits
    lost: tuple[OffsetRange, ...]  # offsets lost with a hot tail, never to be used again
    paused: bool  # for a planned stop

    @property
    def state(self) -> str:
        """``ok``, ``paused``, or ``recovery needed`` until the next append or archive run."""
        if not self.offsets.recovered:
            return "recovery needed"
        return "paused" if self.paused else "ok"


@dataclass(frozen=True, slots=True)
class Status:
    """All that was asked for, of one look."""

    partitions: tuple[PartitionStatus, ...]
    servers: tuple[ServerInfo, ...]
    now_ms: int  # the hot tier's clock


def status(hot: HotLog, logs: Iterable[UnifiedLog]) -> Status:
    """Looks at both tiers of every partition of some topics."""
    now_ms = hot.now_ms()
    partitions = []
    for log in logs:
        look = log.offsets()
        seen = hot.offsets(log.topic.topic_partitions(), topic_id=log.topic.topic_id)
        for topic_partition, hot_offsets in seen.items():
            offsets = look[topic_partition.partition]
            since = hot_offsets.unarchived_since_ms
            waiting = log.topic.config.tiered and offsets.unarchived and since is not None
            partitions.append(
                PartitionStatus(
                    topic_partition,
                    log.topic.config.tiered,
                    offsets,
                    hot_offsets.size_bytes,
                    max(0, now_ms - since) if waiting and since is not None else None,
                    hot_offsets.gaps,
                    hot_offsets.paused,
                )
            )
    return Status(tuple(partitions), tuple(hot.servers()), now_ms)
