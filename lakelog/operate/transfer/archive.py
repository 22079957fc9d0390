"""An export as one file: a tar archive of what the folder would hold, without compression.

Parquet is compressed already, and an archive that is not can be read at any place and cut short
after any member. The manifest is its last member.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import FileIO
from itertools import takewhile
from pathlib import Path
from tempfile import mkdtemp
from uuid import UUID, uuid4

from msgspec import Struct

from ...base.back_off import patiently
from ...base.failpoints import failpoint
from ...cold.store.local_file import PlacedWriter, can_be_changed, hidden_path
from ...cold.store.storage import Storage, side_by_side
from ...errors import MissingFileError
from .copying import AT_ONCE, Copied, Opened, Readable, Tell, ToCopy, check_size, pour, same
from .manifest import MANIFEST, MOST_MANIFEST_BYTES, refuse

_BLOCK = tarfile.BLOCKSIZE
_MOST_HEADER_BYTES = 64 * 1024
_LEGAL = re.compile(r"[\w-][\w.=-]*(/[\w-][\w.=-]*)*", re.ASCII)


class _Member(Struct, frozen=True):
    """A file in an archive: its header, its content, and zeros up to a whole block."""

    file: ToCopy
    header: bytes
    header_start: int

    @property
    def start(self) -> int:
        return self.header_start + len(self.header)

    @property
    def end(self) -> int:
        return self.start + _padded(self.file.size_bytes)


class ArchiveWriter:
    """Writes an export into a tar file, which appears when it is whole.

    Until then it is the file beside it that ends in ``.part``. One that was cut short goes on after
    its last whole file, as far as its files are those that are wanted, in the same order.

    Sizes are known before, so each file has its place, and several are written at once. A file's
    header comes after its content: where it was not written, there are zeros, which end an archive.
    Where files must be written in one pass, all comes in its order, one after the other.

    Raises:
        ColdTierError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._path = path
        self._part = path.with_name(f"{path.name}.part")
        #: For errors that name a path.
        self._place = Storage(str(path.parent))
        self.export_id: UUID = uuid4()
        with self._naming():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._held = dict(whole_members(self._part)) if self._part.exists() else {}
            self._order = list(self._held)
            self._in_place = can_be_changed(hidden_path(str(path.absolute())))
            self._file = FileIO(self._part, "r+b" if self._part.exists() else "wb")
            self._folder = Path(mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        #: Where tables are made for the export.
        self.stage = Storage(str(self._folder))
        self._next: int | None = 0  # of the held members; None: no more are kept
        self._end = 0  # of the last member that stays
        self._begins: dict[str, int] = {}  # where the files of a topic begin, by its folder

    def put(self, files: Sequence[ToCopy], tell: Tell) -> list[Copied]:
        """Adds files as the next members, but for the first ones if the same are there next.

        Returns:
            What each holds, in their order.

        Raises:
            MissingFileError: there is no such source.
            ContradictionError: one has another size.
            ColdTierError: either place does not answer, or refuses.
        """
        kept = self._kept(files, tell)
        members = self._placed(files[len(kept) :])
        if not members:
            return kept
        self._cut()
        write = partial(self._write, tell=tell)
        copied = side_by_side(write, members, AT_ONCE if self._in_place else 1)
        self._end = members[-1].end
        return kept + copied

    def begin(self, folder: str) -> None:
        """The files of a topic come next; the second time, without those that came before."""
        if folder in self._begins:
            self._end = self._begins[folder]
            self._cut()
        self._begins[folder] = self._end

    def took(self, paths: Sequence[str], tell: Tell) -> list[Copied]:
        """Adds what was made in the stage."""
        return self.put([self._made(path) for path in paths], tell)

    def clear(self, folder: str, keep: Iterable[str]) -> None:
        """Nothing that is not wanted is in it."""

    def finish(self, manifest: bytes) -> None:
        """Makes it an export."""
        failpoint("export.before_manifest")
        with self._naming():
            self._cut()
            writer = PlacedWriter(self._file.fileno(), self._end, self._naming)
            writer.write(_header(MANIFEST, len(manifest)))
            writer.write(manifest)
            end = writer.position + 3 * _BLOCK  # two end it, and one may be begun
            whole_end = -(-end // tarfile.RECORDSIZE) * tarfile.RECORDSIZE
            writer.write(bytes(whole_end - writer.position))
            os.fsync(self._file.fileno())
            self._part.replace(self._path)
            self._place.sync(str(self._path.parent))

    def close(self) -> None:
        """Lets go of the file, and removes the stage."""
        self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _naming(self) -> AbstractContextManager[None]:
        return self._place.naming(self.where)

    def _made(self, path: str) -> ToCopy:
        made = f"{self.stage.root}/{path}"
        return ToCopy(path, self.stage.size_bytes(made), partial(self.stage.opened, made), made)

    def _kept(self, files: Sequence[ToCopy], tell: Tell) -> list[Copied]:
        """What the held members hold that come next, as far as they are the files that do."""
        if self._next is None:
            return []
        nexts = self._order[self._next :]
        pairs = zip(files, nexts, strict=False)  # either may have more
        alike = takewhile(lambda pair: self._may_be(*pair), pairs)
        differs = threading.Event()  # what comes after one that does not stay is not looked at

        def compare(file: ToCopy) -> Copied | None:
            if differs.is_set():
                return None
            found = same(_part_of(self._part, *self._held[file.path]), file, tell)
            if found is None:
                differs.set()
            return found

        found = side_by_side(compare, [file for file, _ in alike], AT_ONCE)
        kept = list(takewhile(lambda one: one is not None, found))
        if kept:
            start, size_bytes = self._held[nexts[len(kept) - 1]]
            self._end = start + _padded(size_bytes)
            self._next += len(kept)
        return [one for one in kept if one is not None]

    def _may_be(self, file: ToCopy, held: str) -> bool:
        return held == file.path and self._held[held][1] == file.size_bytes

    def _placed(self, files: Iterable[ToCopy]) -> list[_Member]:
        members: list[_Member] = []
        end = self._end
        for file in files:
            members.append(_Member(file, _header(file.path, file.size_bytes), end))
            end = members[-1].end
        return members

    def _cut(self) -> None:
        """Removes what follows the last member that stays, so that zeros are there until another
        header is.
        """
        self._next = None
        with self._naming():
            if os.fstat(self._file.fileno()).st_size > self._end:
                self._file.truncate(self._end)

    def _write(self, member: _Member, *, tell: Tell) -> Copied:
        file, descriptor = member.file, self._file.fileno()

        def copy() -> Copied:
            with file.source() as source:
                sink = PlacedWriter(descriptor, member.start, self._naming)
                found = pour(source, sink, file.size_bytes, tell)
                sink.begin_writeback()
                return found

        def write(position: int, data: bytes) -> None:
            PlacedWriter(descriptor, position, self._naming).write(data)

        if not self._in_place:
            write(member.header_start, member.header)
        copied = patiently(f"copying {file.where}", copy)
        check_size(file, copied)
        content_end = member.start + file.size_bytes
        write(content_end, bytes(member.end - content_end))
        failpoint("transfer.after_copy")
        if self._in_place:
            write(member.header_start, member.header)
        return copied


class ArchiveReader:
    """Reads an export from a tar file, at any place. Nothing is unpacked.

    Raises:
        MissingFileError: there is no such file.
        CorruptExportError: it is no archive, or holds what no export holds: links, devices, names
            that lead elsewhere or come twice, members that end beyond it.
    """

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._place = Storage(str(path.parent))
        if not path.is_file():
            part = path.with_name(f"{path.name}.part")
            more = (
                f", but an unfinished one, {part.name}: the same `lakelog export` again finishes it"
                if part.exists()
                else ": name the folder, or the .tar file, that `lakelog export` wrote"
            )
            raise MissingFileError(f"there is no export at {path}{more}", path=self.where)
        self._path = path
        with self._place.naming(self.where):
            self._members = dict(self._indexed())

    def manifest(self) -> bytes:
        """The text of its manifest.

        Raises:
            CorruptExportError: it has none.
        """
        if MANIFEST not in self._members:
            refuse(self.where, f"it has no {MANIFEST}")
        size_bytes = self._members[MANIFEST][1]
        if size_bytes > MOST_MANIFEST_BYTES:
            refuse(self.where, f"its manifest has {size_bytes:,} bytes")
        with self._place.naming(self.where), self._path.open("rb") as file:
            file.seek(self._members[MANIFEST][0])
            return file.read(size_bytes)

    def sizes(self, paths: Iterable[str]) -> Mapping[str, int]:
        """How large files are, of those that are there.

        Raises:
            CorruptExportError: there are others.
        """
        wanted = {*paths, MANIFEST}
        others = sorted(self._members.keys() - wanted)
        if others:
            refuse(self.where, f"it holds {others[0]!r:.200}, which its manifest does not name")
        return {path: size_bytes for path, (_, size_bytes) in self._members.items()}

    def opened(self, path: str) -> Opened:
        """Opens a file of it."""
        opened = _part_of(self._path, *self._members[path])

        @contextmanager
        def named() -> Iterator[Readable]:
            with self._place.naming(self.where), opened() as stream:
                yield stream

        return named

    def close(self) -> None:
        """Nothing is held."""

    def _indexed(self) -> Iterator[tuple[str, tuple[int, int]]]:
        seen: set[str] = set()
        try:
            for name, start, size_bytes in _members(self._path):
                if not _LEGAL.fullmatch(name):
                    raise ValueError(f"{name!r:.200} is no path of a file of an export")
                if name in seen:
                    raise ValueError(f"it has {name!r:.200} twice")
                seen.add(name)
                yield name, (start, size_bytes)
        except (ValueError, EOFError, tarfile.TarError) as error:
            refuse(self.where, str(error))


class _Part:
    """A stretch of an open file, from where it stands."""

    def __init__(self, file: FileIO, size_bytes: int) -> None:
        self._file = file
        self._left_bytes = size_bytes

    def readinto(self, buffer: memoryview, /) -> int:
        count = self._file.readinto(buffer[: self._left_bytes])
        self._left_bytes -= count
        return count


def _part_of(path: Path, start: int, size_bytes: int) -> Opened:
    @contextmanager
    def opened() -> Iterator[Readable]:
        with FileIO(path) as file:
            file.seek(start)
            yield _Part(file, size_bytes)

    return opened


def _header(path: str, size_bytes: int) -> bytes:
    info = tarfile.TarInfo(path)
    info.size, info.mode = size_bytes, 0o644
    return info.tobuf(tarfile.GNU_FORMAT)


def whole_members(path: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """The members of an archive up to where it was cut short."""
    try:
        for name, start, size_bytes in _members(path):
            yield name, (start, size_bytes)
    except (ValueError, EOFError, tarfile.TarError):
        return


def _members(path: Path) -> Iterator[tuple[str, int, int]]:
    """The files in a tar archive: name, where it begins, and size in bytes.

    Python's own reader would follow links of several kinds and read headers of any size.

    Raises:
        ValueError: it is no such archive, or a member is no file.
        EOFError: it ends within a member.
    """
    whole_bytes = path.stat().st_size
    position, long_name = 0, ""
    with path.open("rb") as file:
        while True:
            file.seek(position)
            block = file.read(_BLOCK)
            if not block or (len(block) == _BLOCK and not block.strip(b"\0")):
                return
            try:
                info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
            except tarfile.HeaderError as error:
                raise ValueError(f"there is no header of a tar archive at {position}") from error
            start = position + _BLOCK
            position = start + _padded(info.size)
            if info.size < 0 or start + info.size > whole_bytes:
                raise EOFError(f"it ends within {info.name!r:.200}")
            if info.type in (tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE):
                if info.size > _MOST_HEADER_BYTES:
                    raise ValueError(f"a header has {info.size:,} bytes")
                said = file.read(info.size)
                if info.type == tarfile.GNUTYPE_LONGNAME:
                    long_name = said.rstrip(b"\0").decode("utf-8", "surrogateescape")
                elif re.search(rb" (path|size|linkpath|GNU\.sparse[^=]*)=", said):
                    raise ValueError("it has headers of the pax form; make it with tar -H gnu")
                continue
            name, long_name = (long_name or info.name).removeprefix("./"), ""
            if info.type == tarfile.DIRTYPE:
                continue
            if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
                raise ValueError(f"{name!r:.200} is a link or a device, not a file")
            yield name, start, info.size


def _padded(size_bytes: int) -> int:
    return -(-size_bytes // _BLOCK) * _BLOCK
