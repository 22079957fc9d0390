"""A file is written hidden, by one at a time, and leaves nothing of what was cut short."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from lakelog.cold.store import local_file
from lakelog.cold.store.local_file import hidden_file


class Fault(Exception):
    """What ends a block."""


def write(target: Path, content: bytes) -> None:
    with hidden_file(str(target), nullcontext) as file:
        file.write(content)


def killed(target: Path, content: bytes) -> None:
    """Writes in a process that ends before the file is whole."""
    child = os.fork()
    if not child:
        with hidden_file(str(target), nullcontext) as file:
            file.write(content)
            os._exit(0)
    os.waitpid(child, 0)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_was_cut_short_is_written_anew_and_leaves_nothing(tmp_path: Path) -> None:
    killed(tmp_path / "a", b"of the one that was killed")
    assert list(contents(tmp_path).values()) == [b"of the one that was killed"]
    write(tmp_path / "a", b"whole")
    assert contents(tmp_path) == {"a": b"whole"}
    killed(tmp_path / "a", b"of another")
    write(tmp_path / "a", b"new")
    assert contents(tmp_path) == {"a": b"new"}


def test_a_block_that_raises_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def half() -> None:
        with hidden_file(str(tmp_path / "a"), nullcontext) as file:
            file.write(b"half")
            raise Fault

    with pytest.raises(Fault):
        half()
    assert contents(tmp_path) == {"a": b"old"}


def test_several_write_the_same_and_each_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "a"
    with hidden_file(str(target), nullcontext) as first:
        first.write(b"the fi")
        with hidden_file(str(target), nullcontext) as second:
            second.write(b"second")
        assert target.read_bytes() == b"second"
        first.write(b"rst")
    assert contents(tmp_path) == {"a": b"the first"}


def test_whoever_opened_it_before_it_got_its_name_does_not_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking, the one who had it may be done."""
    target, flock = tmp_path / "a", fcntl.flock
    first = hidden_file(str(target), nullcontext)
    first.__enter__().write(b"whole")

    def late(descriptor: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        first.__exit__(None, None, None)
        flock(descriptor, how)

    monkeypatch.setattr(local_file.fcntl, "flock", late)
    with hidden_file(str(target), nullcontext) as second:
        assert target.read_bytes() == b"whole"
        second.write(b"second")
        assert target.read_bytes() == b"whole"
    assert contents(tmp_path) == {"a": b"second"}


def test_where_nothing_can_be_locked_nothing_is_left_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(descriptor: int, how: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(local_file.fcntl, "flock", refused)
    write(tmp_path / "a", b"whole")
    assert contents(tmp_path) == {"a": b"whole"}
