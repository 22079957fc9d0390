"""What a Delta log says that a table is at one version: the commits so far, taken together.

delta-rs holds as much of each file, in three times the memory, and takes longer to open a small
table than all else of a look. It is asked where it is needed: to commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from msgspec import Struct, field

from ...base import compute as pc
from ...base.arrow_columns import texts
from ...base.json_text import parse_json
from ...errors import (
    ColdTierRefusedError,
    ContradictionError,
    CorruptRecordError,
    MissingFileError,
)
from ..added_file import AddedFile, index_of, index_rows, rows_of
from ..log_names import (
    LAST_CHECKPOINT,
    LOG,
    checkpoint_names,
    commit_name,
    commit_versions,
    newest_checkpoint,
)
from ..segment import SegmentIndex, no_files
from ..store.storage import Storage
from ..store_errors import one_line
from .log_content import Piece, Protocol, TableMetadata, checkpoint_pieces, commit_pieces

#: From here on, memory that Arrow keeps for the next time is worth giving back: to read a log, and
#: to make and check an index, takes several times the size of the index.
MANY_FILES = 10_000

#: Files that wait to become rows of the index.
_WAITING = 4096


class LogState(Struct):
    """The table at one version. Not thread-safe; grows by pieces, in the order of the log."""

    version: int = -1
    metadata: TableMetadata | None = None
    protocol: Protocol | None = None
    transactions: dict[str, int] = field(default_factory=dict)
    _parts: list[pa.Table] = field(default_factory=list)  # rows of `COLUMNS`, if not of the index
    _waiting: dict[str, AddedFile] = field(default_factory=dict)  # by path
    _removed: set[str] = field(default_factory=set)
    _refused: dict[str, ContradictionError] = field(default_factory=dict)  # by path
    _index: SegmentIndex | None = None  # of all that does not wait

    def apply(self, piece: Piece, *, fresh: bool = False) -> None:
        """Go on by some actions.

        Args:
            fresh: no file among them was added before, as in a checkpoint.
        """
        self.metadata = piece.metadata or self.metadata
        self.protocol = piece.protocol or self.protocol
        self.transactions.update(piece.transactions)
        if piece.rows is not None:
            self._unfold()
            self._parts.append(piece.rows)
        for path in piece.removes:
            self._waiting.pop(path, None)
            self._removed.add(path)
        for add in piece.adds:
            self._waiting[add.path] = add
        if fresh or len(self._waiting) >= _WAITING:
            self._settle(fresh=fresh)

    def files(self) -> SegmentIndex:
        """Raises ContradictionError: nothing says what a file holds."""
        self._settle()
        for error in self._refused.values():
            raise error
        if self._index is None:
            if sum(map(len, self._parts)) >= MANY_FILES:
                pa.default_memory_pool().release_unused()
            parts, self._parts = self._parts, []
            self._index = SegmentIndex(pa.concat_tables(parts)) if parts else no_files()
        return self._index

    def _unfold(self) -> None:
        """Go back from an index to its rows."""
        if self._index is not None:
            self._parts, self._index = [self._index.columns], None

    def _settle(self, *, fresh: bool = False) -> None:
        """Make rows of what waits."""
        waiting, self._waiting = self._waiting, {}
        gone, self._removed = self._removed | (set() if fresh else waiting.keys()), set()
        if not waiting and not gone:
            return
        self._unfold()
        if gone:
            self._refused = {
                path: error for path, error in self._refused.items() if path not in gone
            }
            if self._parts:
                paths = texts(list(gone))
                self._parts = [
                    part.filter(pc.invert(pc.is_in(part["path"], value_set=paths)))
                    for part in self._parts
                ]
        try:
            rows = list(rows_of(list(waiting.values())))
            if self._parts:
                self._parts.append(index_rows(rows))
            else:
                self._index = index_of(rows)
        except ContradictionError:
            for path, add in waiting.items():
                try:
                    self._parts.append(index_rows(list(rows_of([add]))))
                except ContradictionError as error:
                    self._refused[path] = error


def open_log(storage: Storage, path: str, version: int | None = None) -> LogState | None:
    """The table at a path, at its newest version or at that one; None: nothing is there.

    Raises:
        ColdTierRefusedError: the log has a hole, or is not what Delta writes.
        ColdTierError: it cannot be read.
    """
    for last_try in (False, True):
        try:
            return _opened(storage, path, version)
        except _GoneMeanwhileError as error:
            if last_try:
                raise ColdTierRefusedError(
                    f"the table at {path} cannot be used: {error}. Put the log's files back from a "
                    "backup",
                    path=path,
                ) from error
    return None


class _GoneMeanwhileError(Exception):
    """A file that should be there is not: somebody may have cleaned up the log just now."""


def read_commit(storage: Storage, path: str, version: int) -> bytes | None:
    """The content of a commit's file; None: there is none."""
    return storage.read_bytes(f"{path}/{LOG}/{commit_name(version)}")


