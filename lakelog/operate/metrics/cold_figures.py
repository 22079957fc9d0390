"""What a cold snapshot says of each partition in numbers, kept while the snapshot is the newest."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import numpy as np
from msgspec import Struct, field

from ...cleanup.plan import cleanables
from ...cold.segment import SegmentIndex
from ...cold.table import ColdSnapshot
from ...values.topic import Topic

#: What compaction may clean grows with time too: of a snapshot it is asked this often.
DIRTY_LASTS_MS = 60_000


class ColdFigures(Struct, frozen=True, gc=False):
    """One partition."""

    size_bytes: int = 0
    segments: int = 0
    files: int = 0
    most_files: int = 0  # of one segment


class TopicFigures(Struct, frozen=True):
    """One topic, as of a snapshot."""

    partitions: Mapping[int, ColdFigures] = field(default_factory=dict)  # those with files
    dirty_ratios: Mapping[int, float] = field(default_factory=dict)  # of a compacted topic


class KnownFigures:
    """The figures of topics; what did not change is not counted again."""

    def __init__(self) -> None:
        self._known: dict[UUID, tuple[ColdSnapshot, int, TopicFigures]] = {}

    def of(self, topic: Topic, cold: ColdSnapshot, now_ms: int) -> TopicFigures:
        """A topic's figures as of that snapshot."""
        known = self._known.get(topic.topic_id)
        compacted = topic.config.compacted
        if known is not None and known[0] is cold and not (compacted and _is_old(known[1], now_ms)):
            return known[2]
        ratios = {}
        if compacted:
            found = cleanables(topic, cold, now_ms)
            ratios = {one.topic_partition.partition: one.dirty_ratio for one in found}
        figures = TopicFigures(figures_of(cold.files), ratios)
        self._known[topic.topic_id] = cold, now_ms, figures
        return figures

    def keep_only(self, topic_ids: set[UUID]) -> None:
        """Forget all other topics."""
        for gone in self._known.keys() - topic_ids:
            del self._known[gone]


def _is_old(at_ms: int, now_ms: int) -> bool:
    return not 0 <= now_ms - at_ms < DIRTY_LASTS_MS


def figures_of(files: SegmentIndex) -> dict[int, ColdFigures]:
    """The figures of each partition that has files."""
    if not len(files):
        return {}
    partitions, segments = files.numbers("partition"), files.numbers("segment")
    sizes = files.numbers("size_bytes")
    is_new = np.ones(len(sizes), bool)  # a partition begins, in whose order the index is
    is_new[1:] = partitions[1:] != partitions[:-1]
    if (~is_new[1:] & (segments[1:] < segments[:-1])).any():
        order = np.lexsort((segments, partitions))
        segments, sizes = segments[order], sizes[order]
    is_next = is_new.copy()  # a segment does
    is_next[1:] |= segments[1:] != segments[:-1]
    (begins,), (firsts,) = is_next.nonzero(), is_new.nonzero()  # rows
    (first_segments,) = is_new[begins].nonzero()
    counts = _lengths(begins, len(sizes))  # files of each segment
    columns = (
        partitions[firsts],
        np.add.reduceat(sizes, firsts),
        _lengths(first_segments, len(begins)),
        _lengths(firsts, len(sizes)),
        np.maximum.reduceat(counts, first_segments),
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return {number: ColdFigures(*row) for number, *row in rows}


def _lengths(begins: np.ndarray, end: int) -> np.ndarray:
    """Of stretches that follow each other."""
    lengths = np.empty_like(begins)
    lengths[:-1] = begins[1:] - begins[:-1]
    lengths[-1] = end - begins[-1]
    return lengths
