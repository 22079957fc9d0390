"""The disk under a folder: how much room it has, and whether it takes anything."""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ...values.config import MIB

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
