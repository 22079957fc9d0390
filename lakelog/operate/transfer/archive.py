"""An export as one file: a tar archive of what the folder would hold, without compression.

Parquet is compressed already, and an archive that is not can be read at any place and cut short
after any member. The manifest is its last member.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import IO
from uuid import UUID, uuid4

from ...cold.store.storage import Storage
from ...errors import MissingFileError
from ...failpoints import failpoint
from .copying import CHUNK_BYTES, Copied, Opened, Readable, Tell, nothing_told, pour
from .manifest import MANIFEST, MOST_MANIFEST_BYTES, refuse

_BLOCK = tarfile.BLOCKSIZE
_MOST_HEADER_BYTES = 64 * 1024
_LEGAL = re.compile(r"[\w-][\w.=-]*(/[\w-][\w.=-]*)*", re.ASCII)


class _Hashed:
    """A source that knows what was read of it. A thread takes the checksum of a chunk meanwhile."""

    def __init__(self, source: Readable, tell: Tell, hashing: Executor) -> None:
        self._source = source
        self._tell = tell
        self._hashing = hashing
        self._digest = hashlib.sha256()
        self._under_way: Future[None] | None = None  # one at most: chunks wait in their order

    def read(self, size: int, /) -> bytes:
        chunk = self._source.read(size)
        self._wait()
        self._under_way = self._hashing.submit(self._digest.update, chunk)
        self._tell(len(chunk))
        return chunk

    def sha256(self) -> str:
        self._wait()
        return self._digest.hexdigest()

    def _wait(self) -> None:
        if self._under_way is not None:
            self._under_way.result()


class ArchiveWriter:
    """Writes an export into a tar file, which appears when it is whole.

    Until then it is the file beside it that ends in ``.part``. One that was cut short goes on after
    its last whole file, as far as its files are those that are wanted, in the same order.

    Raises:
        ColdTierError: it cannot be written.
    """

    takes_several = False

    def __init__(self, path: Path) -> None:
        self.where = str(path)
        self._path = path
        self._part = path.with_name(f"{path.name}.part")
        #: For errors that name a path.
        self._place = Storage(str(path.parent))
        self.export_id: UUID = uuid4()
        with self._place.naming(self.where):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._held = dict(_whole_members(self._part)) if self._part.exists() else {}
            self._order = list(self._held)
            self._file: IO[bytes] = self._part.open("r+b" if self._part.exists() else "w+b")
            self._folder = Path(mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        #: Where tables are made for the export.
        self.stage = Storage(str(self._folder))
        self._hashing = ThreadPoolExecutor(1, "lakelog-export-checksum")
        self._tar: tarfile.TarFile | None = None
        self._next = 0  # of the held members
        self._end = 0  # of the last member that stays
        self._begins: dict[str, int] = {}  # where the files of a topic begin, by its folder

    def put(self, path: str, size_bytes: int, source: Opened, tell: Tell) -> Copied:
        """Adds a file as the next member, unless the same one is the next that is there.

        Raises:
            MissingFileError: there is no such source.
            ColdTierError: either place does not answer, or refuses.
        """
        kept = self._kept(path, size_bytes, source, tell)
        if kept is not None:
            return kept
        info = tarfile.TarInfo(path)
        info.size, info.mode = size_bytes, 0o644
        before = self._writing().offset
        with source() as stream, self._place.naming(self.where):
            hashed = _Hashed(stream, tell, self._hashing)
            try:
                self._writing().addfile(info, hashed)  # type: ignore[arg-type]
            except BaseException:
                self._tar = self._open_at(before)  # no half of a member stays before the next one
                raise
        return Copied(size_bytes, hashed.sha256())

    def begin(self, folder: str) -> None:
        """The files of a topic come next; the second time, without those that came before."""
        if folder in self._begins:
            self._tar = self._open_at(self._begins[folder])
        self._begins[folder] = self._end if self._tar is None else self._tar.offset

    def took(self, path: str, tell: Tell) -> Copied:
        """Adds what was made in the stage."""
        made = f"{self.stage.root}/{path}"
        return self.put(path, self.stage.size_bytes(made), partial(self.stage.opened, made), tell)

    def clear(self, folder: str, keep: Iterable[str]) -> None:
        """Nothing that is not wanted is in it."""

    def finish(self, manifest: bytes) -> None:
        """Makes it an export."""
        failpoint("export.before_manifest")
        with self._place.naming(self.where):
            info = tarfile.TarInfo(MANIFEST)
            info.size, info.mode = len(manifest), 0o644
            tar = self._writing()
            tar.addfile(info, io.BytesIO(manifest))
            tar.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._part.replace(self._path)
            self._place.sync(str(self._path.parent))

    def close(self) -> None:
        """Lets go of the file, and removes the stage."""
        self._hashing.shutdown()
        self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _kept(self, path: str, size_bytes: int, source: Opened, tell: Tell) -> Copied | None:
        """The held member, if it is the one that comes next."""
        if self._tar is not None or self._next >= len(self._order):
            return None
        if self._order[self._next] != path or self._held[path][1] != size_bytes:
            return None
        start, _ = self._held[path]
        self._file.seek(start)
        held = pour(_Part(self._file, size_bytes), None, size_bytes, nothing_told)
        with source() as stream:
            if pour(stream, None, size_bytes, tell) != held:
                return None
        self._next += 1
        self._end = start + _padded(size_bytes)
        return held

    def _writing(self) -> tarfile.TarFile:
        if self._tar is None:
            self._tar = self._open_at(self._end)
        return self._tar

    def _open_at(self, end: int) -> tarfile.TarFile:
        self._file.truncate(end)
        self._file.seek(end)
        tar = tarfile.TarFile(fileobj=self._file, mode="w", format=tarfile.GNU_FORMAT)
        tar.copybufsize = CHUNK_BYTES  # type: ignore[attr-defined]  # typeshed lacks it
        tar.offset = end
        return tar


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
        with self.opened(MANIFEST)() as stream:
            return stream.read(size_bytes)

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
        start, size_bytes = self._members[path]

        @contextmanager
        def opened() -> Iterator[Readable]:
            with self._place.naming(self.where), self._path.open("rb", buffering=0) as file:
                file.seek(start)
                yield _Part(file, size_bytes)

        return opened

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

    def __init__(self, file: IO[bytes], size_bytes: int) -> None:
        self._file = file
        self._left_bytes = size_bytes

    def read(self, size: int, /) -> bytes:
        chunk = self._file.read(min(size, self._left_bytes))
        self._left_bytes -= len(chunk)
        return chunk


def _whole_members(path: Path) -> Iterator[tuple[str, tuple[int, int]]]:
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
