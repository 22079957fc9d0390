"""Erases records of one topic from its cold tier: out of its files, and the files out of the store.

A commit swaps the files that hold matches for others without them. Then what held them is deleted
at once, with every other file beside the newest version that holds a match (earlier cleanups left
them for readers of older versions), and last what the log says of their values. A crash anywhere
leaves a table that is whole: the next run finds what is left by looking into the files.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from ..base.failpoints import failpoint
from ..cold.answers import ORPHAN, QUARANTINED, Discarded, Leftover
from ..cold.change import Rewrite
from ..cold.offset_set import OffsetSet
from ..cold.segment import SegmentFile
from ..cold.table import ColdSnapshot, ColdTable
from ..errors import (
    CommitConflictError,
    CorruptRecordError,
    LakelogError,
    MissingFileError,
)
from ..values.offset_ranges import merged
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from .compaction import partition_of
from .erasure_plan import (
    Condition,
    Matches,
    MatchSearch,
    erasure_change,
    find_matches,
    plan_erasure,
)
from .optimize import rounds

logger = logging.getLogger(__name__)

#: Plans in a row that others may overtake: each time, another cleanup of the same files got done.
ATTEMPTS = 20


class PartitionErased(Struct, frozen=True):
    """One partition's records that were erased, and the files that held them."""

    topic_partition: TopicPartition
    offsets: tuple[OffsetRange, ...]  # of the records, sorted and disjoint
    records: int
    nulled_offset: int | None  # of the partition's last record, which lost all but its offset
    files: int  # that were, or would be, written again
    size_bytes: int  # of them, before


class ColdErased(Struct, frozen=True, eq=False):
    """What became of one topic's cold tier.

    Attributes:
        partitions: those that held a match, by number.
        discarded: files that were deleted at once: those that were written again, and others beside
            the newest version that held a match.
        leftovers: how many of the others hold a match, or cannot be read and are nobody's.
        versions: of the table, before and after.
        history_forgotten: whether the log's statistics of older versions were removed.
        failures: why files of the newest version could not be read or written, by path.
        beyond: what may hold matches and was not reached, in sentences.
    """

    partitions: Mapping[int, PartitionErased] = field(default_factory=dict)
    discarded: tuple[Discarded, ...] = ()
    leftovers: int = 0
    versions: tuple[int, int] = (-1, -1)
    history_forgotten: bool = False
    failures: Mapping[str, LakelogError] = field(default_factory=dict)
    beyond: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        return sum(one.records for one in self.partitions.values())


