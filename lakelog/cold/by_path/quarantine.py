"""Files moved aside, so that the rest of the table is read and cleaned.

The bytes of such a file lie below ``_quarantine/``, which VACUUM and lakelog's own orphan removal
leave alone, with a note as JSON beside them. In the table an empty file stands in for it, named
``quarantine-{start}-{end}-…``. Its range is a declared gap, so that cover and registers hold.

Order: the copy, the note, then one commit that replaces the file by the stand-in. A crash before
the commit leaves a copy without a stand-in; the next `add` writes over it.
"""

from __future__ import annotations

import json
import logging

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from ...base.failpoints import failpoint
from ...base.json_text import parse_json
from ...errors import (
    CommitConflictError,
    ContradictionError,
    CorruptRecordError,
    InvalidArgumentError,
    LakelogError,
    MissingFileError,
    PolicyViolationError,
)
from ...values.offsets import check_offset
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange, TopicPartition
from ..change import Change, Rewrite
from ..segment import SegmentFile, is_stand_in
from ..store.storage import Storage
from ..table import ColdSnapshot
from .path_table import PathTable
from .quarantine_folder import FOLDER

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 8 * 1024 * 1024


class QuarantinedFile(Struct, frozen=True):
    """One file that is, or would be, moved aside."""

    topic_partition: TopicPartition
    path: str  # of the file in the table, before
    held_at: str  # where its bytes are now; empty: it was missing, or an erasure gave it up
    gap: OffsetRange
    records: int  # as the table said; -1: it did not
    reason: str
    who: str
    moved_at_ms: int
    cleaned_end: int  # the partition's register when it was moved
    file: SegmentFile

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes


