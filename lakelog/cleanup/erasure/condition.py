"""Which records are to be erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from ...cold.segment import SegmentFile


class Condition(Protocol):
    """Decides by each record alone whether it is to go. Picklable, for it runs on executors."""

    @property
    def keys(self) -> frozenset[bytes] | None:
        """The keys that a match can have; None: any, or none."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """The columns of `RECORDS` that it reads, ``offset`` among them."""
        ...

    def may_match(self, file: SegmentFile) -> bool:
        """Whether a file can hold a match, by what the table's log says of it."""
        ...

    def holds(self, records: pa.RecordBatch, partition: int) -> np.ndarray:
        """Which rows match: a boolean for each.

        Args:
            records: at least its `columns`.
        """
        ...
