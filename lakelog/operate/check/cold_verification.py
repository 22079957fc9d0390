"""Checks that a partition's Parquet files are sound, and the table's log is right about them.

What a snapshot calls a file is a slice of a table by name: a range of offsets, whose rows lie in
data files that may not be shown. Slices are judged as files are, by their rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from msgspec import Struct

from ...cold.contradictions import check_partition
from ...cold.scan import Extent, FileScan, ScanTask
from ...cold.segment import UNKNOWN_TIMESTAMP_MS, SegmentFile, declared_gaps, is_ours
from ...cold.table import ColdSnapshot, ColdTable
from ...errors import ContradictionError, CorruptRecordError, LakelogError, MissingFileError
from ...values.offset_ranges import Ranges, merged, unexplained
from ...values.record import MAX_OFFSET, NO_TIMESTAMP_MS
from ...values.topic_partition import OffsetRange, TopicPartition
from .finding import COLD, Findings, Kind, Progress, is_no_answer, predicate

#: Why something of the cold tier is not checked: of a table by name rows alone are looked at.
FOOTERS_NOT_CHECKED = "cold: what the footers of its data files say of their rows"


class _Span(Struct, frozen=True):
    """What is kept of a file that was scanned."""

    file: SegmentFile
    first: int
    last: int  # inclusive
    holes: Ranges


class LookAgain(Exception):
    """A file of the snapshot is gone by now, as files of old versions may be: look again."""


class ColdVerification:
    """One pass over the files of a partition, as of one snapshot.

    Args:
        lost: the offsets that the hot tier declares as skipped.
        span: offsets outside of it are not judged.
    """

    def __init__(
        self,
        table: ColdTable,
        cold: ColdSnapshot,
        topic_partition: TopicPartition,
        lost: Sequence[OffsetRange],
        span: OffsetRange,
    ) -> None:
        self._table, self._cold, self._topic_partition = table, cold, topic_partition
        self.findings = Findings(COLD, topic_partition)
        self.unreadable: set[str] = set()  # paths, a value of which is not to be read
        self.not_checked = ""  # what cannot be seen, and why
        self.away: LakelogError | None = None  # why the store does not answer, and no more is had
        self._partition = partition = topic_partition.partition
        self._archived_end = cold.archived_end(partition)
        self._end = min(span.end, self._archived_end)
        self._all = cold.files.of_partition(partition)
        self._files = [
            file
            for file in self._all
            if file.end_offset > span.start and file.start_offset < span.end
        ]
        rows = cold.files.rows_of_partition(partition).select(["path", "first", "last"])
        wanted = {file.path for file in self._files}
        self._said = {row["path"]: row for row in rows.to_pylist() if row["path"] in wanted}
        self._unscanned: list[OffsetRange] = []  # of files that were not scanned, which is told
        self._refused: dict[str, str] = {}  # by path, why it cannot be read now
        bases = sorted({file.segment for file in self._all})
        self._next_base = dict(pairwise([*bases, MAX_OFFSET]))
        # Where missing offsets are no hole.
        self._lost = [
            OffsetRange(0, max(cold.log_start(partition), span.start)),
            *lost,
            *declared_gaps(self._all),
            *cold.files.stand_ins(partition),
        ]
        thinned = OffsetRange(0, cold.thinned_end(partition))
        self._explained = merged([*self._lost, thinned, OffsetRange(span.end, MAX_OFFSET)])

    def run(self, progress: Progress, *, last: bool = False) -> None:
        """Checks all files; see `findings`.

        Args:
            last: there is no further look, so a missing file is a finding.

        Raises:
            LookAgain: look again, at a newer snapshot.
        """
        try:
            self._run(progress, last)
        except LakelogError as error:
            if not is_no_answer(error):
                raise
            self._flaw(error, getattr(error, "path", None) or "the table", ())
            self.away = error
        if self._refused:
            (path, why), *others = self._refused.items()
            more = f" and {len(others):,} other files" if others else ""
            more += " and what was not looked at before" if self.away is not None else ""
            said = f"cold: {path}{more} ({why})"
            self.not_checked = "; ".join(filter(None, (self.not_checked, said)))

    def _run(self, progress: Progress, last: bool) -> None:
        spans: list[_Span] = []
        tasks = [ScanTask(file, self._explained) for file in self._files]
        for scan in self._table.scan(self._cold, tasks):
            self._judge(scan, last)
            if self._is_away(scan.flaw):
                return
            found = scan.found
            if scan.flaw is None and found.first_offset is not None:
                if not scan.row_groups:
                    self.not_checked = FOOTERS_NOT_CHECKED
                end = found.last_offset or 0
                spans.append(_Span(scan.file, found.first_offset, end, scan.spacing.holes))
            progress(scan.records)
        self._between(spans, last)
        if not self.findings.found:
            try:
                check_partition(self._topic_partition, self._cold.files, self._cold.registers)
            except ContradictionError as error:
                end = max((file.end_offset for file in self._all), default=0)
                held = [OffsetRange(*sorted((end, self._archived_end)))]
                self.findings.add(Kind.REGISTER, "the table", error.message, held)

    def _is_away(self, flaw: LakelogError | None) -> bool:
        """Whether there is no more to be had: who was asked long enough answers for no file."""
        if flaw is not None and flaw.retriable:
            self.away = flaw
        return self.away is not None

    # -- one file ----------------------------------------------------------------------------------

    def _judge(self, scan: FileScan, last: bool) -> None:
        file, extent = scan.file, scan.found
        held = _held(file)

        def add(kind: Kind, what: str, offsets: Iterable[OffsetRange] = held) -> None:
            self.findings.add(kind, file.path, what, offsets)

        if scan.flaw is not None:
            is_missing = isinstance(scan.flaw, MissingFileError)
            if is_missing and not last and self._table.unchecked().files.missing([file.path]):
                raise LookAgain
            self.unreadable.add(file.path)
            self._unscanned += held
            self._flaw(scan.flaw, file.path, held)
            return
        self._judge_statistics(scan)
        if is_ours(file.path) and not scan.ascending:
            add(Kind.ORDER, "holds rows out of order, though lakelog writes them sorted by offset")
        doubled = scan.spacing.doubled
        if doubled:
            add(Kind.DOUBLED, f"holds offsets more than once: {doubled}", doubled.ranges)
        said, found = scan.said_tombstones, scan.found_tombstones
        if said is not None and found is not None and said != found:
            what = (
                f"says in its footer that it has {said.without_horizon} tombstones without a "
                f"horizon and {said.min_horizon_ms} as the earliest horizon, but it has "
                f"{found.without_horizon} and {found.min_horizon_ms}"
            )
            add(Kind.STATISTICS, what)
        first, newest = extent.first_offset, extent.last_offset
        if first is None or newest is None:
            return
        low, high = file.segment, self._next_base[file.segment]
        if is_ours(file.path):
            low, high = max(low, file.start_offset), min(high, file.end_offset)
        if first < low or newest >= high:
            what = (
                f"holds the offsets {first}..{newest}, but its segment and name allow "
                f"{low}..{high - 1}"
            )
            below = OffsetRange(first, min(low, newest + 1))
            above = OffsetRange(max(high, first), newest + 1)
            add(Kind.ORDER, what, merged([below, above]))
        if newest >= self._archived_end:
            what = (
                f"holds offsets up to {newest}, but the register archived_end says "
                f"{self._archived_end}"
            )
            above = OffsetRange(max(self._archived_end, first), newest + 1)
            add(Kind.REGISTER, what, [above])

    def _flaw(self, flaw: LakelogError, path: str, held: Iterable[OffsetRange]) -> None:
        subject = getattr(flaw, "path", None) or ""
        # A slice lies in data files: of them the message names the one that is meant.
        what = predicate(flaw.message, subject) if subject.endswith(path) else flaw.message
        if isinstance(flaw, MissingFileError):
            kind = Kind.MISSING_FILE
        elif isinstance(flaw, CorruptRecordError):
            kind = Kind.CORRUPT
        else:
            kind = Kind.UNREACHABLE
            self._refused.setdefault(path, what)
        self.findings.add(kind, path, what, held)

    def _judge_statistics(self, scan: FileScan) -> None:
        """Judges what the footer says of row groups, and the table's log of the file."""
        file = scan.file
        for group in scan.row_groups:
            where = f"{file.path}, row group {group.index}"
            rows, held = (group.rows, group.found_rows), _range(group.found)
            self.findings.differs(where, "rows", *rows, of="it has", offsets=held)
            self._judge_extent(where, group.said, group.found)
        where = f"{file.path}, in the table's log"
        differs = partial(self.findings.differs, where, offsets=_held(file), of="the file has")
        if scan.size_bytes >= 0:  # a slice has a share of its files
            differs("bytes", file.size_bytes, scan.size_bytes)
        if file.records < 0:  # no statistics
            return
        differs("rows", file.records, scan.records)
        if not scan.records or not file.records:
            return
        row, newest = self._said[file.path], file.max_timestamp_ms
        said = Extent(
            row["first"],
            row["last"],
            # -1 stands for "none" as well as for "does not say".
            None if file.min_timestamp_ms == NO_TIMESTAMP_MS else file.min_timestamp_ms,
            None if newest == UNKNOWN_TIMESTAMP_MS else newest,
        )
        self._judge_extent(where, said, scan.found)

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

    # -- all files ---------------------------------------------------------------------------------

    def _between(self, spans: Sequence[_Span], last: bool) -> None:
        """Judges holes and repeats, within files and between them."""
        explained = merged([*self._explained, *self._unscanned])
        reach = 0  # the end of all rows so far
        for run in _overlapping(spans):
            before = Ranges.of(unexplained(reach, run[0].first, explained))
            self._hole(before, f"before {run[0].file.path}")
            if len(run) == 1:
                self._hole(run[0].holes, run[0].file.path)
            else:
                self._overlap(run, explained, last)
            reach = max(reach, *(span.last + 1 for span in run))
        if self._end == self._archived_end:
            # A partition's last record is never compacted.
            explained = merged([*self._lost, *self._unscanned])
        self._hole(Ranges.of(unexplained(reach, self._end, explained)), "the end of the table")

    def _overlap(self, run: Sequence[_Span], explained: Sequence[OffsetRange], last: bool) -> None:
        files = [span.file for span in run]
        where = ", ".join(file.path for file in files[:5]) + (" …" if len(files) > 5 else "")
        try:
            spacing = self._table.spacing(self._cold, files, explained)
        except (MissingFileError, CorruptRecordError) as error:  # each was read a moment ago
            if not last:
                raise LookAgain from error
            held = [OffsetRange(run[0].first, max(span.last for span in run) + 1)]
            self._flaw(error, error.path or where, held)
            return
        if spacing.doubled:
            what = f"hold the same offsets: {spacing.doubled}"
            self.findings.add(Kind.DOUBLED, where, what, spacing.doubled.ranges)
        self._hole(spacing.holes, where)

    def _hole(self, holes: Ranges, where: str) -> None:
        if holes:
            what = (
                f"no row has the offsets {holes}, though nothing says that they were skipped, "
                "compacted or deleted"
            )
            self.findings.add(Kind.HOLE, where, what, holes.ranges)


def _held(file: SegmentFile) -> list[OffsetRange]:
    return [OffsetRange(file.start_offset, file.end_offset)]


def _range(extent: Extent) -> list[OffsetRange]:
    if extent.first_offset is None or extent.last_offset is None:
        return []
    return [OffsetRange(extent.first_offset, extent.last_offset + 1)]


def _overlapping(spans: Sequence[_Span]) -> Iterator[list[_Span]]:
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
