"""Listing folders that others make and remove meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierError


def test_files_are_told_by_path_with_their_size_and_time(tmp_path: Path) -> None:
    storage, table = Storage(str(tmp_path)), tmp_path / "table"
    assert storage.files_below(str(table)) == {}
    for name in ("partition=0/segment=0/a.parquet", "partition=1/segment=5/b", "_log/c.json", "d"):
        (table / name).parent.mkdir(parents=True, exist_ok=True)
        (table / name).write_text(name)
    (table / "partition=2" / "segment=0").mkdir(parents=True)
    found = storage.files_below(str(table))
    there = [path for path in table.rglob("*") if path.is_file()]
    assert found == {
        str(path.relative_to(table)): (path.stat().st_size, path.stat().st_mtime_ns // 1_000_000)
        for path in there
    }


def test_a_folder_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ColdTierError, match=r"file cannot be used: .*Not a directory"):
        Storage(str(tmp_path)).files_below(str(tmp_path / "file"))


def test_a_folder_that_comes_and_goes_while_it_is_listed_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    storage, over = Storage(str(tmp_path)), threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            folder.mkdir()
            folder.rmdir()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        # One look in fifty used to fall between Arrow's two.
        for _ in range(1000):
            assert storage.list_files(str(folder), recursive=False) == []
            assert storage.files_below(str(tmp_path)) == {}
    finally:
        over.set()
        thread.join()
