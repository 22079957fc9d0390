"""Whether files and registers agree, judged by the index alone.

Somebody who RESTOREs the table, deletes rows or inserts them by hand changes files but not
registers. That is noticed here, before a wrong answer is given or a wrong file is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..errors import ContradictionError
from ..values.topic_partition import TopicPartition
from .registers import ArchivedEnd, CleanedEnd, ErasedEnd, LogStart, Register
from .segment import SegmentIndex


def check(topic: str, files: SegmentIndex, registers: Mapping[Register, int]) -> None:
    """Check that cold holds [log_start, archived_end) of each partition, each record once.

    Raises:
        ContradictionError: the first contradiction.
    """
    found: dict[int, str] = {}
    for says in (_ends, _holes, _counts):  # all partitions at once: there may be thousands
        for partition, what in says(files, registers):
            found.setdefault(partition, what)
    if found:
        partition = min(found)
        raise ContradictionError(
            f"the cold tier of {topic}-{partition} contradicts itself: {found[partition]}. Nothing "
            "was changed. Look at DESCRIBE HISTORY and RESTORE the table to the version before "
            "that",
            topic_partition=TopicPartition(topic, partition),
            archived_end=registers.get(ArchivedEnd(partition), 0),
            log_start=registers.get(LogStart(partition), 0),
        )


def check_partition(
    topic_partition: TopicPartition, files: SegmentIndex, registers: Mapping[Register, int]
) -> None:
    """As `check`, of one partition."""
    number = topic_partition.partition
    of_it = {register: end for register, end in registers.items() if register.partition == number}
    check(topic_partition.topic, files.only(number), of_it)


_Found = Iterator[tuple[int, str]]  # by partition


def _ends(files: SegmentIndex, registers: Mapping[Register, int]) -> _Found:
    """The last record of a partition is only removed together with all before it."""
    ends = files.ends
    archived_ends = {
        register.partition: end
        for register, end in registers.items()
        if type(register) is ArchivedEnd
    }
    for partition in ends.keys() | archived_ends.keys():
        archived_end = archived_ends.get(partition, 0)
        # A skipped file may have held it; then its stand-in says where it ended.
        end = max([ends.get(partition, 0), *(one.end for one in files.stand_ins(partition))])
        if end > archived_end:
            yield (
                partition,
                f"files hold records up to {end}, but the register archived_end says "
                f"{archived_end}: somebody wrote rows by hand, or removed lakelog's txn",
            )
        elif end < archived_end and registers.get(LogStart(partition), 0) < archived_end:
            yield (
                partition,
                f"the register archived_end says {archived_end}, but the files end at {end}: "
                "somebody RESTOREd an older version or deleted files",
            )


def _holes(files: SegmentIndex, registers: Mapping[Register, int]) -> _Found:
    """From the log start on, ranges follow each other without a hole."""
    log_starts, thinned_ends = _by_row(files, registers)
    partition, starts = files.numbers("partition"), files.numbers("start_offset")
    covered = np.roll(files.reach("end_offset"), 1)
    covered[np.diff(partition, prepend=-1) != 0] = 0
    covered = np.maximum(covered, log_starts)
    # Where records went from the ends of files that do not name their ranges, nobody can tell.
    foreign = np.isin(partition, partition[~files.ours])
    for row in np.flatnonzero((starts > covered) & ~(foreign & (thinned_ends > 0))).tolist():
        hole = f"[{int(covered[row])}, {int(starts[row])})"
        yield int(partition[row]), f"no file covers the offsets {hole}"


def _counts(files: SegmentIndex, registers: Mapping[Register, int]) -> _Found:
    """A segment never has more records than offsets, nor fewer unless it was compacted."""
    filled = np.flatnonzero(files.numbers("records") != 0)
    if not len(filled):
        return
    order = filled[np.lexsort([files.numbers(one)[filled] for one in ("segment", "partition")])]
    partition, segment, records, first, last = (
        files.numbers(name)[order] for name in ("partition", "segment", "records", "first", "last")
    )
    goes_on = (np.diff(segment) == 0) & (np.diff(partition) == 0)
    begins = np.flatnonzero(np.concatenate([[True], ~goes_on]))
    partition, segment = partition[begins], segment[begins]
    counted, least = np.add.reduceat(records, begins), np.minimum.reduceat(records, begins)
    first, last = np.minimum.reduceat(first, begins), np.maximum.reduceat(last, begins)
    span = last + 1 - first
    for row in np.flatnonzero(counted > span).tolist():
        what = f"segment {int(segment[row])} has more rows than offsets: somebody inserted rows"
        yield int(partition[row]), what
    log_starts, thinned_ends = (one[order][begins] for one in _by_row(files, registers))
    # Above the log start, no record is ever missing from a segment as it was archived. (Records
    # below it may be missing, within a segment too; a foreign OPTIMIZE may have merged files that
    # lost records.) Nor can it be told where a checkpoint has left statistics out.
    whole = (segment >= log_starts) & (thinned_ends == 0) & (least >= 0)
    lost = whole & ((counted < span) | (first > segment))
    if not lost.any():
        return
    # What lakelog rewrote may be compacted, or span the gap between two segments.
    rewritten = {
        (int(files.numbers("partition")[row]), int(files.numbers("segment")[row]))
        for row in np.flatnonzero(files.made)
    }
    for row in np.flatnonzero(lost).tolist():
        if (int(partition[row]), int(segment[row])) not in rewritten:
            what = f"segment {int(segment[row])} has lost records: somebody deleted rows"
            yield int(partition[row]), what


def _by_row(
    files: SegmentIndex, registers: Mapping[Register, int]
) -> tuple[np.ndarray, np.ndarray]:
    """The log start of each file's partition, and up to where records may have been taken."""
    numbers = files.partitions
    log_starts = [registers.get(LogStart(one), 0) for one in numbers]
    thinned_ends = [
        max(registers.get(CleanedEnd(one), 0), registers.get(ErasedEnd(one), 0)) for one in numbers
    ]
    rows = np.searchsorted(np.array(numbers, np.int64), files.numbers("partition"))
    return np.array(log_starts, np.int64)[rows], np.array(thinned_ends, np.int64)[rows]
