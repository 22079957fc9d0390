"""Folders that let nobody change what is written, or cannot do what a commit needs.

The refusals are those of a mount by FUSE that wrote each file in one pass, and knew no links.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.cold.by_path import delta_log
from lakelog.cold.parquet.file_writer import write_file
from lakelog.cold.parquet.footer_seal import footer_bytes
from lakelog.cold.store import local_file
from lakelog.cold.store.local_file import can_be_changed
from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierAccessError, ColdTierError, ColdTierRefusedError

NEEDS = "needs a file system that can rename and link files"
TABLE = pa.table({"key": pa.array([b"ada", b"bob"], pa.binary())})


@pytest.fixture(autouse=True)
def _not_tried_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_file, "_can_be", set())


def refused(*_: object) -> None:
    raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))


@pytest.fixture
def one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is not opened for writing."""
    path_open: Callable[..., Any] = Path.open

    def opened(self: Path, mode: str = "r", *args: Any, **more: Any) -> Any:
        return refused() if "+" in mode else path_open(self, mode, *args, **more)

    monkeypatch.setattr(Path, "open", opened)


def write(folder: Path, name: str) -> Path:
    path = folder / name
    size_bytes = write_file(
        Storage(str(folder)), str(path), [TABLE], TABLE.schema, {"use_dictionary": []}
    )
    assert path.stat().st_size == size_bytes
    return path


def test_it_is_tried_once_and_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    assert can_be_changed(str(tmp_path / "file"))
    monkeypatch.setattr(Path, "write_bytes", refused)
    assert can_be_changed(str(tmp_path / "file"))
    assert list(tmp_path.iterdir()) == []


def test_where_it_cannot_be_it_is_tried_again_and_leaves_nothing(
    tmp_path: Path, one_pass: None, monkeypatch
) -> None:
    assert not can_be_changed(str(tmp_path / "file"))
    monkeypatch.undo()
    assert can_be_changed(str(tmp_path / "file"))
    assert list(tmp_path.iterdir()) == []


def test_a_change_that_did_not_happen_is_none(tmp_path: Path, monkeypatch) -> None:
    path_open: Callable[..., Any] = Path.open

    def appending(self: Path, mode: str = "r", *args: Any, **more: Any) -> Any:
        return path_open(self, mode.replace("r+", "a+"), *args, **more)

    monkeypatch.setattr(Path, "open", appending)
    assert not can_be_changed(str(tmp_path / "file"))


def test_a_file_is_written_in_one_pass(tmp_path: Path, one_pass: None) -> None:
    path = write(tmp_path, "in one pass")
    assert footer_bytes(pa.OSFile(str(path))).is_sealed
    assert pq.read_table(path).equals(TABLE)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM])
def test_where_files_cannot_be_linked_the_error_says_what_a_commit_needs(number: int) -> None:
    said = f"Generic LocalFileSystem error ↳ Unable to rename file ↳ no (os error {number})"
    with pytest.raises(ColdTierError, match=NEEDS) as told, delta_log.naming("/mnt/log/orders"):
        raise OSError(said)
    denied = number == errno.EPERM
    assert type(told.value) is (ColdTierAccessError if denied else ColdTierRefusedError)
    assert not told.value.retriable


def test_where_files_cannot_be_renamed_the_error_says_what_a_commit_needs(
    tmp_path: Path,
) -> None:
    with pytest.raises(ColdTierRefusedError, match=NEEDS), Storage(str(tmp_path)).naming("mark"):
        refused()


def test_a_table_that_may_not_be_written_is_not_said_to_lack_links() -> None:
    said = f"Unable to rename file: Permission denied (os error {errno.EACCES})"
    whole = "its _delta_log is whole"
    with pytest.raises(ColdTierAccessError, match=whole), delta_log.naming("/mnt/log/orders"):
        raise OSError(said)
