"""Has a catalog show what is archived: the names of tables at a path, and the views of topics."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from ..cold.table import NO_TABLE, ColdTable
from ..errors import LakelogError
from ..values.topic import Topic, catalog_name

if TYPE_CHECKING:
    from ..archive.report import Trouble
    from . import ColdRoot


logger = logging.getLogger(__name__)


class NamesInCatalog:
    """The names that topics get in a catalog once they are archived. Thread-safe.

    A catalog that refuses one, or is away, keeps nothing from being archived: that is a trouble,
    and the next call for the topic tries again.

    Args:
        root: where the tables lie; without a schema no catalog shows them.
        table: opens a topic's.
        register: see `Lakelog.register`.
    """

    def __init__(
        self,
        root: ColdRoot | None,
        table: Callable[[Topic], ColdTable],
        register: Callable[[Topic], object],
    ) -> None:
        self._is_wanted = root is not None and root.schema is not None
        self._table = table
        self._register = register
        self._lock = threading.Lock()
        self._shown: dict[str, tuple[UUID, str]] = {}  # by name, the topic and its value columns
        self._troubles: dict[UUID, Trouble] = {}

    def show(self, topic: Topic) -> tuple[Trouble, ...]:
        """Have the catalog show the topic, once it has a table; what keeps it from that."""
        name, shown = catalog_name(topic.name), (topic.topic_id, topic.config.value_columns)
        if not self._is_wanted or self._shown.get(name) == shown:
            return ()
        try:
            if self._table(topic).snapshot().version != NO_TABLE:
                self._register(topic)
                self._shown[name] = shown
        except LakelogError as error:
            return (self._failed(topic, error),)
        with self._lock:
            self._troubles.pop(topic.topic_id, None)
        return ()

    def troubles(self) -> tuple[Trouble, ...]:
        """The topics that the catalog did not show when last tried, by name."""
        with self._lock:
            found = list(self._troubles.values())
        return tuple(sorted(found, key=lambda one: one.topic))

    def topics_are(self, topics: Iterable[Topic]) -> None:
        """Forget the troubles of other topics, which were deleted."""
        known = {topic.topic_id for topic in topics}
        with self._lock:
            for topic_id in self._troubles.keys() - known:
                del self._troubles[topic_id]

    def _failed(self, topic: Topic, error: LakelogError) -> Trouble:
        from ..archive.report import NOT_SHOWN, Trouble, why

        with self._lock:
            before = self._troubles.get(topic.topic_id)
            since_ms = before.since_ms if before else time.time_ns() // 1_000_000
            tries = before.tries + 1 if before else 1
            trouble = Trouble(topic.name, since_ms, why(error), tries, None, NOT_SHOWN)
            self._troubles[topic.topic_id] = trouble
        if before is None or before.why != trouble.why:
            logger.warning("%s is archived, but not shown in the catalog: %s", topic.name, error)
        return trouble
