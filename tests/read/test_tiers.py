from types import MappingProxyType

import pyarrow as pa
import pytest

from lakelog.cold.registers import ArchivedEnd, LogStart
from lakelog.cold.segment import COLUMNS, SegmentIndex
from lakelog.cold.table import ColdSnapshot
from lakelog.read.tiers import join
from lakelog.values.offsets import HotOffsets, LogOffsets
from lakelog.values.topic_partition import OffsetRange


def hot(local_log_start, log_end, **more):
    return HotOffsets(local_log_start, log_end, -1, 0, **more)


def cold(archived_end=0, log_start=0, files=()):
    """`files`: (segment, start, end) of each."""
    rows = [
        {
            **dict.fromkeys(COLUMNS.names, 0),
            "path": str(start),
            "ours": True,
            "segment": segment,
            "start_offset": start,
            "end_offset": end,
        }
        for segment, start, end in files
    ]
    return ColdSnapshot(
        1,
        SegmentIndex(pa.Table.from_pylist(rows, COLUMNS)),
        MappingProxyType({ArchivedEnd(0): archived_end, LogStart(0): log_start}),
    )


def with_gaps(*gaps):
    """Hot as it is when it says that those were lost."""
    return hot(0, 100, gaps=tuple(OffsetRange(*gap) for gap in gaps))


@pytest.mark.parametrize(
    ("hot_tier", "cold_tier", "log"),
    [
        (hot(0, 10), cold(), LogOffsets(0, 0, 0, 10)),
        (hot(4, 10), cold(6), LogOffsets(0, 4, 6, 10)),
        # retention raised the log start, trimming lags behind
        (hot(4, 10), cold(6, 5), LogOffsets(5, 5, 6, 10)),
        # delete-records above what is archived
        (hot(4, 10), cold(6, 8), LogOffsets(8, 8, 6, 10)),
        # untiered: the hot tier knows the log start
        (hot(3, 10, log_start=3), ColdSnapshot(), LogOffsets(3, 3, 0, 10)),
        # appended, archived and trimmed after hot was read
        (hot(4, 10), cold(12), LogOffsets(0, 4, 12, 12)),
    ],
)
def test_two_tiers_are_one_log(hot_tier, cold_tier, log):
    assert join(hot_tier, cold_tier, 0) == log


@pytest.mark.parametrize(
    ("gaps", "cold_tier", "lost"),
    [
        ([(10, 90)], cold(), [(10, 90)]),
        ([(2, 5), (10, 90)], cold(7, 0, [(0, 0, 2), (5, 2, 7)]), [(2, 5), (10, 90)]),
        # cold got the first records of the tail, before it was lost
        ([(10, 90)], cold(12, 0, [(0, 0, 12)]), [(12, 90)]),
        ([(10, 90)], cold(12, 0, [(0, 0, 9), (0, 9, 11), (0, 11, 12)]), [(12, 90)]),
        # what follows the gap is archived too
        ([(10, 90)], cold(95, 0, [(0, 0, 12), (90, 12, 95)]), [(12, 90)]),
        # a gap that was lost in its turn, with records above it that cold got
        ([(10, 90)], cold(95, 0, [(0, 0, 12), (50, 12, 53), (90, 53, 95)]), [(12, 50), (53, 90)]),
        # the segments on both sides were merged
        ([(10, 90)], cold(95, 0, [(0, 0, 95)]), [(10, 90)]),
        ([(10, 90)], cold(95, 0, [(0, 0, 11), (11, 11, 95)]), [(11, 90)]),
        # nothing below the log start is missed
        ([(2, 5), (10, 90)], cold(0, 40), [(40, 90)]),
        ([(10, 90)], cold(95, 40, [(90, 40, 95)]), [(40, 90)]),
    ],
)
def test_what_cold_got_of_a_lost_tail_is_not_lost(gaps, cold_tier, lost):
    assert join(with_gaps(*gaps), cold_tier, 0).gaps == tuple(OffsetRange(*one) for one in lost)


def test_what_is_appended_archived_and_trimmed_between_the_two_looks_is_in_the_log(bench):
    bench.append(range(10))

    class Late:
        """A table that everything happens to just before it is looked at."""

        def snapshot(self, newer_than):
            if not bench.appended[0][10:]:
                bench.append([10, 11])
                bench.tier(12, 12)
            return bench.table.snapshot(newer_than)

    log = bench.open()
    log._tiers.table = log._tiers.rows = Late()

    assert log.offsets() == {0: LogOffsets(0, 0, 12, 12)}
