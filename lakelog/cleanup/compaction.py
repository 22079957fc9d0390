"""Compaction: in closed segments, only the latest record of each key stays.

Two passes on the engine: the first reads keys and finds what is superseded, the second rewrites the
segments that hold some of it. One commit swaps them, with the register *cleaned end*; before it the
table is as it was. Offsets and order stay.

Source: Kafka ``Cleaner`` (record rule, delete horizon at the first cleaning that keeps a tombstone,
grouping of small neighbours).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ..base.failpoints import failpoint
from ..base.text_table import counted
from ..cold.change import Change, Rewrite
from ..cold.offset_set import OffsetSet
from ..cold.registers import CleanedEnd, Register
from ..cold.segment import Segment, SegmentFile
from ..cold.table import Applied, ColdSnapshot, ColdTable
from ..errors import CorruptRecordError, LakelogError, MissingFileError
from ..values.config import TopicConfig
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .plan import Cleanable, cleanable
from .superseded import (
    COLUMNS,
    FileFindings,
    Found,
    Search,
    TooManyKeys,
    Unreadable,
    find_superseded,
)


class PartitionCompacted(Struct, frozen=True):
    """One partition's cleaning, by Kafka's measures. Read: all its segments below the first
    uncleanable offset; kept and dropped: what became of them.
    """

    topic_partition: TopicPartition
    dirty_ratio_before: float
    dirty_ratio_after: float
    cleaned_end: int  # exclusive
    records_read: int
    bytes_read: int
    records_kept: int
    bytes_kept: int
    segments_rewritten: int
    segments_before: int
    segments_after: int
    files_before: int
    files_after: int
    keys: int  # distinct ones in the dirty part
    keyless_dropped: int  # records that never had a key
    tombstones_dropped: int  # past their horizon
    seconds: float  # from the plan to the commit, which partitions share

    @property
    def records_dropped(self) -> int:
        return self.records_read - self.records_kept

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about dropped records that their writer may have meant to keep."""
        if not self.keyless_dropped:
            return ()
        return (
            f"compaction of {self.topic_partition} dropped "
            f"{counted(self.keyless_dropped, 'record')} without a key, appended before the "
            "topic was compacted: none can be the latest of its key. Where such records are to "
            "stay, set cleanup.policy=delete",
        )

    @property
    def bytes_dropped(self) -> int:
        return self.bytes_read - self.bytes_kept

    @property
    def recopy_percent(self) -> float:
        """How much of what was read had to be kept: Kafka's ``cleaner-recopy-percent``."""
        return 100 * self.bytes_kept / self.bytes_read if self.bytes_read else 0.0


class Compacted(Struct, frozen=True, eq=False):
    """The result of one attempt."""

    snapshot: ColdSnapshot  # with what was committed
    done: tuple[PartitionCompacted, ...] = ()
    superseded: frozenset[int] = frozenset()  # partitions that others changed: plan them again
    failed: Mapping[int, LakelogError] = field(default_factory=dict)


def compact(
    topic: Topic, table: ColdTable, cold: ColdSnapshot, chosen: Sequence[Cleanable], now_ms: int
) -> Compacted:
    """Cleans the chosen partitions, in one commit.

    A partition with a missing or damaged file is left as it is, and the others go on.

    Runs on: driver; reading and writing on the engine's workers.
    """
    started_s = time.monotonic()
    found, failed = _search(topic, table, chosen, now_ms)
    failpoint("cleanup.after_find")
    plans = {
        one.topic_partition.partition: _Plan.of(topic.config, one, found[number], now_ms)
        for one in chosen
        if (number := one.topic_partition.partition) in found
    }
    applied = None
    while plans and applied is None:
        try:
            change = replace(_change(plans.values()), config_version=topic.config_version)
            applied = table.apply(change, cold)
        except (MissingFileError, CorruptRecordError) as error:
            damaged = partition_of(error)
            if damaged is None or damaged not in plans:
                raise
            failed[damaged] = error
            del plans[damaged]
    if applied is None:
        return Compacted(cold, failed=failed)
    seconds = time.monotonic() - started_s
    done = [
        plan.report(applied, cleanable(topic, applied.snapshot, number, now_ms), seconds)
        for number, plan in plans.items()
        if number not in applied.superseded
    ]
    return Compacted(applied.snapshot, tuple(done), applied.superseded, failed)


def partition_of(error: MissingFileError | CorruptRecordError) -> int | None:
    """The partition whose file it is about, by its path."""
    _, found, rest = (error.path or "").rpartition("partition=")
    number = rest.partition("/")[0]
    return int(number) if found and number.isdecimal() else None


# -- finding -----------------------------------------------------------------------------------


def _search(
    topic: Topic, table: ColdTable, chosen: Sequence[Cleanable], now_ms: int
) -> tuple[dict[int, list[Found]], dict[int, LakelogError]]:
    """What the searches found by partition, and why the other searches failed."""
    searches = [
        Search(
            one.topic_partition,
            _files(one.clean),
            _files(one.dirty),
            now_ms,
            topic.config.dedupe_buffer_bytes,
        )
        # Spark starts tasks in this order: the last to end should be small.
        for one in sorted(chosen, key=lambda one: one.dirty_bytes, reverse=True)
    ]
    found: dict[int, list[Found]] = {}
    failed: dict[int, LakelogError] = {}
    while searches:
        again = []
        for answer in table.map(
            find_superseded, searches, files_of=lambda search: search.files, columns=COLUMNS
        ):
            number = answer.search.topic_partition.partition
            if isinstance(answer, TooManyKeys):
                again += answer.search.cut(answer.bounds)
            elif isinstance(answer, Unreadable):
                failed[number] = answer.error
            else:
                found.setdefault(number, []).append(answer)
        searches = [one for one in again if one.topic_partition.partition not in failed]
    return {number: answers for number, answers in found.items() if number not in failed}, failed


