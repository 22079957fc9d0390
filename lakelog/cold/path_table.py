"""The cold tier of a topic as one Delta table at a path, committed by delta-rs.

Executors write the Parquet files; the driver commits them with the registers, as Delta ``txn``
versions, in one compare-and-set on the table's version. Losing that race costs a look at what the
winner did, never the files.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa

from ..engine import Engine
from ..errors import (
    ColdTierError,
    CommitConflictError,
    CommitUnknownError,
    ContradictionError,
    InvalidArgumentError,
    UnknownTopicIdError,
)
from ..failpoints import failpoint
from ..record import OffsetAndTimestamp
from ..topic import Topic
from . import contradictions
from .change import Change, HotRange, Rewrite, RowsOf
from .delta_log import DeltaLog
from .registers import ArchivedEnd, CleanedEnd, LogStart, Register, app_id
from .segment import SegmentFile, archived_start
from .segment_reader import SegmentReader
from .segment_writer import WrittenFile, write_segment_file
from .storage import Storage
from .table import Applied, ColdSnapshot

logger = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

#: After a lost race the next attempt waits up to MAX_BACK_OFF_S. Each race has a winner, so one of
#: n equal committers loses all of them with a chance of (1 - 1/n)^100: never, in practice.
COMMIT_ATTEMPTS = 100
MAX_BACK_OFF_S = 0.5

#: Commits that nobody's commit stood in the way of, and reads that found out: a store that is away
#: for a moment is back within these.
REFUSED_ATTEMPTS = 5


class PathTable:
    """A `ColdTable` at ``{root}/{topic}/{topic_id}``. Thread-safe.

    The table is made by the first change. Local files, commits and their folders are on the disk
    before `apply` or `snapshot` speaks of them.

    Args:
        engine: where files are written.
        rows_of: how hot ranges are read there.
    """

    def __init__(self, topic: Topic, storage: Storage, engine: Engine, rows_of: RowsOf) -> None:
        self._topic = topic
        self._engine = engine
        self._storage = storage
        self._write = partial(write_segment_file, topic=topic, storage=storage, rows_of=rows_of)
        self._log = DeltaLog(storage, topic)
        self._reader = SegmentReader(storage, self._log.path)
        self._unchecked = ColdSnapshot()  # the newest looked at
        self._latest = ColdSnapshot()  # the newest of those that hold together
        self._lock = threading.RLock()  # of the log and the latest snapshot

    @property
    def path(self) -> str:
        """Where the Delta table is."""
        return self._log.path

    def snapshot(self, newer_than: ColdSnapshot | None = None) -> ColdSnapshot:
        """See `ColdTable.snapshot`."""
        with self._lock:
            self._log.refresh()
            if self._log.version != self._latest.version:
                found = self.unchecked()
                contradictions.check(self._topic.name, found.files, found.registers)
                self._latest = found
            latest = self._latest
        if newer_than is not None and latest.version < newer_than.version:
            raise ContradictionError(
                f"the table at {self.path} is at version {latest.version}, but was seen at version "
                f"{newer_than.version} before: somebody put back an old copy. Bring the newest one "
                "back",
                path=self.path,
            )
        return latest

    def unchecked(self) -> ColdSnapshot:
        """See `ColdTable.unchecked`."""
        with self._lock:
            self._log.refresh()
            if self._log.version != self._unchecked.version:
                files = self._log.files()
                registers = self._registers(files.partitions)
                self._unchecked = ColdSnapshot(self._log.version, files, registers)
            return self._unchecked

    def apply(self, change: Change, planned_on: ColdSnapshot) -> Applied:
        """See `ColdTable.apply`."""
        self._check_plan(change, planned_on)
        with self._lock:
            snapshot = self.snapshot(planned_on)
            if not change.partitions:
                return Applied(snapshot)
            if snapshot.version < 0:
                self._log.create()
                snapshot = self.snapshot()
        standing = _standing(change, planned_on, snapshot)
        adds = [add for add in change.adds if add.topic_partition.partition in standing]
        written = list(self._engine.map(self._write, adds))
        if len(written) != len(adds):
            raise ColdTierError(f"the engine returned {len(written)} results for {len(adds)} tasks")
        failpoint("cold.after_files")
        return _Committing(self, change, planned_on, written).run()

    def read(
        self,
        files: Iterable[SegmentFile],
        start: int,
        end: int,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """See `ColdTable.read`."""
        return self._reader.read(files, start, end, columns)

    def map(self, function: Callable[[SegmentReader, T], R], tasks: Sequence[T]) -> Iterator[R]:
        """See `ColdTable.map`."""
        return self._engine.map(partial(function, self._reader), tasks)

    def offset_for_timestamp(
        self, snapshot: ColdSnapshot, partition: int, timestamp_ms: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """See `ColdTable.offset_for_timestamp`."""
        from_offset = max(from_offset, snapshot.log_start(partition))
        files = snapshot.files.first_with_timestamp(partition, timestamp_ms, from_offset)
        return self._reader.first_at_or_after(files, timestamp_ms, from_offset)

    def max_timestamp(
        self, snapshot: ColdSnapshot, partition: int, from_offset: int
    ) -> OffsetAndTimestamp | None:
        """See `ColdTable.max_timestamp`."""
        from_offset = max(from_offset, snapshot.log_start(partition))
        return self._reader.newest(snapshot.files.newest_first(partition, from_offset), from_offset)

    def orphans(self, snapshot: ColdSnapshot) -> list[str]:
        """See `ColdTable.orphans`. Lists the table's folders."""
        listed = self._storage.list_files(self.path, recursive=True)
        top = self._storage.arrow_path(self.path).rstrip("/") + "/"
        paths = [info.path.removeprefix(top) for info in listed if info.is_file]
        candidates = [path for path in paths if _never_committable(path, snapshot)]
        candidates = sorted(snapshot.files.missing(candidates))
        if not candidates:  # reading the tombstones costs more than all this
            return []
        with self._lock:
            self._log.refresh()
            tombstones = self._log.tombstones()
        return [path for path in candidates if path not in tombstones]

    def remove_orphans(self, snapshot: ColdSnapshot) -> list[str]:
        """See `ColdTable.remove_orphans`."""
        orphans = self.orphans(snapshot)
        for path in orphans:
            self._storage.delete_file(f"{self.path}/{path}")
            logger.info("removed %s of %s, left by a failed run", path, self._topic.name)
        return orphans

    # -- helpers -----------------------------------------------------------------------------------

    def _check_plan(self, change: Change, planned_on: ColdSnapshot) -> None:
        """Refuse a change that would lose or double records if it were committed as planned.

        Raises:
            UnknownTopicIdError: it is for another creation of the topic.
            InvalidArgumentError: anything else.
        """
        for add in change.adds:
            if isinstance(add, HotRange) and add.topic_id != self._topic.topic_id:
                raise UnknownTopicIdError(
                    f"a range of topic {self._topic.name!r} with id {add.topic_id} does not go "
                    f"into the table of its creation {self._topic.topic_id}; look the topic up "
                    "again",
                    topic_id=add.topic_id,
                )
        for register, value in change.registers.items():
            before = planned_on.registers.get(register, 0)
            if value < before:
                raise InvalidArgumentError(f"{register} only grows: from {before}, not to {value}")
        rewritten = {
            file.path for add in change.adds if isinstance(add, Rewrite) for file in add.files
        }
        for partition in change.partitions:
            log_start = planned_on.log_start(partition)
            for hot_range in change.hot_ranges(partition)[:1]:
                start = max(planned_on.archived_end(partition), log_start)
                if hot_range.start_offset != start:
                    raise InvalidArgumentError(
                        f"partition {partition} is archived up to {start}, so a range cannot start "
                        f"at {hot_range.start_offset}"
                    )
            log_start = change.registers.get(LogStart(partition), log_start)
            for file in change.removes:
                if (
                    file.partition == partition
                    and file.path not in rewritten
                    and file.end_offset > log_start
                ):
                    raise InvalidArgumentError(
                        f"removing {file.path} would lose records above the log start {log_start}"
                    )

    def _registers(self, partitions: Iterable[int]) -> Mapping[Register, int]:
        """At the log's version: from the commits since the latest snapshot, else by asking."""
        if self._latest.version >= 0:
            commits = self._log.commits(after=self._latest.version)
            if commits is not None:
                registers = dict(self._latest.registers)
                for commit in commits:
                    registers.update(self._parse(commit.transactions))
                return MappingProxyType(registers)
        registers = {}
        count = max([self._topic.partitions, *(number + 1 for number in partitions)])
        for partition in range(count):
            # A partition is born with all three (see `_transactions`), and to ask for one that is
            # not there costs a pass over the log.
            for register in _registers_of(partition):
                value = self._log.transaction_version(app_id(self._topic.topic_id, register))
                if value is None:
                    break
                registers[register] = value
        return MappingProxyType(registers)

    def _transactions(
        self, change: Change, standing: frozenset[int], current: ColdSnapshot
    ) -> dict[str, int]:
        """The txn versions of a commit; a partition's first one states all of its registers."""
        values = {
            register: 0
            for partition in standing
            for register in _registers_of(partition)
            if register not in current.registers
        }
        values |= {
            register: value
            for register, value in change.registers.items()
            if register.partition in standing
        }
        return {app_id(self._topic.topic_id, register): values[register] for register in values}

    def _parse(self, transactions: Mapping[str, int]) -> dict[Register, int]:
        """The registers among txn versions."""
        partitions = set()
        for name in transactions:
            owner, _, rest = name.partition(f"/{self._topic.topic_id}/")
            number = rest.partition("/")[0]
            if owner == "lakelog" and number.isdecimal():
                partitions.add(int(number))
        ids = {
            app_id(self._topic.topic_id, register): register
            for partition in partitions
            for register in _registers_of(partition)
        }
        return {ids[name]: version for name, version in transactions.items() if name in ids}


