"""What the tables of a cold root are told of their topics, and what they tell of lost ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from .cold.table import ColdTable
from .errors import ForeignTableError, LakelogError
from .spark.place import ColdRoot
from .topic import Topic

logger = logging.getLogger(__name__)


class ColdMirror:
    """The tables of a log's topics, as a `Copies` of their definitions.

    Args:
        root: where they lie; None where no cold root was given.
        keyspace: whose topics they are.
        table: opens a topic's.
    """

    def __init__(
        self, root: ColdRoot | None, keyspace: str, table: Callable[[Topic], ColdTable]
    ) -> None:
        self._root = root
        self._keyspace = keyspace
        self._table = table

    def settled(self, topic: Topic) -> None:
        """See `Copies.settled`: cleanup without Redis, and a restore, go by them."""
        # Tables by name wait for the next run: this process may have nothing to do with Spark.
        if self._root is None or not topic.config.tiered or not self._root.opens_in_tasks:
            return
        try:
            self._table(topic).mirror(topic)
        except LakelogError as error:
            logger.warning(
                "the settings of %s hold, but its table does not say so yet, so a cleanup without "
                "Redis goes by the ones before; the next archive run tries again: %s",
                topic.name,
                error,
            )

    def deleted(self, topic: Topic) -> None:
        """See `Copies.deleted`: what was deleted is not taken for lost."""
        if self._root is None or not topic.config.tiered:
            return
        try:
            table = self._table(topic)
            held = table.mirrored()
            if held is not None and held.deleted_ms is None:
                version = max(held.config_version, topic.config_version) + 1
                table.mirror(replace(topic, purged_ms=None, config_version=version))
        except ForeignTableError:
            logger.debug("%s has no table: another's has the name", topic.name)
        except LakelogError as error:
            logger.warning(
                "%s is deleted, but its table does not say so: a cleanup with Redis at hand tells "
                "it, and until then what has no Redis reads it as before: %s",
                topic.name,
                error,
            )

    def lost(self, keyspace_id: UUID | None, name: str | None) -> Sequence[Topic]:
        """See `Copies.lost`; what cannot be told now is not told."""
        # By name, a second topic is refused when it is archived. Asking takes a Spark.
        if self._root is None or not self._root.opens_in_tasks:
            return ()
        try:
            catalogue = self._root.catalogue(self._keyspace, name)
        except LakelogError as error:
            logger.warning("whether a topic was lost cannot be seen now: %s", error)
            return ()
        return catalogue.lost(keyspace_id)
