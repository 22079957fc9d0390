"""Checks that a hot partition's entries are sound, and its other keys are right about them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...errors import ForeignEntryError
from ...hot.declared import command, parse_gaps
from ...hot.hot_log import HotLog
from ...hot.inspection import HotLook, KeyFlaw, StoredEntry
from ...hot.mending import Mend
from ...values.offset_ranges import Ranges, merged, unexplained
from ...values.offsets import HotSegment
from ...values.record import NO_TIMESTAMP_MS
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from .finding import HOT, Findings, Kind, predicate
from .time_index import TimeIndex

#: What other fields of ``:state`` are about, but for those that say where the log starts or ends.
_OF_FIELDS = {
    "segment": Kind.SEGMENT,
    "index": Kind.TIME_INDEX,
    "gaps": Kind.GAP,
    "quarantined": Kind.GAP,
}


class SegmentTally(Struct):
    """What the entries of one segment add up to."""

    entries: int = 0
    size_bytes: int = 0
    first_timestamp_ms: int = NO_TIMESTAMP_MS  # the largest of its first entry
    max_timestamp_ms: int = NO_TIMESTAMP_MS
    readable: bool = True  # False: an entry's timestamps are not known


@dataclass
class HotVerification:
    """One pass over a partition's entries, based on an earlier look at its keys.

    Entries appended after the look are left out, and entries trimmed meanwhile are no finding.

    Args:
        start_offset: where to begin; offsets below it are not judged.
        end_offset: exclusive; None: the log end of the look.
    """

    hot: HotLog
    topic: Topic
    look: HotLook
    start_offset: int = 0
    end_offset: int | None = None
    findings: Findings = field(init=False)
    mends: list[Mend] = field(
        default_factory=list
    )  # what rights the repairable ones, but for times
    tallies: dict[int, SegmentTally] = field(default_factory=dict)  # by base offset
    _largest_entry: int = 0
    _largest_timestamp_ms: int = NO_TIMESTAMP_MS
    _gaps: set[OffsetRange] = field(default_factory=set)
    trimmed_to: int = 0  # offsets below it were trimmed during the pass
    _seen_any: bool = False
    _holes: list[OffsetRange] = field(default_factory=list)  # before the entry at hand
    _broken: set[int] = field(default_factory=set)  # bases of segments that lack entries

    def __post_init__(self) -> None:
        self.findings = Findings(HOT, self.look.topic_partition)
        log_end = self.look.number("log_end")
        ends = [end for end in (self.end_offset, log_end) if end is not None]
        self._end = min(ends, default=2**53)
        self.local_log_start = self.look.number("local_log_start") or 0
        # From here on every offset must be there; those before were trimmed.
        self._expected = max(self.start_offset, self.local_log_start)
        self._aside = set(parse_gaps(self.look.state.get("quarantined")))  # these have no entry
        self._bases = [segment.base_offset for segment in self.look.segments]
        self._index: TimeIndex | None = None

    def run(self) -> Iterator[pa.RecordBatch]:
        """Checks everything; yields the records as it goes, so that they can be compared.

        The findings are complete when it ends.
        """
        for flaw in self.look.flaws:
            self._flaw(flaw)
        self._check_segments()
        if any(flaw.where == self.look.keys.stream for flaw in self.look.flaws):
            return
        try:
            self._read_index()
            yield from self._entries()
            self._finish_index()
        except ForeignEntryError as error:
            self.findings.add(Kind.FOREIGN, self.look.keys.stream, error.message)
            return
        self._check_sums()

    def _flaw(self, flaw: KeyFlaw) -> None:
        keys = self.look.keys
        if flaw.field in {"closed_bytes", "producer_count"}:
            if flaw.field == "producer_count":
                self.mends.append(Mend("producer_count"))
            else:
                self._mend_closed_bytes()
            self.findings.add(Kind.STATISTICS, flaw.where, flaw.what, repairable=True)
        elif flaw.field is not None:
            kind = _OF_FIELDS.get(flaw.field, Kind.REGISTER)
            self.findings.add(kind, flaw.where, flaw.what)
        else:
            kind = Kind.FOREIGN if flaw.is_type or flaw.where != keys.segments else Kind.SEGMENT
            self.findings.add(kind, flaw.where, flaw.what)

    @property
    def _closed_bytes(self) -> int | None:
        """The size of all closed segments; None: one cannot be read, and nobody knows."""
        look = self.look
        is_open_known = not any(flaw.field in {"segment", "log_end"} for flaw in look.flaws)
        closed = look.segments[:-1] if is_open_known else look.segments
        is_known = not any(flaw.where == look.keys.segments for flaw in look.flaws)
        return sum(segment.size_bytes for segment in closed) if is_known else None

    def _mend_closed_bytes(self) -> None:
        held = self._closed_bytes
        seen = self.look.state.get("closed_bytes", b"")
        self.mends.append(Mend("closed_bytes", seen, "" if held is None else str(held)))

    # -- entries -----------------------------------------------------------------------------------

    def _entries(self) -> Iterator[pa.RecordBatch]:
        pages = self.hot.inspection().pages(
            self.look.topic_partition, self.topic.topic_id, self.start_offset
        )
        local_log_start = self.local_log_start
        for page in pages:
            local_log_start = page.local_log_start
            done = False
            for entry in page.entries:
                if entry.base_offset is not None and entry.base_offset >= self._end:
                    done = True
                    break
                self._entry(entry, local_log_start)
            yield page.records
            if done:
                break
        self._hole(self._end, local_log_start)

    def _entry(self, entry: StoredEntry, local_log_start: int) -> None:
        if entry.flaw is not None:
            where = f"entry {entry.id}"
            held = (
                ()
                if entry.base_offset is None
                else (OffsetRange(entry.base_offset, entry.end_offset),)
            )
            kind = Kind.FOREIGN if entry.base_offset is None else Kind.CORRUPT
            self.findings.add(kind, where, predicate(entry.flaw, where), held)
        base, end = entry.base_offset, entry.end_offset
        if base is None:
            return
        if self.disowned(entry):
            self.findings.add(
                Kind.GAP,
                f"entry {entry.id}",
                f"lies in a declared gap, so readers skip it: half a transaction left it. "
                f"`{command(self.look.topic_partition, entry.id)}` takes it out",
                [OffsetRange(base, end)],
            )
            return
        if end <= self.local_log_start and end > self.start_offset:
            self.findings.add(
                Kind.ORDER,
                f"entry {entry.id}",
                f"lies wholly below the local log start {self.local_log_start}, as if the trim "
                "to there had missed it",
                [OffsetRange(base, end)],
            )
            return
        self._hole(base, local_log_start)
        if base < self._expected and self._seen_any:
            doubled = Ranges.of([OffsetRange(base, min(end, self._expected))])
            self.findings.add(
                Kind.DOUBLED,
                f"entry {entry.id}",
                f"holds offsets that the entry before it holds too: {doubled}",
                doubled.ranges,
            )
        self._seen_any = True
        self._expected = max(self._expected, end)
        if entry.format == "gap":
            self._gaps.add(OffsetRange(base, end))
        else:
            self._count(entry, base, end)
            self._judge_index(entry)

    def disowned(self, entry: StoredEntry) -> bool:
        """Whether the entry lies in a gap and is not the gap's own entry."""
        if entry.base_offset is None or entry.format == "gap":
            return False
        base, end = entry.base_offset, entry.end_offset
        return any(gap.start <= base and end <= gap.end for gap in self.look.gaps)

    def _hole(self, until: int, local_log_start: int) -> None:
        """Judges what is missing before an offset."""
        until = min(until, self._end)
        if self._expected < min(local_log_start, until):  # trimmed since the look
            trimmed_to = min(local_log_start, until)
            self._holes.append(OffsetRange(self._expected, trimmed_to))
            self._expected = self.trimmed_to = trimmed_to
        holes = unexplained(self._expected, until, merged(self._aside))
        self._expected = max(self._expected, until)
        for hole in holes:
            self.findings.add(
                Kind.HOLE,
                f"offsets {hole.start}..{hole.end - 1}",
                "have no entry, and no gap entry says that they were skipped",
                [hole],
            )
            self._holes.append(hole)
            self._broken |= {
                segment.base_offset
                for segment in self.look.segments
                if segment.base_offset < hole.end and segment.end_offset > hole.start
            }

    def _count(self, entry: StoredEntry, base: int, end: int) -> None:
        self._largest_entry = max(self._largest_entry, entry.size_bytes)
        at = bisect_right(self._bases, base) - 1
        segment = self.look.segments[at] if at >= 0 else None
        if segment is None or end > segment.end_offset:
            covers = (
                "no segment covers"
                if segment is None
                else f"segment {self._bases[at]} covers only partly"
            )
            self.findings.add(
                Kind.SEGMENT,
                f"entry {entry.id}",
                f"holds offsets {base}..{end - 1}, which {covers}",
                [OffsetRange(base, end)],
            )
            if segment is None:
                return
        assert segment is not None
        tally = self.tallies.setdefault(segment.base_offset, SegmentTally())
        tally.size_bytes += entry.size_bytes
        if entry.max_timestamp_ms is None:
            tally.readable = False
        else:
            if not tally.entries:
                tally.first_timestamp_ms = entry.max_timestamp_ms
            tally.max_timestamp_ms = max(tally.max_timestamp_ms, entry.max_timestamp_ms)
            self._largest_timestamp_ms = max(self._largest_timestamp_ms, entry.max_timestamp_ms)
        tally.entries += 1

    # -- the time index ----------------------------------------------------------------------------

    def _read_index(self) -> None:
        pages = self.hot.inspection().time_index(self.look.topic_partition)
        low = max(self.start_offset, self.local_log_start)
        # The largest timestamp so far is known from the first index entry on, or if nothing was
        # ever trimmed.
        try:
            self._index = index = TimeIndex(pages, low, is_exact=low == 0)
        except ForeignEntryError as error:
            self.findings.add(Kind.FOREIGN, self.look.keys.stream, error.message)
            return
        for offset, _, what in index.disordered:
            self._wrong_index(offset, what)
        for offset in index.below:
            if offset < self.local_log_start:
                self._wrong_index(offset, f"lies below the local log start {self.local_log_start}")

    def _judge_index(self, entry: StoredEntry) -> None:
        if self._index is not None:
            for offset, _, what in self._index.up_to(entry, self._holes):
                self._wrong_index(offset, what)
        self._holes = []

    def _finish_index(self) -> None:
        """Judges what the index says of offsets above all entries."""
        log_end = self.look.number("log_end")
        if self._index is None or self.end_offset is not None or log_end is None:
            return
        beyond = next((offset for offset, _ in self._index.left() if offset >= log_end), None)
        if beyond is not None:
            # What was appended since the look may be indexed too.
            now = self.hot.inspection().look(self.look.topic_partition, self.topic.topic_id)
            if beyond >= (now.number("log_end") or 0):
                self._wrong_index(beyond, f"lies past the log end {log_end}")

    def _wrong_index(self, offset: int, what: str) -> None:
        self.findings.add(
            Kind.TIME_INDEX,
            f"{self.look.keys.times}, offset {offset}",
            what,
            [OffsetRange(offset, offset + 1)],
            repairable=True,
        )

    # -- what the other keys say -------------------------------------------------------------------

    def _check_segments(self) -> None:
        """Checks that segments cover the local log start to the log end, except for gaps."""
        look, add = self.look, self.findings.add
        log_end = look.number("log_end")
        if log_end is not None and log_end < self.local_log_start:
            what = f"ends at {log_end}, below its start {self.local_log_start}"
            add(Kind.REGISTER, look.keys.state, what, [OffsetRange(log_end, self.local_log_start)])
        reach = None
        for segment in look.segments:
            where = f"segment {segment.base_offset}"
            if segment.end_offset < segment.base_offset:
                add(Kind.SEGMENT, where, f"ends at {segment.end_offset}, before it begins")
            if reach is None and segment.base_offset > self.local_log_start:
                reach = self.local_log_start
            if reach is not None:
                if segment.base_offset < reach:
                    what = f"begins below {reach}, where the segment before it ends"
                    add(Kind.SEGMENT, where, what, [OffsetRange(segment.base_offset, reach)])
                holes = Ranges.of(unexplained(reach, segment.base_offset, merged(look.gaps)))
                if holes:
                    what = f"has no segment for the offsets {holes}"
                    add(Kind.SEGMENT, look.keys.segments, what, holes.ranges, repairable=True)
            reach = segment.end_offset
        if not look.flaws and self.findings.differs(
            look.keys.state,
            "closed_bytes",
            look.number("closed_bytes"),
            self._closed_bytes,
            of="the closed segments have",
            repairable=True,
        ):
            self._mend_closed_bytes()
        if self.findings.differs(
            look.keys.state,
            "producer_count",
            look.number("producer_count") or 0,
            look.producers,
            of="there are",
            repairable=True,
        ):
            self.mends.append(Mend("producer_count"))

    def _check_sums(self) -> None:
        scanned_from = max(self.start_offset, self.local_log_start, self.trimmed_to)
        for segment in self.look.segments:
            if segment.end_offset <= self._end and segment.end_offset > scanned_from:
                # A segment that lacks entries is reported already. Of it, as of a trimmed one, what
                # is left must only not exceed what is said.
                whole = (
                    segment.base_offset >= scanned_from and segment.base_offset not in self._broken
                )
                tally = self.tallies.get(segment.base_offset, SegmentTally())
                self._check_segment(segment, tally, whole)
        largest = self.look.numbers("largest_entry") or (0,)
        if largest[0] < self._largest_entry:
            self.mends.append(Mend("largest_entry", str(self._largest_entry)))
            self.findings.add(
                Kind.STATISTICS,
                self.look.keys.state,
                f"says the largest entry has {largest[0]} bytes, but one has {self._largest_entry}",
                repairable=True,
            )
        said = self.look.numbers("index")
        if len(said) == 3 and said[2] < self._largest_timestamp_ms:
            self.mends.append(Mend("largest", str(self._largest_timestamp_ms)))
            self.findings.add(
                Kind.STATISTICS,
                self.look.keys.state,
                f"says the largest timestamp is {said[2]}, but a record has "
                f"{self._largest_timestamp_ms}",
                repairable=True,
            )
        low = max(scanned_from, self.trimmed_to)
        listed = {gap for gap in self.look.gaps if gap.end > low and gap.end <= self._end}
        for gap in sorted(listed - self._gaps - self._aside):
            self.findings.add(
                Kind.GAP,
                self.look.keys.state,
                f"declares the offsets {gap.start}..{gap.end - 1} skipped, but no gap entry does",
                [gap],
            )
        for gap in sorted(self._gaps - set(self.look.gaps)):
            self.findings.add(
                Kind.GAP,
                f"entry {gap.end - 1}-{gap.end - gap.start}",
                f"declares the offsets {gap.start}..{gap.end - 1} skipped, but :state does not",
                [gap],
            )

    def _check_segment(self, segment: HotSegment, tally: SegmentTally, whole: bool) -> None:
        where = f"segment {segment.base_offset}"
        is_mended = whole and tally.readable
        differs = partial(
            self.findings.differs,
            offsets=[OffsetRange(segment.base_offset, segment.end_offset)],
            repairable=is_mended,
        )
        lies = False
        if whole:
            lies = differs(
                where, "bytes", segment.size_bytes, tally.size_bytes, of="its entries have"
            )
        elif segment.size_bytes < tally.size_bytes:
            differs(
                where, "bytes", segment.size_bytes, tally.size_bytes, of="what is left of it has"
            )
        if not tally.readable:
            return
        if whole:
            lies |= differs(
                where,
                "first timestamp",
                segment.first_timestamp_ms,
                tally.first_timestamp_ms,
                of="its first entry has the",
            )
        if whole or segment.max_timestamp_ms < tally.max_timestamp_ms:
            lies |= differs(
                where,
                "largest timestamp",
                segment.max_timestamp_ms,
                tally.max_timestamp_ms,
                of="its entries have the",
            )
        if lies and is_mended:
            held = replace(
                segment,
                size_bytes=tally.size_bytes,
                first_timestamp_ms=tally.first_timestamp_ms,
                max_timestamp_ms=tally.max_timestamp_ms,
            )
            self.mends.append(Mend.of_segment(segment, held))
