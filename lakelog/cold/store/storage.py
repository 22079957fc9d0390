"""Where the cold tier lies. The one place that opens storage.

Small calls that may be repeated are tried again while the store is busy or away for a moment; see
`back_off`. The libraries below retry too, each after other errors (Arrow not after a 429).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import InitVar, dataclass, field
from functools import lru_cache, partial
from importlib import metadata
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import pyarrow as pa
from msgspec import Struct

from ...base.back_off import patiently
from ...errors import ColdTierRefusedError, LakelogError, LogClosedError, MissingFileError
from ...values.config import MIB
from ...values.topic import Topic
from ..store_errors import DAMAGE, file_error
from . import unity_catalog
from .local_file import hidden_file
from .object_store import ObjectStore, arrow_filesystem, resolve_root
from .store_options import StoreOptions
from .unity_catalog import Keys, PathKeys, Vended

if TYPE_CHECKING:
    import pyarrow.fs as pafs


T = TypeVar("T")
R = TypeVar("R")

#: Calls of an object store that wait for their answers at a time.
CALLS_AT_ONCE = 16

#: Of a file that is being written, so much waits for a store's answers.
SENT_BYTES = 80 * MIB

_DIGEST_CHUNK_BYTES = 8 * MIB


class Sink(Protocol):
    """A file that is being written."""

    def write(self, data: bytes | memoryview, /) -> object: ...


class StoreWriter:
    """A new file in an object store, in bounded memory.

    Arrow sends parts (10 MiB) in threads of its own, and keeps each until the store has taken it,
    however many these are. So after `SENT_BYTES` the store is waited for.

    Args:
        out: `pa.NativeFile`, open for writing; it is closed with this one.
    """

    def __init__(self, out: Any) -> None:
        self._out = out
        self._sent_bytes = 0  # since the store was waited for

    def write(self, data: bytes | memoryview, /) -> int:
        content = bytes(data)  # Arrow sends out of what it is given, which may be used again
        self._out.write(content)
        self._sent_bytes += len(content)
        if self._sent_bytes >= SENT_BYTES:
            self._out.flush()
            self._sent_bytes = 0
        return len(content)

    def close(self) -> None:
        self._out.close()


class _NamedFile(Struct):
    """A file whose errors name it, and no errors of what is read to be written."""

    file: FileIO | StoreWriter
    naming: Callable[[], AbstractContextManager[None]]

    def write(self, data: bytes | memoryview, /) -> None:
        left = memoryview(data)
        with self.naming():
            while left:
                left = left[self.file.write(left) :]


class FileStamp(NamedTuple):
    """What a store says of a file."""

    size_bytes: int
    modified_ms: int | None  # when it was written; None: the store does not say


@dataclass(frozen=True, slots=True, repr=False)
class Storage:
    """A cold root: a local folder (made when first written) or an object store's URL.

    Hashable and picklable. Shows no secret, and holds one only if it was given one in clear. A
    secret in the environment, or behind a reference, is looked up where a store is opened.

    Args:
        root: a path (``~`` and relative ones are resolved here and now, since executors have
            another working directory), a ``file://`` URL, or ``s3://``, ``abfss://``, ``gs://``.
        options: open an object store and override the environment; see `store_options`.
        keys: what Unity Catalog is asked for where it gives the credentials; default: those of
            the root.

    Raises:
        ColdTierError: no Delta commit can be made in this place, or deltalake is too old.
        InvalidArgumentError: not a place, or options that it does not take.
    """

    root: str
    options: InitVar[Mapping[str, str] | None] = None
    keys: InitVar[Keys | None] = None
    is_local: bool = field(init=False)
    store_options: StoreOptions = field(init=False)
    _store: ObjectStore | None = field(init=False)  # None: a folder

    def __post_init__(self, options: Mapping[str, str] | None, keys: Keys | None) -> None:
        check_deltalake()
        root, store = resolve_root(self.root)
        scheme = "" if store is None else store.scheme
        given = StoreOptions.of(scheme, options, keys or PathKeys(root))
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "is_local", store is None)
        object.__setattr__(self, "store_options", given)
        object.__setattr__(self, "_store", store)

    def table_path(self, topic: Topic) -> str:
        """The folder of the topic's table; the id keeps a re-created topic off its old data."""
        return f"{self.root.rstrip('/')}/{topic.name}/{topic.topic_id}"

    def keyed_for(self, path: str) -> Storage:
        """The same place, opened by keys of a path below its root.

        Unity Catalog gives none for a path above a table that it knows, only for the table's own.
        """
        if not self.store_options.vended:
            return self
        return Storage(self.root, dict(self.store_options), PathKeys(path))

    def delta_options(self) -> dict[str, str]:
        """What delta-rs needs beside the path. Ask again each time: vended keys are renewed.

        Raises:
            InvalidArgumentError, MissingExtraError: a reference cannot be resolved here.
            ColdTierError: Unity Catalog gives no credentials.
            LogClosedError: delta-rs was used before this process was forked.
        """
        check_not_forked()
        return {} if self._store is None else self._store.delta(self.store_options.resolved())

    @property
    def object_stores(self) -> tuple[str, ...]:
        """The scheme of the root, if it is an object store's."""
        return () if self._store is None else (self._store.scheme,)

    def spark_options(self) -> dict[str, str]:
        """What Spark's own readers need beside the path: options of a DataFrame reader.

        The same names may be set on a session, which then shows them to all who use it. On
        Databricks, whose clusters know their stores, only the given options. Vended keys among them
        are not renewed: they last between half an hour and an hour.

        Raises:
            InvalidArgumentError, MissingExtraError, ColdTierError: as for `delta_options`.
        """
        on_databricks = "DATABRICKS_RUNTIME_VERSION" in os.environ
        own = self.store_options and not self.store_options.vended
        if self._store is None or (on_databricks and not own):
            return {}
        return self._store.spark(self.store_options.resolved(unity_catalog.HAND_ON_BEFORE_MS))

    def filesystem(self) -> pafs.FileSystem:
        """Arrow's file system of the root. Ask again for each file: vended keys are renewed.

        Raises:
            InvalidArgumentError, MissingExtraError: a reference cannot be resolved here.
            ColdTierError: this pyarrow cannot open such a place, or Unity Catalog gives no
                credentials.
        """
        import pyarrow.fs as pafs

        if self._store is None:
            return pafs.LocalFileSystem()
        return arrow_filesystem(self._store, frozenset(self.store_options.resolved().items()))

    def to_hand_on(self) -> Vended | None:
        """Credentials that open the root in a process without a login; None if none are vended.

        They are secret, and their repr hides them: for a pickle, and for `take` in another process.

        Raises:
            MissingExtraError, ColdTierError: as for `delta_options`.
        """
        keys = self.store_options.vended
        if keys is None:
            return None
        return unity_catalog.vended(keys, unity_catalog.HAND_ON_BEFORE_MS)

    def take(self, handed_on: Vended | None) -> None:
        """Open the root in this process with what another process handed on."""
        if handed_on is not None and self.store_options.vended is not None:
            unity_catalog.hold(self.store_options.vended, handed_on)

    def renew(self) -> None:
        """Have new credentials asked for the next time, as the store refuses those held."""
        if self.store_options.vended is not None:
            unity_catalog.drop(self.store_options.vended)

    def __reduce__(self) -> tuple[Any, ...]:
        keys = self.store_options.vended
        held = None if keys is None else unity_catalog.held_for(keys)
        return _unpickled, (self.root, dict(self.store_options), keys, held)

    def __repr__(self) -> str:
        options = f", options={self.store_options!r}" if self.store_options else ""
        return f"Storage({self.root!r}{options})"

    def arrow_path(self, path: str) -> str:
        """A path below the root as `filesystem` takes it."""
        return path if self._store is None else self._store.arrow_path(path)

    def list_files(self, path: str, *, recursive: bool) -> list[pafs.FileInfo]:
        """What lies below a folder; nothing if there is none."""
        import pyarrow.fs as pafs

        selector = pafs.FileSelector(
            self.arrow_path(path), allow_not_found=True, recursive=recursive
        )

        def listed() -> list[pafs.FileInfo]:
            try:
                return list(self.filesystem().get_file_info(selector))
            except FileNotFoundError:
                # Arrow looks again whether there is a folder when it has found none, and fails if
                # it was made in between. So it is there now.
                return list(self.filesystem().get_file_info(selector))

        return self._patiently("listing", path, listed)

    def files_below(self, path: str) -> dict[str, FileStamp]:
        """The files in a folder and in those below it, by path relative to it; none if there is no
        folder.

        Raises: see `naming`.
        """
        top = self.arrow_path(path).rstrip("/") + "/"
        return {
            info.path.removeprefix(top): FileStamp(size_bytes, _modified_ms(info))
            for info in self.list_files(path, recursive=True)
            if (size_bytes := info.size) is not None  # a folder's; asking `is_file` takes longer
        }

    def file_names(self, path: str) -> list[str]:
        """The names of the files that lie in a folder itself; none if there is no folder."""
        return [name for name, is_file in self._entries(path) if is_file]

    def names(self, path: str) -> list[str]:
        """As `file_names`, with those of folders."""
        return [name for name, _ in self._entries(path)]

    def _entries(self, path: str) -> list[tuple[str, bool]]:
        """What lies in a folder itself: the name, and whether it is a file."""
        if not self.is_local:
            infos = self.list_files(path, recursive=False)
            return [(info.base_name, info.is_file) for info in infos]

        def listed() -> list[tuple[str, bool]]:  # Arrow asks for size and time of each, too
            return [(entry.name, entry.is_file()) for entry in _scanned(path)]

        return self._patiently("listing", path, listed)

    @contextmanager
    def opened(self, path: str) -> Iterator[pa.NativeFile]:
        """A file to read from its beginning on.

        Raises: see `naming`.
        """
        with (
            self.naming(path),
            self.filesystem().open_input_stream(self.arrow_path(path)) as stream,
        ):
            yield stream

    @contextmanager
    def appearing(self, path: str, *, synced: bool = False) -> Iterator[Sink]:
        """A file to write, in a folder that is there; whoever reads it finds all of it, or none.

        What is given may be changed once `write` has returned.

        Args:
            synced: a local file is on the disk before it appears.

        Raises: see `naming`.
        """
        naming = partial(self.naming, path)
        if not self.is_local:  # a store shows no part of a file
            with naming():
                out = self.new_file(path)
            try:
                yield _NamedFile(out, naming)
            finally:
                with naming():
                    out.close()
            return
        with hidden_file(path, naming) as file:
            yield _NamedFile(file, naming)
            if synced:
                with naming():  # here, where the kernel tells of what it could not write since
                    os.fsync(file.fileno())

    def new_file(self, path: str) -> Any:
        """A file to write and to close, in a folder that is there.

        Raises (as its methods do): the file system's errors; see `naming`.
        """
        out = self.filesystem().open_output_stream(self.arrow_path(path))
        return out if self.is_local else StoreWriter(out)

    def read_bytes(self, path: str) -> bytes | None:
        """A small file's content; None if there is no such file."""

        def content() -> bytes | None:
            try:
                if self.is_local:
                    with FileIO(path) as file:
                        return file.readall()
                with self.filesystem().open_input_stream(self.arrow_path(path)) as stream:
                    return bytes(stream.read())
            except FileNotFoundError:
                return None

        return self._patiently("reading", path, content)

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a small file, in a folder that is there; whoever reads it finds all of it."""

        def write() -> None:
            with self.appearing(path) as out:
                out.write(content)

        patiently(f"writing {path}", write)

    def is_file(self, path: str) -> bool:
        return self.stamps([path]) != [None]

    def stamps(self, paths: Sequence[str]) -> list[tuple[int, int | None] | None]:
        """Size and time of each file, which tell it from one put in its place; None: no file."""
        import pyarrow.fs as pafs

        def infos() -> list[pafs.FileInfo]:
            wanted = [self.arrow_path(path) for path in paths]
            ask: Callable[[Any], Any] = self.filesystem().get_file_info
            if self.is_local:
                return list(ask(wanted))
            return side_by_side(ask, wanted)  # Arrow asks for one after the other

        about = paths[0] if len(paths) == 1 else self.root
        return [
            (int(info.size), info.mtime_ns) if info.type == pafs.FileType.File else None
            for info in self._patiently("looking for", about, infos)
        ]

    def missing(self, paths: Sequence[str]) -> list[str]:
        """The paths that are not files."""
        stamps = self.stamps(paths)
        return [path for path, stamp in zip(paths, stamps, strict=True) if stamp is None]

    def size_bytes(self, path: str) -> int:
        """How large a file is.

        Raises:
            MissingFileError: there is none.
        """
        (stamp,) = self.stamps([path])
        if stamp is None:
            with self.naming(path):
                raise FileNotFoundError(path)
        return stamp[0]

    def sha256(self, path: str) -> str:
        """The digest of a file's bytes, in hex.

        Raises:
            MissingFileError: there is no such file.
        """

        def digest() -> str:
            found = hashlib.sha256()
            with self.opened(path) as stream:
                while chunk := stream.read(_DIGEST_CHUNK_BYTES):
                    found.update(chunk)
            return found.hexdigest()

        return patiently(f"reading {path}", digest)

    def delete_file(self, path: str) -> None:
        """Remove a file, if it is there."""

        def delete() -> None:
            self.filesystem().delete_file(self.arrow_path(path))

        with suppress(MissingFileError):
            self._patiently("deleting", path, delete)

    def delete_files(self, paths: Iterable[str]) -> None:
        """As `delete_file`, many at once: an object store takes a while for each."""
        side_by_side(self.delete_file, paths)

    def check_writable(self) -> None:
        """Write a file below the root and remove it again.

        Raises:
            ColdTierError: that failed; the message names the path.
        """
        self._probe(self.root)

    def now_ms(self, folder: str) -> int | None:
        """The time by the clock that stamps a folder's files, which need not be this machine's.

        Read off a file written there now: milliseconds since the epoch, or whole seconds where the
        store counts no finer. None if the store stamps no files.

        Raises:
            ColdTierError: no file can be written there.
        """
        return _modified_ms(self._probe(folder))

    def _probe(self, folder: str) -> pafs.FileInfo:
        """What the store says of a file that is written there now and removed again."""
        # Delta's readers and vacuums ignore files whose names begin with a dot.
        probe = f"{folder.rstrip('/')}/.lakelog-probe-{uuid4().hex}"
        self.make_folder(folder)
        with self.naming(probe):
            filesystem = self.filesystem()
            with filesystem.open_output_stream(self.arrow_path(probe)) as out:
                out.write(b"lakelog")
            info = filesystem.get_file_info(self.arrow_path(probe))
        self.delete_file(probe)
        return info

    def make_folder(self, path: str, *, synced: bool = True) -> None:
        """Make a folder and those above it.

        Args:
            synced: they survive a power cut from then on; else the caller must sync them.
        """
        if not self.is_local:
            return
        missing = []
        folder = Path(path)
        with self.naming(path):
            while not folder.exists():
                missing.append(folder)
                folder = folder.parent
            if not missing:
                return
            try:
                Path(path).mkdir(parents=True, exist_ok=True)
            except FileNotFoundError as error:  # as /proc answers: no file of ours is missing
                raise ColdTierRefusedError(
                    f"the folder {path} cannot be made: {error.strerror}. {self.advice()}",
                    path=path,
                ) from error
        for made in missing if synced else ():
            self.sync(str(made.parent))

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all in it, if it is there."""
        with suppress(MissingFileError), self.naming(path):
            self.filesystem().delete_dir(self.arrow_path(path))

    def sync(self, *paths: str) -> None:
        """Return once the files or folders are on the disk (object stores promise that anyway)."""
        if not self.is_local:
            return
        for path in paths:
            with self.naming(path):
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    @contextmanager
    def naming(self, path: str) -> Iterator[None]:
        """Say which path an error of the file system is about.

        Raises:
            MissingFileError: there is no such file.
            CorruptRecordError: it is there, but not the Parquet that was written.
            ColdTierUnavailableError, ColdTierFullError, ColdTierAccessError,
            ColdTierRefusedError: the store refuses; see `store_errors`.
        """
        try:
            yield
        except LakelogError:
            raise
        except (OSError, *DAMAGE) as error:
            raise file_error(path, error, self.advice(), is_local=self.is_local) from error

    def _patiently(self, doing: str, path: str, call: Callable[[], T]) -> T:
        """What a call returns, whose errors are about a path; tried again if the store is busy."""

        def named() -> T:
            try:
                return call()
            except Exception:
                with self.naming(path):
                    raise

        return patiently(f"{doing} {path}", named)

    def advice(self) -> str:
        """What to do when the root cannot be used, as a sentence without its full stop."""
        if self.is_local:
            return (
                f"Check that {self.root} exists, has room, and may be read and written by this user"
            )
        return (
            f"Check that the bucket of {self.root} exists, and that the credentials in use here "
            "may list, read, write and delete below it (lakelog help object-stores)"
        )