def _opened(storage: Storage, path: str, version: int | None) -> LogState | None:
    state = None
    if version is None and not storage.is_local:
        state = _from_hint(storage, path)
    if state is None:
        state = _from_list(storage, path, version)
    if state is not None and (state.metadata is None or state.protocol is None):
        raise ColdTierRefusedError(
            f"the table at {path} cannot be used: its log does not say what it is. Put the files "
            f"of its {LOG} back from a backup",
            path=path,
        )
    return state


def _from_list(storage: Storage, path: str, version: int | None) -> LogState | None:
    listed = storage.file_names(f"{path}/{LOG}")
    checkpoint, names = newest_checkpoint(listed, version)
    versions = commit_versions(listed)
    if not versions and not names:
        return None
    state = _from_checkpoint(storage, path, checkpoint, names)
    newest = max(versions | {checkpoint}) if version is None else version
    while state.version < newest:
        if not _go_on(storage, path, state):
            raise _GoneMeanwhileError(
                f"its log has no version {state.version + 1}, though it should go to {newest}"
            )
    return state


def _from_hint(storage: Storage, path: str) -> LogState | None:
    """From the checkpoint that the log names: a store lists 1,000 names a request.

    Returns:
        None if the log has to be listed.
    """
    try:
        said = parse_json(storage.read_bytes(f"{path}/{LOG}/{LAST_CHECKPOINT}") or b"")
        version, parts = int(said["version"]), said.get("parts")
        names = checkpoint_names(version, None if parts is None else int(parts))
        state = _from_checkpoint(storage, path, version, names)
    except (_GoneMeanwhileError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    while _go_on(storage, path, state):
        pass
    # A newer checkpoint may have had the commits in between cleaned up, this one's among them.
    # Beyond a commit that somebody deleted, there are others.
    own, *later = (
        f"{path}/{LOG}/{commit_name(number)}"
        for number in (state.version, state.version + 2, state.version + 3)
    )
    missing = storage.missing([own, *later])
    return state if missing == later else None


def _from_checkpoint(storage: Storage, path: str, version: int, names: Iterable[str]) -> LogState:
    state = LogState(version)
    for name in names:
        for piece in _pieces_of(storage, f"{path}/{LOG}/{name}"):
            state.apply(piece, fresh=True)
    return state


def _go_on(storage: Storage, path: str, state: LogState) -> bool:
    """Apply the next commit; False: it is not there."""
    content = read_commit(storage, path, state.version + 1)
    if content is None:
        return False
    for piece in pieces_of_commit(path, state.version + 1, content):
        state.apply(piece)
    state.version += 1
    return True


def _pieces_of(storage: Storage, path: str) -> Iterator[Piece]:
    try:
        yield from checkpoint_pieces(storage, path)
    except MissingFileError as error:
        raise _GoneMeanwhileError(f"{path} is missing") from error
    except (ValueError, CorruptRecordError) as error:
        raise _not_written_so(path, error) from error


def pieces_of_commit(path: str, version: int, content: bytes) -> Iterator[Piece]:
    """Of a table's commit.

    Raises:
        ColdTierRefusedError: it is not what Delta writes.
    """
    try:
        yield from commit_pieces(content)
    except ValueError as error:
        raise _not_written_so(f"{path}/{LOG}/{commit_name(version)}", error) from error


def _not_written_so(path: str, error: Exception) -> ColdTierRefusedError:
    return ColdTierRefusedError(
        f"{path} is not the part of a log that was written: {one_line(error).rstrip('.')}. Put it "
        "back from a backup",
        path=path,
    )
