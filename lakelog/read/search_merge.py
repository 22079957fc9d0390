"""The scans of all partitions of a search as one, in the order of time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
import pyarrow as pa

from ..values.config import MIB
from ..values.record import FetchedTogether
from ..values.topic_partition import TopicPartition
from .found import (
    EDGE,
    FOUND,
    STOPPED,
    TOO_MANY_BYTES,
    TOO_MANY_RECORDS,
    Place,
    Progress,
    SearchLimit,
)
from .search_scan import Backward, Scan, nothing
from .where import Where
from .where.expression import Rows, is_all

#: Gives what is read first of [start, end) in each of some partitions, or last, as far as Redis
#: tells at once; see `HotTier.first_steps`.
FirstSteps = Callable[
    [Mapping[TopicPartition, tuple[int, int]], Mapping[TopicPartition, int], bool], FetchedTogether
]

#: A search of more partitions says how far it is about as often in a round through them all: to say
#: it takes a look at each.
_TOLD_EACH = 16

#: Of so many partitions, Redis is asked for what comes next in one round trip; where more come
#: first alike and hold little, of the most.
_ASKED_AT_ONCE, MOST_AT_ONCE = 64, 1_024
#: Unless what Redis holds of those is more than this.
_TOGETHER_BYTES = 32 * MIB

#: After all ranks of all scans.
_END = (math.inf, 2**63)


class Merge:
    """The matches of several scans by rank, then partition, in tables.

    The scan whose frontier is the least reads on. What lies below all frontiers is given. A step
    costs the same however many scans there are, but for the logarithm.
    """

    def __init__(
        self,
        scans: list[Scan],
        where: Where,
        first_steps: FirstSteps,
        limit: SearchLimit | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
        given_at_once: int = MOST_AT_ONCE,
    ) -> None:
        self._scans = scans
        self._limit = limit or SearchLimit()
        self._on_progress = on_progress
        self._stopped = stopped
        self._steps = 0
        self._first_steps = first_steps
        self._where = where
        self._tell_at = 1
        self._given_at_once = given_at_once
        self._by_partition = {scan.partition: scan for scan in scans}
        self._read = self._bytes = self._given = self._waiting = 0
        self._frontiers = [(scan.frontier, number) for number, scan in enumerate(scans)]
        self._first_ranks: list[tuple[float, int]] = []  # of those scans in which matches wait
        heapq.heapify(self._frontiers)
        self._last, self._last_ranks = nothing(), np.empty(0)
        self._put_back = 0
        self.ended = EDGE

    def __iter__(self) -> Iterator[pa.Table]:
        while True:
            bound, first = self._frontiers[0] if self._frontiers else _END
            yield from self._below(bound, first)
            if bound == math.inf:
                return
            self._step(first)
            if reached := self._reached():
                self.ended = reached
                yield from self._below(*_END)
                return

    def put_back(self, count: int) -> None:
        """So many of the matches that were given last were not wanted."""
        self._put_back = count
        self._given -= count

    def next(self) -> dict[int, Place]:
        """See `Page.next`."""
        first = self._last.num_rows - self._put_back
        partitions, rows = np.unique(np.asarray(self._last["partition"])[first:], return_index=True)
        offsets, ranks = np.asarray(self._last["offset"])[first:], self._last_ranks[first:]
        at = {scan.partition: scan.place() for scan in self._scans}
        not_wanted = zip(
            partitions.tolist(), offsets[rows].tolist(), ranks[rows].tolist(), strict=True
        )
        for partition, offset, rank in not_wanted:
            at[partition] = self._by_partition[partition].place_before(offset, rank)
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
        together = self._together() if len(self._scans) >= _ASKED_AT_ONCE else []
        if len(together) > 1:
            self._step_together(together)
        else:
            for each in together:
                heapq.heappush(self._frontiers, (self._scans[each].frontier, each))
            self._step_alone(number)
            heapq.heapreplace(self._frontiers, (scan.frontier, number))
        self._steps += max(1, len(together))
        if self._steps >= self._tell_at:
            self._tell_at = self._steps + max(1, len(self._scans) // _TOLD_EACH)
            self._on_progress(self.progress())

    def _step_alone(self, number: int) -> None:
        scan = self._scans[number]
        read, nbytes, waited = scan.read, scan.bytes, len(scan.ranks)
        scan.step()
        self._read += scan.read - read
        self._bytes += scan.bytes - nbytes
        self._waiting += len(scan.ranks) - waited
        if len(scan.ranks) and not waited:
            heapq.heappush(self._first_ranks, (float(scan.ranks[0]), number))

    def _together(self) -> list[int]:
        """The scans that are to read on in Redis before the first match that waits can be given.

        They are taken off the heap. A few, or as many as come first alike: it takes one round trip.
        """
        first = self._first_ranks[0] if self._first_ranks else (math.inf, 0)
        stood = self._frontiers[0][0]
        together: list[int] = []
        others: list[tuple[float, int]] = []
        size_bytes = 0
        while self._frontiers and self._frontiers[0] < first and len(together) < MOST_AT_ONCE:
            frontier, number = self._frontiers[0]
            if frontier > stood and len(together) >= _ASKED_AT_ONCE:
                break
            heapq.heappop(self._frontiers)
            scan = self._scans[number]
            scan.open()
            if scan.frontier > frontier:
                heapq.heappush(self._frontiers, (scan.frontier, number))
                continue
            if scan.hot_range() is None:
                others.append((frontier, number))
                if not together:
                    break  # what comes first is not in Redis
                continue
            size_bytes += scan.hot_bytes
            together.append(number)
            if size_bytes > _TOGETHER_BYTES and len(together) >= _ASKED_AT_ONCE:
                break
        for one in others:
            heapq.heappush(self._frontiers, one)
        return together

    def _step_together(self, numbers: list[int]) -> None:
        """Those scans read on."""
        scans = {self._scans[n].topic_partition: n for n in numbers}
        backward = isinstance(self._scans[numbers[0]], Backward)
        asked: dict[TopicPartition, tuple[int, int]] = {}
        counts: dict[TopicPartition, int] = {}
        for tp, number in scans.items():
            scan = self._scans[number]
            span = scan.hot_range()
            assert span is not None
            asked[tp] = span
            if scan.count is not None:
                counts[tp] = scan.count
        found = self._first_steps(asked, counts, backward)
        if backward:
            found = _reversed(found)
        own = [scans.pop(tp) for tp in found.topic_partitions]
        self._take_in(found, own, backward)
        for number in scans.values():  # they need a closer look
            self._step_alone(number)
        for number in numbers:
            heapq.heappush(self._frontiers, (self._scans[number].frontier, number))

    def _take_in(self, found: FetchedTogether, own: list[int], backward: bool) -> None:
        """What was read of some scans, in the order in which they meet it."""
        if not own:
            return
        scans = [self._scans[number] for number in own]
        records, ends = found.records, found.ends
        counts = np.diff(ends, prepend=0)
        carried = np.array([scan.carried for scan in scans])
        frontiers = np.array([scan.frontier for scan in scans])
        ranks = _ranks(records, ends, carried, backward)
        has_any = counts > 0
        first = ranks[(ends - counts)[has_any]]
        for number in np.flatnonzero(has_any)[first < frontiers[has_any]].tolist():
            scans[number].is_thinned = True
        ranks = np.maximum(ranks, np.repeat(frontiers, counts))
        carried[has_any] = ranks[ends[has_any] - 1]
        partitions = np.repeat(np.array([scan.partition for scan in scans], np.int32), counts)
        kept = None if is_all(self._where) else self._where.holds(Rows(records, partitions))
        if kept is not None:
            before = np.concatenate([[0], np.cumsum(kept)])
            records = records.filter(pa.array(kept))
            partitions, ranks = partitions[kept], ranks[kept]
            ends = before[ends]
        table = pa.Table.from_arrays([pa.array(partitions), *records.columns], schema=FOUND)
        offsets = np.asarray(records.column("offset"))
        row_bytes = found.records.nbytes / max(1, found.records.num_rows)
        start = 0
        for number, scan, end, of, at, following, count, rank in zip(
            own,
            scans,
            ends.tolist(),
            counts.tolist(),
            found.start_offsets.tolist(),
            found.next_offsets.tolist(),
            found.next_counts,
            carried.tolist(),
            strict=True,
        ):
            nbytes = int(of * row_bytes)
            scan.met_together((at, following), count, of, nbytes, rank)
            self._read += of
            self._bytes += nbytes
            if end > start:
                waited = len(scan.ranks)
                scan.wait(table.slice(start, end - start), ranks[start:end], offsets[start:end])
                self._waiting += end - start
                if not waited:
                    heapq.heappush(self._first_ranks, (float(ranks[start]), number))
            start = end

    def _below(self, bound: float, first: int) -> Iterator[pa.Table]:
        """What comes before all that is still to be read, which begins in the scan `first`."""
        while True:
            edge = (bound, first)  # of the same rank, that of the smaller partition comes first
            numbers: list[int] = []
            while self._first_ranks and self._first_ranks[0] <= edge:
                if len(numbers) == self._given_at_once:
                    edge = self._first_ranks[0]
                    break
                numbers.append(heapq.heappop(self._first_ranks)[1])
            if not numbers:
                return
            yield self._taken(sorted(numbers), edge)

    def _taken(self, numbers: list[int], edge: tuple[float, int]) -> pa.Table:
        """What comes before an edge in some scans."""
        rank, first = edge
        tables, ranks = [], []
        for number in numbers:
            scan = self._scans[number]
            side: Literal["left", "right"] = "right" if number <= first else "left"
            count = int(np.searchsorted(scan.ranks, rank, side=side))
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


def _ranks(
    records: pa.RecordBatch, ends: np.ndarray, carried: np.ndarray, backward: bool
) -> np.ndarray:
    """The rank of each record of several partitions, in the order in which they are met.

    Args:
        ends: of each partition, its last row plus one.
        carried: the rank that each goes on from.
    """
    micros = np.asarray(records.column("timestamp").cast(pa.int64()))
    times = (-1 if backward else 1) * (micros // 1000).astype(float)
    times[micros < 0] = -math.inf
    counts = np.diff(ends, prepend=0)
    times = np.maximum(times, np.repeat(carried, counts))
    starts = (ends - counts)[counts > 0]
    falls = times[1:] < times[:-1]
    falls[starts[1:] - 1] = False  # there another partition begins
    if not falls.any():
        return np.asarray(times)
    # The largest so far of each partition: by place in the order of times, plus what grows with it.
    order, places = np.unique(times, return_inverse=True)
    above = np.repeat(np.arange(len(counts)), counts) * len(order)
    return np.asarray(order[np.maximum.accumulate(places.reshape(-1) + above) - above])


def _reversed(found: FetchedTogether) -> FetchedTogether:
    """The last record first, and so the last partition first."""
    rows = found.records.num_rows
    counts = np.diff(found.ends, prepend=0)
    return FetchedTogether(
        found.topic_partitions[::-1],
        found.records.take(pa.array(np.arange(rows)[::-1])),
        np.cumsum(counts[::-1]),
        found.start_offsets[::-1],
        found.next_offsets[::-1],
        found.next_counts[::-1],
    )
