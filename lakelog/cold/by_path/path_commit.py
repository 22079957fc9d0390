"""Commits a change to a table at a path: the files written for it, and its registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID, uuid4

from msgspec import Struct

from ...base.back_off import BackOff
from ...base.failpoints import failpoint
from ...errors import ContradictionError, MissingFileError
from ..change import Change
from ..committing import NotLanded, read_back
from ..properties import APPEND_ONLY_PROPERTY, unset
from ..store.storage import Storage
from ..table import Applied, ColdSnapshot
from .delta_log import UNDO_FEATURES, DeltaLog
from .log_file import Commit, transactions_of
from .segment_writer import WrittenFile


class PathCommit(Struct, frozen=True):
    """Commits one change, with the same files in as many attempts as it takes.

    The caller holds the log.

    Args:
        written: the files that were written for the change.
        reads: how often to read a log that does not tell what became of a commit.
        snapshot: goes to the newest version.
        as_read: gives the snapshot of the log as it was last read.
    """

    log: DeltaLog
    storage: Storage
    topic_id: UUID
    change: Change
    written: Sequence[WrittenFile]
    reads: BackOff
    snapshot: Callable[[], ColdSnapshot]
    as_read: Callable[[], ColdSnapshot]

    def attempt(
        self, current: ColdSnapshot, tried: list[int], standing: frozenset[int]
    ) -> Applied | NotLanded:
        """Commit the standing partitions on top of a version, which the log is at.

        Args:
            tried: gets the version, before the commit.

        Raises:
            MissingFileError: somebody deleted a file that was just written.
            CommitUnknownError: the log cannot be read.
            ContradictionError: it landed, but without the registers it carried.
        """
        added = [one for one in self.written if one.file.partition in standing]
        added.sort(key=lambda one: (one.file.partition, one.file.start_offset))
        try:
            self._check_files(added)
        except MissingFileError as gone:  # a newer version may have superseded it
            if self.storage.is_local or self.snapshot().version == current.version:
                raise
            return NotLanded(gone, True, "")
        tried.append(current.version)
        failpoint("cold.after_check")
        commit_id = uuid4().hex
        error: Exception | None = None
        transactions = transactions_of(
            self.topic_id, self.change, standing, current, anew=self.log.drops_transactions
        )
        try:
            self.log.commit(
                commit_id,
                added,
                [file for file in self.change.removes if file.partition in standing],
                transactions,
                data_change=self.change.data_change,
                operation=self.change.operation,
            )
            failpoint("cold.after_commit")
        except Exception as failure:
            error = failure
        # Whatever the answer was, the log knows: a lost reply looks like a lost race.
        where = f"the table at {self.log.path}"
        look = partial(self._commit_after, current.version, added)
        commit = read_back(where, self.log.path, look, error, self.reads)
        if commit is False or (commit is not True and commit.commit_id != commit_id):
            return NotLanded(error, self.log.version > current.version, advice(str(error)))
        if commit is not True and commit.transactions != transactions:
            raise ContradictionError(
                f"version {commit.version} of {self.log.path} should carry the registers "
                f"{transactions}, but has {dict(commit.transactions)}. Check the deltalake version",
                path=self.log.path,
            )
        unparsed = dict.fromkeys(standing, 0)
        for one in added:
            unparsed[one.file.partition] += one.unparsed
        files = tuple(one.file for one in added)
        applied = Applied(self.as_read(), files, self.change.partitions - standing, unparsed)
        self.log.checkpoint_if_due()
        return applied

    def _check_files(self, added: Sequence[WrittenFile]) -> None:
        """Check that nobody deleted what was just written: delta-rs would commit it all the same.

        lakelog's own runs do not (see `orphans`), but a full VACUUM takes every file that no commit
        names, and after a RESTORE a superseded change may look as planned again. Where the log was
        not read right before, it may be gone, too: then its next version would be free.
        """
        paths = [f"{self.log.path}/{one.file.path}" for one in added]
        if not self.storage.is_local:
            paths.append(self.log.newest_file)
        for path in self.storage.missing(paths)[:1]:
            raise MissingFileError(
                f"{path} was deleted before the commit that was to name it, as a full VACUUM with "
                "a retention shorter than a run does. Nothing was committed and nothing is lost; "
                "run again",
                path=path,
            )

    def _commit_after(self, since: int, added: Sequence[WrittenFile]) -> Commit | bool:
        """The commit that took the next version; without one, whether the attempt landed.

        If its log file would be cleaned up already: no other commit names the files it added. If it
        added none, "no" is safe to say: if it did land, the registers it moved supersede the next
        attempt, as another commit's would.
        """
        self.log.read_back()
        if self.log.version == since:
            return False
        commit = self.log.commit_at(since + 1)
        if commit is not None:
            return commit
        own = {one.file.path for one in added}
        return bool(own - self.log.files().missing(own) or own & self.log.tombstones())


def advice(refusal: str) -> str:
    """What to do about a store that refuses a commit with these words."""
    if "table features" in refusal:  # such a table can be read, but not written
        return f"Somebody turned them on. {UNDO_FEATURES}"
    if "append-only" in refusal:
        return f"Somebody set {APPEND_ONLY_PROPERTY}. {unset(APPEND_ONLY_PROPERTY)}"
    return "Check that it may be written by this user and has room"
