"""What the explorer was asked for and what it shows, as values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from ...offsets import AtOffset, LogOffsets, Position
from ...read.matching import Match
from ...read.range_read import RangeRead
from ...read.topic_log import TopicLog
from ...record import OffsetRange
from .scan import ScanLimit

DEFAULT_PAGE_RECORDS = 50


@dataclass(frozen=True, slots=True)
class Before:
    """The page that ends below an offset."""

    offset: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A question for one page of one partition; a retry asks it again."""

    topic: str
    partition: int
    where: Position | Before
    match: Match = field(default_factory=Match)
    page_records: int = DEFAULT_PAGE_RECORDS
    limit: ScanLimit = field(default_factory=ScanLimit)
    history: bool = False  # of the key in `match`


@dataclass(frozen=True, slots=True)
class View:
    """A range of a partition and what its records must match: enough to read the rows again."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int  # exclusive
    match: Match = field(default_factory=Match)

    @property
    def expression(self) -> str:
        """The call that gives the rows, `log` being the topic's `TopicLog`."""
        call = f"log.read({self.partition}, {self.start_offset}, {self.end_offset})"
        return f"{call}.matching({self.match.arguments()})" if self.match else call

    def read(self, log: TopicLog) -> RangeRead:
        """What `expression` gives."""
        found = log.read(self.partition, self.start_offset, self.end_offset)
        if not self.match:
            return found
        match = self.match
        return found.matching(
            key=match.key,
            header=match.header,
            text=match.text,
            json=None if match.json is None else match.json.text,
        )


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer: the rows of a view, and where the partition stood then."""

    ask: Ask
    view: View
    records: pa.Table  # RECORDS
    tiers: tuple[str, ...]  # of each record: hot, cold or both
    offsets: LogOffsets
    notes: tuple[str, ...] = ()  # remarks for the reader
    skipped: tuple[OffsetRange, ...] = ()  # within the view, after an unclean stop
    partitions: int = 1  # of the topic
    error: Exception | None = None  # why only archived records are shown

    @property
    def ask_forward(self) -> Ask:
        return replace(self.ask, where=AtOffset(self.view.end_offset))

    @property
    def ask_back(self) -> Ask:
        return replace(self.ask, where=Before(self.view.start_offset))
