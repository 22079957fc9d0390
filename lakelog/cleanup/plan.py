"""What a cleanup run would do to each partition, and why; decided without reading any data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..cold.change import Rewrite
from ..cold.table import ColdSnapshot
from ..record import TopicPartition
from ..topic import Topic
from .dirty import Cleanable, cleanable
from .optimize import plan_optimize, size_bytes
from .retention import PartitionRetention, plan_retention


@dataclass(frozen=True, slots=True)
class Planned:
    """One thing that would be done to one partition."""

    topic_partition: TopicPartition
    step: str  # retain, compact or optimize
    action: str  # what becomes of them: "delete", "clean", "merge", "sort"; "keep"
    segments: int
    files: int
    records: int
    size_bytes: int
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class CleanupPlan:
    """Of one topic, as of one snapshot."""

    topic: str
    retention: tuple[PartitionRetention, ...]
    compaction: tuple[Cleanable, ...]
    optimize: tuple[Rewrite, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(warning for one in self.retention for warning in one.warnings)

    @property
    def steps(self) -> tuple[Planned, ...]:
        """What would be done, by partition; also why a compacted partition is left alone."""
        found = [*self._retention(), *self._compaction(), *self._optimize()]
        return tuple(sorted(found, key=lambda one: one.topic_partition.partition))

    def __bool__(self) -> bool:
        return any(one.action != "keep" for one in self.steps)

    def __str__(self) -> str:
        lines = [
            f"{one.topic_partition}: {one.step}: {one.action} {one.segments:,} segments in "
            f"{one.files:,} files, {one.records:,} records, {one.size_bytes:,} bytes: {one.why}"
            for one in self.steps
        ]
        return "\n".join([*(lines or [f"{self.topic}: nothing to clean up"]), *self.warnings])

    def _retention(self) -> Iterator[Planned]:
        for one in self.retention:
            by_reason: dict[str, list[int]] = {}
            for at, dropped in enumerate(one.dropped):
                by_reason.setdefault(dropped.reason, []).append(at)
            for reason, places in by_reason.items():
                segments = [one.dropped[at].segment for at in places]
                yield Planned(
                    one.topic_partition,
                    "retain",
                    "delete",
                    len(segments),
                    sum(len(segment.files) for segment in segments),
                    sum(segment.records for segment in segments),
                    sum(segment.size_bytes for segment in segments),
                    reason,
                )

    def _compaction(self) -> Iterator[Planned]:
        for one in self.compaction:
            segments = (*one.clean, *one.dirty)
            yield Planned(
                one.topic_partition,
                "compact",
                "clean" if one.eligible else "keep",
                len(segments),
                sum(len(segment.files) for segment in segments),
                sum(segment.records for segment in segments),
                sum(segment.size_bytes for segment in segments),
                one.why,
            )

    def _optimize(self) -> Iterator[Planned]:
        by_partition: dict[TopicPartition, list[Rewrite]] = {}
        for rewrite in self.optimize:
            by_partition.setdefault(rewrite.topic_partition, []).append(rewrite)
        for topic_partition, rewrites in by_partition.items():
            several = any(len(rewrite.files) > 1 for rewrite in rewrites)
            yield Planned(
                topic_partition,
                "optimize",
                "merge" if several else "sort",
                len(rewrites),
                sum(len(rewrite.files) for rewrite in rewrites),
                sum(file.records for rewrite in rewrites for file in rewrite.files),
                sum(map(size_bytes, rewrites)),
                "a segment that lies in several files becomes one"
                if several
                else "somebody else wrote the file, maybe not sorted by offset",
            )


def plan_cleanup(
    topic: Topic,
    cold: ColdSnapshot,
    now_ms: int,
    hot_ends: Mapping[int, int] | None = None,
) -> CleanupPlan:
    """What cleanup would do as things are. Pure; pass a topic with other settings to ask "what if".

    Each step is planned on the table as it is now, so what retention would delete may be among
    what compaction and optimize would read; a run plans each step anew.
    """
    return CleanupPlan(
        topic.name,
        tuple(plan_retention(topic, cold, now_ms, hot_ends)),
        tuple(cleanables(topic, cold, now_ms)) if topic.config.compacted else (),
        tuple(plan_optimize(topic, cold)),
    )


def cleanables(topic: Topic, cold: ColdSnapshot, now_ms: int) -> list[Cleanable]:
    """Of every partition with files."""
    return [cleanable(topic, cold, partition, now_ms) for partition in cold.files.partitions]
