"""The row groups of long files as groups: between what an index knows and what records tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from ...cold.answers import RowGroupTimes
from ...cold.schema import ROW_GROUP_ROWS
from ...errors import MissingFileError
from ...read.tiers import SegmentedLook
from ...read.topic_log import TopicLog
from ...values.config import KIB, MIB
from .histogram import BOTH, COLD, Groups, Numbers

#: So many footers are read for a picture, and about so many bytes of them.
MOST_FOOTERS, MOST_FOOTER_BYTES = 200, 8 * MIB

#: What a footer has of a row group, about.
_ROW_GROUP_BYTES = 2 * KIB


def by_row_groups(
    log: TopicLog,
    look: SegmentedLook,
    groups: Groups,
    long: Numbers,
    stopped: Callable[[], bool] = lambda: False,
) -> Groups:
    """The groups, with those of the long ones that files have as their files' row groups.

    The ones with most records first, until `MOST_FOOTERS` are read, or about `MOST_FOOTER_BYTES`.
    What hot has, too, is told by the files where compaction took nothing from them.

    Args:
        long: of each group, whether it is to be looked into.
    """
    if log.table is None:
        return groups
    rows = np.flatnonzero(long & (groups.tier == COLD) | long & (groups.tier == BOTH))
    rows = rows[np.argsort(-groups.records[rows], kind="stable")]
    parts: list[Groups] = []
    looked = np.zeros(len(groups), bool)
    footers = size_bytes = 0
    for row in rows.tolist():
        partition, tier = int(groups.partition[row]), int(groups.tier[row])
        start, end = int(groups.start[row]), int(groups.end[row])
        if tier == BOTH and start < look.cold.thinned_end(partition):
            continue
        files = look.cold.files.files_between(partition, start, end)
        if sum(max(1, file.records) for file in files) <= ROW_GROUP_ROWS * len(files):
            continue  # one row group each, about: the index says as much
        footers += len(files)
        size_bytes += sum(_ROW_GROUP_BYTES * (1 + file.records // ROW_GROUP_ROWS) for file in files)
        if footers > MOST_FOOTERS or size_bytes > MOST_FOOTER_BYTES or stopped():
            break
        try:
            found = log.table.row_groups(files, start, end)
        except MissingFileError:
            return groups
        within = cut(found, partition, start, end, tier)
        # Together they are all of it, unless some file does not tell.
        expected = float(groups.records[row])
        off = 1 if groups.certain[row] else 1 + expected / 20  # what is cut out is estimated
        told = float(within.records.sum())
        if abs(told - expected) < off and told:
            # A row group that the group cuts, such as before its first row that was not deleted, is
            # told by a share; how many there are in all is known.
            parts.append(replace(within, records=within.records * (expected / told)))
            looked[row] = True
    return Groups.joined([groups.where(~looked), *parts])


def cut(found: Sequence[RowGroupTimes], partition: int, start: int, end: int, tier: int) -> Groups:
    """Row groups as far as they lie in [start, end), their rows spread evenly over them."""
    columns = (
        np.array([getattr(one, name) for one in found], np.int64)
        for name in RowGroupTimes.__struct_fields__
    )
    first, last, records, min_ms, max_ms = columns
    low, high = np.maximum(first, start), np.minimum(last, end)
    share = np.maximum(0, high - low) / np.maximum(1, last - first)
    one = np.ones(len(first), np.int64)
    certain = ((low == first) & (high == last)).astype(np.int64)
    return Groups(one * partition, low, high, records * share, min_ms, max_ms, one * tier, certain)
