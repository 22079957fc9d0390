"""The answer to one question of the explorer: where to read, what to show, what to note."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from ...offsets import Ago, AtOffset, AtTimestamp, LogOffsets, MaxTimestamp, Position
from ...read.tiers import Look
from ...read.unified_log import UnifiedLog
from ...record import OffsetRange
from .key_history import history_note
from .opened_topic import OpenedTopic, stretches_of
from .paging import page_before, page_from
from .record_tiers import record_tiers
from .rows import readable_size
from .scan import (
    OnProgress,
    Scanned,
    Stopped,
    scan_backward,
    scan_forward,
)
from .view import Ask, Before, Shown, View


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the page lies: from an offset on, or before it."""

    offset: int
    backward: bool
    note: str | None = None


def answer(opened: OpenedTopic, ask: Ask, *, on_progress: OnProgress, stopped: Stopped) -> Shown:
    """Reads the page that was asked for.

    Args:
        on_progress: called after each step of a scan.
        stopped: says whether to end a scan with what it has.

    Raises:
        OffsetOutOfRangeError: an offset outside the log.
        LakelogError: whatever reading a log may raise.
    """
    look = opened.look(ask.partition)
    offsets = look.offsets[ask.partition]
    place = _place(opened, ask, offsets)
    if ask.is_search:
        scanned = _scan(opened, ask, look, place, on_progress, stopped)
        records, start, end = scanned.records, scanned.start_offset, scanned.end_offset
        said = list(_scan_notes(ask, scanned, place.backward))
        if ask.history:
            said.append(history_note(ask.match, records))
    else:
        records = _page(opened, ask, look, place)
        said = list(_page_notes(ask, records, place, offsets))
        start = end = min(max(place.offset, offsets.log_start), offsets.log_end)
        if records.num_rows:
            start = records["offset"][0].as_py()
            end = records["offset"][records.num_rows - 1].as_py() + 1
    tiers = record_tiers(opened, look, ask.partition, records["offset"])
    skipped = tuple(gap for gap in offsets.gaps if gap.start < end and gap.end > start)
    said += [
        f"offsets [{gap.start:,}, {gap.end:,}) were skipped after an unclean stop of Redis"
        for gap in skipped
    ]
    if not offsets.recovered:
        said.append(
            "the server restarted since the partition was last written: the last appended records "
            "may be lost; the next append or archive run will tell"
        )
    if not isinstance(opened.log, UnifiedLog):
        known = f"{offsets.log_end:,}"
        said.append(f"Redis was not asked: the log is shown up to {known}, where its archive ends")
    if place.note is not None:
        said.insert(0, place.note)
    view = View(ask.topic, ask.partition, start, end, ask.match)
    partitions = opened.log.topic.partitions
    return Shown(ask, view, records, tuple(tiers), offsets, tuple(said), skipped, partitions)


def _place(opened: OpenedTopic, ask: Ask, offsets: LogOffsets) -> _Place:
    end = offsets.log_end
    if isinstance(ask.where, Before):
        at = min(ask.where.offset, end)
        if at <= offsets.log_start < end:
            return _Place(offsets.log_start, False, "the log starts here")
        return _Place(at, True)
    found = opened.log.seek(ask.partition, ask.where)
    if found is None:
        if offsets.log_start == end:
            return _Place(end, True)
        return _Place(end, True, f"{_none(ask.where)}; the last records are shown")
    if found >= end:
        asked_for_end = isinstance(ask.where, AtOffset) and end > offsets.log_start
        return _Place(found, True, f"the log ends at {end:,}" if asked_for_end else None)
    return _Place(found, False)


def _none(where: Position) -> str:
    match where:
        case AtTimestamp() | Ago():
            return "no record has a timestamp at or after that time"
        case MaxTimestamp():
            return "no record has a timestamp"
        case _:
            return "nothing is tiered yet"


def _page(opened: OpenedTopic, ask: Ask, look: Look, place: _Place) -> pa.Table:
    offsets = look.offsets[ask.partition]
    if place.backward:
        return page_before(
            opened.log,
            ask.partition,
            stretches_of(look),
            offsets.log_start,
            place.offset,
            ask.page_records,
        )
    return page_from(opened.log, ask.partition, place.offset, offsets.log_end, ask.page_records)


def _scan(
    opened: OpenedTopic,
    ask: Ask,
    look: Look,
    place: _Place,
    on_progress: OnProgress,
    stopped: Stopped,
) -> Scanned:
    offsets = look.offsets[ask.partition]
    if place.backward:
        return scan_backward(
            opened.log,
            ask.partition,
            stretches_of(look),
            offsets.log_start,
            place.offset,
            ask.match,
            ask.page_records,
            limit=ask.limit,
            on_progress=on_progress,
            stopped=stopped,
        )
    return scan_forward(
        opened.log,
        ask.partition,
        stretches_of(look),
        place.offset,
        offsets.log_end,
        ask.match,
        ask.page_records,
        limit=ask.limit,
        on_progress=on_progress,
        stopped=stopped,
    )


def _page_notes(ask: Ask, records: pa.Table, place: _Place, offsets: LogOffsets) -> Iterator[str]:
    if not records.num_rows:
        if offsets.log_start < offsets.log_end:
            yield (
                f"no record is left in [{offsets.log_start:,}, {offsets.log_end:,}): compaction "
                "removed them, or they were skipped after an unclean stop of Redis"
            )
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


def _scan_notes(ask: Ask, scanned: Scanned, backward: bool) -> Iterator[str]:
    seen, found = scanned.progress, scanned.records.num_rows
    text = f"{found:,} {'match' if found == 1 else 'matches'} in [{scanned.start_offset:,}, "
    text += f"{scanned.end_offset:,}); {seen.records:,} records, {readable_size(seen.bytes)} read"
    further = "Back" if backward else "Forward"
    match scanned.ended:
        case "found":
            yield f"{text}; {further} looks for more"
        case "edge":
            yield f"{text}, up to the {'start' if backward else 'end'} of the log"
        case "stopped":
            yield f"{text}; stopped, {further} goes on"
        case limit:
            yield f"{text}: the limit of {limit} of one scan; {further} goes on"