class Erasure:
    """Erases what matches a condition. Any number may run at once, beside anything else.

    Args:
        topic: a tiered one.
        quarantine: whether removed files that cannot be read are given up, and files that an older
            version put in quarantine, if they hold a match or cannot be read.
    """

    def __init__(
        self, topic: Topic, table: ColdTable, condition: Condition, *, quarantine: bool = False
    ) -> None:
        self._topic = topic
        self._table = table
        self._condition = condition
        self._quarantine = quarantine

    def plan(self) -> ColdErased:
        """What a run would do now; changes nothing.

        Raises:
            ContradictionError, ForeignTableError, ColdTierError: see `ColdTable.snapshot`.
        """
        done = _Done()
        cold = self._table.snapshot()
        found = self._search(cold, cold.files.partitions, done)
        done.took(plan_erasure(self._topic, cold, found))
        held, done.beyond = self._held_beside()
        return done.report((cold.version, cold.version), leftovers=len(held))

    def run(self) -> ColdErased:
        """Erases what matches in the newest version, and in what is left of older ones.

        A file that cannot be read is among the failures, and the rest is done. Running it again
        does what is left.

        Raises:
            CommitConflictError: others rewrote the same files each time; what was done stays.
            ContradictionError, ForeignTableError, ColdTierError: see `ColdTable.apply`.
        """
        done = _Done()
        before = self._table.snapshot().version
        self._rewrite(done)
        failpoint("erase.after_commit")
        held, done.beyond = self._held_beside(done.sources)
        done.discarded = self._table.discard([*done.sources, *(one.file for one in held)])
        failpoint("erase.after_files")
        done.history_forgotten = self._table.forget_history()
        after = self._table.snapshot().version
        return done.report((before, after), leftovers=len(held))

    # -- the newest version --------------------------------------------------------------------

    def _rewrite(self, done: _Done) -> None:
        left: frozenset[int] | None = None  # partitions to be looked at; None: all
        for _ in range(ATTEMPTS):
            cold = self._table.snapshot()
            partitions = cold.files.partitions if left is None else sorted(left)
            found = self._search(cold, partitions, done)
            left = frozenset(
                one.file.partition for one in found if one.error is not None and done.is_stale(one)
            )
            rewrites = plan_erasure(self._topic, cold, found)
            failpoint("erase.after_plan")
            for together in rounds(rewrites):
                left |= self._commit(together, done)
            if not left:
                return
        raise CommitConflictError(
            f"erasing records of topic {self._topic.name!r} was overtaken {ATTEMPTS} times: "
            "something else rewrites the same files all the time. What was committed stays; run it "
            "again later",
            topic=self._topic.name,
        )

    def _commit(self, rewrites: Sequence[Rewrite], done: _Done) -> frozenset[int]:
        """Commits some rewrites of a plan; the partitions that have to be planned again."""
        again: set[int] = set()
        while rewrites:
            try:
                # What an earlier round of this plan committed has moved the register since.
                current = self._table.snapshot()
                moved = [r for r in rewrites if _is_moved(r, current)]
                again |= {r.topic_partition.partition for r in moved}
                rewrites = [r for r in rewrites if r not in moved]
                if not rewrites:
                    break
                applied = self._table.apply(erasure_change(current, rewrites), current)
            except (MissingFileError, CorruptRecordError) as error:
                number = partition_of(error)
                if number is None:
                    raise
                if isinstance(error, MissingFileError) and self._is_gone(rewrites, number):
                    again.add(number)
                else:
                    done.failures[error.path or ""] = error
                rewrites = [r for r in rewrites if r.topic_partition.partition != number]
                continue
            again |= applied.superseded
            done.undeleted += applied.undeleted
            done.took(
                [r for r in rewrites if r.topic_partition.partition not in applied.superseded]
            )
            break
        return frozenset(again)

    def _is_gone(self, rewrites: Iterable[Rewrite], partition: int) -> bool:
        """Whether the table names one of a partition's files no more."""
        paths = [
            file.path
            for rewrite in rewrites
            if rewrite.topic_partition.partition == partition
            for file in rewrite.files
        ]
        return bool(self._table.unchecked().files.missing(paths))

    def _search(self, cold: ColdSnapshot, partitions: Iterable[int], done: _Done) -> list[Matches]:
        searches = [
            MatchSearch(file, self._condition, cold.archived_end(number) - 1)
            for number in partitions
            for file in cold.files.of_partition(number)
            if file.records and self._condition.may_match(file)
        ]
        found = self._find(searches)
        gone: set[str] = set()
        failed = [one for one in found if one.error is not None]
        if failed:
            gone = self._table.unchecked().files.missing(one.file.path for one in failed)
        done.note(failed, gone)
        return found

    def _find(self, searches: Sequence[MatchSearch]) -> list[Matches]:
        largest_first = sorted(searches, key=lambda one: one.file.size_bytes, reverse=True)
        return list(
            self._table.map(
                find_matches,
                largest_first,
                files_of=lambda search: [search.file],
                columns=self._condition.columns,
            )
        )

    # -- what lies beside it -------------------------------------------------------------------

    def _held_beside(
        self, known: Iterable[SegmentFile] = ()
    ) -> tuple[list[Leftover], tuple[str, ...]]:
        """The files beside the newest version that hold a match and may go, and what may not.

        Args:
            known: files that held one, which need no look.
        """
        there = self._table.leftovers()
        paths = {file.path for file in known}
        by_path = {one.file.path: one for one in there.files}
        searches = [
            MatchSearch(one.file, self._condition)
            for one in there.files
            if one.file.path not in paths and self._condition.may_match(one.file)
        ]
        held: list[Leftover] = []
        beyond = list(there.beyond)
        for found in self._find(searches):
            one = by_path[found.file.path]
            if isinstance(found.error, MissingFileError):
                continue  # vacuum took it meanwhile
            unreadable = found.error is not None
            gives_up = one.kind == ORPHAN or self._quarantine
            may_go = one.may_go or (one.kind == QUARANTINED and self._quarantine)
            if may_go and (found or (unreadable and gives_up)):
                held.append(one)
            elif found or unreadable:
                beyond.append(_beyond(one, is_unreadable=unreadable))
        return held, tuple(sorted(beyond))


