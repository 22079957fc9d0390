"""What the explorer was asked for and what it shows, as values; and the topic that it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from ...read.found import Place, SearchLimit
from ...read.frames import readable
from ...read.tiers import SegmentedLook
from ...read.topic_log import TopicLog
from ...read.where import Always, Where, is_all, write
from ...values.config import TopicConfig
from ...values.offsets import AtOffset, Earliest, Latest, LogOffsets, Position
from ...values.topic import Topic

DEFAULT_PAGE_RECORDS = 50


class Before(Struct, frozen=True):
    """The page that ends below an offset."""

    offset: int


class Cut(Struct, frozen=True):
    """Where a search goes on: between two of its pages."""

    places: Mapping[int, Place]  # by partition
    backward: bool


class Ask(Struct, frozen=True):
    """A question for one page; a retry asks it again.

    Args:
        partition: None: all of them, merged by time.
        span: from, to: nothing else is searched.
        limit: how much a page of a search may read before it is shown as it is.
    """

    topic: str
    partition: int | None
    where: Position | Before | Cut
    match: Where = field(default_factory=Always)
    page_records: int = DEFAULT_PAGE_RECORDS
    limit: SearchLimit = field(default_factory=SearchLimit)
    history: bool = False  # of the key in `match`
    span: tuple[Position, Position] = (Earliest(), Latest())

    @property
    def is_search(self) -> bool:
        """Whether it takes a search: not every record of one partition is asked for."""
        return self.partition is None or not is_all(self.match) or self.is_bounded

    @property
    def is_bounded(self) -> bool:
        """Whether a part of the log alone is to be searched."""
        return self.span != (Earliest(), Latest())


class View(Struct, frozen=True):
    """Ranges of partitions and what their records must match: enough to read the rows again."""

    topic: str
    partition: int | None  # None: those of `spans`
    spans: Mapping[int, tuple[int, int]]  # [start, end) by partition
    match: Where = field(default_factory=Always)

    @property
    def start_offset(self) -> int:
        """Of a view of one partition."""
        return self.spans[self._one()][0]

    @property
    def end_offset(self) -> int:
        """Exclusive; of a view of one partition."""
        return self.spans[self._one()][1]

    @property
    def expression(self) -> str:
        """The call that gives the rows, `log` being the topic's `TopicLog`.

        Rows of several partitions may come in another order where timestamps run backward.
        """
        if self.partition is None:
            starts = {number: start for number, (start, _) in self.spans.items()}
            ends = {number: end for number, (_, end) in self.spans.items()}
            return f"log.search({write(self.match)!r}, {starts}, {ends})"
        call = f"log.read({self.partition}, {self.start_offset}, {self.end_offset})"
        return call if is_all(self.match) else f"{call}.matching({write(self.match)!r})"

    def _one(self) -> int:
        assert self.partition is not None
        return self.partition


class Shown(Struct, frozen=True, eq=False):
    """An answer: the rows of a view, and where its partitions stood then."""

    ask: Ask
    view: View
    records: pa.Table  # RECORDS; FOUND if they are of all partitions
    tiers: tuple[str, ...]  # of each record: hot, cold or both
    offsets: Mapping[int, LogOffsets]
    notes: tuple[str, ...] = ()  # remarks for the reader
    partitions: int = 1  # of the topic
    error: Exception | None = None  # why only archived records are shown
    edges: tuple[Mapping[int, Place], Mapping[int, Place]] | None = None  # of a page of a search
    look: SegmentedLook | None = None  # that it goes by
    config: TopicConfig = TopicConfig()  # of the topic

    @property
    def readable(self) -> pa.Table:
        """The records with keys and values as people read them."""
        return readable(self.records, self.config)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Partition and offset of each row."""
        offsets = self.records["offset"].to_pylist()
        if self.view.partition is not None:
            return [(self.view.partition, offset) for offset in offsets]
        return list(zip(self.records["partition"].to_pylist(), offsets, strict=True))

    @property
    def ask_forward(self) -> Ask:
        if self.edges is not None:
            return replace(self.ask, where=Cut(self.edges[1], backward=False))
        return replace(self.ask, where=AtOffset(self.view.end_offset))

    @property
    def ask_back(self) -> Ask:
        if self.edges is not None:
            return replace(self.ask, where=Cut(self.edges[0], backward=True))
        return replace(self.ask, where=Before(self.view.start_offset))


class Source(Struct, frozen=True):
    """What the explorer reads, and may write.

    Args:
        log_of: opens a topic.
        topics: the names to choose from.
        archived_of: opens a topic's archived records while Redis does not answer; None: nothing.
        producer_of: makes a producer, to send records again; None: nothing can be written.
        positions_of: how far groups have come in a topic; None: nobody knows.
    """

    log_of: Callable[[str], TopicLog]
    topics: Callable[[], Sequence[str]]
    archived_of: Callable[[str], TopicLog] | None = None
    producer_of: Callable[[], Any] | None = None
    positions_of: Callable[[Topic], Mapping[str, Mapping[int, int]]] | None = None


class OpenedTopic:
    """One log, and what was last seen of it, so that another look costs only the changes."""

    def __init__(self, log: TopicLog) -> None:
        self.log = log
        self._tiers = log.tiers()

    def look(self, partitions: Iterable[int]) -> SegmentedLook:
        """Both tiers of some partitions as of now."""
        asked = [*partitions]
        for partition in asked:
            self.log.topic.partition(partition)
        return self._tiers.look_at_segments(asked)
