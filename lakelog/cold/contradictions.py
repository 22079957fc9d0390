"""Whether files and registers agree, judged by the index alone.

Somebody who RESTOREs the table, deletes rows or inserts them by hand changes files but not
registers. That is noticed here, before a wrong answer is given or a wrong file is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np
import pyarrow as pa

from ..base import compute as pc
from ..errors import ContradictionError
from ..values.topic_partition import TopicPartition
from .registers import ArchivedEnd, CleanedEnd, ErasedEnd, LogStart, Register
from .segment import MADE, SegmentIndex


def check(topic: str, files: SegmentIndex, registers: Mapping[Register, int]) -> None:
    """Check that cold holds [log_start, archived_end) of each partition, each record once.

    Raises:
        ContradictionError: the first contradiction.
    """
    for partition in _in_doubt(files, registers):
        check_partition(TopicPartition(topic, partition), files, registers)


def _in_doubt(files: SegmentIndex, registers: Mapping[Register, int]) -> list[int]:
    """The partitions that are not plainly as they were archived, ascending.

    That is so of all partitions but a few, and can be seen of all at once; a look at one costs a
    millisecond.
    """
    archived_ends: dict[int, int] = {}
    log_starts: dict[int, int] = {}
    for register, value in registers.items():
        if type(register) is ArchivedEnd:
            archived_ends[register.partition] = value
        elif type(register) is LogStart:
            log_starts[register.partition] = value
    # The end is that of the last file, and what has no files was never archived, or is all deleted.
    ends = files.ends
    doubtful = {number for number, end in ends.items() if end != archived_ends.get(number, 0)}
    doubtful |= {
        number
        for number, archived_end in archived_ends.items()
        if number not in ends and log_starts.get(number, 0) < archived_end
    }
    if len(files):
        partition = files.numbers("partition")
        starts = np.array([log_starts.get(number, 0) for number in ends], np.int64)
        rows = np.searchsorted(np.fromiter(ends, np.int64, len(ends)), partition)
        odd = _odd_rows(files, starts[rows])
        if odd.any():
            doubtful.update(partition[odd].tolist())
    return sorted(doubtful)


def _odd_rows(files: SegmentIndex, log_starts: np.ndarray) -> np.ndarray:
    """The files that an archiver did not write where the one before ended, with a record at each
    offset of their segment so far. There is at least one file.

    Args:
        log_starts: of the partition of each file.
    """
    partition, segment, first, last, records, start, end = (
        files.numbers(name)
        for name in (
            "partition",
            "segment",
            "first",
            "last",
            "records",
            "start_offset",
            "end_offset",
        )
    )
    odd = (records != last + 1 - first) | (records <= 0) | files.made
    if not files.are_ours:
        odd |= ~np.asarray(files.columns["ours"])
    same, step = partition[1:] == partition[:-1], segment[1:] - segment[:-1]
    goes_on = same & (step == 0)
    odd[1:] |= same & (step < 0)
    odd[1:] |= np.where(goes_on, first[1:] != last[:-1] + 1, first[1:] > segment[1:])
    odd[0] |= first[0] > segment[0]
    covered = log_starts.copy()
    np.maximum(covered[1:], np.where(same, end[:-1], 0), out=covered[1:])
    return np.asarray(odd | (start > covered))


def check_partition(
    topic_partition: TopicPartition, files: SegmentIndex, registers: Mapping[Register, int]
) -> None:
    """As `check`, of one partition."""
    partition = topic_partition.partition
    _Partition(
        topic_partition,
        files.rows_of_partition(partition),
        registers.get(ArchivedEnd(partition), 0),
        registers.get(LogStart(partition), 0),
        max(registers.get(CleanedEnd(partition), 0), registers.get(ErasedEnd(partition), 0)),
    ).check()


class _Partition:
    def __init__(
        self,
        topic_partition: TopicPartition,
        files: pa.Table,
        archived_end: int,
        log_start: int,
        thinned_end: int,
    ) -> None:
        self.topic_partition = topic_partition
        self.files = files
        self.archived_end = archived_end
        self.log_start = log_start
        self.thinned_end = thinned_end

    def check(self) -> None:
        self._check_end()
        if self.files.num_rows:
            self._check_holes()
            self._check_counts()

    def _check_end(self) -> None:
        """The last record of a partition is only removed together with all before it."""
        end = 1 + (pc.max(self.files["last"]).as_py() if self.files.num_rows else -1)
        # A skipped file may have held it; then its stand-in says where it ended.
        end = max([end, *(file_end for _, file_end in self._stand_ins())])
        if end > self.archived_end:
            self._refuse(
                f"files hold records up to {end}, but the register archived_end says "
                f"{self.archived_end}: somebody wrote rows by hand, or removed lakelog's txn"
            )
        if end < self.archived_end and self.log_start < self.archived_end:
            self._refuse(
                f"the register archived_end says {self.archived_end}, but the files end at {end}: "
                "somebody RESTOREd an older version or deleted files"
            )

    def _stand_ins(self) -> list[tuple[int, int]]:
        rows = self.files.filter(pc.match_substring(self.files["path"], "/quarantine-"))
        starts, ends = rows["start_offset"].to_pylist(), rows["end_offset"].to_pylist()
        return list(zip(starts, ends, strict=True))

    def _check_holes(self) -> None:
        """From the log start on, ranges follow each other without a hole."""
        if self.thinned_end and not pc.all(self.files["ours"]).as_py():
            return  # records went from the ends of files that no longer name their ranges
        starts = _array(self.files["start_offset"])
        reach = pc.cumulative_max(_array(self.files["end_offset"]))
        covered = pc.max_element_wise(
            pa.concat_arrays([pa.array([0], pa.int64()), reach[:-1]]), self.log_start
        )
        holes = pc.indices_nonzero(pc.greater(starts, covered))
        if len(holes):
            row = holes[0].as_py()
            self._refuse(f"no file covers the offsets [{covered[row]}, {starts[row]})")

    def _check_counts(self) -> None:
        """A segment never has more records than offsets, nor fewer unless it was compacted."""
        made = self.files.filter(pc.match_substring_regex(self.files["path"], MADE))
        files = self.files.filter(pc.not_equal(self.files["records"], 0))
        # What lakelog rewrote may be compacted, or span the gap between two segments.
        rewritten = pc.is_in(files["segment"], value_set=made["segment"].combine_chunks())
        files = files.append_column("rewritten", rewritten)
        segments = files.group_by("segment", use_threads=False).aggregate(
            [
                ("records", "sum"),
                ("records", "min"),
                ("first", "min"),
                ("last", "max"),
                ("rewritten", "any"),
            ]
        )
        first = segments["first_min"]
        span = pc.subtract(pc.add(segments["last_max"], 1), first)
        doubled = pc.greater(segments["records_sum"], span)
        if pc.any(doubled).as_py():
            base = segments["segment"].filter(doubled)[0]
            self._refuse(f"segment {base} has more rows than offsets: somebody inserted rows")
        if self.thinned_end:  # a foreign OPTIMIZE may have merged files that lost records
            return
        # Above the log start, no record is ever missing from a segment as it was archived. (Records
        # below it may be missing, within a segment too.)
        whole = pc.and_(
            pc.greater_equal(segments["segment"], self.log_start),
            pc.invert(segments["rewritten_any"]),
        )
        # Nor can it be told where a checkpoint has left statistics out.
        whole = pc.and_(whole, pc.greater_equal(segments["records_min"], 0))
        lost = pc.or_(
            pc.less(segments["records_sum"], span), pc.greater(first, segments["segment"])
        )
        lost = pc.and_(whole, lost)
        if pc.any(lost).as_py():
            base = segments["segment"].filter(lost)[0]
            self._refuse(f"segment {base} has lost records: somebody deleted rows")

    def _refuse(self, what: str) -> NoReturn:
        raise ContradictionError(
            f"the cold tier of {self.topic_partition} contradicts itself: {what}. Nothing was "
            "changed. Look at DESCRIBE HISTORY and RESTORE the table to the version before that",
            topic_partition=self.topic_partition,
            archived_end=self.archived_end,
            log_start=self.log_start,
        )


def _array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
