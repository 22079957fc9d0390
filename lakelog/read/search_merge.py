"""The scans of all partitions of a search as one, in the order of time."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np
import pyarrow as pa

from .found import (
    EDGE,
    STOPPED,
    TOO_MANY_BYTES,
    TOO_MANY_RECORDS,
    Place,
    Progress,
    SearchLimit,
)
from .search_scan import Scan, nothing

#: A search of more partitions says how far it is about as often in a round through them all: to say
#: it takes a look at each.
_TOLD_EACH = 16

#: Matches of at most so many partitions are given at once.
MOST_AT_ONCE = 1_024

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
        read, nbytes, waited = scan.read, scan.bytes, len(scan.ranks)
        scan.step()
        self._read += scan.read - read
        self._bytes += scan.bytes - nbytes
        self._waiting += len(scan.ranks) - waited
        if len(scan.ranks) and not waited:
            heapq.heappush(self._first_ranks, (float(scan.ranks[0]), number))
        heapq.heapreplace(self._frontiers, (scan.frontier, number))
        self._steps += 1
        if self._steps >= self._tell_at:
            self._tell_at = self._steps + max(1, len(self._scans) // _TOLD_EACH)
            self._on_progress(self.progress())

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
