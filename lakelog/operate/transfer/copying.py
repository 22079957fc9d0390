"""Copies one file, and takes its checksum on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from ...base.back_off import patiently
from ...base.failpoints import failpoint
from ...cold.store.storage import Sink, Storage
from ...errors import ContradictionError

#: So much is read at a time, into the same memory again: a store is asked once for each.
CHUNK_BYTES = 4 * 1024 * 1024

#: So many files are copied at a time: while one waits for a disk or a store, another is hashed.
AT_ONCE = 4

#: Told of bytes as they are copied.
Tell = Callable[[int], None]


class Readable(Protocol):
    """An open file."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Reads the next bytes, at most as many as the buffer has, and says how many; at the end
        none.
        """
        ...


Opened = Callable[[], AbstractContextManager[Readable]]


class ToCopy(Struct, frozen=True):
    """A file that is to be in an export.

    Args:
        path: below the export.
        size_bytes: what its table says.
        source: opens it.
        where: the source, for errors.
    """

    path: str
    size_bytes: int
    source: Opened
    where: str


class Copied(Struct, frozen=True):
    """What was read."""

    size_bytes: int
    sha256: str


def pour(source: Readable, sink: Sink | None, most_bytes: int, tell: Tell | None = None) -> Copied:
    """Copies a stream, but no more than `most_bytes`.

    Args:
        sink: None: only the checksum is wanted.

    Returns:
        What was read: one byte more than may be copied, if the stream has more.
    """
    digest, size_bytes = hashlib.sha256(), 0
    # Of a small file one byte more than it has, which tells its end.
    buffer = memoryview(bytearray(min(CHUNK_BYTES, most_bytes + 1)))
    while size_bytes <= most_bytes:
        count = source.readinto(buffer[: most_bytes + 1 - size_bytes])
        if not count:
            break
        digest.update(buffer[:count])
        if sink is not None:
            sink.write(buffer[: min(count, most_bytes - size_bytes)])
        size_bytes += count
        if tell is not None:
            tell(count)
    return Copied(size_bytes, digest.hexdigest())


def checksum(opened: Opened, where: str, size_bytes: int, tell: Tell | None = None) -> Copied:
    """What a file's bytes are now.

    Args:
        size_bytes: what it should have; of a longer one, one byte more is read.
    """

    def read() -> Copied:
        with opened() as stream:
            return pour(stream, None, size_bytes, tell)

    return patiently(f"reading {where}", read)


def copy_file(
    source: Opened,
    storage: Storage,
    path: str,
    size_bytes: int,
    tell: Tell | None,
    check: Callable[[Copied], None],
) -> Copied:
    """Copies into a file that appears when it is whole; on local paths, it is on the disk then.

    A file that is there is replaced. Its folder must be synced by the caller.

    Args:
        size_bytes: what it has. A longer one is cut, and told as one byte longer.
        check: raises if what was copied is not what is wanted; no file of a folder appears then.

    Raises:
        MissingFileError: there is no such source.
        ColdTierError: either place does not answer, or refuses.
    """
    storage.make_folder(path.rpartition("/")[0], synced=False)

    def copy() -> Copied:
        with source() as stream, storage.appearing(path, synced=True) as sink:
            found = pour(stream, sink, size_bytes, tell)
            check(found)
            failpoint("transfer.after_copy")
            return found

    return patiently(f"copying {path}", copy)


def check_size(wanted: ToCopy, found: Copied) -> None:
    """Checks that a file had the size that its table says.

    Raises:
        ContradictionError: it has another one.
    """
    if found.size_bytes != wanted.size_bytes:
        more = " or more" if found.size_bytes > wanted.size_bytes else ""
        raise ContradictionError(
            f"{wanted.where} has {found.size_bytes:,} bytes{more}, and the table says "
            f"{wanted.size_bytes:,}: it is not the file that was written. Put it back from a "
            "backup, or have it skipped by `lakelog skip add`",
            path=wanted.where,
        )
