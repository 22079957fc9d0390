"""Checks that both tiers of a topic hold what they claim: everything is read and compared.

It may run beside appends, archivers, trims and cleanups: it looks at the hot tier first, then takes
one snapshot of the cold tier, and looks again if something went away in between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from ...base import compute as pc
from ...cold.table import ColdSnapshot, ColdTable
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
    span = OffsetRange(start_offset, MAX_OFFSET if end_offset is None else end_offset)
    for partition in list(range(log.topic.partitions) if partitions is None else partitions):
        for attempt in range(_LOOKS):
            last, choices = attempt == _LOOKS - 1, Choices()
            once = _Once(log, log.topic.partition(partition), span, tiers, progress, last)
            try:
                with choices.watched():
                    verified = once.run()
            except LookAgain:
                continue
            yield replace(verified, engines=choices.made)
            break


class _Once(Struct):
    """One look at a partition.

    Args:
        span: offsets outside of it are not judged.
        last: there is no further look, so what is gone is a finding.
    """

    log: TopicLog
    topic_partition: TopicPartition
    span: OffsetRange
    tiers: Collection[str]
    progress: Progress | None
    last: bool
    findings: list[Finding] = field(default_factory=list)
    records: int = 0  # that were read; those in both tiers count once
    not_checked: str = ""
    unreadable: set[str] = field(default_factory=set)  # paths of files that are reported already
    away: LakelogError | None = None  # why the store of the cold tier does not answer

    def run(self) -> Verified:
        log, is_joined = self.log, set(TIERS) <= set(self.tiers)
        redis = log.redis
        # Hot first, so that the snapshot has what is trimmed between the two looks.
        look = None if redis is None else self._look(redis)
        table = log.table if COLD in self.tiers else None
        cold = None if table is None else self._snapshot(table)
        counts: dict[int, int] = {}
        between = Findings(BOTH, self.topic_partition)
        if table is not None and cold is not None:
            self._verify_files(table, cold, look)
        if redis is not None and look is not None and HOT in self.tiers:
            counts = self._verify_entries(redis, look, cold, between)
        if redis is not None and look is not None and cold is not None and is_joined:
            self._join(redis, look, cold, between)
        self.findings += between.all()
        if self.away is not None and not self.not_checked:
            self.not_checked = f"cold: {self.away.message.rstrip('.')}"
        return Verified(
            *(self.topic_partition, tuple(self.findings), counts),
            records=self.records,
            not_checked=self.not_checked,
            away=self.away,
        )

    # -- what there is -----------------------------------------------------------------------------

    def _look(self, redis: HotLog) -> HotLook | None:
        topic = self.log.topic
        try:
            return redis.inspection().look(self.topic_partition, topic.topic_id)
        except UnknownTopicOrPartitionError as error:
            if not self._is_known(redis):
                raise UnknownTopicIdError(
                    f"topic {topic.name!r} was deleted and created again since it was looked up; "
                    "look it up again",
                    topic=topic.name,
                    topic_id=topic.topic_id,
                ) from error
            what = error.message
            if redis.rebuilding().has_entries_alone(self.topic_partition):
                what = (
                    "has entries, and nothing beside them that says of what: a key was evicted, or "
                    "deleted by hand. A repair writes it anew, from the entries; do not delete them"
                )
            self._found(Kind.PARTITION, HOT, "the partition", what, repairable=True)
            return None

    def _is_known(self, redis: HotLog) -> bool:
        """Whether the topic is still there, as its definition says."""
        return redis.topics().get(self.log.topic.name).topic_id == self.log.topic.topic_id

    def _snapshot(self, table: ColdTable) -> ColdSnapshot | None:
        try:
            cold = table.unchecked()
            check_is_there(self.log.topic, self.log.hot, table, cold)
            return cold
        except UnknownTopicIdError:
            if self.log.redis is None or not self._is_known(self.log.redis):
                raise
            return cold  # the first partition's state is gone, which knew of the table
        except (HotTierAccessError, HotTierUnavailableError):
            raise
        except LakelogError as error:
            kind = Kind.TABLE
            if is_no_answer(error):
                kind, self.away = Kind.UNREACHABLE, error
            self._found(kind, COLD, "the table", error.message)
            return None

    def _found(
        self, kind: Kind, tier: str, where: str, what: str, *, repairable: bool = False
    ) -> None:
        place = self.topic_partition
        self.findings.append(Finding(kind, tier, *place, where, what, repairable=repairable))

    # -- either tier, and both ---------------------------------------------------------------------

    def _verify_files(self, table: ColdTable, cold: ColdSnapshot, look: HotLook | None) -> None:
        def count(records: int) -> None:
            self.records += records
            if self.progress is not None:
                self.progress(records)

        gaps = look.gaps if look else ()
        files = ColdVerification(table, cold, self.topic_partition, gaps, self.span)
        files.run(count, last=self.last)
        self.findings += files.findings.all()
        self.unreadable, self.not_checked = files.unreadable, files.not_checked
        self.away = self.away or files.away

    def _verify_entries(
        self, redis: HotLog, look: HotLook, cold: ColdSnapshot | None, between: Findings
    ) -> dict[int, int]:
        """Returns the number of entries by segment."""
        entries = HotVerification(redis, self.log.topic, look, self.span)
        compared = None
        if cold is not None and self.log.table is not None:
            compared = _Comparison(
                *(self.log.table, self.topic_partition.partition, cold),
                *(self.unreadable, between, self.last),
            )
        archived = 0 if cold is None else cold.archive_start(self.topic_partition.partition)
        for records in entries.run():
            if not records.num_rows:
                continue
            own = pc.sum(pc.greater_equal(records.column("offset"), archived)).as_py()
            self.records += int(own)
            if self.progress is not None:
                self.progress(records.num_rows)
            if compared is not None and self.away is None:
                try:
                    compared.compare(records)
                except LakelogError as error:
                    if not is_no_answer(error):
                        raise
                    path, self.away = getattr(error, "path", None) or "", error
                    what = predicate(error.message, path)
                    between.add(Kind.UNREACHABLE, path or "the table", what)
        self.findings += entries.findings.all()
        return {base: tally.entries for base, tally in entries.tallies.items()}

    def _join(self, redis: HotLog, look: HotLook, cold: ColdSnapshot, between: Findings) -> None:
        """Checks that the tiers meet without a hole, and that hot once had all that cold holds."""
        partition = self.topic_partition.partition
        archived_end, log_start = cold.archived_end(partition), cold.log_start(partition)
        local_log_start = look.number("local_log_start")
        if local_log_start is None:
            return
        start = max(archived_end, log_start, self.span.start)
        explained = merged([*look.gaps, *cold.files.stand_ins(partition)])
        missing = Ranges.of(unexplained(start, min(local_log_start, self.span.end), explained))
        if missing:
            between.add(
                Kind.HOLE,
                f"between {archived_end} and {local_log_start}",
                f"no tier holds the offsets {missing}: cold ends at {archived_end}, hot begins at "
                f"{local_log_start}, and nothing says that they were skipped",
                missing.ranges,
            )
        known = max(archived_end, log_start)
        log_end = look.number("log_end")
        if log_end is None or not look.recovered or known <= log_end:
            return
        # It may have been archived since the look; a look after the snapshot must reach it.
        now = redis.inspection().look(self.topic_partition, self.log.topic.topic_id)
        log_end = now.number("log_end")
        if log_end is not None and now.recovered and known > log_end:
            what = (
                f"says the log ends at {log_end}, but the cold tier holds it up to {archived_end} "
                f"and begins at {log_start}"
            )
            between.add(Kind.REGISTER, look.keys.state, what, [OffsetRange(log_end, known)])


class _Comparison(Struct):
    """Compares the records that both tiers hold."""

    table: ColdTable
    partition: int
    cold: ColdSnapshot
    unreadable: set[str]  # paths that are reported already
    findings: Findings
    last: bool  # there is no other look
    _stream: Iterator[pa.RecordBatch] | None = None  # of all that is archived from a page on
    _left: pa.RecordBatch | None = None  # what was read of it and is not compared yet

    def compare(self, records: pa.RecordBatch) -> None:
        """Compares hot records with the cold tier, as far as they are archived.

        Called for one page after another, so that each row group is read once.
        """
        offsets = _offsets(records)
        start = max(int(offsets.min()), self.cold.log_start(self.partition))
        end = min(int(offsets.max()) + 1, self.cold.archived_end(self.partition))
        if start >= end:
            return
        try:
            for batch in self._archived(start, end):
                self._compare(records, offsets, batch)
        except (MissingFileError, CorruptRecordError) as error:
            self._stream = self._left = None  # the next page begins anew
            if error.path is None:  # an error that names no file is no finding about one
                raise
            kind = Kind.CORRUPT
            if isinstance(error, MissingFileError):
                kind = Kind.MISSING_FILE
                between = self.cold.files.files_between(self.partition, start, end)
                gone = self.table.unchecked().files.missing(file.path for file in between)
                if gone and not self.last:
                    raise LookAgain from error
            what = predicate(error.message, error.path)
            self.findings.add(kind, error.path, what, [OffsetRange(start, end)])

    def _archived(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """What the cold tier holds of [start, end), which follows what was asked for before."""
        if self._stream is None:
            stop = self.cold.archived_end(self.partition)
            between = self.cold.files.files_between(self.partition, start, stop)
            files = [file for file in between if file.path not in self.unreadable]
            self._stream = iter(self.table.read(files, start, stop))
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
            ours, others = hot.take(pa.array(at_hot)), cold.take(pa.array(first[at_cold]))
        rows = differing(ours, others) if ours.num_rows else []
        if rows:
            differ = Ranges.of(_as_ranges(_offsets(ours)[rows]))
            pairs = zip(RECORDS.names, ours.columns, others.columns, strict=True)
            names = ", ".join(name for name, a, b in pairs if not a.equals(b))
            what = f"are not the same record in both tiers: they differ in {names}"
            self.findings.add(Kind.DIFFERS, f"offsets {differ}", what, differ.ranges)


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


def _offsets(batch: pa.RecordBatch) -> np.ndarray:
    return np.asarray(batch.column("offset").to_numpy(zero_copy_only=False))


def _as_ranges(offsets: np.ndarray) -> list[OffsetRange]:
    cuts = np.flatnonzero(np.diff(offsets) > 1) + 1
    return [OffsetRange(int(run[0]), int(run[-1]) + 1) for run in np.split(offsets, cuts)]
