"""What is said of offsets that nobody has: how many records may be lost at most."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lakelog.hot.server_info import ServerInfo
from lakelog.operate.status import Skipped, may_be_lost, skipped
from lakelog.values.offsets import HotSegment, HotSegments, LogOffsets
from lakelog.values.topic_partition import OffsetRange, TopicPartition

SERVER = ServerInfo(
    "redis://a", "redis", "7.0.15", "master", "1", 0, 0, "noeviction", True, "everysec", ""
)
GAP = OffsetRange(20, 39_354_387)


def segment(base: int, end: int, created_ms: int, modified_ms: int) -> HotSegment:
    return HotSegment(base, end, 100, -1, -1, created_ms, modified_ms)


def test_the_segments_beside_a_gap_tell_when() -> None:
    segments = (segment(0, 9, 1, 2), segment(9, 20, 3, 400_000), segment(GAP.end, GAP.end, 5000, 0))
    hot = HotSegments(0, GAP.end, -1, 200, gaps=(GAP,), segments=segments)
    log = LogOffsets(0, 0, 0, GAP.end, gaps=(GAP,))
    assert list(skipped(log, hot)) == [Skipped(20, GAP.end, 400_000, 5000)]
    # Cold got the first records of what hot lost; and what told of the time is trimmed.
    cut = OffsetRange(25, GAP.end)
    hot = replace(hot, segments=segments[2:])
    assert list(skipped(replace(log, gaps=(cut,)), hot)) == [Skipped(25, GAP.end, None, 5000)]


def test_what_may_be_lost_is_bounded_in_a_sentence() -> None:
    said = Skipped(20, GAP.end, 1_700_000_000_000, None).sentence(
        TopicPartition("orders", 0), may_be_lost([SERVER])
    )
    assert said == (
        "orders-0: offsets 20..39,354,386 were skipped after an unclean stop of Redis, whose last "
        "kept append was at 2023-11-14T22:13:20Z. Records that may be lost: at most those appended "
        "in the last second before the machine stopped, or two seconds if its disk was slow to "
        "sync (appendfsync everysec); none if Redis's process alone died and its disk kept up; "
        "after a failover, at most those that the replica lacked"
    )


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ([replace(SERVER, appendfsync="always")], "none, as each append is on disk"),
        ([SERVER, replace(SERVER, appendfsync="always")], "in the last second"),
        ([SERVER, replace(SERVER, append_only_file=False)], "since the last snapshot"),
        ([replace(SERVER, appendfsync="no")], "that the operating system had not written"),
        ([replace(SERVER, appendfsync=None)], "that the operating system had not written"),
    ],
)
def test_the_bound_is_that_of_the_least_careful_server(servers, said) -> None:
    assert said in may_be_lost(servers)
