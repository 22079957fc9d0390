"""Writing a stretch of a local file, which goes to the disk meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

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


class PlacedWriter:
    """Writes into an open file, from a place on. Threads may write beside each other's places.

    What was written is surely on the disk once the file was synced, and not before.

    Args:
        descriptor: of the file, open for writing. It stays open.
        position: where the first byte goes.
        naming: says in errors which file it is; see `Storage.naming`.
    """

    def __init__(
        self,
        descriptor: int,
        position: int,
        naming: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._descriptor = descriptor
        self._naming = naming
        self._first = self._begun = position
        self.position = position  # where the next byte goes

    def write(self, data: bytes | memoryview, /) -> int:
        """Writes all of it; whoever gave it may change it afterwards."""
        left = memoryview(data)
        with self._naming():
            while left:
                count = os.pwrite(self._descriptor, left[:WRITE_BYTES], self.position)
                self.position += count
                left = left[count:]
                if self.position - self._begun >= BEGIN_BYTES:
                    self.begin_writeback()
        return len(data)

    def begin_writeback(self) -> None:
        """Has the kernel write what was given since the last time, and waits for nothing.

        Linux begins to write what it is told not to be needed soon, and gives up what is written
        already. Elsewhere the sync does it all.
        """
        start, self._begun = max(self._first, self._begun - KEPT_BYTES), self.position
        with suppress(OSError, AttributeError):  # advice: a file system, or macOS, may take none
            os.posix_fadvise(self._descriptor, start, self.position - start, os.POSIX_FADV_DONTNEED)
