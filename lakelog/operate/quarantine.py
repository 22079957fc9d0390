"""Moves a bad entry or file aside, so that it does not block its partition."""

from __future__ import annotations

from msgspec import Struct

from ..base.clock import Clock, SystemClock
from ..base.failpoints import failpoint
from ..cold.by_path.quarantine import ColdQuarantine, QuarantinedFile
from ..cold.reserve import reserving
from ..cold.table import ColdTable
from ..errors import InvalidArgumentError, PolicyViolationError
from ..hot.hot_log import HotLog
from ..hot.quarantine import HotQuarantine, QuarantinedEntry
from ..values.topic import Topic
from .who import who


class Quarantine(Struct, frozen=True):
    """The quarantine of one partition: entries of the hot tier, files of the cold one.

    What is moved aside is kept byte for byte. Its offsets become a declared gap: never given again,
    skipped and reported by readers. Producers, archivers and cleanup go on (except compaction,
    which waits while a file of the partition is in quarantine).

    Files of a table by name stay where they are. Only a commit by Spark takes a file out, and for
    that Spark reads it, unless a whole segment goes. If only lakelog's notes called its rows
    skipped, the table would still have it: SQL, views and any OPTIMIZE would fail on it as before,
    and disagree with lakelog about what the log holds. So such a file stays, but blocks nothing:
    what it holds is taken from the notes (see `Slice.assumed`), only reads of its own rows fail,
    and retention drops its segment unread.

    Args:
        table: the cold tier; None for an untiered topic.
        files: moves its damaged files; None where only the catalog may move files.
    """

    topic: Topic
    partition: int
    hot: HotLog
    table: ColdTable | None
    files: ColdQuarantine | None
    clock: Clock = SystemClock()

    def add_entry(
        self, entry_id: str, reason: str = "", *, dry_run: bool = False
    ) -> QuarantinedEntry:
        """Moves an entry of the stream aside, or gives it up if it is missing.

        Args:
            entry_id: as errors and XRANGE show it, ``{last offset}-{record count}``.
            reason: kept beside it; default what is wrong with it.
            dry_run: only say what would go.

        Raises:
            InvalidArgumentError: not an entry's id, or there is neither an entry nor a hole.
            PolicyViolationError: the entry is sound and in its place.
            ConcurrentChangeError: others kept changing the partition; nothing was moved.
            ArchivedElsewhereError: another table is the topic's, and may be away.
        """
        return self._entries().add(
            entry_id,
            reason,
            who(),
            self.clock.now_ms(),
            archived_end=0 if self.table is None else self._archived_end(self.table),
            dry_run=dry_run,
        )

    def add_file(self, path: str, reason: str = "", *, dry_run: bool = False) -> QuarantinedFile:
        """Moves a file of the table aside, or gives it up if it is missing.

        Args:
            path: as errors show it, or the end of it.
            reason, dry_run: as for `add_entry`.

        Raises:
            InvalidArgumentError: the table names no such file, or lies with a catalog.
            PolicyViolationError: the file can be read.
            CommitConflictError: others kept changing it; nothing was moved.
        """
        return self._files().add(path, reason, who(), self.clock.now_ms(), dry_run=dry_run)

    def held(self) -> list[QuarantinedEntry | QuarantinedFile]:
        """What is in quarantine: entries, then files, by offset."""
        return [*self._entries().held(), *(self.files.held() if self.files else [])]

    def release_entry(self, entry_id: str, *, dry_run: bool = False) -> QuarantinedEntry:
        """Puts an entry back in its place, if it is sound and no archive has gone past it.

        Raises:
            InvalidArgumentError: no entry of that id is in quarantine.
            CorruptRecordError: it is still not what was written.
            PolicyViolationError: its place is taken, archived or trimmed.
            ArchivedElsewhereError: another table is the topic's, and may be away.
        """
        entries = self._entries()
        self._check_unarchived(entry_id, dry_run=dry_run)
        held = entries.put_back(entry_id, self.clock.now_ms(), dry_run=dry_run)
        if dry_run:
            return held
        failpoint("quarantine.before_fence")
        if self.table is not None:
            # From here on, an archiver that has copied the records around it cannot pass it.
            self.hot.reserve_more(
                self.topic.partition(self.partition),
                reserving(self.topic, self.table, self.hot.archived_into().settle),
                self.topic.topic_id,
            )
            self._check_unarchived(entry_id)
        failpoint("quarantine.before_forget")
        entries.forget(entry_id)
        failpoint("quarantine.after_release")
        return held

    def release_file(self, path: str, *, dry_run: bool = False) -> QuarantinedFile:
        """Puts the records of a file back, if it can be read again.

        Raises:
            InvalidArgumentError: no file of that path is in quarantine.
            CorruptRecordError, MissingFileError: it still cannot be read.
            ContradictionError: its records are not those it had.
            PolicyViolationError: compaction has passed its range since.
        """
        return self._files().release(path, dry_run=dry_run)

    # -- helpers ---------------------------------------------------------------------------------

    def _entries(self) -> HotQuarantine:
        return self.hot.quarantine(self.topic.partition(self.partition), self.topic.topic_id)

    def _files(self) -> ColdQuarantine:
        if self.table is None:
            raise InvalidArgumentError(
                f"topic {self.topic.name!r} is not archived, so it has no files",
                topic=self.topic.name,
            )
        if self.files is None:
            raise InvalidArgumentError(
                f"the table of topic {self.topic.name!r} lies with a catalog, which alone moves "
                "its files. Rows outside a damaged file are archived and read as before; "
                "for its own rows put a sound copy in its place, or raise the log start above it. "
                "Entries of the hot tier can be moved aside",
                topic=self.topic.name,
            )
        return self.files

    def _archived_end(self, table: ColdTable) -> int:
        """Where cold's records end, by the topic's own table: one that is away has some, too.

        Raises:
            ArchivedElsewhereError: another one is the topic's.
        """
        self.hot.archived_into().settle(self.topic, table)
        return table.snapshot().archived_end(self.partition)

    def _check_unarchived(self, entry_id: str, *, dry_run: bool = False) -> None:
        """Refuses an entry that cold will never hold; takes it out again if it is already back."""
        if self.table is None:
            return
        archived_end = self._archived_end(self.table)
        entries = self._entries()
        held = next((one for one in entries.held() if one.entry_id == entry_id), None)
        if held is not None and held.gap.start < held.gap.end and archived_end > held.gap.start:
            if not dry_run and entries.is_back(entry_id):
                entries.add(
                    entry_id,
                    held.reason,
                    held.who,
                    held.moved_at_ms,
                    archived_end=held.gap.end,
                    whatever=True,
                )
            raise PolicyViolationError(
                f"entry {entry_id} of {self.topic.partition(self.partition)} cannot go back: the "
                f"archive has gone past it, to {archived_end}. Its bytes stay in quarantine; "
                "produce its records again",
                entry_id=entry_id,
            )
