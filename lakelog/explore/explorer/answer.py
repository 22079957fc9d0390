"""The answer to one question of the explorer: where to read, what to show, what to note."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...base import compute as pc
from ...read.found import Progress
from ...read.tiers import Look, SegmentedLook
from ...read.where import Always
from ...values.offsets import Ago, AtOffset, AtTimestamp, LogOffsets, MaxTimestamp, Position
from ...values.topic_partition import OffsetRange
from .search_pages import PAGE_BYTES, Found, search_page
from .view import Ask, Before, Cut, OpenedTopic, Shown, View


class _Place(Struct, frozen=True):
    """Where the page lies: from an offset on, or before it."""

    offset: int
    backward: bool
    note: str | None = None


def answer(
    opened: OpenedTopic,
    ask: Ask,
    *,
    on_progress: Callable[[Progress], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
    on_first: Callable[[Shown], None] | None = None,
) -> Shown:
    """Reads the page that was asked for.

    Args:
        on_progress: called after each step of a search.
        stopped: says whether to end a search with what it has.
        on_first: gets what a search for a key found in the partitions where such a key goes, before
            it looks in the others. None: it looks in all at once.

    Raises:
        OffsetOutOfRangeError: an offset outside the log.
        LakelogError: whatever reading a log may raise.
    """
    partitions = opened.log.topic.partitions
    if ask.partition is None and partitions == 1:
        ask = replace(ask, partition=0)
    if ask.is_search:
        asked = range(partitions) if ask.partition is None else [ask.partition]
        start = None
        if ask.partition is not None and not isinstance(ask.where, Cut):
            offsets = opened.look(asked).offsets[ask.partition]
            place = _place(opened, ask.partition, ask.where, offsets)
            start = (place.offset, place.backward, place.note)

        def look_now() -> SegmentedLook:
            return opened.look(asked)

        first = None if on_first is None else lambda one: on_first(of_search(opened, ask, one))
        found = search_page(opened.log, ask, look_now, start, on_progress, stopped, first)
        return of_search(opened, ask, found)
    assert ask.partition is not None
    look = opened.look([ask.partition])
    offsets = look.offsets[ask.partition]
    place = _place(opened, ask.partition, ask.where, offsets)
    records = _page(opened, ask, look, place)
    start_offset = end_offset = min(max(place.offset, offsets.log_start), offsets.log_end)
    if records.num_rows:
        start_offset = records["offset"][0].as_py()
        end_offset = records["offset"][records.num_rows - 1].as_py() + 1
    spans = {ask.partition: (start_offset, end_offset)}
    said = [*_noted(place.note), *_page_notes(records, place, offsets)]
    return _shown(opened, ask, look, View(ask.topic, ask.partition, spans), records, said, spans)


def of_search(opened: OpenedTopic, ask: Ask, found: Found) -> Shown:
    """A page of a search, with what is known of its rows."""
    spans = found.spans
    if ask.partition is None:
        spans = found.held  # of the partitions that have rows: an expression that can be read
    view = View(ask.topic, ask.partition, spans, ask.match)
    records = found.records
    if ask.partition is not None:
        records = records.drop_columns(["partition"])
    shown = _shown(opened, ask, found.look, view, records, found.notes, found.spans)
    return replace(shown, edges=(found.low, found.high))


def _shown(
    opened: OpenedTopic,
    ask: Ask,
    look: SegmentedLook,
    view: View,
    records: pa.Table,
    said: Iterable[str],
    spans: Mapping[int, tuple[int, int]],
) -> Shown:
    """With what is to be said of the partitions, and each record's tier."""
    notes = [*said]
    for partition, (start, end) in spans.items():
        gaps = [g for g in look.offsets[partition].gaps if g.start < end and g.end > start]
        of = f" of partition {partition}" if ask.partition is None else ""
        notes += [
            f"offsets [{gap.start:,}, {gap.end:,}){of} were skipped after an unclean stop of Redis"
            for gap in gaps
        ]
    if not all(log.recovered for log in look.offsets.values()):
        notes.append(
            "the server restarted since the partition was last written: the last appended records "
            "may be lost; the next append or archive run will tell"
        )
    if opened.log.redis is None:
        ends = [log.log_end for log in look.offsets.values()]
        known = f"up to {ends[0]:,}, where its archive ends"
        if len(ends) > 1:
            known = "up to where its archive ends"
        notes.append(f"Redis was not asked: the log is shown {known}")
    partitions = opened.log.topic.partitions
    config = opened.log.topic.config
    shown = Shown(
        ask, view, records, (), look.offsets, tuple(notes), partitions, look=look, config=config
    )
    return replace(shown, tiers=tuple(_tiers(opened, look, shown)))


