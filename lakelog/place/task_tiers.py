"""Both tiers of a topic as tasks of Spark read them, and the process that plans them."""

from __future__ import annotations

from msgspec.structs import replace

from ..cold.table import ColdRows, ColdSnapshot, ColdTable
from ..errors import (
    ColdTierAccessError,
    ColdTierError,
    ColdTierRefusedError,
    ContradictionError,
    ForeignTableError,
)
from ..read.hot_tier import HotTier
from ..read.tiers import OpenTable, Tiers
from ..values.offsets import HotOffsets, HotSegments
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition


class TaskTiers(Tiers):
    """Tiers of which the cold one may be for Spark's own reader alone.

    A table by name can be read where it lies or, without a Spark to ask, not at all. Then there is
    the hot tier, as long as that holds what is wanted.

    Args:
        by_name: whether the cold tier is such a table; one at a path that is refused is an error.
    """

    def __init__(
        self,
        topic: Topic,
        hot: HotTier,
        table: ColdTable | None,
        rows: ColdRows | None = None,
        open_table: OpenTable | None = None,
        *,
        by_name: bool,
        stored_values: bool = False,
    ) -> None:
        super().__init__(topic, hot, table, rows, open_table, stored_values=stored_values)
        self._by_name = by_name
        self._refused: ColdTierError | None = None

    def cold(self) -> ColdSnapshot:
        """See `Tiers.cold`; the one of a table that does not exist if it cannot be read here."""
        if self._refused is not None:
            return ColdSnapshot()
        try:
            return super().cold()
        except (ContradictionError, ForeignTableError):
            raise
        except ColdTierRefusedError as error:
            if not self._by_name:
                raise
            self._refused, self.table, self.rows = error, None, None
            return ColdSnapshot()

    def trimmed(self, topic_partition: TopicPartition, local_log_start: int) -> None:
        """See `Tiers.trimmed`.

        Raises:
            ColdTierError: what lies below is in the table, which cannot be read here.
        """
        if isinstance(self._refused, ColdTierAccessError):
            raise ColdTierAccessError(
                f"{topic_partition} is hot from offset {local_log_start} on; what lay below was "
                f"archived into a table that this task may not read: {self._refused.message}",
                topic_partition=topic_partition,
            ) from self._refused
        if self._refused is not None:
            raise ColdTierRefusedError(
                f"{topic_partition} is hot from offset {local_log_start} on; what lay below was "
                f"archived into a table that only Spark itself can read, not its tasks: "
                f"{self._refused.message}. A DataFrame: make it again, and keep records hot for as "
                "long as it is used (local.retention.ms). A stream: begin at "
                "startingOffsets=earliest-local or latest, and read what is older from the table: "
                "spark.readStream.table(…)",
                topic_partition=topic_partition,
            )
        super().trimmed(topic_partition, local_log_start)


class WholeTiers(TaskTiers):
    """Tiers of which cold alone says where the log starts: hot knows of a later log start."""

    def _hot_offsets(self, asked: list[TopicPartition]) -> dict[TopicPartition, HotOffsets]:
        return {tp: replace(one, log_start=0) for tp, one in super()._hot_offsets(asked).items()}

    def _hot_segments(self, asked: list[TopicPartition]) -> dict[TopicPartition, HotSegments]:
        return {tp: replace(one, log_start=0) for tp, one in super()._hot_segments(asked).items()}
