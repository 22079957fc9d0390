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
from contextlib import contextmanager, suppress
from dataclasses import InitVar, dataclass, field
from functools import lru_cache, partial
from importlib import metadata
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import pyarrow as pa

from ...base.back_off import patiently
from ...base.local_path import path_or_url
from ...errors import (
    ColdTierRefusedError,
    ColdTierUnavailableError,
    CorruptRecordError,
    LakelogError,
    MissingFileError,
)
from ...values.topic import Topic
from ..store_errors import COMMITS_NEED, cannot_commit, error_class, one_line
from . import vended_credentials
from .bounded_file import BoundedFile
from .delta_runtime import check_not_forked
from .hidden_file import hidden_file
from .object_store import ObjectStore, arrow_filesystem, object_store
from .placed_writer import PlacedWriter
from .store_options import StoreOptions
from .vended_credentials import Keys, PathKeys, Vended

if TYPE_CHECKING:
    import pyarrow.fs as pafs


T = TypeVar("T")
R = TypeVar("R")

#: Calls of an object store that wait for their answers at a time.
CALLS_AT_ONCE = 16

_DIGEST_CHUNK_BYTES = 8 * 1024 * 1024

#: 1.6.4 is the first deltalake whose commits carry removals and txn versions together: older ones
#: silently drop the registers. 1.6.4 and 1.6.5 were withdrawn by their makers.
DELTALAKE_FLOOR = (1, 6, 6)


#: Arrow's errors on object stores have no number, whether the store failed or the file is damaged.
#: In doubt it was the store: nobody should be sent for a backup without need.
_STORE_SAYS = re.compile(r"AWS Error|Azure Error|google::cloud::Status")
_PARQUET_SAYS = re.compile(
    r"Parquet |[Tt]hrift|[Pp]age|ZSTD|[Dd]ecompress|CRC|[Cc]orrupt|Unexpected end of stream"
)


#: Arrow's errors for bytes that it cannot read; OSErrors are looked at more closely.
_DAMAGE = (
    pa.ArrowInvalid,
    pa.ArrowNotImplementedError,
    pa.ArrowTypeError,
    pa.ArrowKeyError,
    pa.ArrowIndexError,
    pa.ArrowSerializationError,
    UnicodeDecodeError,
    OverflowError,
)


