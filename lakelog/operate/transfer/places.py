"""Where an export is: a folder, local or in an object store, or a ``.tar`` file that holds one.

A folder is itself a cold root, with a manifest. A ``.tar`` file is such a folder packed, without
compression, since Parquet is compressed already; the manifest is its last member.
"""

from __future__ import annotations

import io
import re
import shutil
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

from ...base.failpoints import failpoint
from ...base.local_path import local_path
from ...cold.store.storage import Storage, side_by_side
from ...errors import InvalidArgumentError, MissingFileError
from .copying import (
    AT_ONCE,
    CHUNK_BYTES,
    Copied,
    Opened,
    Readable,
    Tell,
    ToCopy,
    check_size,
    checksum,
    copy_file,
)
from .manifest import MANIFEST, MOST_MANIFEST_BYTES, Manifest, refuse

ARCHIVE_ENDING = ".tar"

#: Marks a folder whose export is unfinished.
UNFINISHED = "unfinished.json"

_MOST_HEADER_BYTES = 64 * 1024
_LEGAL = re.compile(r"[\w-][\w.=-]*(/[\w-][\w.=-]*)*", re.ASCII)


def open_writer(
    to: str | Path, options: Mapping[str, str] | None, root: str | None
) -> FolderWriter:
    """What writes an export.

    Args:
        to: a folder, or a file whose name ends in ``.tar``.
        options: open an object store.
        root: the cold root of the log, in which no export may lie.

    Raises:
        InvalidArgumentError: not a place, or one in the cold root, or with something else in it.
        ColdTierError: it cannot be written.
    """
    archive = _archive(to)
    place = str(archive) if archive is not None else _folder(to, options).root
    if root is not None and f"{place}/".startswith(f"{root.rstrip('/')}/"):
        raise InvalidArgumentError(
            f"{place} lies in the cold root {root}, where tables would be met twice: export to "
            "another place",
            path=place,
        )
    return FolderWriter(_folder(to, options)) if archive is None else ArchiveWriter(archive)


def open_reader(
    source: str | Path, options: Mapping[str, str] | None
) -> FolderReader | ArchiveReader:
    """What reads an export.

    Args:
        source, options: as for `open_writer`.

    Raises:
        InvalidArgumentError: not a place.
        MissingFileError: nothing is there.
        CorruptRecordError: see `ArchiveReader`.
    """
    archive = _archive(source)
    if archive is not None:
        return ArchiveReader(archive)
    return FolderReader(_folder(source, options))


def fitting_options(place: str | Path, root: Storage) -> Mapping[str, str] | None:
    """The options of the cold root, where an export lies in a store of the same kind."""
    scheme = str(place).partition("://")[0]
    return dict(root.store_options) if scheme in root.object_stores else None


def _folder(place: str | Path, options: Mapping[str, str] | None) -> Storage:
    storage = Storage(str(place))
    return storage if storage.is_local else Storage(str(place), options)


def _archive(place: str | Path) -> Path | None:
    """The file; None if it is no archive."""
    text = str(place)
    if "://" in text or not text.endswith(ARCHIVE_ENDING):
        return None
    return Path(local_path(text, "export"))


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
        self.where = self._root
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


