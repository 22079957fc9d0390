"""Skips a bad entry or file, so that it does not block its partition."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
from msgspec import Struct

from ..base.clock import Clock, SystemClock
from ..base.failpoints import failpoint
from ..base.json_text import parse_json
from ..cold.by_path.skip import ColdSkips
from ..cold.segment import is_stand_in
from ..cold.table import ColdTable
from ..errors import (
    CommitConflictError,
    ConcurrentChangeError,
    InvalidArgumentError,
)
from ..hot.foreign import foreign_if_illegible
from ..hot.hot_log import HotLog
from ..hot.skip import HotSkips
from ..values.offsets import check_offset
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from .who import who


class Skip(Struct, frozen=True):
    """One entry or file that was, or would be, skipped."""

    topic_partition: TopicPartition
    tier: str  # hot: an entry; cold: a file
    name: str  # the entry's id, or the file's path in the table; empty: not known any more
    gap: OffsetRange  # empty: other entries hold its offsets, or it names none
    reason: str
    who: str
    skipped_ms: int  # -1: not known any more
    size_bytes: int | None = None  # None: likewise
    saved_to: str = ""  # the file with what is left of it; empty: an older version skipped it


class _Note(Struct, frozen=True, omit_defaults=True):
    """What Redis keeps of it, as JSON. Older versions wrote no `saved_to` and no `size_bytes`."""

    gap: tuple[int, int]
    reason: str
    who: str
    moved_at_ms: int
    size_bytes: int | None = None
    saved_to: str = ""


class Skips(Struct, frozen=True):
    """What is skipped of one partition: entries of the hot tier, files of the cold one.

    The bytes of an entry, or the name of a file, are saved to a file of the caller's. The offsets
    become a declared gap: never given again, skipped and reported by readers. Producers, archivers
    and cleanup go on, except compaction of a partition of which a file was skipped.

    Files of a table by name are not skipped: only the catalog takes one out, by a commit for which
    Spark reads it. If only lakelog called its rows skipped, the table would still have it, and SQL,
    views and any OPTIMIZE would fail on it as before.

    Args:
        table: the cold tier; None for an untiered topic.
        files: skips its files; None where only the catalog may.
    """

    topic: Topic
    partition: int
    hot: HotLog
    table: ColdTable | None
    files: ColdSkips | None
    clock: Clock = SystemClock()

    def skip_entry(
        self,
        entry_id: str,
        reason: str = "",
        *,
        save_to: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
    ) -> Skip:
        """Takes an entry out of the log, or gives it up if it is missing.

        Args:
            entry_id: as errors and XRANGE show it, ``{last offset}-{record count}``.
            reason: default: what is wrong with it.
            save_to: a file that is not there yet, for its bytes. Default: one in the current
                folder, named by the partition and the entry.
            dry_run: only say what would go.

        Raises:
            InvalidArgumentError: not an entry's id, there is neither an entry nor a hole, or the
                file is there already or cannot be written.
            PolicyViolationError: the entry is sound and in its place.
            ConcurrentChangeError: others changed the partition; nothing was skipped.
            ArchivedElsewhereError: another table is the topic's, and may be away.
        """
        archived_end = 0 if self.table is None else self._archived_end(self.table)
        bad = self._entries.look(entry_id)
        skip = self._skip(
            *("hot", entry_id, bad.gap, reason or bad.flaw, bad.size_bytes), save_to=save_to
        )
        if dry_run:
            return skip
        _save(skip, {"fields": [b64encode(one).decode() for one in bad.fields]})
        try:
            self._entries.skip(bad, _note_of(skip), archived_end=archived_end)
        except ConcurrentChangeError:
            Path(skip.saved_to).unlink()
            raise
        return skip

    def skip_file(
        self,
        path: str,
        reason: str = "",
        *,
        save_to: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
    ) -> Skip:
        """Takes a file out of the table, or gives it up if it is missing.

        A file that is there stays in the table's folder for ``file.delete.delay.ms``: copy it, if
        something of it may still be read.

        Args:
            path: as errors show it, or the end of it.
            reason, save_to, dry_run: as for `skip_entry`.

        Raises:
            InvalidArgumentError: the table names no such file, or lies with a catalog; or the file
                to save to is there already or cannot be written.
            PolicyViolationError: the file can be read.
            CommitConflictError: others kept changing it; nothing was skipped.
        """
        files = self._files()
        bad = files.look(path)
        size_bytes = bad.file.size_bytes
        skip = self._skip(
            *("cold", bad.file.path, bad.gap, reason or bad.flaw, size_bytes), save_to=save_to
        )
        if dry_run:
            return skip
        _save(skip, {"table": None if self.table is None else self.table.where})
        try:
            files.skip(bad)
        except CommitConflictError:
            Path(skip.saved_to).unlink()
            raise
        failpoint("skip.after_file")
        self._entries.note(bad.file.path, _note_of(skip))
        return skip

    def list(self) -> list[Skip]:
        """What was skipped: entries, then files, by offset."""
        tp = self.topic.partition(self.partition)
        skips = noted(self.hot, tp, self.topic.topic_id)
        entries = [one for one in skips if one.tier == "hot"]
        of_files = {one.gap: one for one in skips if one.tier == "cold"}
        files = () if self.table is None else self.table.snapshot().files.of_partition(tp.partition)
        stand_ins = [
            OffsetRange(one.start_offset, one.end_offset) for one in files if is_stand_in(one.path)
        ]
        why = "Redis has no note of it"
        unknown = [Skip(tp, "cold", "", gap, why, "", -1) for gap in stand_ins]
        return [
            *sorted(entries, key=lambda one: tuple(map(int, one.name.split("-")))),
            *(of_files.get(one.gap, one) for one in unknown),
        ]

    # -- helpers ---------------------------------------------------------------------------------

    @property
    def _entries(self) -> HotSkips:
        return self.hot.skips(self.topic.partition(self.partition), self.topic.topic_id)

    def _files(self) -> ColdSkips:
        if self.table is None:
            raise InvalidArgumentError(
                f"topic {self.topic.name!r} is not archived, so it has no files",
                topic=self.topic.name,
            )
        if self.files is None:
            raise InvalidArgumentError(
                f"the table of topic {self.topic.name!r} lies with a catalog, which alone takes "
                "files out. Rows outside a damaged file are archived and read as before; for its "
                "own rows put a sound copy in its place, or raise the log start above it. Entries "
                "of the hot tier can be skipped",
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

    def _skip(
        self,
        tier: str,
        name: str,
        gap: OffsetRange,
        reason: str,
        size_bytes: int,
        *,
        save_to: str | os.PathLike[str] | None,
    ) -> Skip:
        tp = self.topic.partition(self.partition)
        file = Path(save_to or f"{tp}-{name.rpartition('/')[2]}.skipped.json").absolute()
        return Skip(tp, tier, name, gap, reason, who(), self.clock.now_ms(), size_bytes, str(file))


def _save(skip: Skip, held: dict[str, Any]) -> None:
    """Writes what is left of what is skipped, and has it on the disk.

    Raises:
        InvalidArgumentError: the file is there already, or cannot be written.
    """
    said = {**msgspec.to_builtins(skip), **held}
    try:
        with Path(skip.saved_to).open("x") as file:
            file.write(json.dumps(said, indent=1))
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as error:
        raise InvalidArgumentError(
            f"{skip.saved_to} is there already, perhaps from a run that was cut short; nothing was "
            "skipped. Name another file (--save-to), or delete it",
            path=skip.saved_to,
        ) from error
    except OSError as error:
        raise InvalidArgumentError(
            f"{skip.saved_to} cannot be written ({error.strerror}); nothing was skipped. Name a "
            "file in a folder that is there and that this user may write to (--save-to)",
            path=skip.saved_to,
        ) from error
    failpoint("skip.after_save")


def _note_of(skip: Skip) -> bytes:
    note = _Note(
        *((*skip.gap,), skip.reason, skip.who, skip.skipped_ms, skip.size_bytes, skip.saved_to)
    )
    return msgspec.json.encode(note)


def noted(hot: HotLog, topic_partition: TopicPartition, topic_id: UUID) -> list[Skip]:
    """What Redis has notes of.

    Raises:
        ForeignEntryError: somebody else wrote one.
    """
    found = hot.skips(topic_partition, topic_id).notes()
    return [_noted(topic_partition, name, text) for name, text in found.items()]


def _noted(topic_partition: TopicPartition, name: str, text: bytes) -> Skip:
    with foreign_if_illegible(text, f"note of what was skipped, under {name!r}"):
        note = msgspec.convert(parse_json(text), _Note)
        gap = OffsetRange(*map(check_offset, note.gap))
    first, _, second = name.partition("-")
    tier = "hot" if first.isdecimal() and second.isdecimal() else "cold"
    return Skip(
        *(topic_partition, tier, name, gap, note.reason, note.who, note.moved_at_ms),
        *(note.size_bytes, note.saved_to),
    )
