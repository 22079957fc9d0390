"""Copies one file, and takes its checksum on the way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import Struct

from ...back_off import patiently
from ...cold.store.storage import Storage

CHUNK_BYTES = 4 * 1024 * 1024

#: How many files are copied at once: while one waits for a disk or a store, another is hashed.
AT_ONCE = 4

#: Told of bytes as they are copied.
Tell = Callable[[int], None]


class Readable(Protocol):
    """An open file."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, at most so many; none at the end."""
        ...


Opened = Callable[[], AbstractContextManager[Readable]]


class Writable(Protocol):
    """A file that is being written."""

    def write(self, data: bytes, /) -> object: ...


class Copied(Struct, frozen=True):
    """What was read."""

    size_bytes: int
    sha256: str


def nothing_told(size_bytes: int) -> None:
    """Tells nobody."""


def pour(source: Readable, sink: Writable | None, most_bytes: int, tell: Tell) -> Copied:
    """Copies a stream, but no more than one byte above `most_bytes`.

    Args:
        sink: None: only the checksum is wanted.
    """
    digest, size_bytes = hashlib.sha256(), 0
    while size_bytes <= most_bytes:
        chunk = source.read(min(CHUNK_BYTES, most_bytes + 1 - size_bytes))
        if not chunk:
            break
        digest.update(chunk)
        if sink is not None:
            sink.write(chunk)
        size_bytes += len(chunk)
        tell(len(chunk))
    return Copied(size_bytes, digest.hexdigest())


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
    tell: Tell = nothing_told,
) -> Copied:
    """Copies into a file that appears when it is whole; on local paths, it is on the disk then.

    A file that is there is replaced. Its folder must be synced by the caller.

    Args:
        size_bytes: what it has. A longer one is cut after one byte more.

    Raises:
        MissingFileError: there is no such source.
        ColdTierError: either place does not answer, or refuses.
    """
    storage.make_folder(path.rpartition("/")[0], synced=False)

    def copy() -> Copied:
        with source() as stream, storage.appearing(path, synced=True) as sink:
            return pour(stream, sink, size_bytes, tell)

    return patiently(f"copying {path}", copy)
