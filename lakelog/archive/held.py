"""Whether the table's files are still there, asked before hot drops the only other copy.

Somebody's full VACUUM with a short retention deletes what no commit named when it looked: also a
file that a commit names by the time that it is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..cold.change import Change, HotRange, Rewrite
from ..cold.registers import ErasedEnd
from ..errors import LakelogError, MissingFileError
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange

if TYPE_CHECKING:
    from ..cold.segment import SegmentFile
    from ..cold.table import ColdSnapshot, ColdTable

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
