"""One partition of a search: its matches in the order they are met, forward or backward."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from itertools import chain, groupby

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from ..errors import MissingFileError
from ..values.record import Fetched
from ..values.topic_partition import TopicPartition
from .fetch import range_fetches
from .found import FOUND, Place, with_partition
from .stretches import Piece, piece_at, pieces, record_count
from .tiers import SegmentedLook, Tiers
from .where import Bounds, Where
from .where.expression import matching

#: Records in the first stretch that is read backward, and how it grows while it stays small.
_FIRST_STRETCH, _GROWTH = 1_024, 4

_NO_RANKS, _NO_OFFSETS = np.empty(0), np.empty(0, np.int64)


@cache
def nothing() -> pa.Table:
    # Not when this module is imported: pyarrow then looks for pandas.
    return FOUND.empty_table()


class Scan:
    """A partition's matches in the order they are met, and how far it has come.

    There may be thousands, of which a page reads a few. So where its records lie in detail is
    looked up by `open`, once it comes first.

    Args:
        bounds: of `where`.
        look: what the ranges lie in; without one, nothing can match.

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
        look: SegmentedLook | None,
        step_bytes: int,
    ) -> None:
        self._tiers = tiers
        self.topic_partition = topic_partition
        self._where = where
        self._bounds = bounds
        self._kept: list[Piece] = []  # what may hold matches, by offset
        self._look = look
        self._step_bytes = step_bytes
        self._steps: Iterator[bool] | None = None  # None: not open yet
        self.is_thinned = False
        self._carried = -math.inf  # the rank of the last record met
        self._span = (0, 0)
        self.partition = topic_partition.partition
        self.total = self.skipped = self.read = self.bytes = self.at = 0
        self.frontier = -math.inf
        self.waiting = nothing()
        self.ranks, self.offsets = _NO_RANKS, _NO_OFFSETS

    def begin(self, span: tuple[int, int], rank: float) -> None:
        """Set what it is to cover, and the rank it goes on from."""
        self._span = span
        self._carried = rank
        self.at = self._edge()
        look = self._look
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
        look = self._look
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

    def close(self) -> None:
        """Let go of what was read. What reads on holds it, and is held by it: a collector of
        garbage, which knows nothing of Arrow's memory, might come late.
        """
        self._steps = None
        self.waiting = nothing()

    def _edge(self) -> int:
        """Where it begins."""
        raise NotImplementedError

    def _glance(self, span: tuple[int, int]) -> float:
        """No more than the least rank in the pieces that are kept of a span."""
        raise NotImplementedError

    def _first_file(self, offset: int, *, backward: bool) -> Piece | None:
        """The file that is read first, if it surely has a match's least rank."""
        look = self._look
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
            is_certain = piece.is_full and self._bounds.keys is None
            found.append(least if is_certain or not found else min(least, found[-1]))
        return found

    def _parts(self, piece: Piece) -> list[Piece]:
        """What of a piece may hold a match: where keys are asked for, what may have one of them."""
        rows, keys, look = self._tiers.rows, self._bounds.keys, self._look
        if keys is None or not piece.is_cold or look is None or rows is None:
            return [piece]
        files = look.cold.files.files_between(self.partition, piece.start, piece.end)
        try:
            found = rows.with_keys(files, piece.start, piece.end, keys)
        except MissingFileError:
            if not self._tiers.outdated(look):
                raise
            return [piece]  # rewritten since; whoever reads it looks again
        span = piece.end - piece.start
        parts = [
            replace(
                piece,
                start=one.start,
                end=one.end,
                records=max(1, piece.records * (one.end - one.start) // span),
            )
            for one in found
        ]
        self.skipped += piece.records - record_count(parts)
        return parts

    def _fetches(self, start: int, end: int) -> Iterator[Fetched]:
        return range_fetches(
            self._tiers,
            self.topic_partition,
            start,
            end,
            max_bytes=self._step_bytes,
            seen=self._look,
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
        micros = np.asarray(records.column("timestamp").view(pa.int64()))
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
        form = self._tiers.topic.config.value_format
        found = matching(self._where, records, self.partition, form)
        if not found.num_rows:
            return
        offsets = np.asarray(found.column("offset"))
        if found.num_rows < records.num_rows:
            ranks = ranks[np.searchsorted(np.asarray(records.column("offset")), offsets)]
        table = with_partition(found, self.partition)
        if backward:
            table = table.take(pa.array(np.arange(table.num_rows)[::-1]))
            ranks, offsets = ranks[::-1], offsets[::-1]
        self.wait(table, ranks, offsets)

    def take(self, count: int) -> None:
        """The first of the waiting matches are given."""
        self.waiting = self.waiting.slice(count)
        self.ranks, self.offsets = self.ranks[count:], self.offsets[count:]

    def wait(self, table: pa.Table, ranks: np.ndarray, offsets: np.ndarray) -> None:
        """Matches, as they were met, wait."""
        if len(self.ranks):
            table = pa.concat_tables([self.waiting, table])
            ranks = np.concatenate([self.ranks, ranks])
            offsets = np.concatenate([self.offsets, offsets])
        self.waiting, self.ranks, self.offsets = table, ranks, offsets

    def place(self) -> Place:
        """Where a search goes on that saw all that was met, but for those that wait."""
        if len(self.ranks):
            return self.place_before(int(self.offsets[0]), float(self.ranks[0]))
        return Place(self.at, self._carried)

    def place_before(self, offset: int, rank: float) -> Place:
        """Where a search goes on that saw neither a match nor what is met after it."""
        raise NotImplementedError


class Forward(Scan):
    def _edge(self) -> int:
        return self._span[0]

    def _glance(self, span: tuple[int, int]) -> float:
        first = self._first_file(span[0], backward=False)
        return -math.inf if first is None else float(first.min_ms)

    def _open(self) -> None:
        self._least = self._least_of((float(one.min_ms), one) for one in self._kept[::-1])[::-1]
        self._ends = [piece.end for piece in self._kept]

    def _left(self) -> list[Piece]:
        """What is kept from where it is on."""
        first = bisect_right(self._ends, self.at)
        left = self._kept[first:] if first else self._kept
        if left and left[0].start < self.at:
            left = [replace(left[0], start=self.at), *left[1:]]
        return left

    def _read(self) -> Iterator[bool]:
        if self._bounds.keys is None:
            yield from self._through(_joined(self._left()))
            return
        # Files are looked into one by one, when they are reached; what is hot is read as a whole.
        for is_cold, together in groupby(self._left(), lambda piece: piece.is_cold):
            run = list(together)
            for read in [[piece] for piece in run] if is_cold else [run]:
                yield from self._through(_joined(chain(*map(self._parts, read))))
                self.at = read[-1].end
                self._bound()
                yield True

    def _through(self, ranges: Iterable[tuple[int, int]]) -> Iterator[bool]:
        for start, end in ranges:
            for step in self._fetches(start, end):
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

    def place_before(self, offset: int, rank: float) -> Place:
        return Place(offset, rank)


class Backward(Scan):
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

    def _left(self) -> list[Piece]:
        """What is kept up to where it is."""
        left = self._kept[: bisect_left(self._starts, self.at)]
        if left and left[-1].end > self.at:
            left = [*left[:-1], replace(left[-1], end=self.at)]
        return left

    def _read(self) -> Iterator[bool]:
        records = _FIRST_STRETCH
        for piece in reversed(self._left()):
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
            for step in self._fetches(start, end):
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

    def place_before(self, offset: int, rank: float) -> Place:
        return Place(offset + 1, rank)


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


def _within(span: tuple[int, int], bounds: Bounds) -> tuple[int, int]:
    start, end = span
    low, high = bounds.offsets
    start = max(start, math.ceil(low)) if low > start else start
    end = min(end, math.floor(high) + 1) if high < end else end
    return start, max(start, end)
