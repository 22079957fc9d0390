"""Where an export is: a folder, local or in an object store. It is a cold root with a manifest."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

from ...base.failpoints import failpoint
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
)
from .manifest import MANIFEST, MOST_MANIFEST_BYTES, Manifest, refuse

#: Marks a folder whose export is unfinished.
UNFINISHED = "unfinished.json"

#: What an earlier build packed an export into, which `tar` packs and unpacks as well.
_PACKED = ".tar"


def open_writer(
    to: str | Path, options: Mapping[str, str] | None, root: str | None
) -> FolderWriter:
    """What writes an export into a folder.

    Args:
        options: open an object store.
        root: the cold root of the log, in which no export may lie.

    Raises:
        InvalidArgumentError: not a place, or one in the cold root, or with something else in it.
        ColdTierError: it cannot be written.
    """
    if str(to).endswith(_PACKED):
        raise InvalidArgumentError(
            f"an export is a folder, which {to} does not look like. Export to a folder, and pack "
            f"that: tar -cf {to} -C FOLDER .",
            path=str(to),
        )
    storage = _folder(to, options)
    if root is not None and f"{storage.root}/".startswith(f"{root.rstrip('/')}/"):
        raise InvalidArgumentError(
            f"{storage.root} lies in the cold root {root}, where tables would be met twice: export "
            "to another place",
            path=storage.root,
        )
    return FolderWriter(storage)


def open_reader(source: str | Path, options: Mapping[str, str] | None) -> FolderReader:
    """What reads an export; the arguments are those of `open_writer`.

    Raises:
        InvalidArgumentError: not a place, or a file.
    """
    storage = _folder(source, options)
    if storage.is_local and Path(storage.root).is_file():
        raise InvalidArgumentError(
            f"{storage.root} is a file, and an export is a folder. Unpack one that was packed: "
            f"tar -xf {storage.root} -C FOLDER",
            path=storage.root,
        )
    return FolderReader(storage)


def fitting_options(place: str | Path, root: Storage) -> Mapping[str, str] | None:
    """The options of the cold root, where an export lies in a store of the same kind."""
    scheme = str(place).partition("://")[0]
    return dict(root.store_options) if scheme in root.object_stores else None


def _folder(place: str | Path, options: Mapping[str, str] | None) -> Storage:
    storage = Storage(str(place))
    return storage if storage.is_local else Storage(str(place), options)


# -- writing -----------------------------------------------------------------------------------


class FolderWriter:
    """Writes an export into a folder; one that was cut short there goes on.

    Files that lie there already are kept if they are the same.

    Raises:
        InvalidArgumentError: something else lies in the folder.
    """

    def __init__(self, storage: Storage) -> None:
        #: The folder. Tables are made for the export there.
        self.storage = storage
        self._root = storage.root.rstrip("/")
        #: Of this call: what a later one brings up to date is another export.
        self.export_id = uuid4()
        self._begin()

    def _begin(self) -> None:
        storage, mark = self.storage, f"{self._root}/{UNFINISHED}"
        if not storage.is_file(mark):
            there = storage.names(self._root)
            if there and not storage.is_file(f"{self._root}/{MANIFEST}"):
                raise InvalidArgumentError(
                    f"{self._root} is no export and not empty ({there[0]}, …), so nothing is "
                    "written there. Export to a new folder, or to one of an earlier export, which "
                    "is brought up to date",
                    path=self._root,
                )
            storage.make_folder(self._root)
            storage.write_bytes(mark, b"{}\n")
            storage.sync(mark, self._root)
        # From here on it is unfinished, and says so.
        storage.delete_file(f"{self._root}/{MANIFEST}")

    def begin(self, folder: str) -> None:
        """The files of a topic come next. Its table is made anew: it has none until then."""
        self.storage.delete_files(sorted(self._listed(f"{folder}/_delta_log")))

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
        target = f"{self._root}/{file.path}"
        (found,) = self.storage.stamps([target])
        if found is not None and found[0] == file.size_bytes:
            held = self._held(file.path)
            if held == checksum(file.source, file.where, file.size_bytes):
                tell(held.size_bytes)
                return held
        check = partial(check_size, file)
        return copy_file(file.source, self.storage, target, file.size_bytes, tell, check)

    def made(self, paths: Sequence[str], tell: Tell) -> list[Copied]:
        """What was made in the folder, as it is there now."""
        return side_by_side(partial(self._held, tell=tell), paths, AT_ONCE)

    def _held(self, path: str, tell: Tell | None = None) -> Copied:
        target = f"{self._root}/{path}"
        opened = partial(self.storage.opened, target)
        return checksum(opened, target, self.storage.size_bytes(target), tell)

    def clear(self, folder: str, keep: Iterable[str]) -> None:
        """Removes what an earlier attempt, or an older export, left of a topic.

        Args:
            folder: the topic's.
            keep: paths below it.
        """
        kept = {f"{self._root}/{folder}/{path}" for path in keep}
        self.storage.delete_files(sorted(self._listed(folder) - kept))

    def finish(self, manifest: Manifest) -> None:
        """Makes it an export."""
        folders = {path.rpartition("/")[0] for path in self._listed("")}
        if self.storage.is_local:
            above = {str(up) for one in folders for up in Path(one).parents}
            inside = {one for one in above if one.startswith(f"{self._root}/")}
            self.storage.sync(*sorted(folders | inside), self._root)
        failpoint("export.before_manifest")
        self.storage.write_bytes(f"{self._root}/{MANIFEST}", manifest.to_json())
        self.storage.sync(f"{self._root}/{MANIFEST}", self._root)
        self.storage.delete_file(f"{self._root}/{UNFINISHED}")

    def _listed(self, folder: str) -> set[str]:
        """The files of a folder, by whole paths."""
        top = f"{self._root}/{folder}".rstrip("/")
        return {f"{top}/{name}" for name in self.storage.files_below(top)}


# -- reading -----------------------------------------------------------------------------------


class FolderReader:
    """Reads an export from a folder."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.where = storage.root.rstrip("/")

    def manifest(self) -> bytes:
        """The text of its manifest.

        Raises:
            MissingFileError: there is no such folder.
            CorruptRecordError: it has none.
            ColdTierError: it cannot be read.
        """
        path = f"{self.where}/{MANIFEST}"
        if self._storage.is_file(f"{self.where}/{UNFINISHED}"):
            refuse(self.where, "it was cut short. The same `lakelog export` again finishes it")
        (found,) = self._storage.stamps([path])
        if found is not None and found[0] > MOST_MANIFEST_BYTES:
            refuse(self.where, f"its manifest has {found[0]:,} bytes")
        content = None if found is None else self._storage.read_bytes(path)
        if content is not None:
            return content
        if not self._storage.names(self.where):
            raise MissingFileError(
                f"there is no export at {self.where}: name the folder that `lakelog export` wrote",
                path=self.where,
            )
        return refuse(self.where, f"it has no {MANIFEST}")

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int]:
        """How large files are, of those that are there.

        Raises:
            CorruptRecordError: one is a link, or lies behind one.
        """
        wanted = set(paths)
        found = self._storage.files_below(self.where)
        if self._storage.is_local:
            self._check_links(wanted)
        return {path: found[path].size_bytes for path in wanted & found.keys()}

    def opened(self, path: str) -> Opened:
        """Opens a file of it."""
        return partial(self._storage.opened, f"{self.where}/{path}")

    def _check_links(self, paths: Iterable[str]) -> None:
        names = {path for name in paths for path in (name, *map(str, Path(name).parents))}
        for name in sorted(names - {"."}):
            with suppress(FileNotFoundError), self._storage.naming(name):
                mode = Path(self.where, name).lstat().st_mode
                if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
                    refuse(self.where, f"{name} is a link or a device, not a file")
