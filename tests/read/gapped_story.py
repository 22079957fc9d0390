"""A log that things happen to, beside the plain list of what it must hold: made up, or drawn."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from hypothesis import strategies as st

from lakelog.cold.change import Change, HotRange, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, LogStart
from lakelog.cold.segment import Segment
from lakelog.values.config import EntryFormat
from lakelog.values.record import RECORDS, Record
from lakelog.values.topic_partition import OffsetRange

VALUE_BYTES = 100  # some seven records a segment

Dropped = Callable[[list[int]], Iterable[int]]
"""Which of a run of offsets compaction drops."""


class Story:
    """A log that things happen to, and what it must hold by then.

    A record is in the log from the log start on: below the local log start if cold holds it, above
    if hot does, or if cold does what hot lost.
    """

    def __init__(self, bench: Any) -> None:
        self.bench = bench
        partitions = range(bench.topic.partitions)
        self.records: list[dict[int, Record]] = [{} for _ in partitions]  # all there ever were
        self.in_hot: list[set[int]] = [set() for _ in partitions]  # ever
        self.in_cold: list[set[int]] = [set() for _ in partitions]  # now
        self.lost: list[list[OffsetRange]] = [[] for _ in partitions]
        self.hot_lost: list[list[OffsetRange]] = [[] for _ in partitions]  # and cold may hold
        self.log_starts = [0 for _ in partitions]

    # -- what it must hold -----------------------------------------------------------------------

    def held(self, partition: int) -> list[Record]:
        log_start = self.log_starts[partition]
        local = self.bench.hot_offsets(partition).local_log_start
        hot = {offset for offset in self.in_hot[partition] if offset >= local}
        return [
            record
            for offset, record in sorted(self.records[partition].items())
            if offset >= log_start and (offset in hot or offset in self.in_cold[partition])
        ]

    # -- what happens ----------------------------------------------------------------------------

    def append(self, partition: int, times: list[int], entry_format: EntryFormat) -> None:
        appended = self.bench.appended[partition]
        known = len(appended)
        self.bench.append(
            times, partition=partition, entry_format=entry_format, value_bytes=VALUE_BYTES
        )
        self._remember(partition, appended[known:])
        self.in_hot[partition] |= {record.offset for record in appended[known:]}

    def archive(self, partition: int, share: int) -> None:
        offsets = self._offsets(partition)
        end = _at(share, offsets.archive_start, offsets.log_end)
        self.bench.archive(end, partition=partition)
        start, end = offsets.archived_end, self._offsets(partition).archived_end
        self.in_cold[partition] |= {o for o in self.in_hot[partition] if start <= o < end}

    def trim(self, partition: int, share: int) -> None:
        offsets = self._offsets(partition)
        end = offsets.archive_start
        self.bench.trim(_at(share, offsets.local_log_start, end), partition=partition)

    def lose_tail(self, partition: int, times: list[int], recovered: bool = True) -> None:
        """Cold gets records that hot then does not know of, and a gap is declared over the rest.

        Args:
            recovered: if not, it stays as a restart leaves it, and nothing may be appended.
        """
        self.archive(partition, 8)
        hot = self.bench.hot_offsets(partition)
        snapshot = self.bench.table.snapshot()
        start = snapshot.archive_start(partition)
        records = self.bench.records(hot.log_end, times, partition=partition)
        base = hot.segments[-1].base_offset
        end = hot.log_end + len(records)
        topic = self.bench.topic
        if records:
            add = HotRange(topic.partition(partition), topic.topic_id, base, start, end)
            change = Change((add,), registers={ArchivedEnd(partition): end})
            rows = batch_of(records)
            table = self.bench.table_of(lambda _: iter([rows]))  # whatever hot holds
            assert not table.apply(change, snapshot).superseded
            self._remember(partition, records)
            self.in_cold[partition] |= {record.offset for record in records}
        if not recovered:
            self.bench.restarted(partition)
            return
        self.bench.log.recover(partition, end + 1)
        log_end = self.bench.hot_offsets(partition).log_end
        self.lost[partition].append(OffsetRange(end, log_end))
        self.hot_lost[partition].append(OffsetRange(hot.log_end, log_end))

    def delete(self, partition: int, share: int) -> None:
        offsets = self._offsets(partition)
        start = _at(share, offsets.log_start, offsets.log_end)
        self.log_starts[partition] = self.bench.log.raise_log_start(partition, start)

    def switch(self, emptied: bool) -> None:
        """The topic is archived no more, and then again.

        Args:
            emptied: whether somebody emptied the table in between.
        """
        starts = self.bench.untier()
        for number, start in starts.items():
            local = self.bench.hot_offsets(number).local_log_start
            assert start == max(self.log_starts[number], local)
            self.log_starts[number] = start
        if emptied:
            self.bench.empty(starts)
            self.in_cold = [set() for _ in self.in_cold]
            self.lost = [list(gaps) for gaps in self.hot_lost]  # nor does cold hold those now
        self.bench.tier_again()

    def retain(self, partition: int, share: int, trimmed: bool) -> None:
        """Whole segments go, oldest first; the newest only when hot holds nothing above."""
        segments = self._segments(partition)
        offsets = self._offsets(partition)
        if offsets.log_end > offsets.archived_end:
            segments = segments[:-1]
        segments = segments[: _at(share, 0, len(segments))]
        if segments:
            start = max(segments[-1].end_offset, self.log_starts[partition])
            removes = tuple(file for segment in segments for file in segment.files)
            self._apply(Change(removes=removes, registers={LogStart(partition): start}))
            self.log_starts[partition] = start
            self.in_cold[partition] = {o for o in self.in_cold[partition] if o >= start}
            if trimmed:
                self.bench.trim(start, partition=partition)

    def compact(self, partition: int, dropped: Dropped, open_too: bool, merged: bool) -> None:
        """Drops some records of segments; never the partition's last one."""
        segments = self._segments(partition)
        segments = segments if open_too else segments[:-1]
        offsets = sorted(self.in_cold[partition])[:-1]
        if not segments:
            return
        runs = list(_neighbours(segments)) if merged else [[segment] for segment in segments]
        adds, gone = [], set()
        for run in runs:
            start, end = run[0].start_offset, run[-1].end_offset
            without = set(dropped([offset for offset in offsets if start <= offset < end]))
            files = tuple(file for segment in run for file in segment.files)
            adds.append(self._rewrite(files, without))
            gone |= without
        removes = tuple(file for add in adds for file in add.files)
        cleaned_end = max(
            segments[-1].end_offset, self.bench.table.snapshot().cleaned_end(partition)
        )
        self._apply(Change(tuple(adds), removes, {CleanedEnd(partition): cleaned_end}))
        self.in_cold[partition] -= gone

    def optimize(self, partition: int) -> None:
        adds = tuple(
            self._rewrite(segment.files)
            for segment in self._segments(partition)
            if len(segment.files) > 1
        )
        self._apply(Change(adds, tuple(file for add in adds for file in add.files), {}, False))

    def optimize_by_a_stranger(self) -> None:
        if self.bench.table.snapshot().version >= 0:
            DeltaTable(self.bench.table.path).optimize.z_order(["value"])

    def vacuum(self) -> None:
        if self.bench.table.snapshot().version >= 0:
            DeltaTable(self.bench.table.path).vacuum(
                0, dry_run=False, enforce_retention_duration=False
            )

    # -- how -------------------------------------------------------------------------------------

    def _remember(self, partition: int, records: list[Record]) -> None:
        self.records[partition].update({record.offset: record for record in records})

    def _offsets(self, partition: int) -> Any:
        return self.bench.log.offsets([partition])[partition]

    def _segments(self, partition: int) -> list[Segment]:
        return self.bench.table.snapshot().files.segments(partition)

    def _rewrite(self, files: tuple[Any, ...], without: Iterable[int] | None = None) -> Rewrite:
        return Rewrite(
            self.bench.topic.partition(files[0].partition),
            files[0].segment,
            files,
            None if without is None else OffsetSet.of(without),
            delete_horizon_ms=None if without is None else 1,
        )

    def _apply(self, change: Change) -> None:
        assert not self.bench.table.apply(change, self.bench.table.snapshot()).superseded


