"""A log in one directory, with a Redis of its own that runs while somebody uses it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...embedded.private_folder import PrivateFolder
from ...embedded.redis_server import EmbeddedRedis
from ...hot.hot_log import HotLog
from ...hot.planned_stop import pause_all, resume_all
from .log_place import LogPlace


@contextmanager
def embedded_place(directory: str | Path) -> Iterator[LogPlace]:
    """Where the tiers of a directory are; its Redis runs until the last user leaves.

    Raises:
        MissingExtraError, EmbeddedRedisError: see `Lakelog.embedded`.
    """
    directory = Path(directory).expanduser().absolute()
    cold = PrivateFolder(directory / "cold", close=False).path  # it may be shared on purpose
    server = EmbeddedRedis(directory / "redis", before_stop=_pause, after_start=_resume)
    server.start()
    try:
        yield LogPlace.of(server.url, cold)
    finally:
        server.stop()


def _pause(url: str) -> None:
    hot = HotLog.connect(url)
    try:
        pause_all(hot)
    finally:
        hot.close()


def _resume(url: str) -> None:
    hot = HotLog.connect(url)
    try:
        resume_all(hot)
    finally:
        hot.close()
