"""How long Redis takes appends, by what came of late."""

from __future__ import annotations

import pytest

from lakelog.hot.server_info import ServerInfo
from lakelog.operate.headroom import MEMORY_ONE_BY_ONE, bytes_per_second, headroom_hours
from lakelog.values.offsets import HotSegment, HotSegments

NOW_MS = 1_700_000_000_000
MINUTE_MS = 60_000


def seen(*segments: tuple[float, float, int]) -> HotSegments:
    """A partition with segments made and appended to last so many minutes ago, of so many bytes."""
    made = tuple(
        HotSegment(
            n, n + 1, size, -1, -1, NOW_MS - int(old * MINUTE_MS), NOW_MS - int(new * MINUTE_MS)
        )
        for n, (old, new, size) in enumerate(segments)
    )
    return HotSegments(0, len(made), -1, sum(one.size_bytes for one in made), segments=made)


@pytest.mark.parametrize(
    ("segments", "bytes_a_minute"),
    [
        ([], 0),
        ([(30, 0, 300)], 10),  # half an hour, as the log is no older
        ([(120, 0, 1200)], 10),  # half of it lies within the hour
        ([(180, 60.001, 10**9), (60, 0, 600)], 10),  # the first one does not
        ([(50, 50, 600)], 12),  # one call, 50 minutes ago
        ([(0.1, 0, 100)], 100),  # too young for a rate: as of a minute
        ([(90, 0, 0)], 0),  # trimmed
    ],
)
def test_the_rate_is_that_of_the_last_hour(
    segments: list[tuple[float, float, int]], bytes_a_minute: float
) -> None:
    found = bytes_per_second(seen(*segments), NOW_MS)
    assert 60 * found == pytest.approx(bytes_a_minute, rel=1e-3)


def server(name: str, used: int, limit: int) -> ServerInfo:
    return ServerInfo(
        name, "redis", "7", "master", "id", used, limit, "noeviction", True, None, None
    )


def test_each_server_is_judged_by_what_comes_to_it() -> None:
    servers = [server("a", 900, 1000), server("b", 0, 1000), server("c", 5, 0), server("d", 1, 9)]
    hours = headroom_hours(servers, [("a", 0.002), ("a", 0.003), ("b", 0.001), ("c", 1.0)])
    assert hours == {
        "a": pytest.approx(100 / 0.005 / MEMORY_ONE_BY_ONE / 3600),
        "b": pytest.approx(1000 / 0.001 / MEMORY_ONE_BY_ONE / 3600),
    }
