"""Where every partition stands when a run looks, with Redis or without. Values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..hot.server_info import ServerInfo
from .status import PartitionStatus, Status, TopicFailure


class PartitionFigures(Struct, frozen=True):
    """One partition. What only Redis knows is None if it was not asked."""

    topic: str
    partition: int
    state: str  # as `PartitionStatus.state`; "cold only" without Redis
    log_start: int
    local_log_start: int | None
    archived_end: int | None  # None: untiered
    log_end: int | None
    archive_lag_records: int | None
    archive_lag_ms: int | None  # since the oldest unarchived append; None: nothing waits
    lost_offsets: int | None  # skipped after an unclean stop; mostly never given to a record
    hot_size_bytes: int | None
    cold_size_bytes: int
    cold_segments: int


class RedisMemory(Struct, frozen=True):
    """The memory of the hot tier, of all its servers together."""

    used_bytes: int
    max_bytes: int | None  # None: at least one has no limit
    headroom_bytes: int | None  # of the server that has the least; None: none has a limit
    headroom_percent: float | None  # of the fullest one's limit; likewise
    headroom_hours: float | None  # of the one that is full first; None: none will be


class LogFigures(Struct, frozen=True):
    """All partitions of one look, by topic and partition."""

    partitions: tuple[PartitionFigures, ...]
    redis: RedisMemory | None  # None: it was not asked
    now_ms: int
    failures: tuple[TopicFailure, ...] = ()  # topics whose state cannot be told

    def check(self) -> None:
        """Raises the error of the first topic whose state cannot be told, if there is one."""
        if self.failures:
            raise self.failures[0].error


def figures_of(status: Status) -> LogFigures:
    """Where the partitions of a status stand."""
    partitions = map(_partition, status.partitions)
    ordered = tuple(sorted(partitions, key=lambda one: (one.topic, one.partition)))
    redis = redis_memory(status.servers, status.headroom_hours) if status.servers else None
    return LogFigures(ordered, redis, status.now_ms, status.failures)


def _partition(one: PartitionStatus) -> PartitionFigures:
    offsets, asked = one.offsets, not one.cold_only
    return PartitionFigures(
        topic=one.topic_partition.topic,
        partition=one.topic_partition.partition,
        state=one.state,
        log_start=offsets.log_start,
        local_log_start=offsets.local_log_start if asked else None,
        archived_end=offsets.archived_end if one.tiered else None,
        log_end=offsets.log_end if asked else None,
        archive_lag_records=one.unarchived,
        archive_lag_ms=one.archive_lag_ms,
        lost_offsets=sum(gap.end_offset - gap.start_offset for gap in one.skipped)
        if asked
        else None,
        hot_size_bytes=one.hot_size_bytes,
        cold_size_bytes=one.cold_size_bytes,
        cold_segments=one.cold_segments,
    )


def redis_memory(servers: tuple[ServerInfo, ...], hours: Mapping[str, float]) -> RedisMemory:
    """The memory of all servers together; the headroom is that of the one with the least."""
    limits = [server.max_memory_bytes for server in servers]
    rooms = [
        server.memory_headroom_bytes
        for server in servers
        if server.memory_headroom_bytes is not None
    ]
    shares = [
        100 * server.memory_headroom_bytes / server.max_memory_bytes
        for server in servers
        if server.memory_headroom_bytes is not None
    ]
    return RedisMemory(
        sum(server.used_memory_bytes for server in servers),
        sum(limits) if all(limits) else None,
        min(rooms, default=None),
        min(shares, default=None),
        min(hours.values(), default=None),
    )