class Sink(Protocol):
    """A file that is being written."""

    def write(self, data: bytes | memoryview, /) -> object: ...


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
    keys: Keys | None = None
    is_local: bool = field(init=False)
    store_options: StoreOptions = field(init=False)
    _store: ObjectStore | None = field(init=False)  # None: a folder

    def __post_init__(self, options: Mapping[str, str] | None) -> None:
        check_deltalake()
        root = _resolve(self.root)
        store = object_store(root) if "://" in root else None
        given = StoreOptions.of("" if store is None else store.scheme, options)
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "keys", self.keys or PathKeys(root))
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
            ForkedProcessError: delta-rs was used before this process was forked.
        """
        check_not_forked()
        return {} if self._store is None else self._store.delta(self._values())

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
        return self._store.spark(self._values(vended_credentials.HAND_ON_BEFORE_MS))

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
        return arrow_filesystem(self._store, frozenset(self._values().items()))

    def to_hand_on(self) -> Vended | None:
        """Credentials that open the root in a process without a login; None if none are vended.

        They are secret, and their repr hides them: for a pickle, and for `take` in another process.

        Raises:
            MissingExtraError, ColdTierError: as for `delta_options`.
        """
        if not self.store_options.vended:
            return None
        return vended_credentials.vended(self._keys, vended_credentials.HAND_ON_BEFORE_MS)

    def take(self, handed_on: Vended | None) -> None:
        """Open the root in this process with what another process handed on."""
        if handed_on is not None:
            vended_credentials.hold(self._keys, handed_on)

    def renew(self) -> None:
        """Have new credentials asked for the next time, as the store refuses those held."""
        vended_credentials.drop(self._keys)

    def _values(self, lasting_ms: int = vended_credentials.RENEW_BEFORE_MS) -> dict[str, str]:
        if not self.store_options.vended:
            return self.store_options.resolved()
        vended = vended_credentials.vended(self._keys, lasting_ms)
        return self.store_options.resolved(dict(vended.values))

    def __reduce__(self) -> tuple[Any, ...]:
        held = vended_credentials.held_for(self._keys) if self.store_options.vended else None
        return _unpickled, (self.root, dict(self.store_options), self.keys, held)

    @property
    def _keys(self) -> Keys:
        assert self.keys is not None  # set when it was made
        return self.keys

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
            with self.naming(path):
                try:
                    infos: list[pafs.FileInfo] = self.filesystem().get_file_info(selector)
                except FileNotFoundError:
                    # Arrow looks again whether there is a folder when it has found none, and fails
                    # if it was made in between. So it is there now.
                    infos = self.filesystem().get_file_info(selector)
            return infos

        return patiently(f"listing {path}", listed)

    def files_below(self, path: str) -> dict[str, Callable[[], FileStamp | None]]:
        """The files in a folder and in those below it, by path relative to it; none if there is no
        folder.

        Returns:
            What tells of a file; None: it is gone since. Local ones are asked only then: to look at
            each takes longer than to list them.

        Raises: see `naming`.
        """
        if not self.is_local:
            top = self.arrow_path(path).rstrip("/") + "/"
            return {
                info.path.removeprefix(top): partial(FileStamp, info.size, modified_ms(info))
                for info in self.list_files(path, recursive=True)
                if info.is_file
            }

        def stamp(entry: os.DirEntry[str]) -> FileStamp | None:
            with self.naming(entry.path), suppress(FileNotFoundError):
                found = entry.stat()
                return FileStamp(found.st_size, found.st_mtime_ns // 1_000_000)
            return None

        def listed() -> dict[str, Callable[[], FileStamp | None]]:
            found: dict[str, Callable[[], FileStamp | None]] = {}
            folders = [""]
            with self.naming(path):
                while folders:
                    below = folders.pop()
                    with (
                        suppress(FileNotFoundError),  # others make and remove them
                        os.scandir(f"{path}/{below}") as entries,
                    ):
                        for entry in entries:
                            if entry.is_dir():
                                folders.append(f"{below}{entry.name}/")
                            else:
                                found[below + entry.name] = partial(stamp, entry)
            return found

        return patiently(f"listing {path}", listed)

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

        def listed() -> list[tuple[str, bool]]:
            with (  # Arrow asks for the size and time of each file, too
                self.naming(path),
                suppress(FileNotFoundError),
                os.scandir(path) as entries,
            ):
                return [(entry.name, entry.is_file()) for entry in entries]
            return []

        return patiently(f"listing {path}", listed)

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
        if not self.is_local:  # a store shows no part of a file
            target = self.arrow_path(path)
            with self.naming(path), self.filesystem().open_output_stream(target) as out:
                yield BoundedFile(out)
            return
        naming = partial(self.naming, path)
        with hidden_file(path, naming) as file:
            yield PlacedWriter(file.fileno(), 0, naming)
            if synced:
                with naming():  # here, where the kernel tells of what it could not write since
                    os.fsync(file.fileno())

    def read_bytes(self, path: str) -> bytes | None:
        """A small file's content; None if there is no such file."""

        def content() -> bytes | None:
            if self.is_local:
                try:
                    with FileIO(path) as file:
                        return file.readall()
                except FileNotFoundError:
                    return None
                except Exception:
                    with self.naming(path):
                        raise
            with self.opened(path) as stream:
                return bytes(stream.read())

        try:
            return patiently(f"reading {path}", content)
        except MissingFileError:
            return None

    def write_bytes(self, path: str, content: bytes) -> None:
        """Write a small file, in a folder that is there; whoever reads it finds all of it."""

        def write() -> None:
            with self.appearing(path) as out:
                out.write(content)

        patiently(f"writing {path}", write)

    def is_file(self, path: str) -> bool:
        import pyarrow.fs as pafs

        def is_there() -> bool:
            try:  # Arrow takes several times as long
                return S_ISREG(Path(path).stat().st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return False
            except Exception:
                with self.naming(path):
                    raise

        if self.is_local:
            return patiently(f"looking for {path}", is_there)
        (info,) = self._infos(path, [path])
        return bool(info.type == pafs.FileType.File)

    def stamps(self, paths: Sequence[str]) -> list[tuple[int, int | None] | None]:
        """Size and time of each file, which tell it from one put in its place; None: no file."""
        import pyarrow.fs as pafs

        return [
            (int(info.size), info.mtime_ns) if info.type == pafs.FileType.File else None
            for info in self._infos(self.root, paths)
        ]

    def size_bytes(self, path: str) -> int:
        """How large a file is.

        Raises:
            MissingFileError: there is none.
        """
        import pyarrow.fs as pafs

        (info,) = self._infos(path, [path])
        with self.naming(path):
            if info.type != pafs.FileType.File:
                raise FileNotFoundError(path)
        return int(info.size)

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
            with self.naming(path):
                self.filesystem().delete_file(self.arrow_path(path))

        with suppress(MissingFileError):
            patiently(f"deleting {path}", delete)

    def missing(self, paths: Sequence[str]) -> list[str]:
        """The paths that are not files."""
        import pyarrow.fs as pafs

        infos = self._infos(self.root, paths)
        return [
            path for path, info in zip(paths, infos, strict=True) if info.type != pafs.FileType.File
        ]

    def _infos(self, about: str, paths: Sequence[str]) -> list[pafs.FileInfo]:
        def infos() -> list[pafs.FileInfo]:
            with self.naming(about):
                wanted = [self.arrow_path(path) for path in paths]
                ask: Callable[[Any], Any] = self.filesystem().get_file_info
                if self.is_local or len(wanted) == 1:
                    return list(ask(wanted))
                return side_by_side(ask, wanted)  # Arrow asks for one after the other

        return patiently(f"looking for files at {about}", infos)

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
        return modified_ms(self._probe(folder))

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
        if missing:
            with self.naming(path):
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
        except FileNotFoundError as error:
            raise MissingFileError(
                f"{path} is missing: it was deleted behind the table's back. Put the file back "
                "(from a backup, or the bucket's older versions), or give up the records up to the "
                "end of the range in its name with `lakelog delete-records` (where "
                f"cleanup.policy=compact, set compact,delete for that){_or_skip_it(path)}",
                path=path,
            ) from error
        except _DAMAGE as error:
            raise _corrupt(path, error) from error
        except OSError as error:
            said = one_line(error)
            refused = error_class(error)
            damaged = _PARQUET_SAYS.search(said) and not _STORE_SAYS.search(said)
            unknown = refused is ColdTierRefusedError and error.errno is None
            if unknown and (self.is_local or damaged):
                raise _corrupt(path, error) from error
            if refused is ColdTierUnavailableError:
                advice = "The store is busy or away; try again"
            elif self.is_local and cannot_commit(error):
                advice = COMMITS_NEED
            else:
                advice = self.advice()
            raise refused(f"{path} cannot be used: {said}. {advice}", path=path) from error

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


def side_by_side(call: Callable[[T], R], values: Iterable[T]) -> list[R]:
    """The answer to each call, in the order of the values; all of them are waited for at once."""
    with ThreadPoolExecutor(CALLS_AT_ONCE, "lakelog-store") as threads:
        return list(threads.map(call, values))


def modified_ms(info: pafs.FileInfo) -> int | None:
    """When the store says that the file was written; None if it does not say."""
    return None if info.mtime_ns is None else info.mtime_ns // 1_000_000


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


def _unpickled(root: str, options: Mapping[str, str], keys: Keys, held: Vended | None) -> Storage:
    storage = Storage(root, options, keys)
    storage.take(held)
    return storage


def _corrupt(path: str, error: Exception) -> CorruptRecordError:
    return CorruptRecordError(
        f"{path} is not the Parquet file that was written: {one_line(error)}. Put it back from a "
        f"backup{_or_skip_it(path)}",
        path=path,
    )


_OF_A_TABLE = re.compile(r"(?P<topic>[^/]+)/[0-9a-f-]{36}/(?P<file>partition=(?P<number>\d+)/.+)$")


def _or_skip_it(path: str) -> str:
    """How to go on without a file of a topic's table, as the end of a sentence."""
    found = _OF_A_TABLE.search(path)
    if found is None:
        return ""
    command = f"lakelog skip add {found['topic']} -p {found['number']} --file {found['file']}"
    return f", or move it aside, so that all others go on: `{command}`"


def _resolve(root: str) -> str:
    path = path_or_url(root, "cold root")
    if "://" in path:
        return path
    if path.startswith(("/Volumes/", "/dbfs/")) or path in ("/Volumes", "/dbfs"):
        raise ColdTierRefusedError(
            f"{root} is storage of a Databricks workspace (a volume, DBFS), where no Delta commit "
            "can be made (it has no atomic rename). Use the URL of an external location (s3://, "
            "abfss://, gs://)",
            path=root,
        )
    if "%" in path or "\\" in path:  # delta-rs decodes the path twice and looks elsewhere: tried
        raise ColdTierRefusedError(
            f"delta-rs cannot open paths with '%' or a backslash, such as {path}; choose another",
            path=path,
        )
    return path