def _at(share: int, low: int, high: int) -> int:
    return low + max(0, high - low) * share // 8


def _neighbours(segments: list[Segment]) -> Iterator[list[Segment]]:
    """Runs of segments without a gap between them."""
    run = segments[:1]
    for before, segment in pairwise(segments):
        if segment.base_offset > before.end_offset:
            yield run
            run = []
        run.append(segment)
    yield run


def batch_of(records: list[Record]) -> pa.RecordBatch:
    rows = [
        {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestampType": record.timestamp_type,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": key, "value": value} for key, value in record.headers],
        }
        for record in records
    ]
    return pa.RecordBatch.from_pylist(rows, RECORDS)


# -- random stories ----------------------------------------------------------------------------

share = st.integers(0, 8)  # of what there is, so that shrinking keeps a story legal
partitions = st.integers(0, 1)
times = st.lists(st.integers(-1, 40), min_size=1, max_size=12)
formats = st.sampled_from([EntryFormat.FIELDS, EntryFormat.ARROW, EntryFormat.KAFKA])


@st.composite
def droppings(draw: st.DrawFn) -> Dropped:
    """Records here and there, all of a segment, its ends, or all but one."""
    kind = draw(st.sampled_from(["some", "all", "ends", "inside", "none"]))
    chance = random.Random(draw(st.integers(0, 99)))

    def dropped(offsets: list[int]) -> Iterable[int]:
        if kind == "some":
            return [offset for offset in offsets if chance.random() < 0.6]
        if kind == "all":
            return offsets if chance.random() < 0.8 else ()
        if kind == "ends":
            return {*offsets[:1], *offsets[-1:]}
        return offsets[1:-1] if kind == "inside" else ()

    return dropped


