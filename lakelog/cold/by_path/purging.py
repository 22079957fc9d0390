"""Removes a topic's table at a path for good, in an order that a crash may cut anywhere.

The table's properties say that it is being removed: that commit decides between a purge and those
who bring the topic back. Then a mark is written beside the table's log, and the rest goes, the log
last. The mark stays for a day. An archiver that was held up since before the deletion may still
commit there, which makes a log without a beginning: the mark says that this is nobody's table, and
the next purge or cleanup removes it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ...base.failpoints import failpoint
from ...values.config import DAY_MS
from ..answers import Purged
from ..store.storage import FileStamp, Storage

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
    log = {name for name in found if name.startswith(f"{LOG_FOLDER}/")}
    storage.delete_files(f"{path}/{name}" for name in found.keys() - log)
    failpoint("purge.after_data")
    storage.delete_files(f"{path}/{name}" for name in log)
    failpoint("purge.after_log")
    left = tuple(_files(storage, path))
    if found:
        logger.info("removed %s for good: %d files", path, len(found))
    if not left and _is_old_mark(storage, path, store_now_ms):
        storage.delete_file(_mark(path))
    _remove_folders(storage, path)
    return Purged(path, len(found), sum(one.size_bytes for one in found.values()), left)


def _mark(path: str) -> str:
    return f"{path}/{MARK}"


def _files(storage: Storage, path: str) -> dict[str, FileStamp]:
    """What lies there but for the mark; see `Storage.files_below`."""
    found = storage.files_below(path)
    found.pop(MARK, None)
    return found


def _is_old_mark(storage: Storage, path: str, store_now_ms: Callable[[], int | None]) -> bool:
    (stamp,) = storage.stamps([_mark(path)])
    if stamp is None:
        return False
    (_, written_ns), now_ms = stamp, store_now_ms()
    if written_ns is None or now_ms is None:
        return False
    return now_ms - written_ns // 1_000_000 >= MARK_LASTS_MS


def _remove_folders(storage: Storage, path: str) -> None:
    """Remove the folders that are empty: on a disk they do not go with their files."""
    if not storage.is_local:
        return
    for folder, _, _ in os.walk(path, topdown=False):
        with suppress(OSError):  # not empty, or gone
            Path(folder).rmdir()
