"""Listing folders that others make and remove meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

from lakelog.cold.store.storage import Storage


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
    finally:
        over.set()
        thread.join()
