"""Checks that both tiers of a topic hold what they claim: everything is read and compared.

It may run beside appends, archivers, trims and cleanups: it looks at the hot tier first, then takes
one snapshot of the cold tier, and looks again if something went away in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ...base import compute as pc
from ...cold.table import ColdSnapshot
from ...engines.engine import Choice, Choices
from ...errors import (
    CorruptRecordError,
    HotTierAccessError,
    HotTierUnavailableError,
    LakelogError,
    MissingFileError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ...hot.hot_log import HotLog
from ...hot.inspection import HotLook
from ...read.tiers import check_is_there
from ...read.topic_log import TopicLog
from ...read.unified_log import UnifiedLog
from ...values.offset_ranges import Ranges, merged, unexplained
from ...values.record import MAX_OFFSET, RECORDS
from ...values.topic_partition import OffsetRange, TopicPartition
from .cold_verification import ColdVerification, LookAgain
from .finding import (
    BOTH,
    COLD,
    HOT,
    TIERS,
    Finding,
    Findings,
    Kind,
    Progress,
    is_no_answer,
    predicate,
)
from .hot_verification import HotVerification

__all__ = ["Finding", "Verified", "verify"]

#: How many looks may find that a file of the snapshot is gone. Vacuum takes files a day old.
_LOOKS = 5


class Verified(Struct, frozen=True):
    """One partition, verified."""

    topic_partition: TopicPartition
    findings: tuple[Finding, ...]
    hot_entries: dict[int, int]  # by the segment's base offset, gap entries not counted
    records: int = 0  # that were read; those in both tiers count once
    engines: tuple[Choice, ...] = ()  # what files were read by, and why
    not_checked: str = ""  # what of a tier cannot be seen, and why
    away: LakelogError | None = None  # why the cold tier's store does not answer


def verify(
    log: TopicLog,
    partitions: Iterable[int] | None = None,
    *,
    tiers: Collection[str] = TIERS,
    start_offset: int = 0,
    end_offset: int | None = None,
    progress: Progress | None = None,
) -> Iterator[Verified]:
    """Reads some partitions, or an offset range of them, in full and says what is wrong.

    It finds entries and files that are not what was written (CRCs, ids, missing files); offsets
    that are out of order, missing or repeated, within a tier and across both; statistics and
    registers that do not say what is there; and records that differ between the tiers. Damage is an
    answer, not an error, and so is what the store of the cold tier does not hand out. Memory is
    bounded by some row groups and pages of entries (and 8 bytes a row for files whose rows are in
    no order).

    Args:
        partitions: numbers; None for all.
        tiers: ``hot``, ``cold`` or both; without a Redis, only cold is read.
        start_offset: offsets below it are not judged (but whole files and entries are).
        end_offset: likewise; exclusive; None for the log end.
        progress: called with the number of records read.

    Raises:
        UnknownTopicOrPartitionError, UnknownTopicIdError: the topic was dropped.
        HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
    """
    numbers = list(range(log.topic.partitions) if partitions is None else partitions)
    for partition in numbers:
        for attempt in range(_LOOKS):
            topic_partition = log.topic.partition(partition)
            once = _Once(log, topic_partition, start_offset, end_offset)
            choices = Choices()
            try:
                with choices.watched():
                    verified = once.run(tiers, progress, last=attempt == _LOOKS - 1)
            except LookAgain:
                continue
            yield replace(verified, engines=choices.made)
            break


class _Once(Struct):
    log: TopicLog
    topic_partition: TopicPartition
    start_offset: int
    end_offset: int | None
    away: LakelogError | None = None  # why the store of the cold tier does not answer

    def run(self, tiers: Collection[str], progress: Progress | None, *, last: bool) -> Verified:
        findings: list[Finding] = []
        # Hot first, so that the snapshot has what is trimmed between the two looks.
        redis = self.log.hot if isinstance(self.log, UnifiedLog) else None
        look = None if redis is None else self._hot(redis, findings)
        is_cold = COLD in tiers and self.log.table is not None
        cold = self._cold(findings) if is_cold else None
        between = Findings(BOTH, self.topic_partition)
        unreadable: set[str] = set()
        said: list[str] = []
        counted = _Counted(progress)
        if cold is not None and self.log.table is not None and COLD in tiers:
            files = ColdVerification(
                self.log.table,
                cold,
                self.topic_partition,
                look.gaps if look else (),
                self.start_offset,
                MAX_OFFSET if self.end_offset is None else self.end_offset,
            )
            files.run(counted.cold, last=last)
            findings += files.findings.all()
            unreadable, said = files.unreadable, [files.not_checked]
            self.away = self.away or files.away
        if redis is not None and look is not None and HOT in tiers:
            entries = HotVerification(
                redis, self.log.topic, look, self.start_offset, self.end_offset
            )
            compared = _Comparison(self.log, self.topic_partition, cold, unreadable, between, last)
            own = 0 if cold is None else cold.archive_start(self.topic_partition.partition)
            for records in entries.run():
                if records.num_rows:
                    counted.hot(records, own)
                if COLD in tiers and self.away is None:
                    self._compared(compared, records, between)
            findings += entries.findings.all()
        if redis is not None and look is not None and cold is not None and set(TIERS) <= set(tiers):
            self._join(redis, look, cold, between)
        findings += between.all()
        counts = {}
        if look is not None and HOT in tiers:
            counts = {base: tally.entries for base, tally in entries.tallies.items()}
        if self.away is not None and not any(said):
            said = [f"cold: {self.away.message.rstrip('.')}"]
        not_checked = "; ".join(filter(None, said))
        return Verified(
            *(self.topic_partition, tuple(findings), counts),
            records=counted.records,
            not_checked=not_checked,
            away=self.away,
        )

    def _compared(self, compared: _Comparison, records: pa.RecordBatch, between: Findings) -> None:
        try:
            compared.compare(records)
        except LakelogError as error:
            if not is_no_answer(error):
                raise
            path = getattr(error, "path", None) or ""
            between.add(Kind.UNREACHABLE, path or "the table", predicate(error.message, path))
            self.away = error

    def _hot(self, redis: HotLog, findings: list[Finding]) -> HotLook | None:
        try:
            return redis.inspection().look(self.topic_partition, self.log.topic.topic_id)
        except UnknownTopicOrPartitionError as error:
            if not self._is_known(redis):
                raise UnknownTopicIdError(
                    f"topic {self.log.topic.name!r} was deleted and created again since it was "
                    "looked up; look it up again",
                    topic=self.log.topic.name,
                    topic_id=self.log.topic.topic_id,
                ) from error
            topic, partition = self.topic_partition
            what = error.message
            if redis.rebuilding().has_entries_alone(self.topic_partition):
                what = (
                    "has entries, and nothing beside them that says of what: a key was evicted, or "
                    "deleted by hand. A repair writes it anew, from the entries; do not delete them"
                )
            findings.append(
                Finding(
                    *(Kind.PARTITION, HOT, topic, partition, "the partition", what), repairable=True
                )
            )
            return None

    def _is_known(self, redis: HotLog) -> bool:
        """Whether the topic is still there, as its definition says."""
        return redis.topics().get(self.log.topic.name).topic_id == self.log.topic.topic_id

    def _cold(self, findings: list[Finding]) -> ColdSnapshot | None:
        assert self.log.table is not None
        try:
            cold = self.log.table.unchecked()
            check_is_there(self.log.topic, self.log.hot, self.log.table, cold)
            return cold
        except UnknownTopicIdError:
            if not isinstance(self.log, UnifiedLog) or not self._is_known(self.log.hot):
                raise
            return cold  # the first partition's state is gone, which knew of the table
        except _NOT_DAMAGE:
            raise
        except LakelogError as error:
            topic, partition = self.topic_partition
            kind, what = Kind.TABLE, error.message
            if is_no_answer(error):
                kind, self.away = Kind.UNREACHABLE, error
            findings.append(Finding(kind, COLD, topic, partition, "the table", what))
            return None

    def _join(self, redis: HotLog, look: HotLook, cold: ColdSnapshot, between: Findings) -> None:
        """Checks that the tiers meet without a hole, and that hot once had all that cold holds."""
        partition = self.topic_partition.partition
        archived_end, log_start = cold.archived_end(partition), cold.log_start(partition)
        local_log_start = look.number("local_log_start")
        if local_log_start is None:
            return
        end = local_log_start if self.end_offset is None else min(local_log_start, self.end_offset)
        start = max(archived_end, log_start, self.start_offset)
        explained = merged([*look.gaps, *cold.files.stand_ins(partition)])
        missing = Ranges.of(unexplained(start, end, explained))
        if missing:
            between.add(
                Kind.HOLE,
                f"between {archived_end} and {local_log_start}",
                f"no tier holds the offsets {missing}: cold ends at {archived_end}, hot begins at "
                f"{local_log_start}, and nothing says that they were skipped",
                missing.ranges,
            )
        log_end = look.number("log_end")
        if log_end is None or not look.recovered or max(archived_end, log_start) <= log_end:
            return
        # It may have been archived since the look; a look after the snapshot must reach it.
        now = redis.inspection().look(self.topic_partition, self.log.topic.topic_id)
        log_end = now.number("log_end")
        if log_end is not None and now.recovered and max(archived_end, log_start) > log_end:
            between.add(
                Kind.REGISTER,
                look.keys.state,
                f"says the log ends at {log_end}, but the cold tier holds it up to {archived_end} "
                f"and begins at {log_start}",
                [OffsetRange(log_end, max(archived_end, log_start))],
            )


@dataclass
class _Counted:
    """The records read, and how many there are: those in both tiers are read twice."""

    progress: Progress | None
    records: int = 0

    def cold(self, records: int) -> None:
        self.records += records
        if self.progress is not None:
            self.progress(records)

    def hot(self, records: pa.RecordBatch, archived_end: int) -> None:
        own = pc.sum(pc.greater_equal(records.column("offset"), archived_end)).as_py()
        self.records += int(own)
        if self.progress is not None:
            self.progress(records.num_rows)


_NOT_DAMAGE = (HotTierAccessError, HotTierUnavailableError, UnknownTopicIdError)


class _Comparison(Struct):
    """Compares the records that both tiers hold."""

    log: TopicLog
    topic_partition: TopicPartition
    cold: ColdSnapshot | None
    unreadable: set[str]  # paths that are reported already
    findings: Findings
    last: bool  # there is no other look
    _stream: Iterator[pa.RecordBatch] | None = None  # of all that is archived from a page on
    _left: pa.RecordBatch | None = None  # what was read of it and is not compared yet

    def compare(self, records: pa.RecordBatch) -> None:
        """Compares hot records with the cold tier, as far as they are archived.

        Called for one page after another, so that each row group is read once.
        """
        if self.cold is None or self.log.table is None or not records.num_rows:
            return
        partition = self.topic_partition.partition
        offsets = _offsets(records)
        start = max(int(offsets.min()), self.cold.log_start(partition))
        end = min(int(offsets.max()) + 1, self.cold.archived_end(partition))
        if start >= end:
            return
        try:
            for batch in self._archived(start, end):
                self._compare(records, offsets, batch)
        except MissingFileError as error:
            self._stream = self._left = None  # the next page begins anew
            between = self.cold.files.files_between(partition, start, end)
            if self.log.table.unchecked().files.missing(f.path for f in between) and not self.last:
                raise LookAgain from error
            what = predicate(error.message, error.path)
            self.findings.add(Kind.MISSING_FILE, error.path, what, [OffsetRange(start, end)])
        except CorruptRecordError as error:
            self._stream = self._left = None
            if error.path is None:  # an error that names no file is no finding about one
                raise
            what = predicate(error.message, error.path)
            self.findings.add(Kind.CORRUPT, error.path, what, [OffsetRange(start, end)])

    def _archived(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """What the cold tier holds of [start, end), which follows what was asked for before."""
        assert self.cold is not None
        assert self.log.table is not None
        if self._stream is None:
            partition = self.topic_partition.partition
            stop = self.cold.archived_end(partition)
            files = [
                file
                for file in self.cold.files.files_between(partition, start, stop)
                if file.path not in self.unreadable
            ]
            self._stream = iter(self.log.table.read(files, start, stop))
        while True:
            if self._left is None:
                self._left = next(self._stream, None)
            if self._left is None:
                return
            batch, offsets = self._left, _offsets(self._left)
            low, high = np.searchsorted(offsets, [start, end]).tolist()
            self._left = batch.slice(high) if high < len(offsets) else None
            if low < high:
                yield batch.slice(low, high - low)
            if self._left is not None:
                return

    def _compare(self, hot: pa.RecordBatch, offsets: np.ndarray, cold: pa.RecordBatch) -> None:
        theirs = _offsets(cold)
        at = int(np.searchsorted(offsets, theirs[0]))
        if np.array_equal(offsets[at : at + len(theirs)], theirs):  # as good as always
            ours, others = hot.slice(at, len(theirs)), cold
        else:
            theirs, first = np.unique(theirs, return_index=True)
            _, at_hot, at_cold = np.intersect1d(offsets, theirs, return_indices=True)
            if not len(at_hot):
                return
            ours, others = _rows(hot, at_hot), _rows(cold, first[at_cold])
        rows = differing(ours, others)
        if rows:
            differ = Ranges.of(_as_ranges(_offsets(ours)[rows]))
            self.findings.add(
                Kind.DIFFERS,
                f"offsets {differ}",
                "are not the same record in both tiers: " + _how(ours, others),
                differ.ranges,
            )


def differing(one: pa.RecordBatch, other: pa.RecordBatch) -> list[int]:
    """The rows in which two batches of one length differ.

    Compares halves as a whole: Arrow decides whether nulls, lists and floats are equal.
    """
    if all(a.equals(b) for a, b in zip(one.columns, other.columns, strict=True)):
        return []
    if one.num_rows == 1:
        return [0]
    half = one.num_rows // 2
    return [
        *differing(one.slice(0, half), other.slice(0, half)),
        *(half + row for row in differing(one.slice(half), other.slice(half))),
    ]


def _how(one: pa.RecordBatch, other: pa.RecordBatch) -> str:
    pairs = zip(RECORDS.names, one.columns, other.columns, strict=True)
    return "they differ in " + ", ".join(name for name, a, b in pairs if not a.equals(b))


def _rows(batch: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    if len(at) == at[-1] - at[0] + 1:  # one run: no copy
        return batch.slice(int(at[0]), len(at))
    return batch.take(pa.array(at))


def _offsets(batch: pa.RecordBatch) -> np.ndarray:
    return np.asarray(batch.column("offset").to_numpy(zero_copy_only=False))


def _as_ranges(offsets: np.ndarray) -> list[OffsetRange]:
    cuts = np.flatnonzero(np.diff(offsets) > 1) + 1
    return [OffsetRange(int(run[0]), int(run[-1]) + 1) for run in np.split(offsets, cuts)]
