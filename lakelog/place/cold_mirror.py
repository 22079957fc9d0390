"""What the tables of a cold root are told of their topics, and what they tell of lost ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from msgspec.structs import replace

from ..cold.schema import columns_to_write, foreign_columns, value_columns
from ..cold.table import NO_TABLE, ColdTable
from ..errors import (
    ForeignTableError,
    LakelogError,
    MissingExtraError,
    SparkUnavailableError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..hot.hot_log import HotLog
from ..values.keyspace_defaults import KeyspaceDefaults
from ..values.topic import Topic
from . import ColdRoot

logger = logging.getLogger(__name__)


def may_have_table(topic: Topic, root: ColdRoot) -> bool:
    """Whether a topic may have a table under a cold root: it is tiered, or it was.

    Looking at a table with a name takes a Spark, so an untiered topic's is only looked for if the
    topic could be switched off.
    """
    config = topic.config
    return config.tiered or root.opens_in_tasks or config["remote.log.delete.on.disable"]


class ColdMirror:
    """The tables of a log's topics, as a `Copies` of their definitions.

    Args:
        root: where they lie; None where no cold root was given.
        keyspace: whose topics they are.
        table: opens a topic's.
        hot: the hot tier.
        tenant: whose they are; None: no tenant's.
    """

    def __init__(
        self,
        root: ColdRoot | None,
        keyspace: str,
        table: Callable[[Topic], ColdTable],
        hot: HotLog,
        tenant: str | None = None,
    ) -> None:
        self._tenant = tenant
        self._root = root
        self._keyspace = keyspace
        self._table = table
        self._hot = hot

    @property
    def has_root(self) -> bool:
        return self._root is not None

    def mirrored(self, topic: Topic) -> Topic | None:
        if self._root is None or not topic.config.tiered:
            return None
        try:
            table = self._table(topic)
            held = table.mirrored()
            if held is None:
                with suppress(UnknownTopicIdError, UnknownTopicOrPartitionError):  # all is lost
                    self._hot.check_own(topic, table)
            return held
        except (MissingExtraError, SparkUnavailableError) as error:
            raise error.changed(
                message=f"the settings of topic {topic.name!r} were not changed: its table may "
                f"have data keys that Redis has lost, and to look at it takes a Spark. "
                f"{error.message}"
            ) from error

    def foreign_columns(self, topic: Topic) -> Mapping[str, str]:
        if self._root is None:
            return {}
        try:
            found = foreign_columns(topic, self._table(topic).newest_columns())
        except LakelogError as error:  # archiving finds it out
            logger.info("whether the table of %s has other columns is not known: %s", topic, error)
            return {}
        return {name: f"{field.name!r} of type {field.type}" for name, field in found.items()}

    def unwritten_columns(self, topic: Topic) -> Collection[str]:
        """See `Copies.unwritten_columns`.

        A run that archives meanwhile may write what is gone then: the next run tells of it, and the
        column can change again.
        """
        if self._root is None:
            return ()
        try:
            table = self._table(topic)
            self._hot.check_own(topic, table)  # the files may be another's
            there = table.newest_columns()
        except LakelogError as error:
            logger.info("which columns the table of %s has is not known: %s", topic, error)
            return ()
        return {*value_columns(topic).names} - {*columns_to_write(topic, there).names}

    def settled(self, topic: Topic) -> None:
        """See `Copies.settled`: cleanup without Redis, and a restore, go by them."""
        # Tables by name wait for the next run: this process may have nothing to do with Spark.
        if self._root is None or not self._root.opens_in_tasks:
            return
        try:
            if topic.config.tiered:
                self._table(topic).mirror(topic)
            else:
                self.untier(topic)
        except LakelogError as error:
            logger.warning(
                "the settings of %s hold, but its table does not say so yet, so a cleanup without "
                "Redis goes by the ones before; the next archive run tries again: %s",
                topic.name,
                error,
            )

    def log_starts(self, topic: Topic) -> Mapping[int, int]:
        """See `Copies.log_starts`.

        Retention drops hot records after it has told the table, and who is held up in between has
        not dropped them. With a newer version of the settings in the table, it can tell it no more.
        """
        from ..cold.emptying import table_starts

        # Of a table by name, see `settled`: what was not dropped can be read again until then.
        if self._root is None or not self._root.opens_in_tasks:
            return {}
        return table_starts(self._table(topic), topic)

    def untier(self, topic: Topic) -> ColdTable | None:
        """Have the table of an untiered topic hold nothing; nothing happens if it has none.

        Returns:
            The table, if there is one.

        Raises:
            ColdTierError, CommitConflictError: it cannot be read or committed to; doing it again
                goes on.
            HotTierUnavailableError: Redis does not answer.
        """
        from ..cold.emptying import empty

        if self._root is None or not may_have_table(topic, self._root):
            return None
        table = self._table(topic)
        if table.snapshot().version == NO_TABLE:
            return None
        seen = self._hot.offsets(topic.topic_partitions(), topic_id=topic.topic_id)
        cold = table.snapshot()
        starts = {}
        for tp, one in seen.items():
            if not one.tiered:
                starts[tp.partition] = max(one.log_start, cold.log_start(tp.partition))
                if starts[tp.partition] > one.log_start:  # by name: see `log_starts`
                    self._hot.raise_log_start(tp, starts[tp.partition], topic_id=topic.topic_id)
        empty(table, topic, starts)
        return table

    def deleted(self, topic: Topic) -> None:
        """See `Copies.deleted`: what was deleted is not taken for lost."""
        if self._root is None or not may_have_table(topic, self._root):
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

    def defaults_set(self, defaults: KeyspaceDefaults) -> None:
        """See `Copies.defaults_set`: the definition of a tenant has them, with the quotas."""
        from .tenants.tenant import TenantDefinition

        if self._root is None or self._tenant is None:
            return
        try:
            text = self._root.read_definition()
            if text is not None:
                held = TenantDefinition.from_json(text, str(self._root))
                self._root.write_definition(
                    replace(held, defaults=dict(defaults.settings)).to_json()
                )
        except LakelogError as error:
            logger.warning(
                "the defaults of tenant %s hold, but %s does not have them yet: if Redis is lost, "
                "those before come back. Set them again: %s",
                self._tenant,
                self._root,
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
