"""Which tier holds a record."""

from __future__ import annotations

import pyarrow as pa

from ...base import compute as pc
from ...read.tiers import Look
from .opened_topic import OpenedTopic

HOT, COLD, BOTH = "hot", "cold", "both"


def record_tiers(
    opened: OpenedTopic, look: Look, partition: int, offsets: pa.ChunkedArray
) -> list[str]:
    """For each offset of a record that was read: hot, cold or both.

    Below the cleaned end, compaction may have removed from cold what hot still holds, so the files
    are read there.
    """
    if not len(offsets):
        return []
    log, hot = look.offsets[partition], look.hot[partition]
    is_hot = pc.greater_equal(offsets, log.local_log_start)
    for gap in hot.gaps:  # cold got these records before hot lost its tail
        within = pc.and_(pc.greater_equal(offsets, gap.start), pc.less(offsets, gap.end))
        is_hot = pc.and_not(is_hot, within)
    is_cold = pc.less(offsets, log.archived_end)
    start, end = offsets[0].as_py(), offsets[-1].as_py() + 1
    in_doubt = log.local_log_start < end and start < look.cold.thinned_end(partition)
    if in_doubt and opened.log.table is not None:
        files = look.cold.files.files_between(partition, start, end)
        held = [
            batch.column("offset") for batch in opened.log.table.read(files, start, end, ["offset"])
        ]
        is_cold = pc.is_in(offsets, value_set=pa.chunked_array(held, pa.int64()).combine_chunks())
    return [
        (BOTH if cold else HOT) if hot else COLD
        for hot, cold in zip(is_hot.to_pylist(), is_cold.to_pylist(), strict=True)
    ]
