"""Pages of what matches, of one partition or of all: where a search begins, and what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...base import compute as pc
from ...base.text_table import counted
from ...ingest.partitioner import partition_of_key
from ...read.found import EDGE, FULL, STOPPED, TOO_MANY_RECORDS, Page, Place, Progress
from ...read.search import Search
from ...read.tiers import SegmentedLook
from ...read.topic_log import TopicLog
from ...read.where import Always, Bounds, is_all
from ...values.config import MIB
from ...values.offsets import AtOffset, Earliest, Latest
from ..words import size
from .key_history import history_note
from .view import Ask, Cut

#: A page is full with the match that makes it so large: pages of large values are shorter.
PAGE_BYTES = 16 * MIB

#: So many spans are written out where nothing was found.
_WRITTEN_SPANS = 16


class Found(Struct, frozen=True):
    """A page of matches, and the ranges in which there are no others."""

    records: pa.Table  # FOUND
    low: Mapping[int, Place]  # where the search goes on backward,
    high: Mapping[int, Place]  # and forward
    look: SegmentedLook  # that it goes by
    notes: tuple[str, ...] = ()

    @property
    def spans(self) -> dict[int, tuple[int, int]]:
        """What was searched, by partition."""
        return {
            number: (self.low[number].offset, max(self.low[number].offset, high.offset))
            for number, high in self.high.items()
        }

    @property
    def held(self) -> dict[int, tuple[int, int]]:
        """From the first to the last match of each partition that has any."""
        if not self.records.num_rows:
            return self.spans if len(self.high) <= _WRITTEN_SPANS else {}
        found = self.records.group_by("partition").aggregate([("offset", "min_max")])
        rows = found.sort_by("partition").to_pylist()
        edges = {row["partition"]: row["offset_min_max"] for row in rows}
        return {number: (one["min"], one["max"] + 1) for number, one in edges.items()}


class _Start(Struct, frozen=True):
    """Where a page begins: ranges, a place in each, and the direction."""

    ranges: Mapping[int, tuple[int, int]]
    after: Mapping[int, Place]
    backward: bool
    look: SegmentedLook  # that covers the ranges
    note: str | None = None

    def of(self, partitions: frozenset[int]) -> _Start:
        ranges = {number: self.ranges[number] for number in sorted(partitions)}
        return replace(self, ranges=ranges)

    def place(self, partition: int) -> Place:
        start, end = self.ranges[partition]
        place = self.after.get(partition) or Place(end if self.backward else start)
        return replace(place, offset=min(max(place.offset, start), end))


def search_page(
    log: TopicLog,
    ask: Ask,
    look: Callable[[], SegmentedLook],
    start: tuple[int, bool, str | None] | None,
    on_progress: Callable[[Progress], None],
    stopped: Callable[[], bool],
    on_first: Callable[[Found], None] | None = None,
) -> Found:
    """The page asked for.

    Args:
        look: at the partitions to be searched, as of now.
        start: of a search of one partition: an offset, whether it goes backward from there, a note.
        on_first: see `answer.answer`.
    """
    begin = _begin(log, ask, look, start)
    own = frozenset[int]()
    if on_first is not None and not isinstance(ask.where, Cut):
        own = _own_partitions(ask, log.topic.partitions)
    if on_first is None or not own or not own < begin.ranges.keys():
        return _found(ask, begin, _page(log, ask, begin, on_progress, stopped))
    where = _partitions(own)
    first = _page(log, ask, begin.of(own), on_progress, stopped)
    if first.ended != STOPPED:
        on_first(_found(ask, begin, first, f"{where}, where such a key goes; others follow …"))
        page = _page(log, ask, begin, on_progress, stopped)
        if page.ended != STOPPED:
            return _found(ask, begin, page, _elsewhere(own, page.records))
    return _found(ask, begin, first, f"stopped: {where} alone was searched")


def _begin(
    log: TopicLog,
    ask: Ask,
    look_now: Callable[[], SegmentedLook],
    start: tuple[int, bool, str | None] | None,
) -> _Start:
    where = ask.where
    asked = range(log.topic.partitions) if ask.partition is None else [ask.partition]
    found: Mapping[int, Place] | None = None
    first: Mapping[int, Place] = {}  # of what is searched
    ranges: Mapping[int, tuple[int, int]]
    if start is None and not isinstance(where, (Cut, Latest, Earliest)):
        # One look serves all: of very many partitions, it is what takes most of the time.
        search = log.search(Always(), where, partitions=asked)  # type: ignore[arg-type]
        found, look = search.begins, _looked(search)
        ranges = {number: (one.log_start, one.log_end) for number, one in look.offsets.items()}
    if ask.is_bounded:
        search = log.search(Always(), *ask.span, partitions=asked)
        ranges, first, look = search.ranges, search.begins, _looked(search)
    elif found is None:
        look = look_now()
        ranges = {number: (one.log_start, one.log_end) for number, one in look.offsets.items()}
    if start is not None:
        offset, backward, note = start
        places = {number: Place(offset) for number in ranges}
        return _Start(ranges, places, backward, look, note)
    if isinstance(where, Cut):
        at = {number: where.places.get(number) for number in ranges}
        if not where.backward and all(
            place is not None and place.offset >= ranges[number][1] for number, place in at.items()
        ):
            return _Start(ranges, {}, True, look, f"{_what(ask)} ends here")
        if where.backward and all(
            place is not None and place.offset <= ranges[number][0] for number, place in at.items()
        ):
            return _Start(ranges, {}, False, look, f"{_what(ask)} starts here")
        return _Start(ranges, where.places, where.backward, look)
    if found is None:
        backward = isinstance(where, Latest)
        return _Start(ranges, {} if backward else first, backward, look)
    if all(found[number].offset >= end for number, (_, end) in ranges.items()):
        note = f"nothing is at or after that; the last {_matches(ask)} are shown"
        return _Start(ranges, {}, True, look, note)
    note = None
    if isinstance(where, AtOffset):
        note = f"from offset {where.offset:,} of each partition, or its nearest, in order of time"
    places = {
        number: place if place.offset >= ranges[number][0] else Place(ranges[number][0])
        for number, place in found.items()
    }
    return _Start(ranges, places, False, look, note)


def _looked(search: Search) -> SegmentedLook:
    """The look that fixed its ranges."""
    assert search.look is not None
    return search.look


def _page(
    log: TopicLog,
    ask: Ask,
    begin: _Start,
    on_progress: Callable[[Progress], None],
    stopped: Callable[[], bool],
) -> Page:
    search: Search = log.search_ranges(begin.ranges, ask.match)
    return search.page(
        ask.page_records,
        begin.after,
        backward=begin.backward,
        limit=ask.limit,
        page_bytes=PAGE_BYTES,
        on_progress=on_progress,
        stopped=stopped,
        look=begin.look,
    )


def _found(ask: Ask, begin: _Start, page: Page, further: str | None = None) -> Found:
    """The page, with the places of those partitions that it left out as they were."""
    here = {number: Place(begin.place(number).offset) for number in begin.ranges}
    there = {**here, **page.next}
    low, high = (there, here) if begin.backward else (here, there)
    found = Found(page.records, low, high, begin.look)
    notes = [] if begin.note is None else [begin.note]
    notes += _notes(ask, found, page, begin.backward)
    if ask.history:
        notes.append(history_note(ask.match, page.records))
    if further is not None:
        notes.append(further)
    return replace(found, notes=tuple(notes))


def _notes(ask: Ask, found: Found, page: Page, backward: bool) -> Iterator[str]:
    seen, rows = page.progress, found.records.num_rows
    edge = "start" if backward else "end"
    if is_all(ask.match) and page.ended in (FULL, EDGE):
        if not rows:
            yield "there are no records" if page.ended == EDGE else "no records yet"
        elif page.ended == EDGE:
            yield f"up to the {edge} of {_what(ask)}"
        return
    text = f"{rows:,} {'match' if rows == 1 else 'matches'}"
    if ask.partition is not None:
        start, end = found.spans[ask.partition]
        text += f" in [{start:,}, {end:,})"
    text += f"; {counted(seen.read, 'record')}, {size(seen.bytes)} read"
    if seen.skipped:
        text += f", {seen.skipped:,} passed over by their index"
    further = "Back" if backward else "Forward"
    match page.ended:
        case "full":
            yield f"{text}; {further} looks for more"
        case "edge":
            yield f"{text}, up to the {edge} of {_what(ask)}"
        case "stopped":
            yield f"{text}; stopped, {further} goes on"
        case limit:
            of = "records" if limit == TOO_MANY_RECORDS else "bytes"
            yield f"{text}: the limit of {of} of one search; {further} goes on"


def _what(ask: Ask) -> str:
    return "the range that is searched" if ask.is_bounded else "the log"


def _matches(ask: Ask) -> str:
    return "records" if is_all(ask.match) else "matches"


def _own_partitions(ask: Ask, partitions: int) -> frozenset[int]:
    """Where producers put the keys that a search is for; empty if it is for no keys."""
    keys = Bounds.of(ask.match).keys
    if ask.partition is not None or keys is None:
        return frozenset()
    return frozenset(partition_of_key(key, partitions) for key in keys)


def _partitions(numbers: frozenset[int]) -> str:
    text = ", ".join(str(number) for number in sorted(numbers))
    return f"partition {text}" if len(numbers) == 1 else f"partitions {text}"


def _elsewhere(own: frozenset[int], records: pa.Table) -> str | None:
    if not own or not records.num_rows:
        return None
    away = pc.invert(pc.is_in(records["partition"], pa.array(sorted(own), pa.int32())))
    count = int(pc.sum(away).as_py() or 0)
    if not count:
        return None
    return f"{count:,} of them lie outside {_partitions(own)}, where such a key goes"
