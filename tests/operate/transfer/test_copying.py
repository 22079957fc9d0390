"""One file is copied: all of it or nothing of it appears, and what was read is told."""

from __future__ import annotations

import errno
import hashlib
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import FileIO
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.store import local_file
from lakelog.cold.store import storage as storage_module
from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierFullError, ContradictionError, MissingFileError
from lakelog.operate.transfer import copying
from lakelog.operate.transfer.copying import (
    Copied,
    Opened,
    Readable,
    ToCopy,
    check_size,
    copy_file,
    pour,
)
from tests.support.object_store import S3Server, s3_options

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


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "CHUNK_BYTES", 7)


@pytest.mark.usefixtures("small_chunks")
@given(st.binary(max_size=40), st.integers(0, 40), st.integers(1, 9))
def test_no_more_is_copied_than_may_be_and_what_is_more_is_told(
    content: bytes, most_bytes: int, at_a_time: int
) -> None:
    sink, told = io.BytesIO(), list[int]()
    copied = pour(Slow(content, at_a_time), sink, most_bytes, told.append)
    assert copied == said(content[: most_bytes + 1])
    assert sink.getvalue() == content[:most_bytes]
    assert sum(told) == copied.size_bytes


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


def test_a_source_that_is_gone_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(OLD)
    storage = Storage(str(tmp_path))
    with pytest.raises(MissingFileError, match="gone is missing"):
        copy_file(
            partial(storage.opened, str(tmp_path / "gone")),
            storage,
            str(tmp_path / "a"),
            9,
            None,
            lambda copied: None,
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


def test_a_full_disk_is_told_with_the_files_name(tmp_path: Path, monkeypatch) -> None:
    def full(file: FileIO, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(local_file, "FileIO", type("Full", (FileIO,), {"write": full}))
    path = str(tmp_path / "a")
    with (
        pytest.raises(ColdTierFullError, match=path),
        Storage(str(tmp_path)).appearing(path) as file,
    ):
        file.write(b"x")


def test_a_store_keeps_what_it_was_given_when_its_memory_is_used_again(s3_server: S3Server) -> None:
    """Arrow sends large pieces while the next are read, and out of the memory that they came in."""
    root = f"s3://lakelog/{uuid4().hex}"
    storage = Storage(root, s3_options(s3_server.url))
    content = os.urandom(10 * copying.CHUNK_BYTES + 5)
    copied = copy_file(
        opened(content), storage, f"{root}/a", len(content), None, lambda copied: None
    )
    assert copied == said(content)
    assert storage.read_bytes(f"{root}/a") == content
