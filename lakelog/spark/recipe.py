"""How any process opens a log: what travels to Spark's executors instead of connections."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from ..archive.copy import HotRows
from ..clock import Clock
from ..cold.path_table import PathTable
from ..cold.place import ColdPlace
from ..cold.storage import Storage
from ..engine import InlineEngine
from ..errors import ColdTierError, InvalidArgumentError
from ..hot.hot_log import HotLog, HotSource
from ..read.tiers import Tiers
from ..secret_reference import check_executors_can_resolve
from ..topic import Topic
from .hot_alone import HotAlone


@dataclass(frozen=True, slots=True)
class LogRecipe:
    """Where the tiers of a log are. Picklable; shows and holds no password but one in the URL.

    Runs on: driver|executor.
    """

    source: HotSource
    storage: Storage | None = None
    schema: str | None = None  # catalog.schema of tables by name; both None: untiered topics alone

    @classmethod
    def of(cls, source: HotSource, place: ColdPlace) -> LogRecipe:
        """Of a Redis and a place; a table that is written by path is read so too."""
        return cls(source, place.storage, place.schema if place.is_by_name else None)

    def hot(self) -> HotLog:
        """The hot tier, opened once a process."""
        return self.source.open()

    def table(self, topic: Topic) -> PathTable | None:
        """The topic's cold tier, opened once a process; None for an untiered topic.

        Raises:
            InvalidArgumentError: it is tiered, but the recipe names no cold root.
            ColdTierError: it is archived into tables by name, which only a driver can open.
        """
        if not topic.config.tiered:
            return None
        if self.schema is not None:
            raise ColdTierError(
                f"topic {topic.name!r} is archived into {self.schema}, whose tables only Spark "
                "itself may read, not its tasks",
                topic=topic.name,
            )
        if self.storage is None:
            raise InvalidArgumentError(
                f"topic {topic.name!r} is tiered, but no cold root was given; set the option "
                "'cold' to the folder or URL that it is archived to",
                topic=topic.name,
            )
        key = (os.getpid(), self, topic.topic_id)
        with _OPEN_LOCK:
            if key not in _OPEN:
                rows_of = HotRows(self.source)
                _OPEN[key] = PathTable(topic, self.storage, InlineEngine(), rows_of)
            return _OPEN[key]

    def tiers(self, topic: Topic) -> Tiers:
        """Both tiers of a topic, with nothing remembered of an earlier reader.

        Of a topic that is archived by name, the hot one alone.
        """
        if self.schema is not None and topic.config.tiered:
            return HotAlone(topic, self.hot(), self.schema)
        return Tiers(topic, self.hot(), self.table(topic))

    def clock(self) -> Clock:
        """Redis's time, so that "10 minutes ago" means the same to everyone."""
        return _RedisClock(self.source)

    def options(self) -> dict[str, str]:
        """The data source options that say the same; `options.recipe` reads them.

        Raises:
            InvalidArgumentError: the URL has a password, or a storage option is a secret in clear,
                which plans and logs would then show; or executors cannot resolve a reference.
        """
        check_no_password(self.source.url)
        found = {"redis": self.source.url, "keyspace": self.source.keyspace}
        if self.source.password_ref is not None:
            check_executors_can_resolve(self.source.password_ref, "password_ref")
            found["passwordRef"] = self.source.password_ref
        if self.schema is not None:
            found["cold"] = self.schema
        if self.storage is not None:
            found["cold"] = self.storage.root
            if self.storage.store_options:
                found["storageOptions"] = json.dumps(self.storage.store_options.portable())
        return found


def check_no_password(url: str) -> None:
    """Refuse a password where everybody would read it: Spark writes options into plans and logs.

    Raises:
        InvalidArgumentError: the URL has one.
    """
    # As redis-py reads it, which also takes a password that is not percent-encoded.
    credentials = url.partition("://")[2].rpartition("@")[0]
    try:
        parameters = parse_qs(urlsplit(url).query)
    except ValueError:
        parameters = {}
    if ":" in credentials or "password" in parameters:
        raise InvalidArgumentError(
            "the Redis URL has a password, and Spark shows a reader's options in plans, event logs "
            "and checkpoints. Leave it out of the URL and say where it is: passwordRef=env:NAME "
            "(password_ref= in Python), with NAME in the environment of the driver and of every "
            "executor"
        )


@dataclass(frozen=True, slots=True)
class _RedisClock:
    source: HotSource

    def now_ms(self) -> int:
        return self.source.open().now_ms()


_OPEN: dict[tuple[int, LogRecipe, UUID], PathTable] = {}
_OPEN_LOCK = threading.Lock()
