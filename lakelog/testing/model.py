"""The oracle: what one partition of a log must answer, in plain Python lists.

Slow and obvious on purpose. A test does the same to a real log and to a `ModelLog` and compares.
Where the real log may choose (how far it trims, how wide a gap it declares), the model takes what
it sees and checks that the choice was legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..errors import (
    InvalidRecordError,
    InvalidTimestampError,
    LakelogError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecoveryNeededError,
    RepeatDiffersError,
    UnknownProducerError,
)
from ..values.config import HOUR_MS
from ..values.offsets import HotSegments, LogOffsets
from ..values.producer_calls import CUT, ProducerCall
from ..values.record import (
    NO_TIMESTAMP_MS,
    Fetched,
    Headers,
    OffsetAndTimestamp,
    Record,
    TimestampType,
    to_records,
)
from ..values.topic_partition import OffsetRange, TopicPartition
from .cleaning import superseded

#: timestamp_ms, key, value, headers
Row = tuple[int, "bytes | None", "bytes | None", Headers]

REMEMBERED_CALLS = 5  # of a producer, on a partition
TIMESTAMP_AFTER_MAX_MS = HOUR_MS  # the default of message.timestamp.after.max.ms


class Difference(AssertionError):
    """The log and the model do not agree, or something that always holds does not."""


def require(condition: object, message: str) -> None:
    """Raises `Difference` with the message unless the condition holds, even under ``-O``."""
    if not condition:
        raise Difference(message)


def require_same(found: Iterable[Record], expected: Sequence[Record]) -> None:
    """Raises `Difference`, which says what differs, unless the records are the same."""
    records = list(found)
    if records != list(expected):
        missing = [record for record in expected if record not in records]
        unexpected = [record for record in records if record not in expected]
        raise Difference(
            f"{len(records)} records instead of {len(expected)}; missing {missing[:3]}, not "
            f"expected {unexpected[:3]}"
        )


class Answer(Struct, frozen=True):
    """What an append must answer."""

    base_offset: int
    append_time_ms: int  # -1 under CreateTime
    duplicate: bool = False


class _Call(Struct, frozen=True):
    first_sequence: int
    last_sequence: int
    answer: Answer


class _Producer(Struct):
    epoch: int
    calls: list[_Call]
    is_cut: bool = False  # how much of this epoch's work is archived is not known


class ModelLog:
    """One partition of a tiered topic, in both tiers.

    Args:
        run_id: the run of the server under which the partition was created.
        keys_required: records without a key are refused, as by compacted topics.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        run_id: str,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        *,
        keys_required: bool = False,
    ) -> None:
        self.topic_partition = topic_partition
        self.timestamp_type = timestamp_type
        self.keys_required = keys_required
        self.records: list[Record] = []  # all that were not lost, even deleted and removed ones
        self.gaps: list[OffsetRange] = []  # what recoveries declared lost, including what cold has
        self.recoveries = 0  # how many declared something lost, also those lost in their turn
        self.log_start = 0
        self.archived_end = 0
        self.cleaned_end = 0
        self.removed: set[int] = set()  # offsets that compaction removed from the cold tier
        self.horizons_ms: dict[int, int] = {}  # by offset, for tombstones that compaction kept
        self.deleted_rows: set[int] = set()  # offsets below log_start that cold was seen to hold
        self.given_up: set[int] = set()  # offsets of records that went with an emptied table
        self.local_log_start = 0  # as last seen
        self.hot_end = 0  # the hot tier's log end; it may have lost its tail
        self.told_end = 0  # one past the highest offset ever given in an answer
        self.call_ends = {0}  # where the hot tier may end after losing a tail
        self.producers: dict[int, _Producer] = {}
        #: All calls of producers with checksums that may be known again after a loss, with their
        #: epochs, in order; what is cut has no call.
        self.repeatable: dict[int, list[tuple[int, _Call | None]]] = {}
        self.reserved_end: int | None = None  # appends stop here, as last seen
        self.run_id = run_id  # of the server under which it was last written
        self.adopted_from: str | None = None  # the run before, if it ended with a clean mark
        self.clean = False
        self.forgotten: str | None = None  # the run in which Redis forgot all of it

    @property
    def log_end(self) -> int:
        return max(self.hot_end, self.archived_end, self.log_start)

    @property
    def archive_start(self) -> int:
        """The first offset that is neither archived nor deleted."""
        return max(self.archived_end, self.log_start)

    @property
    def is_archived(self) -> bool:
        """Whether cold holds, or held, all that is not deleted."""
        return all(record.offset < self.archive_start for record in self.records)

    # -- what happens ----------------------------------------------------------------------------

    def append(
        self,
        rows: Sequence[Row],
        producer_id: int,
        epoch: int,
        first_sequence: int,
        *,
        run_id: str,
        now_ms: int,
        sent_under: str | None = None,
        has_checksum: bool = False,
    ) -> Answer | type[LakelogError]:
        """Appends one call, and gives its answer or the class of its error.

        Args:
            run_id: the server's run.
            sent_under: the server's run when the call was first sent without an answer.
            has_checksum: its producer repeats its work, and always in the same calls.
        """
        last_sequence = first_sequence + len(rows) - 1
        if run_id != self.run_id:
            return RecoveryNeededError
        if sent_under not in (None, self.run_id, self.adopted_from):
            return UnknownProducerError
        known = self.producers.get(producer_id)
        if known is None:
            if first_sequence != 0 or (sent_under is not None and sent_under == self.forgotten):
                return UnknownProducerError
        elif epoch < known.epoch:
            return ProducerFencedError
        elif epoch > known.epoch:
            if first_sequence != 0:
                return OutOfOrderSequenceError
        elif known.is_cut:
            return RepeatDiffersError if first_sequence == 0 else OutOfOrderSequenceError
        else:
            for call in known.calls[-REMEMBERED_CALLS:]:
                if (call.first_sequence, call.last_sequence) == (first_sequence, last_sequence):
                    return replace(call.answer, duplicate=True)
            if first_sequence != known.calls[-1].last_sequence + 1:
                return OutOfOrderSequenceError
        stamped = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        keyed = [row for row in rows if row[1] is not None or not self.keys_required]
        if not stamped and any(row[0] - now_ms > TIMESTAMP_AFTER_MAX_MS for row in keyed):
            return InvalidTimestampError
        if len(keyed) < len(rows):
            return InvalidRecordError
        if self.reserved_end is not None and self.hot_end + len(rows) > self.reserved_end:
            return RecoveryNeededError
        answer = Answer(self.place(rows, now_ms), now_ms if stamped else -1)
        if known is None or epoch > known.epoch:
            known = self.producers[producer_id] = _Producer(epoch, [])
        call = _Call(first_sequence, last_sequence, answer)
        known.calls.append(call)
        if has_checksum:
            self.repeatable.setdefault(producer_id, []).append((epoch, call))
        return answer

    def place(self, rows: Sequence[Row], now_ms: int) -> int:
        """Gives the rows the next offsets, and returns the first."""
        base_offset = self.hot_end
        require(base_offset >= self.told_end, f"offset {base_offset} would name two records")
        stamped = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        for offset, (timestamp_ms, key, value, headers) in enumerate(rows, base_offset):
            self.records.append(
                Record(
                    *self.topic_partition,
                    offset,
                    now_ms if stamped else timestamp_ms,
                    key,
                    value,
                    headers,
                    self.timestamp_type,
                )
            )
        self.hot_end = self.told_end = base_offset + len(rows)
        self.call_ends.add(self.hot_end)
        return base_offset

    def archivable_end(self, before: int | None = None) -> int:
        """Where archived_end must be after archiving all (or all below an offset)."""
        limit = self.log_end if before is None else before
        ends = [r.offset + 1 for r in self.records if self.archive_start <= r.offset < limit]
        return max(ends, default=self.archived_end)

    def archive(self, end: int) -> int:
        """Archives up to an offset, and returns how many records that took."""
        moved = sum(self.archive_start <= r.offset < end for r in self.records)
        require(
            end == self.archived_end or any(r.offset == end - 1 for r in self.records),
            f"{self.topic_partition}: archived_end went from {self.archived_end} to {end}, which "
            "is not one past a record",
        )
        self.archived_end = end
        return moved

    def raise_log_start(self, offset: int) -> None:
        self.log_start = max(self.log_start, offset)

    def untier(self, log_start: int) -> None:
        """The topic is archived no more: what only the cold tier held is deleted."""
        expected = max(self.log_start, self.local_log_start)
        require(
            log_start == expected,
            f"{self.topic_partition}: an untiered log starts at {log_start}, expected {expected}",
        )
        self.log_start = log_start
        self.recoveries += 1  # what was planned before must not land any more

    def emptied(self, log_start: int) -> None:
        """The cold tier of an untiered log was emptied; it held something. So what only it had of a
        tail that the hot tier lost is gone.
        """
        kept = [r for r in self.records if r.offset < log_start or self._is_hot(r.offset)]
        self.given_up |= {r.offset for r in self.records} - {r.offset for r in kept}
        self.records = kept
        self.archived_end = max(log_start, self.log_start)
        self.removed.clear()
        self.horizons_ms.clear()
        self.deleted_rows.clear()

    def compact(
        self, first_dirty: int, cleaned_end: int, now_ms: int, delete_retention_ms: int
    ) -> set[int]:
        """Compacts the archived records below an offset; returns the offsets that went.

        Args:
            first_dirty: where the dirty segments begin.
        """
        records = [record for record in self.stored() if record.offset < cleaned_end]
        gone = superseded(records, self.horizons_ms, first_dirty, now_ms)
        self.removed |= gone
        self.deleted_rows -= gone
        for record in records:
            if record.offset in gone:
                self.horizons_ms.pop(record.offset, None)
            elif record.value is None:
                self.horizons_ms.setdefault(record.offset, now_ms + delete_retention_ms)
        self.cleaned_end = cleaned_end
        return gone

    def erase(self, offsets: Iterable[int]) -> None:
        """Records of the table were erased; Redis may hold them until they are trimmed there."""
        gone = set(offsets)
        self.removed |= gone
        self.deleted_rows -= gone
        for offset in gone:
            self.horizons_ms.pop(offset, None)

    def pause(self) -> None:
        """A planned stop leaves a clean mark."""
        self.clean = True

    def lose_tail(self, hot_end: int) -> None:
        """The server came back without its tail. Archived records are never lost."""
        require(
            hot_end <= self.hot_end and hot_end in self.call_ends,
            f"{self.topic_partition}: the hot tier ended at {self.hot_end} and came back with "
            f"{hot_end}, where no call ended",
        )
        self.hot_end = hot_end
        self.records = [r for r in self.records if r.offset < max(hot_end, self.archived_end)]
        # Later trims and declared gaps are undone.
        self.local_log_start = 0
        self.gaps = [gap for gap in self.gaps if gap.end <= hot_end]

    def lose_hot(self, run_id: str) -> None:
        """Redis forgot the partition, in that run; what is archived is all there is."""
        self.records = [r for r in self.records if r.offset < self.archived_end]
        self.hot_end = self.local_log_start = max(self.archived_end, self.log_start)
        self.call_ends.add(self.hot_end)
        self.gaps = []
        self.producers.clear()
        self.clean = False
        self.adopted_from = None
        self.run_id = ""
        self.forgotten = run_id

    def skip_to(self, log_end: int) -> None:
        """The log goes on at that offset, under the run that wrote it; nothing is lost."""
        require(log_end >= self.told_end, f"the log goes on at {log_end}, below {self.told_end}")
        self._go_on_at(log_end)

    def recover(self, run_id: str, log_end: int, calls: Sequence[ProducerCall] = ()) -> None:
        """The partition was recovered under a new run of the server, and now ends there.

        Args:
            calls: what Redis then knows of producers with checksums.
        """
        if self.clean:  # nothing can be lost: it goes on where it was
            require(
                log_end == self.hot_end,
                f"{self.topic_partition}: after a clean stop at {self.hot_end} the log goes on at "
                f"{log_end}",
            )
            self.adopted_from = self.run_id if run_id != self.run_id else self.adopted_from
        else:
            require(
                log_end >= max(self.told_end, self.archived_end),
                f"{self.topic_partition}: recovery goes on at {log_end}, but offsets up to "
                f"{self.told_end} have been handed out and {self.archived_end} are archived",
            )
            survived_end = self.hot_end if self.run_id else 0  # see `lose_hot`
            self._go_on_at(log_end)
            self._bring_back(calls, survived_end)
            self.adopted_from = None
        self.run_id = run_id
        self.clean = False

    def _bring_back(self, calls: Sequence[ProducerCall], survived_end: int) -> None:
        """Of producers with checksums the newest call is known that survived in either tier.

        What an archive that was told where to end could not know of them may be missing.

        Args:
            survived_end: where the hot tier ended; what lies above it survived in the cold one.
        """
        told: dict[int, list[ProducerCall]] = {}
        for one in sorted(calls, key=lambda one: one.base_offset):
            told.setdefault(one.producer_id, []).append(one)
        require(
            told.keys() <= self.repeatable.keys(),
            f"{self.topic_partition}: nobody sent {told.keys() - self.repeatable.keys()}",
        )
        there = {record.offset for record in self.records}
        self.producers.clear()
        for producer_id, history in self.repeatable.items():
            found = told.get(producer_id, [])
            # Redis may know a call whose records were given up, as any that retention dropped.
            known = there | (self.given_up & {one.base_offset for one in found})
            survived = [
                (epoch, call)
                for epoch, call in history
                if call is None or call.answer.base_offset in known
            ]
            where = f"{self.topic_partition}: of producer {producer_id} came back {found}"
            if not found:
                epoch, call = survived[-1] if survived else (0, None)
                began_anew = bool(survived) and history[-1][0] > epoch
                hot = call is not None and call.answer.base_offset < survived_end
                require(not survived or (began_anew and not hot), f"{where}, sent {survived}")
                self.repeatable[producer_id] = []
                continue
            epoch = found[-1].epoch
            if found[-1].checksum == CUT:
                require(self._may_be_cut(history, epoch), f"{where}, sent {history}")
                self.producers[producer_id] = _Producer(epoch, [], is_cut=True)
                self.repeatable[producer_id] = [(epoch, None)]
                continue
            kept = [
                (call.first_sequence, call.last_sequence, call.answer.base_offset)
                for of_epoch, call in survived
                if call is not None and of_epoch == epoch
            ]
            numbers = [(c.first_sequence, c.last_sequence, c.base_offset) for c in found]
            require(
                survived and survived[-1][0] == epoch and kept[-len(numbers) :] == numbers,
                f"{where}, sent {survived}",
            )
            self.repeatable[producer_id] = survived
            newest = [call for _, call in survived[-len(numbers) :] if call is not None]
            self.producers[producer_id] = _Producer(epoch, newest)

    def _may_be_cut(self, history: list[tuple[int, _Call | None]], epoch: int) -> bool:
        """Whether an archive up to the archived end could not know where it cut that epoch."""
        of_epoch = [call for of_one, call in history if of_one == epoch]
        if None in of_epoch:
            return True  # it was cut before
        bases = [call.answer.base_offset for call in of_epoch if call is not None]
        within = any(
            call.answer.base_offset
            < self.archived_end
            <= call.answer.base_offset + call.last_sequence - call.first_sequence
            for call in of_epoch
            if call is not None
        )
        forgotten = len(bases) > REMEMBERED_CALLS and bases[-REMEMBERED_CALLS] >= self.archived_end
        return within or forgotten

    def _go_on_at(self, log_end: int) -> None:
        self.recoveries += 1
        self.gaps.append(OffsetRange(self.hot_end, log_end))
        self.hot_end = self.told_end = log_end
        self.call_ends.add(log_end)

    # -- what a reader must find -----------------------------------------------------------------

    def read(self, start: int = 0, end: int | None = None) -> list[Record]:
        """The records of [start, end) that the log holds.

        Records that compaction removed are there as long as the hot tier has them.
        """
        limit = self.log_end if end is None else end
        return [
            record
            for record in self.records
            if max(start, self.log_start) <= record.offset < limit
            and (record.offset not in self.removed or self._is_hot(record.offset))
        ]

    def hot(self) -> list[Record]:
        """The records that Redis holds."""
        return [record for record in self.records if self._is_hot(record.offset)]

    def cold(self) -> list[Record]:
        """The records that the cold tier must hold."""
        return [
            record
            for record in self.records
            if self.log_start <= record.offset < self.archived_end
            and record.offset not in self.removed
        ]

    def stored(self) -> list[Record]:
        """The rows of the Delta table: those of `cold` and, as last seen, deleted ones."""
        return [r for r in self.records if r.offset in self.deleted_rows] + self.cold()

    def _is_hot(self, offset: int) -> bool:
        return self.local_log_start <= offset < self.hot_end and not any(
            gap.start <= offset < gap.end for gap in self.gaps
        )

    def lost(self, start: int, end: int) -> list[OffsetRange]:
        """The offsets of [start, end) that no record ever had, removed or not, as ranges."""
        ranges, position = [], start
        for record in self.records:
            if not start <= record.offset < end:
                continue
            if record.offset > position:
                ranges.append(OffsetRange(position, record.offset))
            position = record.offset + 1
        return [*ranges, OffsetRange(position, end)] if position < end else ranges

    def _declared(self, start: int, end: int) -> list[OffsetRange]:
        """Of `lost`, what Redis still says. It forgets a gap with the tail that it is part of, and
        nobody else knows of one below a record that was archived before that.
        """
        return [
            hole
            for gap in self.gaps
            for hole in self.lost(max(gap.start, start), min(gap.end, end))
        ]

    def offset_for_timestamp(self, timestamp_ms: int) -> OffsetAndTimestamp | None:
        """The earliest offset whose timestamp is at or after the target."""
        for record in self.read():
            if record.timestamp_ms >= timestamp_ms:
                return OffsetAndTimestamp(record.offset, record.timestamp_ms)
        return None

    def max_timestamp(self) -> OffsetAndTimestamp | None:
        """The first record with the largest timestamp; None if none has one."""
        stamped = [
            (r.timestamp_ms, -r.offset) for r in self.read() if r.timestamp_ms != NO_TIMESTAMP_MS
        ]
        if not stamped:
            return None
        timestamp_ms, negative = max(stamped)
        return OffsetAndTimestamp(-negative, timestamp_ms)

    @property
    def latest_tiered(self) -> int | None:
        return self.archived_end - 1 if self.archived_end > self.log_start else None

    # -- what always holds -----------------------------------------------------------------------

    def check_offsets(self, seen: LogOffsets, run_id: str) -> None:
        """Checks where the tiers begin and end, and that they cover the log."""
        where = f"{self.topic_partition}: {seen}"
        require(
            seen.log_start
            <= seen.local_log_start
            <= max(seen.log_start, seen.archived_end)
            <= seen.log_end,
            f"the tiers do not cover the log. {where}",
        )
        expected = (self.log_start, self.archived_end, self.log_end)
        require(
            (seen.log_start, seen.archived_end, seen.log_end) == expected,
            f"expected log_start, archived_end, log_end = {expected}. {where}",
        )
        require(
            seen.local_log_start >= self.local_log_start,
            f"the local log start went back from {self.local_log_start}. {where}",
        )
        require(
            not seen.recovered or run_id == self.run_id,
            f"it says recovered, but the server changed since. {where}",
        )
        # What cold got of a lost tail is not lost, but a file that spans the gap does not show it.
        lost = self._declared(self.log_start, self.log_end)
        require(
            _cover(seen.gaps, lost) and _cover(self.gaps, seen.gaps),
            f"expected the gaps {lost} within {self.gaps}. {where}",
        )

    def check_segments(self, seen: HotSegments, segment_bytes: int) -> None:
        """Checks that hot segments follow each other and know their records' largest timestamp."""
        where = f"{self.topic_partition}: {seen.segments}"
        gaps = _joined(seen.gaps)
        position = min(seen.local_log_start, seen.segments[0].base_offset)
        for segment in seen.segments:
            if segment.base_offset > position:
                require(
                    any(gap.start <= position and segment.base_offset <= gap.end for gap in gaps),
                    f"no segment holds [{position}, {segment.base_offset}). {where}",
                )
            require(segment.base_offset >= position, f"segments overlap. {where}")
            require(segment.size_bytes <= segment_bytes, f"a segment is too large. {where}")
            position = segment.end_offset
            largest = max(
                (
                    record.timestamp_ms
                    for record in self.records
                    if segment.base_offset <= record.offset < segment.end_offset
                ),
                default=NO_TIMESTAMP_MS,
            )
            require(
                segment.max_timestamp_ms == largest,
                f"the segment at {segment.base_offset} should know {largest} as its largest "
                f"timestamp. {where}",
            )
        require(position == seen.log_end == self.hot_end, f"the last one ends early. {where}")

    def check_rows(self, rows: list[Record], horizons_ms: Mapping[int, int] | None = None) -> None:
        """Checks the rows of the Delta table: each that must be there once, and no other.

        Rows of deleted records may be there or not, until cleanup.

        Args:
            horizons_ms: the delete horizons of the rows that have one, by offset.
        """
        rows = sorted(rows, key=lambda row: row.offset)
        live = [row for row in rows if row.offset >= self.log_start]
        require_same(live, self.cold())
        require(
            self.log_start >= self.archived_end
            or (rows and rows[-1].offset + 1 == self.archived_end),
            f"{self.topic_partition}: the last archived record below {self.archived_end} is gone",
        )
        found = {offset: h for offset, h in (horizons_ms or {}).items() if offset >= self.log_start}
        kept = {offset: h for offset, h in self.horizons_ms.items() if offset >= self.log_start}
        require(
            found == kept,
            f"{self.topic_partition}: tombstones should go at {kept}, but the rows say {found}",
        )
        deleted = [row for row in rows if row.offset < self.log_start]
        known = {r.offset: r for r in self.records if r.offset < self.log_start}
        require_same(deleted, [known[n] for n in sorted({r.offset for r in deleted} & set(known))])
        self.deleted_rows = {row.offset for row in deleted}

    def check_fetched(self, seen: Fetched, offset: int) -> None:
        """Checks one fetch: the next records, and every lost offset on the way reported.

        Records that compaction removed are skipped without a report.
        """
        expected = self.read(offset)
        records = to_records(self.topic_partition, seen.records)
        where = f"{self.topic_partition}: fetch at {offset} went on at {seen.next_offset}"
        require(
            records == expected[: len(records)] and (records or not expected),
            f"{where} with {records} instead of {expected[:5]}",
        )
        if expected:
            after = [r.offset for r in expected[len(records) :]]
            low, high = records[-1].offset + 1, min([*after, self.log_end])
        else:
            low = high = self.log_end
        require(low <= seen.next_offset <= high, f"{where}, not within {low}..{high}")
        lost = self._declared(offset, seen.next_offset)
        require(
            _cover(seen.gaps, lost)
            and _cover(self.gaps, seen.gaps)
            and not any(gap.start <= r.offset < gap.end for gap in seen.gaps for r in expected),
            f"{where}, reports lost {seen.gaps} instead of {lost}",
        )


def _cover(outer: Iterable[OffsetRange], inner: Iterable[OffsetRange]) -> bool:
    """Whether the outer ranges hold all offsets of the inner ones."""
    joined = _joined(sorted(outer, key=lambda gap: gap.start))
    return all(any(o.start <= i.start and i.end <= o.end for o in joined) for i in inner)


def _joined(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    joined: list[OffsetRange] = []
    for one in ranges:
        if joined and joined[-1].end == one.start:
            one = OffsetRange(joined.pop().start, one.end)
        joined.append(one)
    return joined
