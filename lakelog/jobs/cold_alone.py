"""The tables of a cold root without a Redis, as cleanup runs see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from ..cleanup.cleanup import STEPS
from ..cleanup.cold_only import clean_cold, plan_cold
from ..cleanup.plan import CleanupPlan
from ..cleanup.report import CleanupReport
from ..clock import Clock, SystemClock
from ..cold.catalogue import Catalogue
from ..cold.table import ColdTable
from ..engine import Engine
from ..spark.place import ColdRoot, LogPlace
from ..topic import Topic
from .look import Look, PartitionLook

#: What stands for a partition's state where Redis was not asked.
COLD_ONLY = "cold only"


class ColdAlone:
    """A cold root by itself; has what `Lakelog` has for those who clean it up.

    Args:
        engine: where files at paths are read and written.
    """

    def __init__(self, root: ColdRoot, engine: Engine, clock: Clock | None = None) -> None:
        self.place = LogPlace(None, root)
        self._root = root
        self._engine = engine
        self._clock = clock or SystemClock()

    def catalogue(self) -> Catalogue:
        """See `ColdRoot.catalogue`."""
        return self._root.catalogue()

    def table(self, topic: Topic) -> ColdTable:
        """See `ColdRoot.table`."""
        return self._root.table(topic, engine=self._engine)

    def cleanup(
        self, topics: str | Iterable[str] | None = None, *, steps: Sequence[str] = STEPS
    ) -> list[CleanupReport]:
        """See `clean_cold`."""
        return clean_cold(self, topics, steps=steps, clock=self._clock)

    def cleanup_plan(
        self,
        topics: str | Iterable[str] | None = None,
        settings: Mapping[str, object | None] | None = None,
    ) -> list[CleanupPlan]:
        """See `plan_cold`."""
        return plan_cold(self, topics, settings, clock=self._clock)

    def look(self, topics: Iterable[str] | None = None) -> Look:
        """Where the topics' partitions stand, as far as their tables tell."""
        wanted = None if topics is None else set(topics)
        partitions = [
            partition
            for topic in self.catalogue().topics
            if wanted is None or topic.name in wanted
            for partition in self._look_at(topic)
        ]
        partitions.sort(key=lambda one: (one.topic, one.partition))
        return Look(tuple(partitions), None, self._clock.now_ms())

    def close(self) -> None:
        """Nothing is held open."""

    def _look_at(self, topic: Topic) -> Iterable[PartitionLook]:
        cold = self.table(topic).snapshot()
        for partition in range(topic.partitions):
            files = cold.files.rows_of_partition(partition)
            unknown: dict[str, Any] = dict.fromkeys(
                (
                    "local_log_start",
                    "log_end",
                    "archive_lag_records",
                    "archive_lag_ms",
                    "lost_offsets",
                    "hot_size_bytes",
                )
            )
            yield PartitionLook(
                topic=topic.name,
                partition=partition,
                state=COLD_ONLY,
                log_start=cold.log_start(partition),
                archived_end=cold.archived_end(partition),
                cold_size_bytes=pc.sum(files["size_bytes"]).as_py() or 0,
                cold_segments=pc.count_distinct(files["segment"]).as_py(),
                **unknown,
            )

    def __str__(self) -> str:
        return str(self._root)

    def __repr__(self) -> str:
        return f"ColdAlone({self._root})"