def _is_moved(rewrite: Rewrite, current: ColdSnapshot) -> bool:
    """Whether others rewrote or removed one of its files."""
    return bool(current.files.missing(file.path for file in rewrite.files))


def _beyond(one: Leftover, *, is_unreadable: bool) -> str:
    what = "cannot be read, and may hold a match" if is_unreadable else "holds a match"
    if one.kind == QUARANTINED:
        advice = (
            "an older version put it in quarantine. Erase again with --quarantine to give it up"
        )
    elif one.may_go:
        advice = (
            "a commit removed it, so cleanup deletes it after file.delete.delay.ms, and erasing "
            "again with --quarantine at once"
        )
    else:
        advice = (
            "no commit names it, but one that is under way may, or somebody else wrote it: erase "
            "again when that is over. Of lakelog's own runs, one that others overtake deletes it "
            "at once; if it was killed, an erasure does so once others have archived or rewritten "
            "its range, and cleanup ten minutes after it was written"
        )
    return f"file {one.file.path} {what}: {advice}"


def _undeleted(path: str) -> str:
    return (
        f"file {path}, which this run wrote and was overtaken by others, could not be deleted (the "
        "log says why), and may hold what they erased: cleanup deletes it ten minutes after it was "
        "written"
    )


class _Done(Struct, eq=False):
    """What came of a run so far."""

    rewrites: list[Rewrite] = field(default_factory=list)
    discarded: Sequence[Discarded] = ()
    history_forgotten: bool = False
    failures: dict[str, LakelogError] = field(default_factory=dict)
    beyond: tuple[str, ...] = ()
    stale: set[str] = field(default_factory=set)  # files that others rewrote during a search
    undeleted: list[str] = field(default_factory=list)  # files that were written in vain

    def took(self, rewrites: Iterable[Rewrite]) -> None:
        self.rewrites += rewrites

    def note(self, failed: Iterable[Matches], gone: set[str]) -> None:
        """What could not be read: files that are gone by now are to be looked for again."""
        self.stale |= gone
        for one in failed:
            if one.error is not None and one.file.path not in gone:
                self.failures[one.file.path] = one.error

    def is_stale(self, one: Matches) -> bool:
        return one.file.path in self.stale

    @property
    def sources(self) -> list[SegmentFile]:
        """The files that were written again."""
        return [file for rewrite in self.rewrites for file in rewrite.files]

    def report(self, versions: tuple[int, int], *, leftovers: int) -> ColdErased:
        return ColdErased(
            self._by_partition(),
            tuple(self.discarded),
            leftovers,
            versions,
            self.history_forgotten,
            dict(self.failures),
            (*self.beyond, *map(_undeleted, self.undeleted)),
        )

    def _by_partition(self) -> Mapping[int, PartitionErased]:
        by_partition: dict[int, list[Rewrite]] = {}
        for rewrite in self.rewrites:
            by_partition.setdefault(rewrite.topic_partition.partition, []).append(rewrite)
        return {number: _of_partition(rewrites) for number, rewrites in by_partition.items()}


def _of_partition(rewrites: Sequence[Rewrite]) -> PartitionErased:
    nulled = OffsetSet.union(one.nulled for one in rewrites if one.nulled is not None)
    gone = OffsetSet.union(one.without for one in rewrites if one.without is not None)
    files = [file for rewrite in rewrites for file in rewrite.files]
    return PartitionErased(
        rewrites[0].topic_partition,
        _ranges(OffsetSet.union([gone, nulled])),
        len(gone) + len(nulled),
        next(iter(nulled), None),
        len(files),
        sum(file.size_bytes for file in files),
    )


def _ranges(offsets: OffsetSet) -> tuple[OffsetRange, ...]:
    return merged(OffsetRange(offset, offset + 1) for offset in offsets)
