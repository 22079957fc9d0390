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
from lakelog.cold.parquet.footers import footer_bytes
from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierAccessError, ColdTierError, ColdTierRefusedError

NEEDS = "needs a file system that can rename and link files"
TABLE = pa.table({"key": pa.array([b"ada", b"bob"], pa.binary())})


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
