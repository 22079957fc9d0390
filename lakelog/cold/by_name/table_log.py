"""The Delta log of a table by name, read where it lies: its files at each version, its history.

delta-rs cannot open tables with the features that Unity Catalog demands. A catalog that makes the
commits itself keeps the newest ones apart (``_delta_log/_staged_commits``), and says which count.

Source: Delta's protocol, "Delta Log Entries", "Checkpoints", "Catalog-managed tables".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, field

from ...base.json_text import parse_json
from ...errors import MissingFileError
from ..log_names import LOG, commit_name, commit_versions, newest_checkpoint
from ..store.storage import Storage, side_by_side
from .delta_actions import (
    CommitActions,
    LogFile,
    Metadata,
    NotDirectError,
    VersionGoneError,
    check_protocol,
    removed_key,
)

STAGED = f"{LOG}/_staged_commits"

#: Commits that are kept for those who ask for the history.
KEPT_COMMITS = 128


class Newest(Struct, frozen=True):
    """How far a table goes, as its catalog says it."""

    version: int | None = None  # None: the files of the log tell
    staged: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))  # file names


class TableLog:
    """The log of the table at a storage's root. Not thread-safe."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.version = -1
        self._files: dict[tuple[str, str], LogFile] = {}  # of that version, by what Delta says
        self._commits: dict[int, CommitActions] = {}
        self._staged: Mapping[int, str] = {}
        self._metadata: Metadata | None = None
        self._stamp: tuple[int, int | None] | None = None  # of the newest commit's file
        self._older: TableLog | None = None  # at the version that was asked for last

    @property
    def metadata(self) -> Metadata:
        """Of the newest version.

        Raises:
            NotDirectError: the log does not say.
        """
        if self._metadata is None:
            raise NotDirectError("its log does not say what it is")
        return self._metadata

    def is_newest(self, version: int, newest: Newest) -> bool:
        """Whether nothing was committed above a version."""
        if newest.version is not None:
            return newest.version == version
        mine, following = self.storage.stamps([self._file(version), self._file(version + 1)])
        return mine is not None and mine == self._stamp and following is None

    def refresh(self, newest: Newest) -> None:
        """Go to the newest version; -1 where there is no log.

        Raises:
            NotDirectError: the table has what only Spark understands, or its log has a hole.
            ColdTierError: it cannot be read.
        """
        self._staged = newest.staged
        if self.version < 0 or not self._advance(newest):
            self._open(newest)
        self._stamp = None
        if newest.version is None and self.version >= 0:
            (self._stamp,) = self.storage.stamps([self._file(self.version)])

    def files(self, version: int) -> list[LogFile]:
        """The files of a version, which is not above the newest one.

        Raises:
            VersionGoneError: it is too old.
            ColdTierError: the log cannot be read.
        """
        if not 0 <= version <= self.version:
            raise NotDirectError(f"it has no version {version}")
        if version == self.version:
            return list(self._files.values())
        if self._older is None or self._older.version != version:
            older, gone = TableLog(self.storage), None
            try:
                older.refresh(Newest(version, self._staged))
            except NotDirectError as error:  # it has a hole there
                gone = error
            if gone is not None or older.version != version:
                raise VersionGoneError(
                    f"its log no longer goes back to version {version}"
                ) from gone
            self._older = older
        return self._older.files(version)

    def commits(self, after: int, most: int) -> list[CommitActions]:
        """The newest commits above a version, newest first, as far as the log goes."""
        versions = range(self.version, max(after, self.version - most), -1)
        missing = [one for one in versions if one not in self._commits]
        for found in side_by_side(self._read_commit, missing):
            if found is not None:
                self._commits[found.version] = found
        commits = []
        for one in versions:
            if one not in self._commits:
                break
            commits.append(self._commits[one])
        self._forget()
        return commits

    # -- how -------------------------------------------------------------------------------------

    def _advance(self, newest: Newest) -> bool:
        """Apply what was committed since; False if that is gone."""
        wanted = newest.version
        if wanted is not None:
            if wanted < self.version:
                return False
            found = side_by_side(self._read_commit, range(self.version + 1, wanted + 1))
            if None in found:
                return False
            for commit in found:
                assert commit is not None  # looked at above
                self._apply(commit)
            return True
        (stamp,) = self.storage.stamps([self._file(self.version)])
        if stamp is None or (self._stamp is not None and stamp != self._stamp):
            return False
        while (commit := self._read_commit(self.version + 1)) is not None:
            self._apply(commit)
        return True

    def _open(self, newest: Newest) -> None:
        """Begin with the newest checkpoint."""
        self._files, self._commits = {}, {}
        self._metadata, self.version, self._stamp = None, -1, None
        names = self.storage.file_names(self._path(LOG))
        numbers = commit_versions(names) | self._staged.keys()
        if newest.version is not None:
            numbers = {number for number in numbers if number <= newest.version}
        checkpoint, parts = newest_checkpoint(names, newest.version)
        if not numbers and not parts:
            return
        end = max(numbers, default=checkpoint) if newest.version is None else newest.version
        if parts:
            self._read_checkpoint(checkpoint, parts)
        self.version = checkpoint
        for commit in side_by_side(self._read_commit, range(checkpoint + 1, end + 1)):
            if commit is None:
                raise NotDirectError(
                    f"its log has no version {self.version + 1}, though it goes to {end}"
                )
            self._apply(commit)

    def _apply(self, commit: CommitActions) -> None:
        if commit.protocol is not None:
            check_protocol(commit.protocol)
        if commit.metadata is not None:
            self._metadata = Metadata.of(commit.metadata)
        for action in commit.removes:
            self._files.pop(removed_key(action), None)
        for action in commit.adds:
            self._add(action)
        self.version = commit.version
        self._keep(commit)

    def _add(self, action: Mapping[str, Any]) -> None:
        file = LogFile.of(action, self.metadata.stored_as)
        self._files[file.key] = file

    def _keep(self, commit: CommitActions) -> None:
        self._commits[commit.version] = commit
        self._forget()

    def _forget(self) -> None:
        if len(self._commits) > 2 * KEPT_COMMITS:
            kept = sorted(self._commits)[-KEPT_COMMITS:]
            self._commits = {version: self._commits[version] for version in kept}

    def _read_commit(self, version: int) -> CommitActions | None:
        staged = self._staged.get(version)
        content = None
        if staged is not None:
            content = self.storage.read_bytes(self._path(f"{STAGED}/{staged}"))
        if content is None:  # it was published meanwhile, or long ago
            content = self.storage.read_bytes(self._file(version))
        if content is None:
            return None
        try:
            return CommitActions.parse(version, content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotDirectError(
                f"version {version} of its log cannot be read ({error})"
            ) from error

    def _read_checkpoint(self, version: int, names: Sequence[str]) -> None:
        protocol = metadata = None
        adds: list[Mapping[str, Any]] = []
        sidecars: list[str] = []
        for actions in side_by_side(self._read_actions, [f"{LOG}/{name}" for name in names]):
            for action in actions:
                adds += [action["add"]] if action.get("add") else []
                protocol = action.get("protocol") or protocol
                metadata = action.get("metaData") or metadata
                if action.get("sidecar"):
                    sidecars.append(action["sidecar"]["path"])
        if protocol is None or metadata is None:
            raise NotDirectError(f"its checkpoint {version} does not say what it is")
        check_protocol(protocol)
        self._metadata = Metadata.of(metadata)
        paths = [one if "/" in one else f"{LOG}/_sidecars/{one}" for one in sidecars]
        for actions in side_by_side(self._read_actions, paths):
            adds += [action["add"] for action in actions if action.get("add")]
        for action in adds:
            self._add(action)

    def _read_actions(self, path: str) -> list[Mapping[str, Any]]:
        content = self.storage.read_bytes(self._path(path))
        if content is None:
            raise MissingFileError(f"{path} is missing", path=path)
        try:
            if path.endswith(".json"):
                return [parse_json(line) for line in content.splitlines() if line.strip()]
            parquet = pq.ParquetFile(pa.BufferReader(content))
            there = {"add", "protocol", "metaData", "sidecar"} & set(parquet.schema_arrow.names)
            rows = parquet.read(columns=sorted(there))
            return [_plain(row) for row in rows.to_pylist(maps_as_pydicts="strict")]
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise NotDirectError(f"{path} cannot be read ({error})") from error

    def _file(self, version: int) -> str:
        return self._path(f"{LOG}/{commit_name(version)}")

    def _path(self, path: str) -> str:
        return f"{self.storage.root}/{path}"


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}
