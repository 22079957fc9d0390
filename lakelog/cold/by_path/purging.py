"""Removes a topic's table at a path for good, in an order that a crash may cut anywhere.

The table's properties say that it is being removed: that commit decides between a purge and those
who bring the topic back. Then a mark is written beside the table's log, and the rest goes, the log
last. The mark stays for a day. An archiver that was held up since before the deletion may still
commit there, which makes a log without a beginning: the mark says that this is nobody's table, and
the next purge or cleanup removes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...base.failpoints import failpoint
from ...values.config import DAY_MS
from ..purged import Purged
from ..store.storage import Storage, modified_ms

if TYPE_CHECKING:
    import pyarrow.fs as pafs


logger = logging.getLogger(__name__)

MARK = "_purged"
LOG_FOLDER = "_delta_log"

#: How long a mark stays: longer than any process is held up and goes on.
MARK_LASTS_MS = DAY_MS


def is_marked(storage: Storage, path: str) -> bool:
    """Whether a table's folder is that of a table that is being removed, or was."""
    return storage.is_file(_mark(path))


def remove(storage: Storage, path: str, store_now_ms: Callable[[], int | None]) -> Purged:
    """Remove what lies in a table's folder, whose removal is decided, and list what is left.

    Args:
        store_now_ms: the time by the clock that stamps the files.

    Raises:
        ColdTierError: something could not be removed; calling it again goes on.
    """
    if not is_marked(storage, path):
        storage.make_folder(path)
        storage.write_bytes(_mark(path), b"")
        storage.sync(_mark(path), path)
    failpoint("purge.after_mark")
    found = _files(storage, path)
    log = [info for info in found if _relative(storage, path, info).startswith(f"{LOG_FOLDER}/")]
    data = [info for info in found if info not in log]
    _delete(storage, path, data)
    failpoint("purge.after_data")
    _delete(storage, path, log)
    failpoint("purge.after_log")
    left = tuple(_relative(storage, path, info) for info in _files(storage, path))
    if found:
        logger.info("removed %s for good: %d files", path, len(found))
    if not left and _is_old_mark(storage, path, store_now_ms):
        storage.delete_file(_mark(path))
    _remove_folders(storage, path)
    return Purged(path, len(found), sum(info.size for info in found), left)


def _mark(path: str) -> str:
    return f"{path}/{MARK}"


def _files(storage: Storage, path: str) -> list[pafs.FileInfo]:
    """What lies there but for the mark."""
    listed = storage.list_files(path, recursive=True)
    return [info for info in listed if info.is_file and _relative(storage, path, info) != MARK]


def _relative(storage: Storage, path: str, info: pafs.FileInfo) -> str:
    top = storage.arrow_path(path).rstrip("/") + "/"
    return str(info.path).removeprefix(top)


def _delete(storage: Storage, path: str, infos: Sequence[pafs.FileInfo]) -> None:
    storage.delete_files(f"{path}/{_relative(storage, path, info)}" for info in infos)


def _is_old_mark(storage: Storage, path: str, store_now_ms: Callable[[], int | None]) -> bool:
    for info in storage.list_files(path, recursive=False):
        if info.is_file and _relative(storage, path, info) == MARK:
            written_ms, now_ms = modified_ms(info), store_now_ms()
            return (
                written_ms is not None
                and now_ms is not None
                and now_ms - written_ms >= MARK_LASTS_MS
            )
    return False


def _remove_folders(storage: Storage, path: str) -> None:
    """Remove the folders that are empty: on a disk they do not go with their files."""
    if not storage.is_local:
        return
    listed = storage.list_files(path, recursive=True)
    folders = [Path(info.path) for info in listed if not info.is_file]
    folders.sort(key=lambda folder: len(folder.parts), reverse=True)
    for folder in (*folders, Path(path)):
        with suppress(OSError):  # not empty, or gone
            folder.rmdir()
