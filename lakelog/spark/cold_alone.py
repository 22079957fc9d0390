"""A log read from its Delta table alone: no Redis is asked, the archived end is where it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast
from uuid import UUID

from ..cold.catalogue import Catalogue
from ..cold.table import ColdTable
from ..errors import UnknownTopicOrPartitionError
from ..hot.hot_log import HotLog
from ..offsets import HotOffsets
from ..read.tiers import Tiers
from ..record import OffsetAndTimestamp, TopicPartition
from ..topic import Topic


class NothingHot:
    """Stands for a hot tier that holds nothing and begins where the cold tier ends.

    Answers what looks and searches ask of a `HotLog`; no record is ever read from it, since none
    lies above the archived end.
    """

    def __init__(self, table: ColdTable) -> None:
        self._table = table

    def offsets(
        self, topic_partitions: Iterable[TopicPartition], *, topic_id: UUID | None = None
    ) -> dict[TopicPartition, HotOffsets]:
        """See `HotLog.offsets`."""
        cold = self._table.snapshot()
        found = {}
        for tp in topic_partitions:
            end = max(cold.archived_end(tp.partition), cold.log_start(tp.partition))
            found[tp] = HotOffsets(end, end, (), -1, 0)
        return found

    def offset_for_timestamp(
        self, topic_partition: TopicPartition, timestamp_ms: int, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        """See `HotLog.offset_for_timestamp`."""
        return None

    def max_timestamp(
        self, topic_partition: TopicPartition, *, topic_id: UUID | None = None
    ) -> OffsetAndTimestamp | None:
        """See `HotLog.max_timestamp`."""
        return None


def cold_tiers(topic: Topic, table: ColdTable) -> Tiers:
    """The tiers of a topic of which only the cold one is looked at."""
    return Tiers(topic, cast("HotLog", NothingHot(table)), table)


def cold_topic(catalogue: Catalogue, place: object, name: str) -> Topic:
    """The topic, as its table tells it.

    Args:
        place: what the catalogue is of, for the message.

    Raises:
        UnknownTopicOrPartitionError: no table of that name lies under the root.
    """
    found = {topic.name: topic for topic in catalogue.topics}
    if name not in found:
        raise UnknownTopicOrPartitionError(
            f"no table of a topic {name!r} lies under {place}; there are "
            f"{', '.join(sorted(found)) or 'none at all'}",
            topic=name,
        )
    return found[name]
