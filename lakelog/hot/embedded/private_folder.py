"""A folder that only this user can use, with files that nobody else can have put there.

On a machine with other users, another user may prepare the folder first and set a trap in it: a
server that reads all data, or a link that makes the owner overwrite one of his own files. So the
folder must belong to its user, nobody else may write to it, and no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO, Any

from ...errors import EmbeddedRedisError

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