class ColdQuarantine:
    """Moves files of one partition aside, lists them, and puts them back."""

    def __init__(self, topic: Topic, table: PathTable, storage: Storage, partition: int) -> None:
        self._table = table
        self._storage = storage
        self._topic_partition = topic.partition(partition)

    def add(
        self, path: str, reason: str, who: str, now_ms: int, *, dry_run: bool = False
    ) -> QuarantinedFile:
        """Moves a file aside, or gives it up if it is missing.

        Args:
            path: as errors show it, or the end of it.

        Raises:
            InvalidArgumentError: the partition's table names no such file, or several.
            PolicyViolationError: the file can be read.
            CommitConflictError: others kept changing it; nothing was moved.
        """
        snapshot = self._table.snapshot()
        file = self._named(path, snapshot)
        flaw = self._flaw(file)
        held_at = "" if isinstance(flaw, MissingFileError) else f"{FOLDER}/{file.path}"
        moved = QuarantinedFile(
            self._topic_partition,
            file.path,
            held_at,
            OffsetRange(file.start_offset, file.end_offset),
            file.records,
            reason or flaw.message,
            who,
            now_ms,
            snapshot.cleaned_end(file.partition),
            file,
        )
        if dry_run:
            return moved
        failpoint("quarantine.before_copy")
        if held_at:
            self._copy(file.path, held_at)
        self._write_note(moved)
        failpoint("quarantine.after_copy")
        stand_in = Rewrite(self._topic_partition, file.segment, (file,), aside=True)
        try:
            self._apply(Change(adds=(stand_in,), removes=(file,)), snapshot, file.path)
        except CommitConflictError:
            self._take_back(moved)
            raise
        return moved

    def held(self) -> list[QuarantinedFile]:
        """The files in quarantine, by offset."""
        return [note for _, note in self._pairs(self._table.snapshot())]

    def release(self, path: str, *, dry_run: bool = False) -> QuarantinedFile:
        """Puts a file's records back, if it can be read again, as a file of another name.

        Repair it first: put a sound copy where `QuarantinedFile.held_at` says (of a missing one,
        at ``_quarantine/`` and its path).

        Raises:
            InvalidArgumentError: no file of that path is in quarantine.
            CorruptRecordError, MissingFileError: it still cannot be read.
            ContradictionError: its records are not those it had.
            PolicyViolationError: compaction has passed its range since.
        """
        snapshot = self._table.snapshot()
        pairs = [pair for pair in self._pairs(snapshot) if _ends(pair[1].path, path)]
        if len(pairs) != 1:
            raise InvalidArgumentError(
                f"{self._topic_partition} has {len(pairs)} files {path!r} in quarantine; `lakelog "
                "quarantine list` shows what it has",
                path=path,
            )
        ((stand_in, held),) = pairs
        if snapshot.cleaned_end(stand_in.partition) != held.cleaned_end:
            raise PolicyViolationError(
                f"{held.path} cannot go back: compaction went on since, and may have removed the "
                "tombstones of keys that it holds. Read it where it lies "
                f"({FOLDER}/{held.path}), and produce the missing records again",
                path=held.path,
            )
        source = replace(held.file, path=f"{FOLDER}/{held.path}")
        rows = sum(batch.num_rows for batch in self._table.read([source], *held.gap))
        if held.records >= 0 and rows != held.records:
            raise ContradictionError(
                f"{source.path} has {rows} records of [{held.gap.start}, {held.gap.end}) instead "
                f"of {held.records}; nothing was put back",
                path=source.path,
            )
        if dry_run:
            return held
        failpoint("quarantine.before_return")
        back = Rewrite(self._topic_partition, stand_in.segment, (stand_in,), source=source)
        self._apply(Change(adds=(back,), removes=(stand_in,)), snapshot, held.path)
        failpoint("quarantine.after_return")
        self._storage.delete_files(
            f"{self._table.path}/{FOLDER}/{held.path}{suffix}" for suffix in ("", ".json")
        )
        return held

    # -- helpers ---------------------------------------------------------------------------------

    def _take_back(self, moved: QuarantinedFile) -> None:
        """Deletes the copy of a file that somebody else rewrote or removed, so that it does not
        outlive an erasure; unless somebody else moved it aside.
        """
        files = self._table.snapshot().files.of_partition(self._topic_partition.partition)
        if any(
            file.path == moved.path
            or (is_stand_in(file.path) and (file.start_offset, file.end_offset) == (*moved.gap,))
            for file in files
        ):
            return
        self._storage.delete_files(
            f"{self._table.path}/{FOLDER}/{moved.path}{suffix}" for suffix in ("", ".json")
        )

    def _named(self, path: str, snapshot: ColdSnapshot) -> SegmentFile:
        files = [
            file
            for file in snapshot.files.of_partition(self._topic_partition.partition)
            if _ends(path, file.path) or _ends(file.path, path)
        ]
        files = [file for file in files if not is_stand_in(file.path)]
        if len(files) != 1:
            raise InvalidArgumentError(
                f"the table of {self._topic_partition} names {len(files) or 'no'} files {path!r}; "
                f"give a path as errors and `lakelog segments list --verify` show it",
                path=path,
            )
        return files[0]

    def _flaw(self, file: SegmentFile) -> LakelogError:
        """Why the file may go.

        Raises:
            PolicyViolationError: it can be read.
        """
        rows = 0
        try:
            for batch in self._table.read([file], file.start_offset, file.end_offset):
                rows += batch.num_rows
        except (MissingFileError, CorruptRecordError) as error:
            return error
        if file.records >= 0 and rows != file.records:
            return CorruptRecordError(
                f"{file.path} has {rows} records of its range instead of {file.records}",
                path=file.path,
            )
        raise PolicyViolationError(
            f"{file.path} can be read and has its {rows} records; quarantine is for files that "
            "cannot. To delete records, use `lakelog delete-records`",
            path=file.path,
        )

    def _pairs(self, snapshot: ColdSnapshot) -> list[tuple[SegmentFile, QuarantinedFile]]:
        """The stand-ins that the table names, each with its note."""
        notes = {note.gap: note for note in self._notes()}
        files = snapshot.files.of_partition(self._topic_partition.partition)
        found = []
        for file in files:
            if is_stand_in(file.path):
                note = notes.get(OffsetRange(file.start_offset, file.end_offset))
                found.append((file, note or self._unknown(file)))
        return found

    def _unknown(self, stand_in: SegmentFile) -> QuarantinedFile:
        """For a stand-in whose note was deleted or damaged."""
        gap = OffsetRange(stand_in.start_offset, stand_in.end_offset)
        return QuarantinedFile(
            self._topic_partition,
            stand_in.path,
            "",
            gap,
            -1,
            "its note is gone, or not what was written",
            "",
            -1,
            -1,
            stand_in,
        )

    def _notes(self) -> list[QuarantinedFile]:
        folder = f"{self._table.path}/{FOLDER}/partition={self._topic_partition.partition}"
        top = self._storage.arrow_path(self._table.path).rstrip("/") + "/"
        notes = []
        there = {
            info.path.removeprefix(top) for info in self._storage.list_files(folder, recursive=True)
        }
        for name in sorted(there):
            if name.endswith(".json"):
                path = f"{self._table.path}/{name}"
                try:
                    note = _note(self._storage.read_bytes(path) or b"", self._topic_partition)
                except ValueError as error:  # as if it were gone: it must not hide the others
                    logger.warning("%s is not the note that was written: %s", path, error)
                else:
                    held_at = note.held_at if note.held_at in there else ""
                    notes.append(replace(note, held_at=held_at))
        return sorted(notes, key=lambda note: note.moved_at_ms)  # the newest of a range counts

    def _write_note(self, moved: QuarantinedFile) -> None:
        said = to_builtins(moved)
        del said["topic_partition"]
        self._write(f"{FOLDER}/{moved.path}.json", [json.dumps(said).encode()])

    def _copy(self, path: str, to: str) -> None:
        source = self._storage.arrow_path(f"{self._table.path}/{path}")
        with self._storage.naming(path), self._storage.filesystem().open_input_file(source) as data:
            self._write(to, iter(lambda: data.read(_CHUNK_BYTES), b""))

    def _write(self, path: str, chunks: object) -> None:
        full = f"{self._table.path}/{path}"
        folder = full.rpartition("/")[0]
        self._storage.make_folder(folder)
        with (
            self._storage.naming(full),
            self._storage.output(self._storage.arrow_path(full)) as out,
        ):
            for chunk in chunks:  # type: ignore[attr-defined]
                out.write(chunk)
        # It must be on the disk before the commit that takes the file out of the table.
        self._storage.sync(full, folder)

    def _apply(self, change: Change, snapshot: ColdSnapshot, path: str) -> None:
        if self._table.apply(change, snapshot).superseded:
            raise CommitConflictError(
                f"{path} was rewritten or removed by others meanwhile; nothing was moved. Look "
                "whether it still needs to be",
                path=path,
            )


def _note(text: bytes, topic_partition: TopicPartition) -> QuarantinedFile:
    """Reads what `ColdQuarantine._write_note` wrote.

    Raises:
        ValueError: the text is something else.
    """
    try:
        said = parse_json(text)
        start, end = said["gap"]
        said["gap"] = OffsetRange(check_offset(start), check_offset(end))
        said["file"] = SegmentFile(**said["file"])
        note = QuarantinedFile(topic_partition, **said)
        _check_types(note, path=str, held_at=str, records=int, reason=str, who=str)
        _check_types(note, moved_at_ms=int, cleaned_end=int)
        _check_types(note.file, path=str, size_bytes=int, start_offset=int, end_offset=int)
        _check_types(note.file, partition=int, segment=int, records=int)
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(repr(error)) from None
    return note


def _check_types(value: object, **types: type) -> None:
    for name, kind in types.items():
        if not isinstance(getattr(value, name), kind):
            raise TypeError(f"{name} is {getattr(value, name)!r}")


def _ends(path: str, end: str) -> bool:
    """Whether a path ends in that one, by whole names."""
    return path == end or path.endswith("/" + end.lstrip("/"))
