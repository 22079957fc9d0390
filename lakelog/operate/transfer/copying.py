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


def nothing_told(size_bytes: int) -> None:
    """Tells nobody."""


def pour(source: Readable, sink: Sink | None, most_bytes: int, tell: Tell) -> Copied:
    """Copies a stream, but no more than `most_bytes`.

    Args:
        sink: None: only the checksum is wanted.

    Returns:
        What was read: one byte more than may be copied, if the stream has more.
    """
    digest, size_bytes = hashlib.sha256(), 0
    buffer = _buffer(most_bytes)
    while size_bytes <= most_bytes:
        count = source.readinto(buffer[: most_bytes + 1 - size_bytes])
        if not count:
            break
        digest.update(buffer[:count])
        if sink is not None:
            sink.write(buffer[: min(count, most_bytes - size_bytes)])
        size_bytes += count
        tell(count)
    return Copied(size_bytes, digest.hexdigest())


def same(held: Opened, file: ToCopy, tell: Tell) -> Copied | None:
    """What a file holds that is there already; None if it is not what is to be copied.

    Raises: as for `copy_file`.
    """

    def compare() -> Copied | None:
        with held() as there, file.source() as source:
            return _same(there, source, file.size_bytes, tell)

    return patiently(f"comparing {file.path}", compare)


def checksum(storage: Storage, path: str, size_bytes: int, tell: Tell = nothing_told) -> Copied:
    """What a file's bytes are now."""

    def read() -> Copied:
        with storage.opened(path) as stream:
            return pour(stream, None, size_bytes, tell)

    return patiently(f"reading {path}", read)


def copy_file(
    source: Opened,
    storage: Storage,
    path: str,
    size_bytes: int,
    tell: Tell,
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


def _buffer(most_bytes: int) -> memoryview:
    """Room for a chunk of a file; of one byte more than a small one has, which tells its end."""
    return memoryview(bytearray(min(CHUNK_BYTES, most_bytes + 1)))


def _filled(source: Readable, buffer: memoryview) -> int:
    """How many bytes were read: fewer than there is room for at the end alone."""
    size_bytes = 0
    while count := source.readinto(buffer[size_bytes:]):
        size_bytes += count
    return size_bytes


def _same(held: Readable, source: Readable, size_bytes: int, tell: Tell) -> Copied | None:
    digest, left = hashlib.sha256(), size_bytes
    one, two = _buffer(size_bytes), _buffer(size_bytes)
    is_over = False
    while not is_over:
        wanted = min(left + 1, len(one))
        count = _filled(held, one[:wanted])
        # Python compares bytes all at once, and views of them one after the other.
        is_same = count == _filled(source, two[:wanted]) and bytes(one[:count]) == bytes(
            two[:count]
        )
        if not is_same or count > left:
            return None
        digest.update(one[:count])
        left -= count
        is_over = count < wanted
        tell(count)
    return None if left else Copied(size_bytes, digest.hexdigest())
