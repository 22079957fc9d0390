"""A log in one directory, with a Redis of its own that runs while somebody uses it."""

from __future__ import annotations

from pathlib import Path

from ..base.local_path import local_path
from ..hot.embedded.folders import PrivateFolder
from ..hot.embedded.redis_server import EmbeddedRedis
from ..hot.hot_log import HotLog, pause_all, resume_all
from .log_place import LogPlace


def has_log(directory: Path) -> bool:
    """Whether a log was made in a directory; nothing is made now."""
    return any((directory / name).exists() for name in ("redis", "cold"))


class EmbeddedPlace:
    """Where the tiers of a directory are; its Redis runs until the last user closes.

    One that is merely dropped ends nothing: a producer may still be at work.

    Raises:
        MissingExtraError, EmbeddedRedisError: see `Lakelog.embedded`.
    """

    def __init__(self, directory: str | Path) -> None:
        directory = local_path(directory, "log's directory")
        cold = PrivateFolder(directory / "cold", close=False).path  # it may be shared on purpose
        self._server = EmbeddedRedis(directory / "redis", before_stop=_pause, after_start=_resume)
        self._server.start()
        try:
            self.place = LogPlace.of(self._server.url, cold)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._server.stop()


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
