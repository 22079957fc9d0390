"""A partition's time index beside what its entries tell: what is wrong in it, what it lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

import numpy as np

from ...errors import CorruptRecordError
from ...hot.hot_log import HotLog
from ...hot.inspection import StoredEntry
from ...hot.mending import Mend
from ...values.record import NO_TIMESTAMP_MS
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange, TopicPartition

#: What is wrong of the index: an offset, the timestamp that it has there, and why, as a predicate.
Wrong = tuple[int, int, str]


class TimeIndex:
    """Follows a time index along with the entries. Holds all of it, 16 bytes an entry of it.

    Args:
        pages: all of the index; see `Inspection.time_index`.
        low: offsets below it are not judged.
        is_exact: whether no record of before the first entry is in what the index says.
    """

    def __init__(
        self, pages: Iterable[tuple[np.ndarray, np.ndarray]], low: int, *, is_exact: bool
    ) -> None:
        found = [(np.empty(0, np.int64), np.empty(0, np.int64)), *pages]
        offsets = np.concatenate([page[0] for page in found])
        scores = np.concatenate([page[1] for page in found])
        highest = np.maximum.accumulate(np.concatenate([[-1], offsets]))[:-1]
        behind = "stands behind a higher offset, with a larger timestamp"
        self.disordered: list[Wrong] = [
            (int(offsets[at]), int(scores[at]), behind) for at in np.flatnonzero(offsets <= highest)
        ]
        kept = (offsets > highest) & (offsets >= low)
        self.below = offsets[(offsets > highest) & (offsets < low)].tolist()
        self._offsets, self._scores = offsets[kept], scores[kept]
        self._at = 0
        self._is_exact = is_exact
        self._largest_ms = NO_TIMESTAMP_MS  # up to the entry

    def up_to(self, entry: StoredEntry, holes: Collection[OffsetRange] = ()) -> Iterator[Wrong]:
        """What is wrong up to an entry. To be asked of one after another.

        Args:
            holes: offsets below it of which nothing is known.
        """
        last = entry.end_offset - 1
        if entry.max_timestamp_ms is None or holes:
            self._is_exact = False
        else:
            self._largest_ms = max(self._largest_ms, entry.max_timestamp_ms)
        for offset, score in self.left(entry.end_offset):
            if offset < last:
                if not any(low <= offset < high for low, high in holes):
                    yield offset, score, "is the last offset of no entry"
            elif score < self._largest_ms or (self._is_exact and score > self._largest_ms):
                why = (
                    f"says the largest timestamp up to it is {score}, but it is {self._largest_ms}"
                )
                yield offset, score, why
            elif not self._is_exact:  # that of a trimmed record
                self._largest_ms = score
                self._is_exact = entry.max_timestamp_ms is not None

    def has(self, offset: int) -> bool:
        """Whether the offset is there, and in order."""
        at = int(np.searchsorted(self._offsets, offset))
        return at < len(self._offsets) and self._offsets[at] == offset

    def left(self, end_offset: int | None = None) -> Iterator[tuple[int, int]]:
        """What was not asked for yet, up to there: offsets and timestamps."""
        while self._at < len(self._offsets):
            offset = int(self._offsets[self._at])
            if end_offset is not None and offset >= end_offset:
                return
            self._at += 1
            yield offset, int(self._scores[self._at - 1])


def index_mends(hot: HotLog, topic: Topic, topic_partition: TopicPartition) -> Iterator[Mend]:
    """What rights the index, in order.

    What is right of it stays, so that look-ups meanwhile find what they did.

    Raises:
        CorruptRecordError: an entry cannot be read, so that its timestamps are not known.
        ForeignEntryError: the index holds something else.
    """
    # The index first: all of it lies below a log end that is read later.
    index = TimeIndex(hot.inspection().time_index(topic_partition), 0, is_exact=True)
    for offset, score, _ in index.disordered:
        yield _mend("unindex", offset, score)
    look = hot.inspection().look(topic_partition, topic.topic_id)
    log_end = look.number("log_end") or 0
    interval_bytes = topic.config["index.interval.bytes"]
    since_bytes, last_ms, largest_ms = 0, NO_TIMESTAMP_MS, NO_TIMESTAMP_MS
    for entry in _entries(hot, topic, topic_partition, log_end):
        if entry.max_timestamp_ms is None:
            raise CorruptRecordError(
                f"entry {entry.id} of {topic_partition} cannot be read, so the timestamps in it "
                "are not known; skip it first (lakelog skip add)",
                topic_partition=topic_partition,
            )
        last_offset = entry.end_offset - 1
        since_bytes += entry.size_bytes
        largest_ms = max(largest_ms, entry.max_timestamp_ms)
        is_right = index.has(last_offset)
        for offset, score, _ in index.up_to(entry):
            is_right &= offset != last_offset
            yield _mend("unindex", offset, score)
        is_due = since_bytes >= interval_bytes and largest_ms > last_ms
        if is_due and not is_right:
            yield _mend("index", last_offset, largest_ms)
        if is_due or is_right:
            since_bytes, last_ms = 0, largest_ms
    for offset, score in index.left():
        yield _mend("unindex", offset, score)


def _mend(what: str, offset: int, timestamp_ms: int) -> Mend:
    return Mend(what, str(offset), str(timestamp_ms))


def _entries(
    hot: HotLog, topic: Topic, topic_partition: TopicPartition, log_end: int
) -> Iterator[StoredEntry]:
    pages = hot.inspection().pages(topic_partition, topic.topic_id)
    for entry in chain.from_iterable(page.entries for page in pages):
        if entry.base_offset is None or entry.format == "gap":
            continue
        if entry.base_offset >= log_end:
            return
        yield entry
