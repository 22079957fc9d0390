"""Files of this machine that appear whole, or not at all: hidden until then."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from io import FileIO
from pathlib import Path
from socket import gethostname
from uuid import NAMESPACE_DNS, uuid4, uuid5


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
