"""Records of a topic's partitions that match, merged by time, forward or backward, page by page.

Within a partition records keep the order of their offsets. So what is merged by is a record's
*rank*: the largest timestamp up to it, or, backward, the smallest from it on, both from where the
search began.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby
from typing import Literal

import numpy as np
import pyarrow as pa

from ..config import MIB
from ..errors import InvalidArgumentError, MissingFileError
from ..record import RECORDS, Fetched, Record, TopicPartition, to_records
from .fetch import fetches
from .stretches import Piece, piece_at, pieces, record_count
from .tiers import Look, Tiers
from .where import Bounds, Where
from .where.expression import matching
from .where.grammar import write

#: What a search gives: `RECORDS`, and which partition each is of.
FOUND = pa.schema([pa.field("partition", pa.int32(), nullable=False), *RECORDS])

#: Gives what is read first of [start, end) in each of some partitions, as far as Redis tells at
#: once; see `HotTier.first_steps`.
FirstSteps = Callable[[Mapping[TopicPartition, tuple[int, int]]], Mapping[TopicPartition, Fetched]]

FULL, EDGE, STOPPED = "full", "edge", "stopped"
TOO_MANY_RECORDS, TOO_MANY_BYTES = "records", "bytes"

#: What the steps of all partitions hold together, about, and the least and the most of one step.
_HELD_BYTES, _LEAST_STEP_BYTES, _MOST_STEP_BYTES = 32 * MIB, 16 * 1024, MIB

#: A search of more partitions says how far it is about as often in a round through them all: to say
#: it takes a look at each.
_TOLD_EACH = 16

#: A page is begun again so often, if compaction thins out files between the look and the read.
_THINNED_PAGES = 3

#: Of so many partitions, Redis is asked for the first records in one round trip.
_ASKED_AT_ONCE = 64

#: Records in the first stretch that is read backward, and how it grows while it stays small.
_FIRST_STRETCH, _GROWTH = 1_024, 4


@dataclass(frozen=True, slots=True)
class SearchLimit:
    """How much a page may read before it is given as it is: then with all that was found, also
    where what was not read yet might have come before.
    """

    records: float = math.inf
    bytes: float = math.inf

    def __post_init__(self) -> None:
        for name in ("records", "bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 1:
                raise InvalidArgumentError(
                    f"a search's limit of {name} is a number ≥ 1, not {value!r}", value=value
                )


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search has come."""

    read: int  # records
    skipped: int  # records, about: those that were known not to match without being read
    total: int  # records, about: what is to be read or skipped
    bytes: int  # of those that were read
    matches: int
    offsets: Mapping[int, int]  # where it is in each partition

    @property
    def share(self) -> float:
        """0 to 1."""
        return min(1.0, (self.read + self.skipped) / self.total) if self.total else 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a search goes on in a partition."""

    offset: int  # the first to be seen; backward, the last plus one
    rank: float = -math.inf  # of the record before, so that pages follow each other as one search


@dataclass(frozen=True, slots=True)
class Page:
    """Matches in the order of time, oldest first, and where the search goes on."""

    records: pa.Table  # FOUND
    next: Mapping[int, Place]  # by partition
    ended: str  # FULL, EDGE (of what was asked for), STOPPED, TOO_MANY_RECORDS or TOO_MANY_BYTES
    progress: Progress


class Search:
    """Ranges of partitions, of which those records are wanted that match.

    Iterating gives `FOUND` tables in bounded memory, in the order of time, and reads again each
    time. A record that the log held when the iteration began is there, or it raises; see `fetches`
    for the errors.

    Args:
        ranges: [start, end) of each partition.
    """

    def __init__(self, tiers: Tiers, ranges: Mapping[int, tuple[int, int]], where: Where) -> None:
        self._tiers = tiers
        self.where = where
        self.ranges = dict(sorted(ranges.items()))

    def page(
        self,
        records: int,
        after: Mapping[int, Place] | None = None,
        *,
        backward: bool = False,
        limit: SearchLimit | None = None,
        page_bytes: float = math.inf,
        on_progress: Callable[[Progress], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        look: Look | None = None,
    ) -> Page:
        """The first matches, or backward the last.

        Args:
            records: how many, at most.
            after: `Page.next` of the page before this one, in the same direction.
            limit: how much may be read for it.
            page_bytes: it is full, too, with the match that makes it so large.
            on_progress: called after each step; of very many partitions, after some.
            stopped: asked after each step: whether to end with what is there.
            look: one that covers the ranges, if there is one already.
        """
        for _ in range(_THINNED_PAGES):
            page = self._page(
                records, after or {}, backward, limit, page_bytes, on_progress, stopped, look
            )
            if page is not None:
                return page
            look = None  # what was seen is not there any more
        page = self._page(
            records, after or {}, backward, limit, page_bytes, on_progress, stopped, None, last=True
        )
        assert page is not None
        return page

    def _page(
        self,
        records: int,
        after: Mapping[int, Place],
        backward: bool,
        limit: SearchLimit | None,
        page_bytes: float,
        on_progress: Callable[[Progress], None],
        stopped: Callable[[], bool],
        look: Look | None,
        *,
        last: bool = False,
    ) -> Page | None:
        """See `page`; None: files were thinned out as it read them, so its order may be wrong."""
        scans = self._scans(after, backward, look)
        merge = _Merge(scans, self._first_steps(), limit or SearchLimit(), on_progress, stopped)
        tables: list[pa.Table] = []
        rows = nbytes = 0
        for table in merge:
            room = min(records - rows, _rows_within(table, page_bytes - nbytes))
            tables.append(table.slice(0, room))
            rows += tables[-1].num_rows
            nbytes += tables[-1].nbytes
            if rows >= records or nbytes >= page_bytes or room < table.num_rows:
                merge.put_back(table.num_rows - tables[-1].num_rows)
                merge.ended = FULL
                break
        if not last and any(scan.is_thinned for scan in scans):
            return None
        found = pa.concat_tables([FOUND.empty_table(), *tables])
        if backward:
            found = found.take(pa.array(np.arange(found.num_rows)[::-1]))
        return Page(found, merge.next(), merge.ended, merge.progress())

    def __iter__(self) -> Iterator[pa.Table]:
        yield from _Merge(self._scans({}, backward=False), self._first_steps())

    def records(self) -> Iterator[Record]:
        """The matches one by one."""
        for table in self:
            yield from records_of(self._tiers.topic.name, table)

    def to_arrow(self) -> pa.Table:
        """All matches as one `FOUND` table, in memory."""
        return pa.concat_tables([FOUND.empty_table(), *self])

    def __repr__(self) -> str:
        whole = ", ".join(f"{p}: [{start}, {end})" for p, (start, end) in self.ranges.items())
        return f"Search({self._tiers.topic.name} {whole} where {write(self.where) or 'all'})"

    def _first_steps(self) -> FirstSteps:
        tiers, step_bytes = self._tiers, self._step_bytes()

        def first_steps(
            ranges: Mapping[TopicPartition, tuple[int, int]],
        ) -> Mapping[TopicPartition, Fetched]:
            return tiers.hot.first_steps(
                ranges, max_bytes=step_bytes, topic_id=tiers.topic.topic_id
            )

        return first_steps

    def _step_bytes(self) -> int:
        return min(
            _MOST_STEP_BYTES, max(_LEAST_STEP_BYTES, _HELD_BYTES // max(1, len(self.ranges)))
        )

    def _scans(
        self, after: Mapping[int, Place], backward: bool, look: Look | None = None
    ) -> list[_Scan]:
        bounds = Bounds.of(self.where)
        may = {p for p in self.ranges if bounds.partitions is None or p in bounds.partitions}
        if look is None and may:
            look = self._tiers.look(sorted(may))
        step_bytes = self._step_bytes()
        kind = _Backward if backward else _Forward
        scans: list[_Scan] = []
        for partition, (start, end) in self.ranges.items():
            place = after.get(partition) or Place(end if backward else start)
            if backward:
                end = min(end, place.offset)
            else:
                start = max(start, place.offset)
            narrowed = _Narrowed(
                self._tiers, look if partition in may else None, partition, bounds.keys
            )
            topic_partition = self._tiers.topic.partition(partition)
            scan = kind(self._tiers, topic_partition, self.where, bounds, narrowed, step_bytes)
            scan.begin((start, max(start, end)), place.rank)
            scans.append(scan)
        return scans


@cache
def _nothing() -> pa.Table:
    # Not when this module is imported: pyarrow then looks for pandas.
    return FOUND.empty_table()


_NO_RANKS, _NO_OFFSETS = np.empty(0), np.empty(0, np.int64)


def _rows_within(table: pa.Table, size_bytes: float) -> int:
    """How many of the first rows it takes to fill so many bytes; all, if they do not."""
    low, high = 0, int(table.num_rows)  # `low` rows do not fill them, `high` do, if all do
    if table.nbytes <= size_bytes:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if table.slice(0, middle).nbytes >= size_bytes else (middle, high)
    return high


def records_of(topic: str, table: pa.Table) -> Iterator[Record]:
    """The rows of a `FOUND` table as records."""
    for batch in table.to_batches():
        partitions = np.asarray(batch.column("partition"))
        edges = np.flatnonzero(np.diff(partitions)) + 1
        starts = [0, *edges.tolist()]
        for start, end in zip(starts, [*edges.tolist(), len(partitions)], strict=True):
            partition = int(partitions[start]) if end > start else 0
            rows = batch.slice(start, end - start).select(RECORDS.names)
            rows = pa.RecordBatch.from_arrays(rows.columns, schema=RECORDS)
            yield from to_records(TopicPartition(topic, partition), rows)


def _within(span: tuple[int, int], bounds: Bounds) -> tuple[int, int]:
    start, end = span
    low, high = bounds.offsets
    start = max(start, math.ceil(low)) if low > start else start
    end = min(end, math.floor(high) + 1) if high < end else end
    return start, max(start, end)


# -- one partition -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Narrowed:
    """Pieces of a partition down to what may hold a key.

    Args:
        keys: None: any key is wanted.
    """

    tiers: Tiers
    look: Look | None
    partition: int
    keys: frozenset[bytes] | None

    def __call__(self, piece: Piece) -> list[Piece]:
        """The parts of a piece to be read, by offset."""
        rows = self.tiers.rows
        if self.keys is None or not piece.is_cold or self.look is None or rows is None:
            return [piece]
        files = self.look.cold.files.files_between(self.partition, piece.start, piece.end)
        try:
            found = rows.with_keys(files, piece.start, piece.end, self.keys)
        except MissingFileError:
            if not self.tiers.outdated(self.look):
                raise
            return [piece]  # rewritten since; whoever reads it looks again
        span = piece.end - piece.start
        return [
            replace(
                piece,
                start=one.start,
                end=one.end,
                records=max(1, piece.records * (one.end - one.start) // span),
            )
            for one in found
        ]


class _Scan:
    """A partition's matches in the order they are met, and how far it has come.

    There may be thousands, of which a page reads a few. So where its records lie in detail is
    looked up by `open`, once it comes first.

    Args:
        bounds: of `where`.
        narrowed: what of a piece to read; without a look, nothing can match.

    Attributes:
        at: where it is: all before, or backward all from there on, was searched.
        frontier: the least rank that what is still to come can have; infinite: nothing is.
        is_thinned: whether it had said of a rank that none is less, and then met one.
        waiting: the matches that were not taken yet, a `FOUND` table, as they were met.
        ranks, offsets: theirs; ranks ascend.
    """

    def __init__(
        self,
        tiers: Tiers,
        topic_partition: TopicPartition,
        where: Where,
        bounds: Bounds,
        narrowed: _Narrowed,
        step_bytes: int,
    ) -> None:
        self._tiers = tiers
        self.topic_partition = topic_partition
        self._where = where
        self._bounds = bounds
        self._kept: list[Piece] = []  # what may hold matches, by offset
        self._narrowed = narrowed
        self._step_bytes = step_bytes
        self._steps: Iterator[bool] | None = None  # None: not open yet
        self._first: Fetched | None = None  # read ahead
        self.is_thinned = False
        self._carried = -math.inf  # the rank of the last record met
        self._span = (0, 0)
        self.partition = topic_partition.partition
        self.total = self.skipped = self.read = self.bytes = self.at = 0
        self.frontier = -math.inf
        self.waiting = _nothing()
        self.ranks, self.offsets = _NO_RANKS, _NO_OFFSETS

    def begin(self, span: tuple[int, int], rank: float) -> None:
        """Set what it is to cover, and the rank it goes on from."""
        self._span = span
        self._carried = rank
        self.at = self._edge()
        look = self._narrowed.look
        start, end = span if look is None else _within(span, self._bounds)
        if look is not None:
            log = look.offsets[self.partition]
            self.total = max(0, min(end, log.log_end) - max(start, log.log_start))
        if not self.total:
            self._steps = iter(())
            self._finish()
            return
        self.frontier = max(self._carried, self._glance((start, end)))

    def open(self) -> None:
        """Looks up where its records lie. Its frontier may be farther off afterwards."""
        look = self._narrowed.look
        if self._steps is not None or look is None:
            return
        found = pieces(look, self.partition, *_within(self._span, self._bounds))
        bounds = self._bounds
        self._kept = [piece for piece in found if bounds.may_match(piece.min_ms, piece.max_ms)]
        self.total = record_count(found)
        self.skipped = self.total - record_count(self._kept)
        self._steps = self._read()
        self._open()
        self._bound()

    def step(self) -> None:
        """Reads on; it is open."""
        if self._steps is None or next(self._steps, None) is None:
            self._finish()

    def first_range(self) -> tuple[int, int] | None:
        """What it reads first, if nothing of it was read yet and Redis has it."""
        raise NotImplementedError

    def read_ahead(self, first: Fetched) -> None:
        """What was read of `first_range`."""
        self._first = first

    def _ahead(self, start: int, end: int) -> Fetched | None:
        """What was read ahead, if it begins there and goes no further."""
        first, self._first = self._first, None
        if first is None or first.start_offset != start or first.next_offset > end:
            return None
        return first

    def _edge(self) -> int:
        """Where it begins."""
        raise NotImplementedError

    def _glance(self, span: tuple[int, int]) -> float:
        """No more than the least rank in the pieces that are kept of a span."""
        raise NotImplementedError

    def _first_file(self, offset: int, *, backward: bool) -> Piece | None:
        """The file that is read first, if it surely has a match's least rank."""
        look = self._narrowed.look
        if look is None or self._bounds.keys is not None:
            return None
        piece = piece_at(look, self.partition, offset, backward=backward)
        if piece is None or not piece.is_full or piece.min_ms < 0:
            return None
        return piece if self._bounds.may_match(piece.min_ms, piece.max_ms) else None

    def _open(self) -> None:
        """The least ranks and the edges of the kept pieces."""
        raise NotImplementedError

    def _bound(self) -> None:
        raise NotImplementedError

    def _read(self) -> Iterator[bool]:
        raise NotImplementedError

    def _least_of(self, last_first: Iterable[tuple[float, Piece]]) -> list[float]:
        """The least rank of the record that is met next, before each of the pieces.

        It is in the next piece, unless that may have none: then it may be in one after it. All that
        come later have at least its rank.

        Args:
            last_first: the least rank in each piece, in the order from the one that is met last.
        """
        found: list[float] = []
        for least, piece in last_first:
            is_certain = piece.is_full and self._narrowed.keys is None
            found.append(least if is_certain or not found else min(least, found[-1]))
        return found

    def _parts(self, piece: Piece) -> list[Piece]:
        parts = self._narrowed(piece)
        self.skipped += piece.records - record_count(parts)
        return parts

    def _fetches(self, start: int, end: int) -> Iterator[Fetched]:
        return fetches(
            self._tiers,
            self.topic_partition,
            start,
            end,
            max_bytes=self._step_bytes,
            seen=self._narrowed.look,
        )

    def _finish(self) -> None:
        self.frontier = math.inf
        self.total = self.read + self.skipped  # by now that is known, whatever was thinned out

    def _met(self, records: pa.RecordBatch, backward: bool) -> None:
        """Take in what was read, which is in the order of offsets."""
        self.read += records.num_rows
        self.bytes += records.nbytes
        if not records.num_rows:
            return
        micros = np.asarray(records.column("timestamp").cast(pa.int64()))
        times = np.where(micros < 0, -math.inf, micros // 1000)
        if backward:
            times = np.where(micros < 0, -math.inf, -(micros // 1000))[::-1]
        ranks = np.maximum.accumulate(np.maximum(times, self._carried))
        if ranks[0] < self.frontier:
            # Compaction removed the record that it was said of. Others may be given already.
            self.is_thinned = True
            ranks = np.maximum(ranks, self.frontier)
        self._carried = float(ranks[-1])
        if backward:
            ranks = ranks[::-1]
        found = matching(self._where, records, self.partition)
        if not found.num_rows:
            return
        offsets = np.asarray(found.column("offset"))
        if found.num_rows < records.num_rows:
            ranks = ranks[np.searchsorted(np.asarray(records.column("offset")), offsets)]
        table = with_partition(found, self.partition)
        if backward:
            table = table.take(pa.array(np.arange(table.num_rows)[::-1]))
            ranks, offsets = ranks[::-1], offsets[::-1]
        if len(self.ranks):
            table = pa.concat_tables([self.waiting, table])
            ranks = np.concatenate([self.ranks, ranks])
            offsets = np.concatenate([self.offsets, offsets])
        self.waiting, self.ranks, self.offsets = table, ranks, offsets

    def take(self, count: int) -> None:
        """The first of the waiting matches are given."""
        self.waiting = self.waiting.slice(count)
        self.ranks, self.offsets = self.ranks[count:], self.offsets[count:]

    def place(self) -> Place:
        """Where a search goes on that saw all that was met."""
        return Place(self.at, self._carried)

    def place_before(self, left: np.ndarray, rank: float) -> Place:
        """Where a search goes on that saw none of some matches.

        Args:
            left: their offsets; at least one.
            rank: of the first of them.
        """
        return Place(self._before(left), rank)

    def _before(self, offsets: np.ndarray) -> int:
        raise NotImplementedError


class _Forward(_Scan):
    def _edge(self) -> int:
        return self._span[0]

    def _glance(self, span: tuple[int, int]) -> float:
        first = self._first_file(span[0], backward=False)
        return -math.inf if first is None else float(first.min_ms)

    def _open(self) -> None:
        self._least = self._least_of((float(one.min_ms), one) for one in self._kept[::-1])[::-1]
        self._ends = [piece.end for piece in self._kept]

    def first_range(self) -> tuple[int, int] | None:
        if self.read or not self._kept or self._kept[0].is_cold:
            return None
        run: list[Piece] = []
        for piece in self._kept:
            if piece.is_cold or (run and run[-1].end != piece.start):
                break
            run.append(piece)
        return run[0].start, run[-1].end

    def _read(self) -> Iterator[bool]:
        if self._narrowed.keys is None:
            yield from self._through(_joined(self._kept))
            return
        # Files are looked into one by one, when they are reached; what is hot is read as a whole.
        for is_cold, together in groupby(self._kept, lambda piece: piece.is_cold):
            run = list(together)
            for read in [[piece] for piece in run] if is_cold else [run]:
                yield from self._through(_joined(chain(*map(self._parts, read))))
                self.at = read[-1].end
                self._bound()
                yield True

    def _through(self, ranges: Iterable[tuple[int, int]]) -> Iterator[bool]:
        for start, end in ranges:
            first = self._ahead(start, end)
            rest = self._fetches(start if first is None else first.next_offset, end)
            for step in rest if first is None else chain([first], rest):
                self._met(step.records, backward=False)
                self.at = step.next_offset
                self._bound()
                yield True

    def _bound(self) -> None:
        left = bisect_right(self._ends, self.at)
        least = self._least[left] if left < len(self._least) else -math.inf
        self.frontier = max(self._carried, least if least >= 0 else -math.inf)
        if not self._kept:
            self._finish()

    def _finish(self) -> None:
        super()._finish()
        self.at = self._span[1]

    def _before(self, offsets: np.ndarray) -> int:
        return int(offsets.min())


class _Backward(_Scan):
    def _edge(self) -> int:
        return self._span[1]

    def _glance(self, span: tuple[int, int]) -> float:
        first = self._first_file(span[1], backward=True)
        return -math.inf if first is None else -float(first.max_ms)

    def _open(self) -> None:
        self._least = self._least_of(
            (-float(one.max_ms) if one.min_ms >= 0 else -math.inf, one) for one in self._kept
        )
        self._starts = [piece.start for piece in self._kept]

    def first_range(self) -> tuple[int, int] | None:
        if self.read or not self._kept or self._kept[-1].is_cold:
            return None
        last = self._kept[-1]
        return _stretch_before(last, last.end, _FIRST_STRETCH), last.end

    def _read(self) -> Iterator[bool]:
        records = _FIRST_STRETCH
        for piece in reversed(self._kept):
            for part in reversed(self._parts(piece)):
                records = yield from self._backward(part, records)
            self.at = piece.start
            self._bound()
            yield True

    def _backward(self, piece: Piece, records: int) -> Generator[bool, None, int]:
        """Reads a piece, about so many records at first; returns how many the next one may be."""
        end = piece.end
        while end > piece.start:
            start = _stretch_before(piece, end, records)
            batches, nbytes, too_large = [], 0, False
            first = self._ahead(start, end)
            if first is not None and first.next_offset < end:
                first = None  # read on below from the start
            for step in self._fetches(start, end) if first is None else [first]:
                batches.append(step.records)
                nbytes += step.records.nbytes
                too_large = nbytes > 2 * self._step_bytes and records > 1 and end - start > 1
                if too_large:
                    break
            if too_large:  # what matches in it might be as large: read less at a time
                records = max(1, records // (2 * _GROWTH))
                continue
            for batch in reversed(batches):
                self._met(batch, backward=True)
            self.at = end = start
            self._bound()
            if nbytes < self._step_bytes // _GROWTH:
                records *= _GROWTH
            yield True
        return records

    def _bound(self) -> None:
        left = bisect_left(self._starts, self.at)
        least = self._least[left - 1] if left else -math.inf
        self.frontier = max(self._carried, least)
        if not self._kept:
            self._finish()

    def _finish(self) -> None:
        super()._finish()
        self.at = self._span[0]

    def _before(self, offsets: np.ndarray) -> int:
        return int(offsets.max()) + 1


def _stretch_before(piece: Piece, end: int, records: int) -> int:
    """About so many records below `end`, as if they were spread evenly over the piece."""
    # Rounded up, so that it always gets on.
    span = -(-records * (piece.end - piece.start) // max(1, piece.records))
    return max(piece.start, end - max(1, span))


def _joined(kept: Iterable[Piece]) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    for piece in kept:
        if ranges and ranges[-1][1] == piece.start:
            ranges[-1] = (ranges[-1][0], piece.end)
        else:
            ranges.append((piece.start, piece.end))
    return ranges


def with_partition(records: pa.RecordBatch, partition: int) -> pa.Table:
    """A `RECORDS` batch of a partition as a `FOUND` table."""
    numbers = pa.array(np.full(records.num_rows, partition, np.int32))
    return pa.Table.from_arrays([numbers, *records.columns], schema=FOUND)


# -- all of them -------------------------------------------------------------------------------


class _Merge:
    """The matches of several scans by rank, then partition, in tables.

    The scan whose frontier is the least reads on. What lies below all frontiers is given. A step
    costs the same however many scans there are, but for the logarithm.
    """

    def __init__(
        self,
        scans: list[_Scan],
        first_steps: FirstSteps,
        limit: SearchLimit | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._scans = scans
        self._limit = limit or SearchLimit()
        self._on_progress = on_progress
        self._stopped = stopped
        self._steps = 0
        self._first_steps = first_steps
        self._read_ahead_to = 0  # the scans before were read ahead, or are not to be
        self._by_partition = {scan.partition: scan for scan in scans}
        self._read = self._bytes = self._given = self._waiting = 0
        self._frontiers = [(scan.frontier, number) for number, scan in enumerate(scans)]
        self._first_ranks: list[tuple[float, int]] = []  # of those scans in which matches wait
        heapq.heapify(self._frontiers)
        self._last, self._last_ranks = _nothing(), _NO_RANKS
        self._put_back = 0
        self.ended = EDGE

    def __iter__(self) -> Iterator[pa.Table]:
        while True:
            bound, first = self._frontiers[0] if self._frontiers else (math.inf, 0)
            table = self._below(bound, first)
            if table.num_rows:
                yield table
            if bound == math.inf:
                return
            self._step(first)
            if reached := self._reached():
                self.ended = reached
                table = self._below(math.inf, 0)
                if table.num_rows:
                    yield table
                return

    def put_back(self, count: int) -> None:
        """So many of the matches that were given last were not wanted."""
        self._put_back = count
        self._given -= count

    def next(self) -> dict[int, Place]:
        """See `Page.next`."""
        first = self._last.num_rows - self._put_back
        partitions = np.asarray(self._last["partition"])[first:]
        offsets, ranks = np.asarray(self._last["offset"])[first:], self._last_ranks[first:]
        not_wanted = set(partitions.tolist())
        at = {}
        for scan in self._scans:
            if scan.partition in not_wanted:
                own = partitions == scan.partition
                at[scan.partition] = scan.place_before(offsets[own], float(ranks[own][0]))
            elif len(scan.ranks):
                at[scan.partition] = scan.place_before(scan.offsets, float(scan.ranks[0]))
            else:
                at[scan.partition] = scan.place()
        return at

    def progress(self) -> Progress:
        scans = self._scans
        return Progress(
            read=self._read,
            skipped=sum(scan.skipped for scan in scans),
            total=sum(scan.total for scan in scans),
            bytes=self._bytes,
            matches=self._given + self._waiting,
            offsets={scan.partition: scan.at for scan in scans},
        )

    def _step(self, number: int) -> None:
        """The scan that comes first reads on."""
        scan = self._scans[number]
        stood, _ = self._frontiers[0]
        scan.open()
        if scan.frontier > stood:  # others may come before it
            heapq.heapreplace(self._frontiers, (scan.frontier, number))
            return
        if len(self._scans) >= _ASKED_AT_ONCE and scan.first_range() is not None:
            self._read_ahead(number)
        read, nbytes, waited = scan.read, scan.bytes, len(scan.ranks)
        scan.step()
        heapq.heapreplace(self._frontiers, (scan.frontier, number))
        self._read += scan.read - read
        self._bytes += scan.bytes - nbytes
        self._waiting += len(scan.ranks) - waited
        if len(scan.ranks) and not waited:
            heapq.heappush(self._first_ranks, (float(scan.ranks[0]), number))
        self._steps += 1
        if self._steps % max(1, len(self._scans) // _TOLD_EACH) == 0:
            self._on_progress(self.progress())

    def _read_ahead(self, number: int) -> None:
        """Reads of many scans what they read first: it takes a round trip, as that of one does.

        All of them come first alike: nothing is known of when their records are.
        """
        asked: dict[TopicPartition, tuple[int, int]] = {}
        at = max(number, self._read_ahead_to)
        if at > number:
            return
        while at < len(self._scans) and len(asked) < _ASKED_AT_ONCE:
            scan = self._scans[at]
            at += 1
            if scan.frontier <= self._frontiers[0][0]:
                scan.open()
                span = scan.first_range()
                if span is not None and scan.frontier <= self._frontiers[0][0]:
                    asked[scan.topic_partition] = span
        self._read_ahead_to = at
        if len(asked) < 2:
            return
        for topic_partition, first in self._first_steps(asked).items():
            self._by_partition[topic_partition.partition].read_ahead(first)

    def _below(self, bound: float, first: int) -> pa.Table:
        """What comes before all that is still to be read, which begins in the scan `first`."""
        numbers = []
        while self._first_ranks and (
            self._first_ranks[0] <= (bound, first) or bound == math.inf
        ):  # of the same rank, that of the smaller partition comes first
            numbers.append(heapq.heappop(self._first_ranks)[1])
        if not numbers:
            return _nothing()
        tables, ranks = [], []
        for number in sorted(numbers):
            scan = self._scans[number]
            side: Literal["left", "right"]
            side = "right" if number <= first or bound == math.inf else "left"
            count = int(np.searchsorted(scan.ranks, bound, side=side))
            tables.append(scan.waiting.slice(0, count))
            ranks.append(scan.ranks[:count])
            scan.take(count)
            if len(scan.ranks):
                heapq.heappush(self._first_ranks, (float(scan.ranks[0]), number))
        together = pa.concat_tables(tables)
        self._given += together.num_rows
        self._waiting -= together.num_rows
        self._last_ranks = np.concatenate(ranks)
        if len(tables) > 1:
            # The tables are by partition, each in its order, which a stable sort keeps.
            order = np.argsort(self._last_ranks, kind="stable")
            together, self._last_ranks = together.take(pa.array(order)), self._last_ranks[order]
        self._last = together
        return together

    def _reached(self) -> str | None:
        if self._stopped():
            return STOPPED
        if self._read >= self._limit.records:
            return TOO_MANY_RECORDS
        if self._bytes >= self._limit.bytes:
            return TOO_MANY_BYTES
        return None
