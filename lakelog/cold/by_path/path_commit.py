"""Commits a change to a table at a path: the files written for it, and its registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID, uuid4

from msgspec import Struct

from ...base.back_off import BackOff
from ...base.failpoints import failpoint
from ...errors import ContradictionError, MissingFileError
from ..change import Change
from ..committing import NotLanded, read_back
from ..properties import APPEND_ONLY_PROPERTY, unset
from ..segment import SegmentFile
from ..store.storage import Storage
from ..table import Applied, ColdSnapshot
from .delta_log import UNDO_FEATURES, DeltaLog
from .log_file import Commit, transactions_of
from .segment_writer import WrittenFile


class _Attempt(Struct, frozen=True):
    """One try to make the version after `since`; only one commit can be that version."""

    commit_id: str
    since: int
    standing: frozenset[int]
    transactions: Mapping[str, int]


class PathCommit(Struct, frozen=True):
    """Commits one change, with the same files in as many attempts as it takes.

    The caller holds the log.

    Args:
        written: the files that were written for the change.
        reads: how often to read a log that does not tell what became of a commit.
        applied: gives the snapshot of the log as it was last read.
    """

    log: DeltaLog
    storage: Storage
    topic_id: UUID
    change: Change
    written: Sequence[WrittenFile]
    reads: BackOff
    applied: Callable[[], ColdSnapshot]

    def attempt(self, snapshot: ColdSnapshot, standing: frozenset[int]) -> Applied | NotLanded:
        """Commit the standing partitions, on top of the log's version; see `check_files`.

        Raises:
            CommitUnknownError: the log cannot be read.
            ContradictionError: it landed, but without the registers it carried.
        """
        failpoint("cold.after_check")
        transactions = transactions_of(
            self.topic_id,
            self.change,
            standing,
            snapshot,
            anew=self.log.drops_transactions,
        )
        attempt = _Attempt(uuid4().hex, snapshot.version, standing, transactions)
        error = self._commit(attempt)
        # Whatever the answer was, the log knows: a lost reply looks like a lost race.
        if self._has_landed(attempt, error):
            applied = self._applied(standing)
            self.log.checkpoint_if_due()
            return applied
        return NotLanded(error, self.log.version > snapshot.version, advice(str(error)))

    def check_files(self, standing: frozenset[int]) -> None:
        """Check that nobody deleted what was just written: delta-rs would commit it all the same.

        lakelog's own runs do not (see `orphans`), but a full VACUUM takes every file that no commit
        names, and after a RESTORE a superseded change may look as planned again. Where the log was
        not read right before, it may be gone, too: then its next version would be free.
        """
        paths = [f"{self.log.path}/{file.path}" for file in self._files(standing)]
        if not self.storage.is_local:
            paths.append(self.log.newest_file)
        for path in self.storage.missing(paths)[:1]:
            raise MissingFileError(
                f"{path} was deleted before the commit that was to name it, as a full VACUUM with "
                "a retention shorter than a run does. Nothing was committed and nothing is lost; "
                "run again",
                path=path,
            )

    def _commit(self, attempt: _Attempt) -> Exception | None:
        try:
            self.log.commit(
                attempt.commit_id,
                [add for add in self.written if add.file.partition in attempt.standing],
                [file for file in self.change.removes if file.partition in attempt.standing],
                attempt.transactions,
                data_change=self.change.data_change,
                operation=self.change.operation,
            )
            failpoint("cold.after_commit")
        except Exception as error:
            return error
        return None

    def _has_landed(self, attempt: _Attempt, error: Exception | None) -> bool:
        commit = read_back(
            f"the table at {self.log.path}",
            self.log.path,
            lambda: self._commit_after(attempt),
            error,
            self.reads,
        )
        if isinstance(commit, bool):
            return commit
        if commit.commit_id != attempt.commit_id:
            return False
        if commit.transactions != attempt.transactions:
            raise ContradictionError(
                f"version {commit.version} of {self.log.path} should carry the registers "
                f"{attempt.transactions}, but has {dict(commit.transactions)}. Check the deltalake "
                "version",
                path=self.log.path,
            )
        return True

    def _commit_after(self, attempt: _Attempt) -> Commit | bool:
        """The commit that took the attempt's version; without one, whether the attempt landed."""
        self.log.read_back()
        if self.log.version == attempt.since:
            return False
        return self.log.commit_at(attempt.since + 1) or self._left_traces(attempt)

    def _left_traces(self, attempt: _Attempt) -> bool:
        """Whether the attempt landed, if its log file would be cleaned up already.

        No other commit names the files it added. If it added none, "no" is safe to say: if it did
        land, the registers it moved supersede the next attempt, as another commit's would.
        """
        own = {file.path for file in self._files(attempt.standing)}
        return bool(own - self.log.files().missing(own) or own & self.log.tombstones())

    def _files(self, standing: frozenset[int]) -> list[SegmentFile]:
        """The files that were written, by partition and offset."""
        files = [add.file for add in self.written if add.file.partition in standing]
        return sorted(files, key=lambda file: (file.partition, file.start_offset))

    def _applied(self, standing: frozenset[int]) -> Applied:
        return Applied(
            self.applied(),
            tuple(self._files(standing)),
            superseded=self.change.partitions - standing,
            unparsed=self._unparsed(standing),
        )

    def _unparsed(self, standing: frozenset[int]) -> dict[int, int]:
        found = dict.fromkeys(standing, 0)
        for add in self.written:
            if add.file.partition in standing:
                found[add.file.partition] += add.unparsed
        return found


def advice(refusal: str) -> str:
    """What to do about a store that refuses a commit with these words."""
    if "table features" in refusal:  # such a table can be read, but not written
        return f"Somebody turned them on. {UNDO_FEATURES}"
    if "append-only" in refusal:
        return f"Somebody set {APPEND_ONLY_PROPERTY}. {unset(APPEND_ONLY_PROPERTY)}"
    return "Check that it may be written by this user and has room"