@dataclass
class _Committing:
    """One change on its way into the table: the same files, as often as it takes."""

    table: PathTable
    change: Change
    planned_on: ColdSnapshot
    written: Sequence[WrittenFile]
    attempts: dict[str, tuple[frozenset[int], dict[str, int]]] = field(default_factory=dict)
    refused: int = 0  # in a row, without a commit of others in the way

    def run(self) -> Applied:
        for attempt in range(COMMIT_ATTEMPTS):
            if attempt:
                time.sleep(random.uniform(0, min(MAX_BACK_OFF_S, 0.005 * 2 ** min(attempt, 10))))
            applied = self._attempt()
            if applied is not None:
                return applied
        raise CommitConflictError(
            f"others kept committing to {self.table.path}: none of {COMMIT_ATTEMPTS} attempts won. "
            "Nothing of this change was committed; try again",
            path=self.table.path,
        )

    def _attempt(self) -> Applied | None:
        """Commit what stands; None if that was refused."""
        with self.table._lock:
            snapshot = self.table.snapshot()
            standing = _standing(self.change, self.planned_on, snapshot)
            if not standing:
                return Applied(snapshot, superseded=self.change.partitions)
            failpoint("cold.before_commit")
            error = self._commit(snapshot, standing)
            # Whatever the answer was, the log knows: a lost reply looks like a lost race.
            landed = self._read_back(snapshot.version, error)
            if landed is not None:
                return self._applied(landed)
            if self.table._log.version == snapshot.version:
                self.refused += 1
                if self.refused == REFUSED_ATTEMPTS:
                    raise ColdTierError(
                        f"the table at {self.table.path} takes no commit: {error}. Nothing was "
                        "changed. Check that it may be written by this user and has room",
                        path=self.table.path,
                    ) from error
            else:
                self.refused = 0
                logger.debug("%s: another commit was faster: %s", self.table.path, error)
            return None

    def _commit(self, snapshot: ColdSnapshot, standing: frozenset[int]) -> Exception | None:
        commit_id = uuid4().hex
        transactions = self.table._transactions(self.change, standing, snapshot)
        self.attempts[commit_id] = (standing, transactions)
        try:
            self.table._log.commit(
                commit_id,
                [add for add in self.written if add.file.partition in standing],
                [file for file in self.change.removes if file.partition in standing],
                transactions,
                data_change=self.change.data_change,
            )
            failpoint("cold.after_commit")
        except Exception as error:
            return error
        return None

    def _read_back(self, since: int, error: Exception | None) -> frozenset[int] | None:
        """The partitions that an attempt of ours committed after that version; None if none did.

        Raises:
            CommitUnknownError: the log cannot be read.
            ContradictionError: it landed, but without the registers it carried.
        """
        commits = None
        for attempt in range(REFUSED_ATTEMPTS):
            try:
                self.table._log.refresh()
                commits = self.table._log.commits(after=since)
                break
            except ColdTierError as failure:
                error = error or failure
                if attempt < REFUSED_ATTEMPTS - 1:
                    time.sleep(0.02 * 2**attempt)
        if commits is None:
            raise CommitUnknownError(
                f"a commit to {self.table.path} may have landed: the store did not say, and "
                "reading back failed too. Take a new snapshot when it answers again; running this "
                "once more is safe",
                path=self.table.path,
            ) from error
        for commit in commits:
            if commit.commit_id in self.attempts:
                standing, transactions = self.attempts[commit.commit_id]
                if commit.transactions != transactions:
                    raise ContradictionError(
                        f"version {commit.version} of {self.table.path} should carry the registers "
                        f"{transactions}, but has {dict(commit.transactions)}. Check the deltalake "
                        "version",
                        path=self.table.path,
                    )
                return standing
        return None

    def _applied(self, standing: frozenset[int]) -> Applied:
        files = [add.file for add in self.written if add.file.partition in standing]
        files.sort(key=lambda file: (file.partition, file.start_offset))
        return Applied(
            self.table.snapshot(self.planned_on),
            tuple(files),
            superseded=self.change.partitions - standing,
        )


def _standing(change: Change, planned_on: ColdSnapshot, current: ColdSnapshot) -> frozenset[int]:
    """The partitions that can be committed as planned.

    Nobody moved their registers or removed the files that go. (Delta-rs's own check misses removals
    that change no data.)
    """
    gone = current.files.missing(file.path for file in change.removes)
    fallen = {file.partition for file in change.removes if file.path in gone}
    fallen |= {
        register.partition
        for register in change.registers
        if current.registers.get(register, 0) != planned_on.registers.get(register, 0)
    }
    return change.partitions - fallen


def _registers_of(partition: int) -> tuple[Register, Register, Register]:
    return ArchivedEnd(partition), LogStart(partition), CleanedEnd(partition)


def _never_committable(path: str, snapshot: ColdSnapshot) -> bool:
    """Whether it is an archive file that starts below what is archived already."""
    start = archived_start(path)
    partition = path.partition("/")[0].removeprefix("partition=")
    return (
        start is not None
        and partition.isdecimal()
        and start < snapshot.archived_end(int(partition))
    )
