"""Files of this machine that appear whole, or not at all, and are written in pieces."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import FileIO
from pathlib import Path
from socket import gethostname
from uuid import NAMESPACE_DNS, uuid4, uuid5

from ...values.config import KIB, MIB

#: So much is given to the kernel at a time. From a MiB on it wants larger pieces of memory for its
#: cache. On a virtual machine whose free memory goes back to its host, each of these was fetched
#: anew: a GiB took 1.0 s of CPU, and 0.2 s in pieces of up to 512 KiB (ext4).
WRITE_BYTES = 256 * KIB

#: After so much the kernel is asked to begin. Otherwise it waits for a sync, or for half a minute,
#: and a sync at the end waits for all of it.
BEGIN_BYTES = 8 * MIB

#: What was written longer ago than this leaves the kernel's cache once it is on the disk: a copy
#: need not push out what others read, and the memory is used again for what comes next. On a busy
#: virtual machine (as above), an import of 64 MB files took a third of the kernel's CPU by it.
KEPT_BYTES = 32 * MIB


def hidden_path(target: str, unique: str | None = None) -> str:
    """Beside the target; Delta's readers ignore names that begin with a dot.

    Args:
        unique: default: what nobody else has.
    """
    folder, _, name = target.rpartition("/")
    return f"{folder}/.{name}-{unique or uuid4().hex}"


@contextmanager
def hidden_file(
    target: str, naming: Callable[[], AbstractContextManager[None]]
) -> Iterator[FileIO]:
    """An empty file that nobody else writes. It becomes the target where the block ends, unless
    that raises: then it is removed.

    A process that is killed leaves it, and the next one of this machine that writes the target
    begins with it, so that nothing of it stays.

    Args:
        naming: says in errors which file it is; see `Storage.naming`.
    """
    path = Path(hidden_path(target, uuid5(NAMESPACE_DNS, gethostname()).hex))
    lock = _locked(path)
    try:
        with naming():
            if lock is None:
                path = Path(hidden_path(target))
            file = FileIO(path, "xb") if lock is None else FileIO(os.dup(lock), "wb")
        try:
            with file:
                yield file
            with naming():
                path.replace(target)
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
    finally:
        if lock is not None:  # not before: who gets it may write what is there under the name
            os.close(lock)


class LocalSink:
    """Writes an open file from its beginning.

    What was written is surely on the disk once the file was synced, and not before.

    Args:
        descriptor: of the file, open for writing. It stays open.
        naming: says in errors which file it is; see `Storage.naming`.
    """

    def __init__(self, descriptor: int, naming: Callable[[], AbstractContextManager[None]]) -> None:
        self._descriptor = descriptor
        self._naming = naming
        self._position = self._begun = 0

    def write(self, data: bytes | memoryview, /) -> int:
        """Writes all of it; whoever gave it may change it afterwards."""
        left = memoryview(data)
        with self._naming():
            while left:
                count = os.pwrite(self._descriptor, left[:WRITE_BYTES], self._position)
                self._position += count
                left = left[count:]
                if self._position - self._begun >= BEGIN_BYTES:
                    self._begin_writeback()
        return len(data)

    def _begin_writeback(self) -> None:
        """Has the kernel write what was given since the last time, and waits for nothing.

        Linux begins to write what it is told not to be needed soon, and gives up what is written
        already. Elsewhere the sync does it all.
        """
        start, self._begun = max(0, self._begun - KEPT_BYTES), self._position
        with suppress(OSError, AttributeError):  # advice: a file system, or macOS, may take none
            os.posix_fadvise(
                self._descriptor, start, self._position - start, os.POSIX_FADV_DONTNEED
            )


def _locked(path: Path) -> int | None:
    """The file, empty, made if need be and locked until it is closed; None: another has it, or
    files cannot be locked here.

    Whoever has locked the file of that name is the only one to write, rename or remove it.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    except OSError:  # nobody can lock it, so nobody writes it
        path.unlink(missing_ok=True)
    else:
        with suppress(OSError):
            # Before it was locked here, it may have become the target.
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                if os.fstat(descriptor).st_size:
                    os.ftruncate(descriptor, 0)
                return descriptor
    os.close(descriptor)
    return None
