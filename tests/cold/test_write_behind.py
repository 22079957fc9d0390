"""What is written behind the caller's back is all there, or an error is."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from lakelog.cold.store import write_behind
from lakelog.cold.store.storage import Storage
from lakelog.cold.store.write_behind import HELD_BYTES, SENT_BYTES, WriteBehind
from lakelog.testing.object_store import Fault, FaultyFront, s3_options
from lakelog.values.config import MIB


class Slow:
    """A file that takes nothing until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.content = bytearray()
        self.closed = False

    def write(self, data: bytes) -> None:
        assert self.may.wait(60)
        self.content += data

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


class Full(Slow):
    def write(self, data: bytes) -> None:
        super().write(data)
        raise OSError(28, "No space left on device")


def test_bytes_come_in_order_and_the_file_is_closed_behind_them() -> None:
    out = Slow()
    out.may.set()
    file = WriteBehind(out)
    parts = [bytes([number]) * (HELD_BYTES // 3) for number in range(10)]
    for part in parts:
        file.write(memoryview(part))
    assert file.tell() == sum(map(len, parts))
    file.close()
    assert out.closed
    assert bytes(out.content) == b"".join(parts)


def test_whoever_writes_more_than_it_holds_waits() -> None:
    out = Slow()
    file = WriteBehind(out)
    over = threading.Event()

    def write() -> None:
        for _ in range(4):  # one is being written, two wait
            file.write(bytes(HELD_BYTES // 2))
        over.set()
        file.close()

    thread = threading.Thread(target=write)
    thread.start()
    held = 3 * HELD_BYTES // 2
    while file.tell() < held:
        pass
    assert not over.is_set()
    out.may.set()
    thread.join(60)
    assert len(out.content) == 2 * HELD_BYTES


def test_what_the_store_refuses_is_raised_by_a_later_call() -> None:
    out = Full()
    file = WriteBehind(out)
    failed: list[BaseException] = []

    def write() -> None:
        try:
            while True:
                file.write(bytes(HELD_BYTES))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    out.may.set()
    thread.join(60)
    assert [type(error) for error in failed] == [OSError]
    with pytest.raises(OSError, match="No space"):
        file.close()
    assert out.closed


class Watched:
    """A file of a store; says when it is being waited for."""

    def __init__(self, out: Any, on_flush: threading.Event) -> None:
        self.write, self.close = out.write, out.close
        self._out, self._on_flush = out, on_flush

    def flush(self) -> None:
        self._on_flush.set()
        self._out.flush()


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

    def watched(out: Any) -> WriteBehind:
        return WriteBehind(Watched(out, stopped))

    monkeypatch.setattr(write_behind, "WriteBehind", watched)

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
