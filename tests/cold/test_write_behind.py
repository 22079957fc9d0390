"""What is written behind the caller's back is all there, or an error is."""

from __future__ import annotations

import threading

import pytest

from lakelog.cold.store.write_behind import HELD_BYTES, WriteBehind


class Slow:
    """A file that takes nothing until it may."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.content = bytearray()
        self.closed = False

    def write(self, data: bytes) -> None:
        assert self.may.wait(60)
        self.content += data

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