class ArchiveWriter(FolderWriter):
    """Writes an export into a tar file, which appears when it is whole.

    Until then it is the folder beside it whose name ends in ``.part``, where one that was cut short
    goes on. Packing it takes as much room again.

    Raises:
        ColdTierError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        part = _part_of(path)
        if part.is_file():  # an unfinished one of an older version
            part.unlink()
        self._path = path
        super().__init__(Storage(str(part)))
        self.where = str(path)

    def finish(self, manifest: Manifest) -> None:
        """Packs the folder, and removes it."""
        failpoint("export.before_manifest")
        names = [f"{one.folder}/{file.path}" for one in manifest.topics for file in one.all_files()]
        place = Storage(str(self._path.parent))
        with (
            place.appearing(str(self._path), synced=True) as sink,
            tarfile.open(  # type: ignore[call-overload]
                fileobj=sink,
                mode="w|",
                format=tarfile.GNU_FORMAT,
                bufsize=CHUNK_BYTES,
                copybufsize=CHUNK_BYTES,
            ) as archive,
        ):
            for name in sorted(names):
                source = f"{self._root}/{name}"
                with self.storage.naming(source), Path(source).open("rb") as file:
                    archive.addfile(_member(name, Path(source).stat().st_size), file)
            content = manifest.to_json()
            archive.addfile(_member(MANIFEST, len(content)), io.BytesIO(content))
        place.sync(str(self._path.parent))
        shutil.rmtree(self._root, ignore_errors=True)


def _part_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _member(path: str, size_bytes: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.size, info.mode = size_bytes, 0o644
    return info


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
            raise _no_export(self.where)
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


class ArchiveReader:
    """Reads an export from a tar file, at any place. Nothing is unpacked.

    Raises:
        MissingFileError: there is no such file.
        CorruptRecordError: it is unfinished, no archive, or holds what no export holds: links,
            devices, names that lead elsewhere or come twice, members that end beyond it.
    """

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._place = Storage(str(path.parent))
        if not path.is_file():
            part = _part_of(path)
            if part.exists():
                refuse(
                    self.where,
                    f"it was cut short, and {part.name} has what there is of it. The same `lakelog "
                    "export` again finishes it",
                )
            raise _no_export(str(path))
        self._path = path
        with self._place.naming(self.where):
            self._members = dict(self._indexed())

    def manifest(self) -> bytes:
        """The text of its manifest.

        Raises:
            CorruptRecordError: it has none.
        """
        if MANIFEST not in self._members:
            refuse(self.where, f"it has no {MANIFEST}")
        start, size_bytes = self._members[MANIFEST]
        if size_bytes > MOST_MANIFEST_BYTES:
            refuse(self.where, f"its manifest has {size_bytes:,} bytes")
        with self._place.naming(self.where), self._path.open("rb") as file:
            file.seek(start)
            return file.read(size_bytes)

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int]:
        """How large files are, of those that are there.

        Raises:
            CorruptRecordError: there are others.
        """
        others = sorted(self._members.keys() - {*paths, MANIFEST})
        if others:
            refuse(self.where, f"it holds {others[0]!r:.200}, which its manifest does not name")
        return {path: size_bytes for path, (_, size_bytes) in self._members.items()}

    def opened(self, path: str) -> Opened:
        """Opens a file of it."""
        start, size_bytes = self._members[path]

        @contextmanager
        def opened() -> Iterator[Readable]:
            with self._place.naming(self.where), io.FileIO(self._path) as file:
                file.seek(start)
                yield _Stretch(file, size_bytes)

        return opened

    def _indexed(self) -> Iterator[tuple[str, tuple[int, int]]]:
        """Each member with the place of its first byte and its size."""
        whole_bytes = self._path.stat().st_size
        seen: set[str] = set()
        try:
            with _Headers(self._path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
                for one in archive:
                    name = one.name.removeprefix("./")
                    if one.size < 0 or one.offset_data + one.size > whole_bytes:
                        raise ValueError(f"it ends within {name!r:.200}")
                    if one.isdir():
                        continue
                    if one.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or one.sparse:
                        raise ValueError(f"{name!r:.200} is a link or a device, not a file")
                    if not _LEGAL.fullmatch(name):
                        raise ValueError(f"{name!r:.200} is no path of a file of an export")
                    if name in seen:
                        raise ValueError(f"it has {name!r:.200} twice")
                    seen.add(name)
                    yield name, (one.offset_data, one.size)
        except tarfile.TarError as error:
            refuse(self.where, f"there is no header of a tar archive where one should be: {error}")
        except RecursionError:
            refuse(self.where, "it has headers behind each other without end")
        except (ValueError, OverflowError) as error:
            refuse(self.where, str(error))


class _Headers(io.FileIO):
    """A tar file of which headers alone are read: `tarfile` reads one of any size at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or not 0 <= size <= _MOST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header has {size} bytes")
        return super().read(size)


class _Stretch:
    """A stretch of an open file, from where it stands."""

    def __init__(self, file: io.FileIO, size_bytes: int) -> None:
        self._file = file
        self._left_bytes = size_bytes

    def readinto(self, buffer: memoryview, /) -> int:
        count = self._file.readinto(buffer[: self._left_bytes])
        self._left_bytes -= count
        return count


def _no_export(where: str) -> MissingFileError:
    return MissingFileError(
        f"there is no export at {where}: name the folder, or the .tar file, that `lakelog export` "
        "wrote",
        path=where,
    )
