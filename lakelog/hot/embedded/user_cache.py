"""Where lakelog keeps what it can make or fetch again: Java wrappers, Spark's Delta jars."""

from __future__ import annotations

import os
from pathlib import Path

from ...base.local_path import local_path
from ...errors import InvalidArgumentError


def user_cache() -> Path:
    """``$XDG_CACHE_HOME/lakelog``, else ``~/.cache/lakelog``; made if missing.

    Raises:
        InvalidArgumentError: it cannot be made or written.
    """
    folder = local_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "cache folder") / "lakelog"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror
    else:
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
        reason = "it may not be written"
    raise InvalidArgumentError(
        f"the cache folder {folder} cannot be used: {reason}. Set XDG_CACHE_HOME to a folder "
        "that you may write to"
    )
