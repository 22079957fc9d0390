"""The tail of a partition, or of all, as it grows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
from msgspec.structs import replace

from ...errors import LakelogError
from ...read.found import FOUND, Place, SearchLimit
from ...read.polling import Outage
from ...read.where import is_all
from ...values.config import MIB
from ...values.offsets import Latest, appended
from ...values.topic_partition import TopicPartition
from .answer import answer, of_search
from .search_pages import Found
from .view import Ask, OpenedTopic, Shown

#: How long one blocking read of Redis lasts. A stop may go unnoticed for as long.
WAIT_MS = 500

#: Between two pages, at least: eyes see no more of them, and hands have time to hit a row.
PAUSE_S = 0.25
_NAP_S = 0.02  # within it: then a stop is looked for

#: How far back the first page of a filter is looked for: following begins soon.
_FIRST_LOOK = SearchLimit(records=200_000, bytes=64 * MIB)


def follow(
    opened: OpenedTopic,
    ask: Ask,
    *,
    on_shown: Callable[[Shown], object],
    drawn: Callable[[], Shown | None],
    on_new: Callable[[int], None],
    on_outage: Callable[[LakelogError | None], None],
    holds: Callable[[], bool],
    stopped: Callable[[], bool],
    wait_ms: int = WAIT_MS,
) -> Shown:
    """Shows the last records, and again when more are appended, until stopped.

    What a filter let through stays: it is asked only of what was appended since. Once there is a
    page, a tier that does not answer is asked again until it does.

    Args:
        on_shown: gets a page, and draws it: not while the one before is held.
        drawn: the page that the reader has before them; it may be one from before.
        on_new: told how many records the log has grown by since that page, once that changes.
        on_outage: told why a tier does not answer, at each try, and None when all do again.
        holds: whether the page is to stay as it is for now.

    Raises:
        UnknownTopicIdError, UnknownTopicOrPartitionError: the topic was dropped.
        HotTierUnavailableError: Redis does not answer at the beginning.
    """
    ask = replace(ask, where=Latest(), history=False)
    topic, hot = opened.log.topic, opened.log.hot
    asked = range(topic.partitions) if ask.partition is None else [ask.partition]
    partitions = [topic.partition(number) for number in asked]
    outage = Outage()

    def page(before: Shown | None) -> Shown:
        """It ends where the log ends now."""
        if before is not None and not is_all(ask.match):
            return _grown(opened, before, stopped)
        limit = ask.limit if is_all(ask.match) else _FIRST_LOOK
        found = answer(opened, replace(ask, limit=limit), stopped=stopped)
        return replace(found, ask=replace(found.ask, limit=ask.limit))

    def await_more(seen: dict[TopicPartition, int]) -> None:
        """Returns once there is more than the drawn page has and it need not stay, or stopped."""
        told = 0
        while seen == (ends := _ends(drawn(), partitions, seen)) or holds():
            _pause(stopped)
            grew = hot.wait(seen, wait_ms)
            if stopped():
                return
            # A dropped topic gets no more records: a blocking read would wait for ever.
            found = hot.offsets(partitions, topic_id=topic.topic_id)
            if grew:
                seen = {one: max(seen[one], found[one].log_end) for one in partitions}
            ends = _ends(drawn(), partitions, seen)
            behind = sum(appended(ends[one], seen[one], found[one].gaps) for one in partitions)
            if behind != told:
                on_new(behind)
                told = behind

    shown: Shown | None = None
    while True:
        try:
            shown = page(shown)
            if outage.error is not None:
                outage.ended()
                on_outage(None)
            on_shown(shown)
            await_more({one: shown.offsets[one.partition].log_end for one in partitions})
        except LakelogError as error:
            if shown is None:
                raise
            outage.began(error, f"following {topic.name}")
            on_outage(error)
            while not (outage.is_due or stopped()):
                time.sleep(_NAP_S)
        if stopped():
            return shown


def _ends(
    drawn: Shown | None,
    partitions: Iterable[TopicPartition],
    otherwise: Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    """Where the log ended for the page that is drawn."""
    offsets = {} if drawn is None else drawn.offsets
    return {
        one: offsets[one.partition].log_end if one.partition in offsets else otherwise[one]
        for one in partitions
    }


def _grown(opened: OpenedTopic, shown: Shown, stopped: Callable[[], bool]) -> Shown:
    """The page with what was appended since and matches, from the oldest on less as much."""
    assert shown.edges is not None
    ask, (low, high) = shown.ask, shown.edges
    look = opened.look(high)
    records = shown.records
    if shown.view.partition is not None:
        numbers = pa.array([shown.view.partition] * records.num_rows, pa.int32())
        records = records.add_column(0, FOUND.field("partition"), numbers)
    before = records.num_rows
    ranges = {}
    for number, place in high.items():
        end = look.offsets[number].log_end
        ranges[number] = (min(max(place.offset, look.offsets[number].log_start), end), end)
    for table in opened.log.search_ranges(ranges, ask.match):
        before += table.num_rows
        records = pa.concat_tables([records, table])
        records = records.slice(max(0, records.num_rows - ask.page_records))
        if stopped():
            return shown
    ends = {number: Place(end) for number, (_, end) in ranges.items()}
    if records.num_rows < before:  # the page begins later by now
        kept = Found(records, ends, ends, look).held if records.num_rows else {}
        low = {
            number: Place(kept[number][0]) if number in kept else ends[number] for number in ends
        }
    return of_search(opened, ask, Found(records, low, ends, look))


def _pause(stopped: Callable[[], bool]) -> None:
    until = time.monotonic() + PAUSE_S
    while time.monotonic() < until and not stopped():
        time.sleep(_NAP_S)