def _files(segments: Iterable[Segment]) -> tuple[SegmentFile, ...]:
    return tuple(file for segment in segments for file in segment.files)


# -- rewriting ---------------------------------------------------------------------------------


class _Plan(Struct, frozen=True, eq=False):
    """What is to be done to one partition."""

    cleanable: Cleanable
    found: Sequence[Found]
    groups: Sequence[Sequence[Segment]]  # each becomes one segment
    rewrites: tuple[Rewrite, ...]

    @classmethod
    def of(
        cls, config: TopicConfig, cleanable: Cleanable, found: Sequence[Found], now_ms: int
    ) -> _Plan:
        findings = {path: _merged(path, found) for path in found[0].files}
        groups = _groups(cleanable, findings, config.segment_bytes)
        horizon_ms = now_ms + config["delete.retention.ms"]
        rewrites = tuple(
            Rewrite(
                cleanable.topic_partition,
                group[0].base_offset,
                _files(group),
                OffsetSet.union(findings[file.path].superseded for file in _files(group)),
                horizon_ms,
            )
            for group in groups
        )
        return cls(cleanable, found, groups, rewrites)

    def report(self, applied: Applied, after: Cleanable, seconds: float) -> PartitionCompacted:
        partition = self.cleanable.topic_partition.partition
        before = (*self.cleanable.clean, *self.cleanable.dirty)
        rewritten = [segment for group in self.groups for segment in group]
        written = [file for file in applied.files if file.partition == partition]
        records_read = sum(segment.records for segment in before)
        bytes_read = sum(segment.size_bytes for segment in before)
        files = [file for one in self.found for file in one.files.values()]
        return PartitionCompacted(
            self.cleanable.topic_partition,
            self.cleanable.dirty_ratio,
            after.dirty_ratio,
            self.cleanable.first_uncleanable,
            records_read,
            bytes_read,
            records_read
            - sum(segment.records for segment in rewritten)
            + sum(file.records for file in written),
            bytes_read
            - sum(segment.size_bytes for segment in rewritten)
            + sum(file.size_bytes for file in written),
            len(rewritten),
            len(before),
            len(before) - len(rewritten) + len(self.groups),
            len(_files(before)),
            len(_files(before)) - len(_files(rewritten)) + len(written),
            sum(one.keys for one in self.found),
            sum(file.keyless for file in files),
            sum(file.expired for file in files),
            seconds,
        )


def _change(plans: Iterable[_Plan]) -> Change:
    rewrites = [rewrite for plan in plans for rewrite in plan.rewrites]
    rewrites.sort(key=lambda one: sum(file.size_bytes for file in one.files), reverse=True)
    registers: dict[Register, int] = {
        CleanedEnd(plan.cleanable.topic_partition.partition): plan.cleanable.first_uncleanable
        for plan in plans
    }
    return Change(
        adds=tuple(rewrites),
        removes=tuple(file for rewrite in rewrites for file in rewrite.files),
        registers=registers,
    )


def _merged(path: str, found: Sequence[Found]) -> FileFindings:
    """One file's findings, from searches that each looked for some of the keys."""
    parts = [one.files[path] for one in found]
    return FileFindings(
        OffsetSet.union(part.superseded for part in parts),
        sum(part.keyless for part in parts),
        sum(part.expired for part in parts),
        sum(part.tombstones for part in parts),
    )


def _groups(
    cleanable: Cleanable, findings: Mapping[str, FileFindings], segment_bytes: int
) -> list[list[Segment]]:
    """Runs of segments to rewrite; each run becomes one segment, which must not be too large.

    A segment with nothing to drop is never rewritten. One that holds no records joins its
    neighbours. No run crosses the gap that a lost tail left: the end of a segment's range tells
    readers which of a lost tail's records were archived.
    """
    groups: list[list[Segment]] = []
    run: list[Segment] = []  # the open group, or empty segments that may become its beginning
    room = segment_bytes

    def close() -> None:
        nonlocal run, room
        if any(segment.records for segment in run):
            groups.append(run)
        run, room = [], segment_bytes

    for segment in (*cleanable.clean, *cleanable.dirty):
        if run and segment.base_offset > run[-1].end_offset:
            close()
        rewrite = any(findings[file.path].rewrite for file in segment.files)
        if segment.records and not rewrite:
            close()
            continue
        size_bytes = sum(_size_after(file, findings[file.path]) for file in segment.files)
        if size_bytes > room and any(one.records for one in run):
            close()
        run.append(segment)
        room -= size_bytes
    close()
    return groups


def _size_after(file: SegmentFile, findings: FileFindings) -> int:
    """About how large its remaining records will be."""
    kept = file.records - len(findings.superseded)
    return file.size_bytes * kept // max(1, file.records)
