"""Erasing records as a rule of the state machine: they go, all else stays, and so do offsets.

The harness cuts Redis's append-only file back to sizes that it had, so this erases from the table
and trims Redis, and does not have the file rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import ClassVar

import numpy as np
import pyarrow as pa
from msgspec import Struct

from lakelog.cleanup.erasure import Erasure
from lakelog.cold.segment import SegmentFile
from lakelog.errors import MissingExtraError
from lakelog.testing.model import require

from .cleanup_rules import CleanupRules
from .harness import partitions

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import rule
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error


class AtOffsets(Struct, frozen=True):
    """Matches the records of one partition at some offsets. A condition of an `Erasure`."""

    partition: int
    offsets: frozenset[int]
    keys: ClassVar[None] = None
    columns: ClassVar[tuple[str, ...]] = ("offset",)

    def may_match(self, file: SegmentFile) -> bool:
        """See `Condition.may_match`."""
        return file.partition == self.partition

    def holds(self, records: pa.RecordBatch, partition: int) -> np.ndarray:
        """See `Condition.holds`."""
        return np.isin(records.column("offset").to_numpy(), sorted(self.offsets))


class EraseRules(CleanupRules):
    """Adds erasures to what happens to a log."""

    MEANWHILE: ClassVar[tuple[str, ...]] = (*CleanupRules.MEANWHILE, "erase")

    @rule(partition=partitions, data=st.data(), trims=st.booleans())
    def erase(self, partition: int, data: st.DataObject, trims: bool) -> None:
        """Records of a partition go, by offset; doing it again finds nothing."""
        chosen = self._draw_erased(partition, data)
        self._erase(partition, chosen)
        if trims:
            self._trim_archived(partition)
        again = Erasure(self.topic, self._new_table(), AtOffsets(partition, chosen)).run()
        require(not again.records and not again.discarded, f"erased again: {again}")

    def _meanwhile(self, what: str, data: st.DataObject) -> Callable[[], None]:
        if what == "erase":
            partition = data.draw(partitions, "partition")
            return lambda: self._erase(partition, self._draw_erased(partition, data))
        return super()._meanwhile(what, data)

    def _draw_erased(self, partition: int, data: st.DataObject) -> frozenset[int]:
        """Some offsets of records that the table holds, but for the last, which stays."""
        model = self.models[partition]
        there = sorted({r.offset for r in model.stored()} - {model.archived_end - 1})
        if not there:
            return frozenset()
        return data.draw(st.frozensets(st.sampled_from(there), max_size=5), "erased")

    def _erase(self, partition: int, offsets: Collection[int]) -> None:
        condition = AtOffsets(partition, frozenset(offsets))
        done = Erasure(self.topic, self._new_table(), condition).run()
        require(not done.failures, f"erasing failed: {done}")
        require(done.records == len(offsets), f"of {sorted(offsets)} it erased {done}")
        self.models[partition].erase(offsets)
        self._look_cold()

    def _trim_archived(self, partition: int) -> None:
        """Redis lets go of all that is archived of a partition, as an erasure has it do."""
        tp = self.topic.partition(partition)
        archived_end = self.table.snapshot().archived_end(partition)
        seen = self._observe()[tp]
        if seen.recovered and seen.local_log_start < archived_end <= seen.log_end:
            self.hot.trim(tp, archived_end, archived_end=archived_end, topic_id=self.topic.topic_id)
        self.models[partition].local_log_start = self._observe()[tp].local_log_start
