"""Checks that a hot partition's entries are sound, and its other keys are right about them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
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
from ...values.record import MAX_OFFSET, NO_TIMESTAMP_MS
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from .finding import ALL, HOT, Findings, Kind, predicate
from .time_index import TimeIndex, Wrong

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

    def count(self, entry: StoredEntry) -> None:
        """One more entry, the next one."""
        self.size_bytes += entry.size_bytes
        if entry.max_timestamp_ms is None:
            self.readable = False
        else:
            if not self.entries:
                self.first_timestamp_ms = entry.max_timestamp_ms
            self.max_timestamp_ms = max(self.max_timestamp_ms, entry.max_timestamp_ms)
        self.entries += 1


class HotVerification:
    """One pass over a partition's entries, based on an earlier look at its keys.

    Entries appended after the look are left out, and entries trimmed meanwhile are no finding.

    Args:
        span: offsets outside of it are not judged.
    """

    def __init__(self, hot: HotLog, topic: Topic, look: HotLook, span: OffsetRange = ALL) -> None:
        self._hot, self._topic, self._look, self._span = hot, topic, look, span
        self.findings = Findings(HOT, look.topic_partition)
        self.mends: list[Mend] = []  # what rights the repairable ones, but for times
        self.tallies: dict[int, SegmentTally] = {}  # by base offset
        log_end = look.number("log_end")
        self._end = span.end if log_end is None else min(span.end, log_end)
        self._local_log_start = look.number("local_log_start") or 0
        # From here on every offset must be there; those before were trimmed.
        self._expected = max(span.start, self._local_log_start)
        self._trimmed_to = 0  # offsets below it were trimmed during the pass
        self._seen_any = False
        self._aside = parse_gaps(look.state.get("quarantined"))  # gaps that have no entry
        self._bases = [segment.base_offset for segment in look.segments]
        self._index: TimeIndex | None = None
        self._largest_entry = 0
        self._gaps: set[OffsetRange] = set()  # that entries declare
        self._holes: list[OffsetRange] = []  # before the entry at hand
        self._broken: set[int] = set()  # bases of segments that lack entries

    def run(self) -> Iterator[pa.RecordBatch]:
        """Checks everything; yields the records as it goes, so that they can be compared.

        The findings are complete when it ends.
        """
        for flaw in self._look.flaws:
            self._flaw(flaw)
        self._check_segments()
        if any(flaw.where == self._look.keys.stream for flaw in self._look.flaws):
            return
        try:
            self._read_index()
            yield from self._entries()
            self._finish_index()
        except ForeignEntryError as error:
            self.findings.add(Kind.FOREIGN, self._look.keys.stream, error.message)
            return
        self._check_sums()
        self._check_gaps()

    def _flaw(self, flaw: KeyFlaw) -> None:
        is_sum = flaw.field in {"closed_bytes", "producer_count"}
        if flaw.field == "producer_count":
            self.mends.append(Mend("producer_count"))
        elif flaw.field == "closed_bytes":
            self._mend_closed_bytes()
        if is_sum:
            kind = Kind.STATISTICS
        elif flaw.field is not None:
            kind = _OF_FIELDS.get(flaw.field, Kind.REGISTER)
        else:
            is_segment = flaw.where == self._look.keys.segments and not flaw.is_type
            kind = Kind.SEGMENT if is_segment else Kind.FOREIGN
        self.findings.add(kind, flaw.where, flaw.what, repairable=is_sum)

    @property
    def _closed_bytes(self) -> int | None:
        """The size of all closed segments; None: one cannot be read, and nobody knows."""
        look = self._look
        is_open_known = not any(flaw.field in {"segment", "log_end"} for flaw in look.flaws)
        closed = look.segments[:-1] if is_open_known else look.segments
        is_known = not any(flaw.where == look.keys.segments for flaw in look.flaws)
        return sum(segment.size_bytes for segment in closed) if is_known else None

    def _mend_closed_bytes(self) -> None:
        held, seen = self._closed_bytes, self._look.state.get("closed_bytes", b"")
        self.mends.append(Mend("closed_bytes", seen, "" if held is None else str(held)))

    # -- entries -----------------------------------------------------------------------------------

    def _entries(self) -> Iterator[pa.RecordBatch]:
        local_log_start = self._local_log_start
        for page in self._hot.inspection().pages(
            self._look.topic_partition, self._topic.topic_id, self._span.start
        ):
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
        base, end, where = entry.base_offset, entry.end_offset, f"entry {entry.id}"
        held = [] if base is None else [OffsetRange(base, end)]
        if entry.flaw is not None:
            kind = Kind.FOREIGN if base is None else Kind.CORRUPT
            self.findings.add(kind, where, predicate(entry.flaw, where), held)
        if base is None:
            return
        if self._is_disowned(entry):
            what = (
                "lies in a declared gap, so readers skip it: half a transaction left it. "
                f"`{command(self._look.topic_partition, entry.id)}` takes it out"
            )
            self.findings.add(Kind.GAP, where, what, held)
            return
        if self._span.start < end <= self._local_log_start:
            what = (
                f"lies wholly below the local log start {self._local_log_start}, as if the trim to "
                "there had missed it"
            )
            self.findings.add(Kind.ORDER, where, what, held)
            return
        self._hole(base, local_log_start)
        if base < self._expected and self._seen_any:
            doubled = Ranges.of([OffsetRange(base, min(end, self._expected))])
            what = f"holds offsets that the entry before it holds too: {doubled}"
            self.findings.add(Kind.DOUBLED, where, what, doubled.ranges)
        self._seen_any = True
        self._expected = max(self._expected, end)
        if entry.format == "gap":
            self._gaps.add(OffsetRange(base, end))
            return
        self._count(entry, base, end)
        if self._index is not None:
            for wrong in self._index.up_to(entry, self._holes):
                self._wrong_index(wrong)
        self._holes = []

    def _is_disowned(self, entry: StoredEntry) -> bool:
        """Whether the entry lies in a gap and is not the gap's own entry."""
        if entry.base_offset is None or entry.format == "gap":
            return False
        base, end = entry.base_offset, entry.end_offset
        return any(gap.start <= base and end <= gap.end for gap in self._look.gaps)

    def _hole(self, until: int, local_log_start: int) -> None:
        """Judges what is missing before an offset."""
        until = min(until, self._end)
        if self._expected < min(local_log_start, until):  # trimmed since the look
            trimmed_to = min(local_log_start, until)
            self._holes.append(OffsetRange(self._expected, trimmed_to))
            self._expected = self._trimmed_to = trimmed_to
        holes = list(unexplained(self._expected, until, merged(self._aside)))
        self._expected = max(self._expected, until)
        for hole in holes:
            where = f"offsets {hole.start}..{hole.end - 1}"
            what = "have no entry, and no gap entry says that they were skipped"
            self.findings.add(Kind.HOLE, where, what, [hole])
            self._holes.append(hole)
            self._broken |= {
                segment.base_offset
                for segment in self._look.segments
                if segment.base_offset < hole.end and segment.end_offset > hole.start
            }

    def _count(self, entry: StoredEntry, base: int, end: int) -> None:
        self._largest_entry = max(self._largest_entry, entry.size_bytes)
        at = bisect_right(self._bases, base) - 1
        segment = self._look.segments[at] if at >= 0 else None
        if segment is None or end > segment.end_offset:
            covers = f"segment {self._bases[at]} covers only partly"
            covers = "no segment covers" if segment is None else covers
            what = f"holds offsets {base}..{end - 1}, which {covers}"
            self.findings.add(Kind.SEGMENT, f"entry {entry.id}", what, [OffsetRange(base, end)])
        if segment is not None:
            self.tallies.setdefault(segment.base_offset, SegmentTally()).count(entry)

    # -- the time index ----------------------------------------------------------------------------

    def _read_index(self) -> None:
        pages = self._hot.inspection().time_index(self._look.topic_partition)
        low = max(self._span.start, self._local_log_start)
        # The largest timestamp so far is known from the first index entry on, or if nothing was
        # ever trimmed.
        try:
            self._index = index = TimeIndex(pages, low, is_exact=low == 0)
        except ForeignEntryError as error:
            self.findings.add(Kind.FOREIGN, self._look.keys.stream, error.message)
            return
        for wrong in index.disordered:
            self._wrong_index(wrong)
        for offset in index.below:
            if offset < self._local_log_start:
                what = f"lies below the local log start {self._local_log_start}"
                self._wrong_index((offset, 0, what))

    def _finish_index(self) -> None:
        """Judges what the index says of offsets above all entries."""
        log_end = self._look.number("log_end")
        if self._index is None or self._span.end != MAX_OFFSET or log_end is None:
            return
        beyond = next((offset for offset, _ in self._index.left() if offset >= log_end), None)
        if beyond is not None:
            # What was appended since the look may be indexed too.
            now = self._hot.inspection().look(self._look.topic_partition, self._topic.topic_id)
            if beyond >= (now.number("log_end") or 0):
                self._wrong_index((beyond, 0, f"lies past the log end {log_end}"))

    def _wrong_index(self, wrong: Wrong) -> None:
        offset, _, what = wrong
        where, held = f"{self._look.keys.times}, offset {offset}", [OffsetRange(offset, offset + 1)]
        self.findings.add(Kind.TIME_INDEX, where, what, held, repairable=True)

    # -- what the other keys say -------------------------------------------------------------------

    def _check_segments(self) -> None:
        """Checks that segments cover the local log start to the log end, except for gaps."""
        look, add, start = self._look, self.findings.add, self._local_log_start
        log_end = look.number("log_end")
        if log_end is not None and log_end < start:
            what = f"ends at {log_end}, below its start {start}"
            add(Kind.REGISTER, look.keys.state, what, [OffsetRange(log_end, start)])
        reach = None
        for segment in look.segments:
            base, where = segment.base_offset, f"segment {segment.base_offset}"
            if segment.end_offset < base:
                add(Kind.SEGMENT, where, f"ends at {segment.end_offset}, before it begins")
            if reach is None and base > start:
                reach = start
            if reach is not None:
                if base < reach:
                    what = f"begins below {reach}, where the segment before it ends"
                    add(Kind.SEGMENT, where, what, [OffsetRange(base, reach)])
                holes = Ranges.of(unexplained(reach, base, merged(look.gaps)))
                if holes:
                    what = f"has no segment for the offsets {holes}"
                    add(Kind.SEGMENT, look.keys.segments, what, holes.ranges, repairable=True)
            reach = segment.end_offset
        differs = partial(self.findings.differs, look.keys.state, repairable=True)
        said, held = look.number("closed_bytes"), self._closed_bytes
        if not look.flaws and differs("closed_bytes", said, held, of="the closed segments have"):
            self._mend_closed_bytes()
        count = look.number("producer_count") or 0
        if differs("producer_count", count, look.producers, of="there are"):
            self.mends.append(Mend("producer_count"))

    def _check_sums(self) -> None:
        look = self._look
        scanned_from = max(self._span.start, self._local_log_start, self._trimmed_to)
        for segment in look.segments:
            if scanned_from < segment.end_offset <= self._end:
                # A segment that lacks entries is reported already. Of it, as of a trimmed one, what
                # is left must only not exceed what is said.
                is_whole = segment.base_offset >= scanned_from
                tally = self.tallies.get(segment.base_offset, SegmentTally())
                self._check_segment(
                    segment, tally, is_whole and segment.base_offset not in self._broken
                )
        largest = self._largest_entry
        said = look.numbers("largest_entry") or (0,)
        if said[0] < largest:
            what = f"says the largest entry has {said[0]} bytes, but one has {largest}"
            self._wrong_sum(Mend("largest_entry", str(largest)), what)
        times = [tally.max_timestamp_ms for tally in self.tallies.values()]
        largest = max(times, default=NO_TIMESTAMP_MS)
        said = look.numbers("index")
        if len(said) == 3 and said[2] < largest:
            what = f"says the largest timestamp is {said[2]}, but a record has {largest}"
            self._wrong_sum(Mend("largest", str(largest)), what)

    def _wrong_sum(self, mend: Mend, what: str) -> None:
        self.mends.append(mend)
        self.findings.add(Kind.STATISTICS, self._look.keys.state, what, repairable=True)

    def _check_gaps(self) -> None:
        """Checks that gaps are declared by entries and in ``:state``."""
        low = max(self._span.start, self._local_log_start, self._trimmed_to)
        listed = {gap for gap in self._look.gaps if low < gap.end <= self._end}
        for gap in sorted(listed - self._gaps - set(self._aside)):
            what = f"declares the offsets {gap.start}..{gap.end - 1} skipped, but no gap entry does"
            self.findings.add(Kind.GAP, self._look.keys.state, what, [gap])
        for gap in sorted(self._gaps - set(self._look.gaps)):
            where = f"entry {gap.end - 1}-{gap.end - gap.start}"
            what = f"declares the offsets {gap.start}..{gap.end - 1} skipped, but :state does not"
            self.findings.add(Kind.GAP, where, what, [gap])

    def _check_segment(self, segment: HotSegment, tally: SegmentTally, whole: bool) -> None:
        is_mended = whole and tally.readable
        differs = partial(
            self.findings.differs,
            f"segment {segment.base_offset}",
            offsets=[OffsetRange(segment.base_offset, segment.end_offset)],
            repairable=is_mended,
        )
        lies = False
        if whole or segment.size_bytes < tally.size_bytes:
            of = "its entries have" if whole else "what is left of it has"
            lies = differs("bytes", segment.size_bytes, tally.size_bytes, of=of)
        if not tally.readable:
            return
        if whole:
            first = segment.first_timestamp_ms, tally.first_timestamp_ms
            lies |= differs("first timestamp", *first, of="its first entry has the")
        if whole or segment.max_timestamp_ms < tally.max_timestamp_ms:
            largest = segment.max_timestamp_ms, tally.max_timestamp_ms
            lies |= differs("largest timestamp", *largest, of="its entries have the")
        if lies and is_mended:
            held = replace(
                segment,
                size_bytes=tally.size_bytes,
                first_timestamp_ms=tally.first_timestamp_ms,
                max_timestamp_ms=tally.max_timestamp_ms,
            )
            self.mends.append(Mend.of_segment(segment, held))
