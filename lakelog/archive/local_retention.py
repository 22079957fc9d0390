"""How far the hot tier may drop what cold holds: by ``local.retention.ms`` and ``.bytes``, and as
far as the table's files are still there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ..cold.change import Change, HotRange, Rewrite
from ..cold.registers import ErasedEnd
from ..errors import LakelogError, MissingFileError
from ..values.config import TopicConfig
from ..values.offsets import HotSegment, HotSegments
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange

if TYPE_CHECKING:
    from ..cold.segment import SegmentFile
    from ..cold.table import ColdSnapshot, ColdTable


def trim_points(
    topic: Topic,
    hot: Mapping[int, HotSegments],
    cold: ColdSnapshot,
    now_ms: int,
    full: Collection[int] = (),
) -> dict[int, int]:
    """The offset below which each partition's hot records go; those that keep all are left out.

    Never above max(archived_end, log_start): what only Redis holds stays. Below that, whole
    segments go by Kafka's passes, oldest first: those below the log start; then while the partition
    is at least as large as ``local.retention.bytes`` without them; then while their largest
    timestamp is older than ``local.retention.ms``. Other than in Kafka, the open segment goes too
    once all of it is archived and expired (Kafka rolls it first), what lies below the log start
    goes even as part of a segment, and so does everything archived where
    ``local.retention.ms=0``.

    ``cleanup.policy`` does not matter: dropping a hot copy deletes no record. So the settings also
    count on compacted and kept-forever topics, and -2 (the default) means the number in
    ``retention.ms`` or ``retention.bytes`` even where the policy has no ``delete`` and cold keeps
    everything: Redis would fill up otherwise.

    Args:
        full: partitions whose server is nearly full: all that is archived goes from there.

    Source: Kafka ``UnifiedLog.deleteOldSegments`` with a remote tier; KIP-405.
    """
    points = {}
    for partition, offsets in hot.items():
        held_by_cold = min(cold.archive_start(partition), offsets.log_end)
        forgotten = min(cold.log_start(partition), offsets.log_end)
        point = held_by_cold
        if partition not in full:
            point = _retention_point(topic.config, offsets, forgotten, held_by_cold, now_ms)
        if max(forgotten, point) > offsets.local_log_start:
            points[partition] = max(forgotten, point)
    return points


def next_trim_ms(topic: Topic, hot: Mapping[int, HotSegments], cold: ColdSnapshot) -> int | None:
    """When the next archived segment's time is over, on the clock that stamped them.

    None: nothing goes by time alone. What size or a log start asks for is due at once.
    """
    retention_ms = topic.config.local_retention_ms
    if retention_ms <= 0:
        return None
    times = []
    for partition, offsets in hot.items():
        held_by_cold = min(cold.archive_start(partition), offsets.log_end)
        oldest = next(
            (one for one in offsets.segments if one.end_offset > offsets.local_log_start), None
        )
        if oldest is not None and oldest.end_offset <= held_by_cold:
            times.append(_newest_ms(oldest) + retention_ms + 1)
    return min(times, default=None)


def _retention_point(
    config: TopicConfig, offsets: HotSegments, forgotten: int, held_by_cold: int, now_ms: int
) -> int:
    if config.local_retention_ms == 0:
        return held_by_cold
    excess_bytes = offsets.size_bytes - config.local_retention_bytes
    by_size = config.local_retention_bytes >= 0
    for segment in offsets.segments:
        excess_bytes -= segment.size_bytes
        if segment.end_offset <= forgotten:
            continue  # it goes whatever its age, so it shields no later segment
        # Sizes only shrink what is left over, so this is the size pass and then the time pass.
        too_large = by_size and excess_bytes >= 0
        if segment.end_offset > held_by_cold or not (
            too_large or _expired(segment, config.local_retention_ms, now_ms)
        ):
            return min(segment.base_offset, held_by_cold)
    return held_by_cold


def _expired(segment: HotSegment, retention_ms: int, now_ms: int) -> bool:
    if retention_ms < 0:
        return False
    return now_ms - _newest_ms(segment) > retention_ms


def _newest_ms(segment: HotSegment) -> int:
    return segment.max_timestamp_ms if segment.max_timestamp_ms >= 0 else segment.modified_ms


# -- the files, asked before hot drops the only other copy ---------------------------------------

# Somebody's full VACUUM with a short retention deletes what no commit named when it looked: also a
# file that a commit names by the time that it is deleted.

#: Each time, somebody deleted what had been written again.
ATTEMPTS = 5


def trimmable(
    topic: Topic, table: ColdTable, cold: ColdSnapshot, spans: Mapping[int, OffsetRange]
) -> tuple[dict[int, int], list[LakelogError]]:
    """How far hot may drop spans that cold is to hold, once the files are looked at.

    A file that is gone is written again from hot, which still has all of its records.

    Args:
        cold: a look that is no older than the spans.
        spans: by partition, what hot holds and would drop.

    Returns:
        The ends, by partition: below the first file that is gone for good; and those files.
    """
    ends = {number: span.end for number, span in spans.items()}
    why: LakelogError | None = None
    gone: list[SegmentFile] = []
    for _ in range(ATTEMPTS):
        gone = _gone(table, cold, spans)
        again = [_again(topic, file) for file in gone if _is_in_hot(file, spans, cold)]
        if not again:
            break
        replaced = tuple(file for rewrite in again for file in rewrite.files)
        change = Change(adds=tuple(again), removes=replaced, data_change=False)
        try:
            cold = table.apply(change, cold).snapshot
        except LakelogError as error:
            why = error
    errors: list[LakelogError] = []
    for file in gone:
        number = file.partition
        ends[number] = min(ends[number], max(spans[number].start, file.start_offset))
        errors.append(_error(topic, table, file, why))
    return ends, errors


def _gone(
    table: ColdTable, cold: ColdSnapshot, spans: Mapping[int, OffsetRange]
) -> list[SegmentFile]:
    wanted: Iterable[SegmentFile] = (
        file
        for number, span in spans.items()
        for file in cold.files.files_between(number, span.start, span.end)
        if file.records
    )
    return list(table.missing(wanted))


def _is_in_hot(file: SegmentFile, spans: Mapping[int, OffsetRange], cold: ColdSnapshot) -> bool:
    """Whether hot has the same records: cleanup took none of the file's, nor erased any."""
    span = spans[file.partition]
    return (
        span.start <= file.start_offset
        and file.records == file.end_offset - max(file.start_offset, file.segment)
        and file.start_offset >= cold.registers.get(ErasedEnd(file.partition), 0)
    )


def _again(topic: Topic, file: SegmentFile) -> Rewrite:
    topic_partition = topic.partition(file.partition)
    hot = HotRange(
        topic_partition, topic.topic_id, file.segment, file.start_offset, file.end_offset
    )
    return Rewrite(topic_partition, file.segment, (file,), hot=hot)


def _error(
    topic: Topic, table: ColdTable, file: SegmentFile, why: LakelogError | None
) -> LakelogError:
    because = "" if why is None else f" It could not be written again: {why.message}."
    return MissingFileError(
        f"{file.path} is gone, though the table at {table.where} names it: somebody deleted it, as "
        f"a full VACUUM with a retention of 0 does. Its records, [{file.start_offset}, "
        f"{file.end_offset}) of {topic.name}-{file.partition}, are still in Redis, and stay there."
        f"{because} Put the file back from a backup or an older version of the store",
        topic_partition=topic.partition(file.partition),
        path=file.path,
    )
