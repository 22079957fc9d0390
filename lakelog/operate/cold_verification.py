"""Checks that a partition's Parquet files are sound, and the table's log is right about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from ..cold.by_path.file_scan import (
    Extent,
    FileScan,
    RowGroupScan,
    ScanTask,
    declared_gaps,
    offsets_of,
    scan_file,
)
from ..cold.contradictions import check_partition
from ..cold.offset_ranges import Ranges, doubled_in, holes_in, merged, unexplained
from ..cold.segment import UNKNOWN_TIMESTAMP_MS, SegmentFile, is_ours
from ..cold.table import ColdSnapshot, ColdTable
from ..errors import ContradictionError, MissingFileError
from ..record import MAX_OFFSET, NO_TIMESTAMP_MS, OffsetRange, TopicPartition
from .finding import COLD, Findings, Kind, Progress, predicate

#: Files are given to the engine in lots of this size, so that progress can be seen.
_LOT = 64


@dataclass(frozen=True, slots=True)
class _Span:
    """What is kept of a file that was scanned."""

    file: SegmentFile
    first: int
    last: int  # inclusive
    holes: Ranges


class LookAgain(Exception):
    """A file of the snapshot is gone by now, as files of old versions may be: look again."""


@dataclass
class ColdVerification:
    """One pass over the files of a partition, as of one snapshot.

    Args:
        lost: the offsets that the hot tier declares as skipped.
        start_offset: offsets below it are not judged.
        end_offset: exclusive; nor are offsets from it on.
    """

    table: ColdTable
    cold: ColdSnapshot
    topic_partition: TopicPartition
    lost: Sequence[OffsetRange] = ()
    start_offset: int = 0
    end_offset: int = MAX_OFFSET
    findings: Findings = field(init=False)
    unreadable: set[str] = field(default_factory=set)  # paths

    def __post_init__(self) -> None:
        self.findings = Findings(COLD, self.topic_partition)
        partition = self.topic_partition.partition
        self._log_start = self.cold.log_start(partition)
        self._archived_end = self.cold.archived_end(partition)
        self._end = min(self.end_offset, self._archived_end)
        self._all = self.cold.files.of_partition(partition)
        self._files = [
            file
            for file in self._all
            if file.end_offset > self.start_offset and file.start_offset < self.end_offset
        ]
        rows = self.cold.files.rows_of_partition(partition).select(["path", "first", "last"])
        wanted = {file.path for file in self._files}
        self._said = {row["path"]: row for row in rows.to_pylist() if row["path"] in wanted}
        self._next_base = _next_bases(self._all)
        # Where missing offsets are no hole.
        self._lost = [
            OffsetRange(0, max(self._log_start, self.start_offset)),
            *self.lost,
            *declared_gaps(self._all),
            *self.cold.files.stand_ins(partition),
        ]
        self._explained = merged(
            [
                *self._lost,
                OffsetRange(0, self.cold.thinned_end(partition)),
                OffsetRange(self.end_offset, MAX_OFFSET),
            ]
        )

    def run(self, progress: Progress | None = None, *, last: bool = False) -> None:
        """Checks all files; see `findings`.

        Args:
            last: there is no further look, so a missing file is a finding.

        Raises:
            LookAgain: look again, at a newer snapshot.
        """
        spans: list[_Span] = []
        for at in range(0, len(self._files), _LOT):
            tasks = [ScanTask(file, self._explained) for file in self._files[at : at + _LOT]]
            for scan in self.table.map(
                scan_file, tasks, files_of=lambda task: [task.file], columns=None
            ):
                self._judge(scan, last)
                found = scan.found
                if scan.flaw is None and found.first_offset is not None:
                    end = found.last_offset or 0
                    spans.append(_Span(scan.file, found.first_offset, end, scan.holes))
                if progress is not None:
                    progress(scan.records)
        self._between(spans)
        if not self.findings.found:
            try:
                check_partition(self.topic_partition, self.cold.files, self.cold.registers)
            except ContradictionError as error:
                self.findings.add(Kind.REGISTER, "the table", error.message, self._register_range())

    # -- one file ----------------------------------------------------------------------------------

    def _judge(self, scan: FileScan, last: bool) -> None:
        file = scan.file
        held = [OffsetRange(file.start_offset, file.end_offset)]

        def add(kind: Kind, what: str, offsets: Iterable[OffsetRange] = held) -> None:
            self.findings.add(kind, file.path, what, offsets)

        if scan.flaw is not None:
            if isinstance(scan.flaw, MissingFileError) and not last and self._is_gone(file):
                raise LookAgain
            self.unreadable.add(file.path)
            gone = isinstance(scan.flaw, MissingFileError)
            kind = Kind.MISSING_FILE if gone else Kind.CORRUPT
            add(kind, predicate(scan.flaw.message, getattr(scan.flaw, "path", "")))
            return
        for group in scan.row_groups:
            self._judge_row_group(file, group)
        self._judge_log(scan)
        if is_ours(file.path) and not scan.ascending:
            add(Kind.ORDER, "holds rows out of order, though lakelog writes them sorted by offset")
        if scan.doubled:
            add(
                Kind.DOUBLED,
                f"holds offsets more than once: {scan.doubled}",
                scan.doubled.ranges,
            )
        said, found = scan.said_tombstones, scan.found_tombstones
        if said is not None and found is not None and said != found:
            add(
                Kind.STATISTICS,
                f"says in its footer that it has {said.without_horizon} tombstones without a "
                f"horizon and {said.min_horizon_ms} as the earliest horizon, but it has "
                f"{found.without_horizon} and {found.min_horizon_ms}",
            )
        extent = scan.found
        if extent.first_offset is None or extent.last_offset is None:
            return
        low, high = file.segment, self._next_base[file.segment]
        if is_ours(file.path):
            low, high = max(low, file.start_offset), min(high, file.end_offset)
        if extent.first_offset < low or extent.last_offset >= high:
            add(
                Kind.ORDER,
                f"holds the offsets {extent.first_offset}..{extent.last_offset}, but its segment "
                f"and name allow {low}..{high - 1}",
                [
                    OffsetRange(extent.first_offset, min(low, extent.last_offset + 1)),
                    OffsetRange(max(high, extent.first_offset), extent.last_offset + 1),
                ],
            )
        if extent.last_offset >= self._archived_end:
            add(
                Kind.REGISTER,
                f"holds offsets up to {extent.last_offset}, but the register archived_end says "
                f"{self._archived_end}",
                [OffsetRange(max(self._archived_end, extent.first_offset), extent.last_offset + 1)],
            )

    def _judge_row_group(self, file: SegmentFile, group: RowGroupScan) -> None:
        where = f"{file.path}, row group {group.index}"
        held = _range(group.found)
        self.findings.differs(
            where, "rows", group.rows, group.found_rows, of="it has", offsets=held
        )
        self._judge_extent(where, group.said, group.found)

    def _judge_log(self, scan: FileScan) -> None:
        """Judges what the table's add action says."""
        file, where = scan.file, f"{scan.file.path}, in the table's log"
        held = [OffsetRange(file.start_offset, file.end_offset)]
        differs = partial(self.findings.differs, where, offsets=held)
        differs("bytes", file.size_bytes, scan.size_bytes, of="the file has")
        if file.records < 0:  # no statistics
            return
        differs("rows", file.records, scan.records, of="the file has")
        said = self._said[file.path]
        if not scan.records or not file.records:
            return
        newest = file.max_timestamp_ms
        self._judge_extent(
            where,
            Extent(
                said["first"],
                said["last"],
                # -1 stands for "none" as well as for "does not say".
                None if file.min_timestamp_ms == NO_TIMESTAMP_MS else file.min_timestamp_ms,
                None if newest == UNKNOWN_TIMESTAMP_MS else newest,
            ),
            scan.found,
        )

    def _judge_extent(self, where: str, said: Extent, found: Extent) -> None:
        for name, one, other in (
            ("the smallest offset", said.first_offset, found.first_offset),
            ("the largest offset", said.last_offset, found.last_offset),
            ("the smallest timestamp", said.min_timestamp_ms, found.min_timestamp_ms),
            ("the largest timestamp", said.max_timestamp_ms, found.max_timestamp_ms),
        ):
            if one is not None and one != other:
                what = f"says {name} is {one}, but it is {other}"
                self.findings.add(Kind.STATISTICS, where, what, _range(found))

    def _is_gone(self, file: SegmentFile) -> bool:
        """Whether the newest version no longer names the file."""
        return bool(self.table.unchecked().files.missing([file.path]))

    # -- all files ---------------------------------------------------------------------------------

    def _between(self, spans: list[_Span]) -> None:
        """Judges holes and repeats, within files and between them."""
        # Unreadable files are reported already.
        unreadable = [
            OffsetRange(file.start_offset, file.end_offset)
            for file in self._files
            if file.path in self.unreadable
        ]
        explained = merged([*self._explained, *unreadable])
        reach = 0  # the end of all rows so far
        for run in _overlapping(spans):
            before = Ranges.of(unexplained(reach, run[0].first, explained))
            self._hole(before, f"before {run[0].file.path}")
            if len(run) == 1:
                self._hole(run[0].holes, run[0].file.path)
            else:
                self._overlap(run, explained)
            reach = max(reach, *(span.last + 1 for span in run))
        if self._end == self._archived_end:
            # A partition's last record is never compacted.
            explained = merged([*self._lost, *unreadable])
        self._hole(Ranges.of(unexplained(reach, self._end, explained)), "the end of the table")

    def _overlap(self, run: Sequence[_Span], explained: Sequence[OffsetRange]) -> None:
        files = [span.file for span in run]
        found = self.table.map(offsets_of, files, files_of=lambda file: [file], columns=None)
        offsets = np.sort(np.concatenate(list(found)))
        where = ", ".join(file.path for file in files[:5]) + (" …" if len(files) > 5 else "")
        doubled = Ranges.of(doubled_in(offsets))
        if doubled:
            what = f"hold the same offsets: {doubled}"
            self.findings.add(Kind.DOUBLED, where, what, doubled.ranges)
        self._hole(Ranges.of(holes_in(offsets, explained)), where)

    def _hole(self, holes: Ranges, where: str) -> None:
        if holes:
            self.findings.add(
                Kind.HOLE,
                where,
                f"no row has the offsets {holes}, though nothing says that they were skipped, "
                "compacted or deleted",
                holes.ranges,
            )

    def _register_range(self) -> list[OffsetRange]:
        """What the registers and the files' names do not agree on."""
        end = max((file.end_offset for file in self._all), default=0)
        low, high = sorted((end, self._archived_end))
        return [OffsetRange(low, high)]


def _range(extent: Extent) -> list[OffsetRange]:
    if extent.first_offset is None or extent.last_offset is None:
        return []
    return [OffsetRange(extent.first_offset, extent.last_offset + 1)]


def _overlapping(spans: list[_Span]) -> Iterator[list[_Span]]:
    """Runs of files whose rows share a range of offsets, by offset; most runs have one file."""
    run: list[_Span] = []
    reach = -1
    for span in sorted(spans, key=lambda span: span.first):
        if span.first > reach and run:
            yield run
            run = []
        run.append(span)
        reach = max(reach, span.last)
    if run:
        yield run


def _next_bases(files: Sequence[SegmentFile]) -> dict[int, int]:
    bases = sorted({file.segment for file in files})
    return dict(pairwise([*bases, MAX_OFFSET]))