def side_by_side(
    call: Callable[[T], R], values: Iterable[T], at_once: int = CALLS_AT_ONCE
) -> list[R]:
    """The answer to each call, in the order of the values; so many are waited for at a time.

    After the first error, in that order, no more calls begin; it is raised when all have ended.
    """
    values = list(values)
    if len(values) < 2:
        return [call(value) for value in values]
    with ThreadPoolExecutor(at_once, "lakelog-store") as threads:
        return list(threads.map(call, values))


def _scanned(folder: str) -> list[os.DirEntry[str]]:
    """What lies in a local folder; nothing if there is none: others make and remove it."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _modified_ms(info: pafs.FileInfo) -> int | None:
    """When the store says that the file was written; None if it does not say."""
    return None if info.mtime_ns is None else info.mtime_ns // 1_000_000


def _unpickled(
    root: str, options: Mapping[str, str], keys: Keys | None, held: Vended | None
) -> Storage:
    storage = Storage(root, options, keys)
    storage.take(held)
    return storage


#: 1.6.4 is the first deltalake whose commits carry removals and txn versions together: older ones
#: silently drop the registers. 1.6.4 and 1.6.5 were withdrawn by their makers.
DELTALAKE_FLOOR = (1, 6, 6)

_pid: int | None = None  # of the process that used it first


def check_not_forked() -> None:
    """Note that this process uses delta-rs, which must not be the fork of one that did.

    There it would end in a panic, which is no `Exception`.

    Raises:
        LogClosedError: it is.
    """
    global _pid
    pid = os.getpid()
    if _pid is None:
        _pid = pid
    elif _pid != pid:
        raise LogClosedError(
            f"process {pid} was forked from {_pid}, which has used Delta tables, and cannot use "
            "them itself. Start processes with multiprocessing.get_context('spawn') (or "
            "'forkserver'), or fork before the first table is used"
        )


def check_deltalake(version: str | None = None) -> None:
    """Refuse a deltalake that would lose registers.

    Args:
        version: default: that of the one which is installed.

    Raises:
        ColdTierError: it is older than `DELTALAKE_FLOOR`.
    """
    version = _deltalake_version() if version is None else version
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    if numbers < DELTALAKE_FLOOR:
        floor = ".".join(map(str, DELTALAKE_FLOOR))
        raise ColdTierRefusedError(
            f"deltalake {version} is too old: its commits drop what lakelog needs in them. "
            f"pip install 'deltalake>={floor}'",
        )


@lru_cache(maxsize=1)
def _deltalake_version() -> str:
    """As its wheel says, without importing it: what is hot alone does without delta-rs."""
    return metadata.version("deltalake")
