"""What became of each record of a batch that was not appended as a whole."""

from __future__ import annotations

import pyarrow as pa
from msgspec import Struct


class BatchOutcome(Struct, frozen=True):
    """The rows of a batch by their fate; ``error.batch`` of what `Producer.send_batch` raises."""

    written: int  # records that are in the log
    not_written_rows: pa.Array  # row numbers that are surely not in the log, ascending
    unknown_rows: pa.Array  # row numbers that may or may not be in the log, ascending

    @property
    def not_written(self) -> int:
        return len(self.not_written_rows)

    @property
    def unknown(self) -> int:
        return len(self.unknown_rows)
