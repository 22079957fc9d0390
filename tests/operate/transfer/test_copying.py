"""One file is copied: all of it or nothing of it appears, and what was read is told."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from lakelog.cold.store import storage as storage_module
from lakelog.cold.store.storage import Storage
from lakelog.errors import ContradictionError
from lakelog.operate.transfer import copying
from lakelog.operate.transfer.copying import (
    Copied,
    Opened,
    Readable,
    ToCopy,
    check_size,
    copy_file,
)

OLD = b"what was there"


class Slow:
    """A stream that gives a few bytes at a time, as a socket may."""

    def __init__(self, content: bytes, most: int) -> None:
        self._stream = io.BytesIO(content)
        self._most = most

    def readinto(self, buffer: memoryview, /) -> int:
        return self._stream.readinto(buffer[: self._most])


def opened(content: bytes, most: int = 2**31) -> Opened:
    @contextmanager
    def stream() -> Iterator[Readable]:
        yield Slow(content, most)

    return stream


def said(content: bytes) -> Copied:
    return Copied(len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("content", [b"", b"x" * 99, b"x" * 101])
def test_a_file_of_another_size_does_not_take_the_place_of_one(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "a").write_bytes(OLD)
    file = ToCopy("a", 100, opened(content), "the source")
    with pytest.raises(ContradictionError, match=r"the source has .* the table says 100"):
        copy_file(
            file.source,
            Storage(str(tmp_path)),
            str(tmp_path / "a"),
            file.size_bytes,
            None,
            partial(check_size, file),
        )
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [OLD]


def test_a_copy_is_on_the_disk_before_it_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(2 * copying.CHUNK_BYTES + 5)
    seen: list[tuple[int, bool]] = []  # the size that was synced, and whether the copy was there
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        fsync(descriptor)
        seen.append((os.fstat(descriptor).st_size, (tmp_path / "in" / "a").exists()))

    monkeypatch.setattr(storage_module.os, "fsync", noting)
    copied = copy_file(
        opened(content),
        Storage(str(tmp_path)),
        str(tmp_path / "in" / "a"),
        len(content),
        None,
        lambda copied: None,
    )
    assert copied == said(content)
    assert seen == [(len(content), False)]
    assert [path.read_bytes() for path in (tmp_path / "in").iterdir()] == [content]
