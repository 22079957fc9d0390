"""What the explorer was asked for and what it shows, as values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from ...offsets import AtOffset, LogOffsets, Position
from ...read.range_read import RangeRead
from ...read.topic_log import TopicLog
from ...read.where import Always, Where, is_all, write
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
    match: Where = field(default_factory=Always)
    page_records: int = DEFAULT_PAGE_RECORDS
    limit: ScanLimit = field(default_factory=ScanLimit)
    history: bool = False  # of the key in `match`

    @property
    def is_search(self) -> bool:
        """Whether not every record is asked for."""
        return not is_all(self.match)


@dataclass(frozen=True, slots=True)
class View:
    """A range of a partition and what its records must match: enough to read the rows again."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int  # exclusive
    match: Where = field(default_factory=Always)

    @property
    def expression(self) -> str:
        """The call that gives the rows, `log` being the topic's `TopicLog`."""
        call = f"log.read({self.partition}, {self.start_offset}, {self.end_offset})"
        return call if is_all(self.match) else f"{call}.matching({write(self.match)!r})"

    def read(self, log: TopicLog) -> RangeRead:
        """What `expression` gives."""
        found = log.read(self.partition, self.start_offset, self.end_offset)
        return found if is_all(self.match) else found.matching(self.match)


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
