"""Readers that see the hot tier alone: those of topics whose tables only Spark may touch.

A task of Spark, and the process that plans a stream, have no Spark to ask.
"""

from __future__ import annotations

from typing import NoReturn

from ..errors import ColdTierError
from ..hot.hot_log import HotLog
from ..read.tiers import Tiers
from ..record import TopicPartition
from ..topic import Topic


class HotAlone(Tiers):
    """The hot tier of a topic that is archived into a schema of a catalog.

    Args:
        schema: ``catalog.schema``.
    """

    def __init__(self, topic: Topic, hot: HotLog, schema: str) -> None:
        super().__init__(topic, hot, None)
        self._schema = schema

    def trimmed(self, topic_partition: TopicPartition, local_log_start: int) -> NoReturn:
        """Refuse to go on: what lies below is in the table, and nowhere else.

        Raises:
            ColdTierError: always.
        """
        raise ColdTierError(
            f"{topic_partition} is hot from offset {local_log_start} on; what lay below was "
            f"archived into {self._schema}, whose tables only Spark itself may read, not its "
            "tasks. A DataFrame: make it again, and keep records hot for as long as it is used "
            "(local.retention.ms). A stream: begin at startingOffsets=earliest-local or latest, "
            "and read what is older from the table: spark.readStream.table(…)",
            topic_partition=topic_partition,
            local_log_start=local_log_start,
        )
