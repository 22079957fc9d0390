"""An export as a folder, local or in an object store: itself a cold root, with a manifest."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

from ...base.failpoints import failpoint
from ...base.json_text import parse_json
from ...cold.store.storage import Storage, side_by_side
from ...errors import InvalidArgumentError, MissingFileError
from .copying import (
    AT_ONCE,
    Copied,
    Opened,
    Tell,
    ToCopy,
    check_size,
    checksum,
    copy_file,
    same,
)
from .manifest import MANIFEST, MOST_MANIFEST_BYTES, refuse

#: Marks a folder whose export is unfinished; it says which one.
UNFINISHED = "unfinished.json"


class FolderWriter:
    """Writes an export into a folder; one that was cut short there goes on.

    Files that lie there already are kept if they are the same.

    Raises:
        InvalidArgumentError: something else lies in the folder.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.where = storage.root.rstrip("/")
        #: Where tables are made for the export.
        self.stage = storage
        self.export_id = self._begin()

    def _begin(self) -> UUID:
        mark = f"{self.where}/{UNFINISHED}"
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            return UUID(parse_json(self._storage.read_bytes(mark) or b"")["export_id"])
        there = self._storage.names(self.where)
        if there and not self._storage.is_file(f"{self.where}/{MANIFEST}"):
            raise InvalidArgumentError(
                f"{self.where} is no export and not empty ({there[0]}, …), so nothing is "
                "written there. Export to a new folder, or to one of an earlier export, which is "
                "brought up to date",
                path=self.where,
            )
        export_id = uuid4()
        self._storage.make_folder(self.where)
        self._storage.write_bytes(mark, json.dumps({"export_id": str(export_id)}).encode())
        self._storage.sync(mark, self.where)
        # From here on it is unfinished, and says so.
        self._storage.delete_file(f"{self.where}/{MANIFEST}")
        return export_id

    def begin(self, folder: str) -> None:
        """The files of a topic come next. Its table is made anew: it has none until then."""
        self._storage.delete_files(sorted(self._listed(f"{folder}/_delta_log")))

    def put(self, files: Sequence[ToCopy], tell: Tell) -> list[Copied]:
        """Copies files in, but for those that are there and the same.

        Returns:
            What each holds, in their order.

        Raises:
            MissingFileError: there is no such source.
            ContradictionError: one has another size.
            ColdTierError: either place does not answer, or refuses.
        """
        return side_by_side(partial(self._put, tell=tell), files, AT_ONCE)

    def _put(self, file: ToCopy, *, tell: Tell) -> Copied:
        target = f"{self.where}/{file.path}"
        (found,) = self._storage.stamps([target])
        if found is not None and found[0] == file.size_bytes:
            kept = same(partial(self._storage.opened, target), file, tell)
            if kept is not None:
                return kept
        check = partial(check_size, file)
        return copy_file(file.source, self._storage, target, file.size_bytes, tell, check)

    def took(self, paths: Sequence[str], tell: Tell) -> list[Copied]:
        """What was made in the stage, as it is now in the export."""

        def held(path: str) -> Copied:
            target = f"{self.where}/{path}"
            return checksum(self._storage, target, self._storage.size_bytes(target), tell)

        return side_by_side(held, paths, AT_ONCE)

    def clear(self, folder: str, keep: Iterable[str]) -> None:
        """Removes what an earlier attempt, or an older export, left of a topic.

        Args:
            folder: the topic's.
            keep: paths below it.
        """
        kept = {f"{self.where}/{folder}/{path}" for path in keep}
        self._storage.delete_files(sorted(self._listed(folder) - kept))

    def finish(self, manifest: bytes) -> None:
        """Makes it an export."""
        folders = {path.rpartition("/")[0] for path in self._listed("")}
        if self._storage.is_local:
            above = {str(up) for one in folders for up in Path(one).parents}
            inside = {one for one in above if one.startswith(f"{self.where}/")}
            self._storage.sync(*sorted(folders | inside), self.where)
        failpoint("export.before_manifest")
        self._storage.write_bytes(f"{self.where}/{MANIFEST}", manifest)
        self._storage.sync(f"{self.where}/{MANIFEST}", self.where)
        self._storage.delete_file(f"{self.where}/{UNFINISHED}")

    def close(self) -> None:
        """Nothing is held."""

    def _listed(self, folder: str) -> set[str]:
        """The files of a folder, by whole paths."""
        top = f"{self.where}/{folder}".rstrip("/")
        return {f"{top}/{name}" for name in self._storage.files_below(top)}


class FolderReader:
    """Reads an export from a folder."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.where = storage.root.rstrip("/")

    def manifest(self) -> bytes:
        """The text of its manifest.

        Raises:
            MissingFileError: there is no such folder.
            CorruptExportError: it has none.
            ColdTierError: it cannot be read.
        """
        path = f"{self.where}/{MANIFEST}"
        (found,) = self._storage.stamps([path])
        if found is not None and found[0] > MOST_MANIFEST_BYTES:
            refuse(self.where, f"its manifest has {found[0]:,} bytes")
        content = None if found is None else self._storage.read_bytes(path)
        if content is not None:
            return content
        if self._storage.is_file(f"{self.where}/{UNFINISHED}"):
            refuse(self.where, "it was cut short. The same `lakelog export` again finishes it")
        if not self._storage.names(self.where):
            raise MissingFileError(
                f"there is no export at {self.where}: name the folder, or the .tar file, that "
                "`lakelog export` wrote",
                path=self.where,
            )
        return refuse(self.where, f"it has no {MANIFEST}")

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int]:
        """How large files are, of those that are there.

        Raises:
            CorruptExportError: one is a link, or lies behind one.
        """
        wanted = set(paths)
        found = self._storage.files_below(self.where)
        if self._storage.is_local:
            self._check_links(wanted)
        stamps = {path: found[path]() for path in wanted & found.keys()}
        return {path: stamp.size_bytes for path, stamp in stamps.items() if stamp is not None}

    def opened(self, path: str) -> Opened:
        """Opens a file of it."""
        return partial(self._storage.opened, f"{self.where}/{path}")

    def close(self) -> None:
        """Nothing is held."""

    def _check_links(self, paths: Iterable[str]) -> None:
        seen: set[str] = set()
        for path in paths:
            parts = path.split("/")
            for depth in range(1, len(parts) + 1):
                one = "/".join(parts[:depth])
                if one in seen:
                    continue
                seen.add(one)
                with suppress(FileNotFoundError), self._storage.naming(one):
                    mode = Path(self.where, one).lstat().st_mode
                    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                        refuse(self.where, f"{one} is a link or a device, not a file")
