"""The folders of a log on this machine: one that only its user can use, its disk, the cache.

On a machine with other users, another user may prepare the folder first and set a trap in it: a
server that reads all data, or a link that makes the owner overwrite one of his own files. So the
folder must belong to its user, nobody else may write to it, and no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from ...base.local_path import local_path
from ...errors import EmbeddedRedisError, InvalidArgumentError
from ...values.config import MIB

OWNER_ONLY = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class PrivateFolder:
    """A folder with mode 0700, made if it is missing.

    Args:
        path: the folder's; folders above it are made with usual rights.
        close: whether to close a folder that others may read.

    Raises:
        EmbeddedRedisError: it cannot be made, belongs to another user, is a link, or others may
            write to it.
    """

    def __init__(self, path: Path, *, close: bool = True) -> None:
        self.path = path
        try:
            path.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG and path.is_symlink():
                raise self._refused("it is a link", "Give the folder it leads to") from error
            raise EmbeddedRedisError(
                f"an embedded log cannot keep its data in {path}: {error.strerror}. "
                "Give a directory that you may write to",
                directory=str(path),
            ) from error
        try:
            self._check(os.fstat(folder))
            if close and is_open_to_others(path):
                os.fchmod(folder, OWNER_ONLY)
        finally:
            os.close(folder)

    def open(self, name: str, mode: str = "ab") -> IO[Any]:
        """A file of the folder, made with mode 0600 if it is missing.

        Raises:
            EmbeddedRedisError: it is a link, or belongs to another user.
        """

        def opener(path: str, flags: int) -> int:
            return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

        path = self.path / name
        try:
            file = open(path, mode, opener=opener)  # noqa: SIM115 (Path.open has no opener)
        except FileNotFoundError:
            raise
        except OSError as error:
            why = "is a link" if path.is_symlink() else f"cannot be opened ({error.strerror})"
            raise self._refused(f"{name} in it {why}", "Remove it") from error
        if os.fstat(file.fileno()).st_uid != os.geteuid():
            file.close()
            raise self._refused(f"{name} in it belongs to somebody else", "Remove it")
        return file

    def read(self, name: str) -> str:
        """The text of a file.

        Raises:
            FileNotFoundError: there is none.
            EmbeddedRedisError: see `open`.
        """
        with self.open(name, "rb") as file:
            return bytes(file.read()).decode(errors="replace")

    def write(self, name: str, text: str) -> None:
        """Replaces or makes a file; readers see either the old text or the new one."""
        fresh = f"{name}.new"
        (self.path / fresh).unlink(missing_ok=True)
        with self.open(fresh, "xb") as file:
            file.write(text.encode())
        (self.path / fresh).replace(self.path / name)

    def _check(self, found: os.stat_result) -> None:
        if found.st_uid != os.geteuid():
            raise self._refused(
                f"it belongs to the user {found.st_uid}, and this is user {os.geteuid()}",
                "Give a folder of your own",
            )
        if found.st_mode & _OTHERS_WRITE:
            raise self._refused(
                "others may write to it, and may have put something into it",
                f"Look what is in it, then chmod 700 '{self.path}', or give another folder",
            )

    def _refused(self, why: str, do: str) -> EmbeddedRedisError:
        return EmbeddedRedisError(
            f"an embedded log does not trust {self.path}: {why}. {do}", directory=str(self.path)
        )


def is_open_to_others(path: Path) -> bool:
    """Whether anybody but its owner may look into a folder."""
    return bool(path.stat().st_mode & _OTHERS)


#: Below this a disk is soon full: Redis rewrites its file, and an archive run writes one a segment.
LITTLE_BYTES = 1024 * MIB

_PROBE_BYTES = 64 * 1024
_TAKES_NOTHING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}


class DiskSpace(Struct, frozen=True):
    """What the file system of a folder has for this user."""

    path: Path
    free_bytes: int
    size_bytes: int

    @classmethod
    def of(cls, path: Path) -> DiskSpace:
        """Of a folder, or of the nearest above it that there is.

        Raises:
            OSError: it cannot be asked.
        """
        there = next(one for one in (path, *path.absolute().parents) if one.exists())
        found = os.statvfs(there)
        return cls(path, found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)

    def __str__(self) -> str:
        return f"{_text(self.free_bytes)} free of {_text(self.size_bytes)}"


def _text(size_bytes: int) -> str:
    return next(
        f"{size_bytes / unit:,.1f} {name}"
        for unit, name in ((1024 * MIB, "GiB"), (MIB, "MiB"), (1, "B"))
        if size_bytes >= unit or unit == 1
    )


def takes_nothing(folder: Path) -> str | None:
    """Why nothing can be written to a folder's disk (it is full, or read-only); None if it can.

    It tries, since free bytes may be another user's, or beyond a quota.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(os.urandom(_PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        if error.errno in _TAKES_NOTHING:
            free = ""
            with suppress(OSError):
                free = f" ({DiskSpace.of(folder)})" if error.errno != errno.EROFS else ""
            return f"{os.strerror(error.errno).lower()}{free}"
    return None


def user_cache() -> Path:
    """``$XDG_CACHE_HOME/lakelog``, else ``~/.cache/lakelog``; made if missing.

    Raises:
        InvalidArgumentError: it cannot be made or written.
    """
    folder = local_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "cache folder") / "lakelog"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
    else:
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
        reason = "it may not be written"
    raise InvalidArgumentError(
        f"the cache folder {folder} cannot be used: {reason}. Set XDG_CACHE_HOME to a folder "
        "that you may write to"
    )
