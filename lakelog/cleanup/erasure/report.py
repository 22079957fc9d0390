"""What was erased of a topic's cold tier, or would be."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ...cold.answers import Discarded
from ...errors import LakelogError
from ...values.topic_partition import OffsetRange, TopicPartition


class PartitionErased(Struct, frozen=True):
    """One partition's records that were erased, and the files that held them."""

    topic_partition: TopicPartition
    offsets: tuple[OffsetRange, ...]  # of the records, sorted and disjoint
    records: int
    nulled_offset: int | None  # of the partition's last record, which lost all but its offset
    files: int  # that were, or would be, written again
    size_bytes: int  # of them, before


class ColdErased(Struct, frozen=True, eq=False):
    """What became of one topic's cold tier.

    Attributes:
        partitions: those that held a match, by number.
        discarded: files that were deleted at once: those that were written again, and others beside
            the newest version that held a match.
        leftovers: how many of the others hold a match, or cannot be read and are nobody's.
        versions: of the table, before and after.
        history_forgotten: whether the log's statistics of older versions were removed.
        failures: why files of the newest version could not be read or written, by path.
        beyond: what may hold matches and was not reached, in sentences.
    """

    partitions: Mapping[int, PartitionErased] = field(default_factory=dict)
    discarded: tuple[Discarded, ...] = ()
    leftovers: int = 0
    versions: tuple[int, int] = (-1, -1)
    history_forgotten: bool = False
    failures: Mapping[str, LakelogError] = field(default_factory=dict)
    beyond: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        return sum(one.records for one in self.partitions.values())