def _tiers(opened: OpenedTopic, look: SegmentedLook, shown: Shown) -> list[str]:
    """The tier of each row."""
    if shown.view.partition is not None:
        return record_tiers(opened, look, shown.view.partition, shown.records["offset"])
    by_partition: dict[int, list[int]] = {}
    for partition, offset in shown.places:
        by_partition.setdefault(partition, []).append(offset)
    tiers = {
        (partition, offset): tier
        for partition, offsets in by_partition.items()
        for offset, tier in zip(
            sorted(offsets),
            record_tiers(opened, look, partition, pa.chunked_array([sorted(offsets)], pa.int64())),
            strict=True,
        )
    }
    return [tiers[place] for place in shown.places]


def _place(
    opened: OpenedTopic, partition: int, where: Position | Before | Cut, offsets: LogOffsets
) -> _Place:
    end = offsets.log_end
    if isinstance(where, Before):
        at = min(where.offset, end)
        if at <= offsets.log_start < end:
            return _Place(offsets.log_start, False, "the log starts here")
        return _Place(at, True)
    assert not isinstance(where, Cut)
    found = opened.log.seek(partition, where)
    if found is None:
        if offsets.log_start == end:
            return _Place(end, True)
        return _Place(end, True, f"{_none(where)}; the last records are shown")
    if found >= end:
        asked_for_end = isinstance(where, AtOffset) and end > offsets.log_start
        return _Place(found, True, f"the log ends at {end:,}" if asked_for_end else None)
    return _Place(found, False)


def _nothing_in(span: OffsetRange, offsets: LogOffsets) -> str:
    skipped = "skipped after an unclean stop of Redis"
    if not offsets.appended_between(span.start, span.end):
        why = f"they were {skipped}"
    elif offsets.gaps_between(span.start, span.end):
        why = f"compaction or an erasure removed them, or they were {skipped}"
    else:
        why = "compaction or an erasure removed them"
    return f"no record is left in [{span.start:,}, {span.end:,}): {why}"


def _none(where: Position) -> str:
    match where:
        case AtTimestamp() | Ago():
            return "no record has a timestamp at or after that time"
        case MaxTimestamp():
            return "no record has a timestamp"
        case _:
            return "nothing is tiered yet"


def _noted(note: str | None) -> list[str]:
    return [] if note is None else [note]


def _page(opened: OpenedTopic, ask: Ask, look: SegmentedLook, place: _Place) -> pa.Table:
    assert ask.partition is not None
    log = look.offsets[ask.partition]
    span = (place.offset, log.log_end)
    if place.backward:
        span = (log.log_start, min(place.offset, log.log_end))
    search = opened.log.search_ranges({ask.partition: span}, Always())
    page = search.page(ask.page_records, backward=place.backward, page_bytes=PAGE_BYTES, look=look)
    return page.records.drop_columns(["partition"])


def _page_notes(records: pa.Table, place: _Place, offsets: LogOffsets) -> Iterator[str]:
    if not records.num_rows:
        if offsets.log_start < offsets.log_end:
            looked = (
                OffsetRange(offsets.log_start, place.offset)
                if place.backward
                else OffsetRange(place.offset, offsets.log_end)
            )
            yield _nothing_in(looked, offsets)
        elif offsets.log_end:
            yield f"the partition is empty: all records below {offsets.log_end:,} were deleted"
        else:
            yield "the partition is empty"
        return
    first = records["offset"][0].as_py()
    if not place.backward and first > place.offset:
        gap = OffsetRange(place.offset, first)
        skipped = any(one.start < gap.end and one.end > gap.start for one in offsets.gaps)
        why = "were skipped or removed" if skipped else "were removed by compaction"
        yield f"offsets [{gap.start:,}, {gap.end:,}) {why}; the next record is shown"


# -- which tier ---------------------------------------------------------------------------------

HOT, COLD, BOTH = "hot", "cold", "both"


def record_tiers(
    opened: OpenedTopic, look: Look, partition: int, offsets: pa.ChunkedArray
) -> list[str]:
    """For each offset of a record that was read: hot, cold or both.

    Below the cleaned end, compaction may have removed from cold what hot still holds, so the files
    are read there.
    """
    if not len(offsets):
        return []
    log, hot = look.offsets[partition], look.hot[partition]
    is_hot = pc.greater_equal(offsets, log.local_log_start)
    for gap in hot.gaps:  # cold got these records before hot lost its tail
        within = pc.and_(pc.greater_equal(offsets, gap.start), pc.less(offsets, gap.end))
        is_hot = pc.and_not(is_hot, within)
    is_cold = pc.less(offsets, log.archived_end)
    start, end = offsets[0].as_py(), offsets[-1].as_py() + 1
    in_doubt = log.local_log_start < end and start < look.cold.thinned_end(partition)
    if in_doubt and opened.log.table is not None:
        files = look.cold.files.files_between(partition, start, end)
        held = [
            batch.column("offset") for batch in opened.log.table.read(files, start, end, ["offset"])
        ]
        is_cold = pc.is_in(offsets, value_set=pa.chunked_array(held, pa.int64()).combine_chunks())
    return [
        (BOTH if cold else HOT) if hot else COLD
        for hot, cold in zip(is_hot.to_pylist(), is_cold.to_pylist(), strict=True)
    ]
