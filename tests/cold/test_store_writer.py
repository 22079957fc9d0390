"""A file that goes to an object store: what it takes of memory, and what its errors name."""

from __future__ import annotations

import errno
import os
import threading
from typing import Any

import pyarrow as pa
import pytest

from lakelog.cold.store import storage
from lakelog.cold.store.storage import SENT_BYTES, Storage, StoreWriter
from lakelog.errors import ColdTierAccessError
from lakelog.values.config import MIB
from tests.support.object_store import Fault, FaultyFront, s3_options


class Watched:
    """A file of a store; says when it is being waited for."""

    def __init__(self, out: Any, on_flush: threading.Event) -> None:
        self.write, self.close = out.write, out.close
        self._out, self._on_flush = out, on_flush

    def flush(self) -> None:
        self._on_flush.set()
        self._out.flush()


@pytest.mark.slow
def test_what_a_slow_store_has_not_taken_is_bounded(
    s3_front: FaultyFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow alone keeps a whole file in memory whose parts are not answered."""
    store = Storage("s3://lakelog/slow", s3_options(s3_front.url))
    path, filesystem = f"{store.root}/file", store.filesystem()
    stopped = threading.Event()  # it waits, or all was taken
    pieces = 2 * SENT_BYTES // MIB
    before_bytes = pa.total_allocated_bytes()
    s3_front.inject(Fault("PUT", "partNumber", hang=True, times=None))

    def watched(out: Any) -> StoreWriter:
        return StoreWriter(Watched(out, stopped))

    monkeypatch.setattr(storage, "StoreWriter", watched)

    def write() -> None:
        with store.appearing(path) as file:
            for number in range(pieces):
                file.write(bytes([number]) * MIB)
            stopped.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert stopped.wait(60)
    kept_bytes = pa.total_allocated_bytes() - before_bytes
    s3_front.inject()
    thread.join(60)
    assert kept_bytes <= SENT_BYTES + 10 * MIB, "what was sent, and a part that is being filled"
    with filesystem.open_input_file(store.arrow_path(path)) as stored:  # one request
        assert stored.read() == b"".join(bytes([number]) * MIB for number in range(pieces))


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOENT])
def test_errors_of_what_is_copied_are_not_those_of_the_copy(
    s3_storage: Storage, number: int
) -> None:
    def copy() -> None:
        with s3_storage.appearing(f"{s3_storage.root}/file") as file:
            file.write(b"some")
            raise OSError(number, os.strerror(number), "the source")

    with pytest.raises(OSError, match="the source") as raised:
        copy()
    assert raised.value.errno == number


def test_an_error_of_a_write_names_the_copy(s3_front: FaultyFront, s3_storage: Storage) -> None:
    store = Storage(s3_storage.root, s3_options(s3_front.url))
    path = f"{store.root}/file"
    s3_front.inject(Fault("PUT", "partNumber", status=403, times=None))

    def copy() -> None:
        with store.naming("the source"), store.appearing(path) as file:
            for _ in range(2 * SENT_BYTES // MIB):
                file.write(b"x" * MIB)

    with pytest.raises(ColdTierAccessError, match=path):
        copy()