happenings = st.one_of(
    st.tuples(st.just("append"), partitions, times, formats),
    st.tuples(st.just("append"), partitions, times, formats),
    st.tuples(st.just("archive"), partitions, share),
    st.tuples(st.just("archive"), partitions, st.just(8)),
    st.tuples(st.just("trim"), partitions, share),
    st.tuples(st.just("compact"), partitions, droppings(), st.booleans(), st.booleans()),
    st.tuples(st.just("compact"), partitions, droppings(), st.just(False), st.booleans()),
    st.tuples(st.just("retain"), partitions, share, st.booleans()),
    st.tuples(st.just("delete"), partitions, share),
    st.tuples(st.just("switch"), st.booleans()),
    st.tuples(st.just("optimize"), partitions),
    st.tuples(st.just("optimize_by_a_stranger")),
    st.tuples(st.just("lose_tail"), partitions, st.lists(st.integers(0, 40), max_size=4)),
    st.tuples(st.just("vacuum")),
)
#: Something to begin with: several segments, part of them archived.
beginnings = st.tuples(
    st.tuples(st.just("append"), st.just(0), st.lists(st.integers(0, 40), min_size=30), formats),
    st.tuples(st.just("archive"), st.just(0), st.integers(4, 8)),
)


#: What nobody recovered yet: only cold goes on.
endings = st.one_of(
    st.just([]),
    st.builds(
        lambda lost, after: [(*lost, False), *after],
        st.tuples(st.just("lose_tail"), partitions, st.lists(st.integers(0, 40), max_size=4)),
        st.lists(
            st.one_of(
                st.tuples(
                    st.just("compact"), partitions, droppings(), st.just(True), st.booleans()
                ),
                st.tuples(st.just("optimize"), partitions),
                st.tuples(st.just("optimize_by_a_stranger")),
                st.tuples(st.just("vacuum")),
            ),
            max_size=4,
        ),
    ),
)


def happened(most: int) -> st.SearchStrategy[list[Any]]:
    """So many happenings at most, and an ending."""
    return st.builds(lambda steps, end: steps + end, st.lists(happenings, max_size=most), endings)
