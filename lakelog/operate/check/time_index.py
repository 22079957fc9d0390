"""What a partition's time index should say, derived from its entries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...errors import CorruptRecordError
from ...hot.hot_log import HotLog
from ...hot.inspection import StoredEntry
from ...hot.mending import Mend
from ...values.record import NO_TIMESTAMP_MS
from ...values.topic import Topic
from ...values.topic_partition import TopicPartition


def index_mends(hot: HotLog, topic: Topic, topic_partition: TopicPartition) -> Iterator[Mend]:
    """What is wrong in the index, then what it lacks, by offset.

    What is right of it stays, so that look-ups meanwhile find what they did. Holds the whole index,
    16 bytes an entry of it, and a page of the partition's entries.

    Raises:
        CorruptRecordError: an entry cannot be read, so that its timestamps are not known.
        ForeignEntryError: the index holds something else.
    """
    # The index first: all of it lies below a log end that is read later.
    pages = list(hot.inspection().time_index(topic_partition))
    offsets = np.concatenate([np.empty(0, np.int64), *(page[0] for page in pages)])
    scores = np.concatenate([np.empty(0, np.int64), *(page[1] for page in pages)])
    order = np.argsort(offsets, kind="stable")
    offsets, scores = offsets[order], scores[order]
    look = hot.inspection().look(topic_partition, topic.topic_id)
    log_end = look.number("log_end") or 0
    interval_bytes = topic.config["index.interval.bytes"]
    at, since_bytes, last_ms, largest_ms = 0, 0, NO_TIMESTAMP_MS, NO_TIMESTAMP_MS
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
        while at < len(offsets) and offsets[at] < last_offset:
            yield _mend("unindex", offsets[at], scores[at])
            at += 1
        if at < len(offsets) and offsets[at] == last_offset:
            at += 1
            if scores[at - 1] == largest_ms and largest_ms > last_ms:
                since_bytes, last_ms = 0, largest_ms
                continue
            yield _mend("unindex", last_offset, scores[at - 1])
        if since_bytes >= interval_bytes and largest_ms > last_ms:
            yield _mend("index", last_offset, largest_ms)
            since_bytes, last_ms = 0, largest_ms
    for offset, score in zip(offsets[at:].tolist(), scores[at:].tolist(), strict=True):
        yield _mend("unindex", offset, score)


def _mend(what: str, offset: int, timestamp_ms: int) -> Mend:
    return Mend(what, str(offset), str(timestamp_ms))


def _entries(
    hot: HotLog, topic: Topic, topic_partition: TopicPartition, log_end: int
) -> Iterator[StoredEntry]:
    for page in hot.inspection().pages(topic_partition, topic.topic_id):
        for entry in page.entries:
            if entry.base_offset is None or entry.format == "gap":
                continue
            if entry.base_offset >= log_end:
                return
            yield entry
