"""How long Redis has room, and how producers are held back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from ..hot import HotLog
from ..hot.server_info import ServerInfo
from ..hot.throttle import throttle_time_ms
from ..values.offsets import HotSegments
from ..values.topic import Topic

HOUR_S = 3600

#: Memory that Redis takes for a stored byte of records that are sent one by one, measured with
#: records of 1 KiB; in batches 1.03.
MEMORY_ONE_BY_ONE = 1.13

#: The rate is that of so long.
WINDOW_S = HOUR_S

#: A partition that is younger tells no rate: its first call counts as one of this time.
LEAST_S = 60


def bytes_per_second(seen: HotSegments, now_ms: int) -> float:
    """How many stored bytes came in a second, of late.

    Of a segment that reaches back further than `WINDOW_S`, the share counts that lies within. What
    was trimmed since is left out with its time.
    """
    segments = [one for one in seen.segments if one.size_bytes]
    if not segments:
        return 0.0
    since_ms = max(now_ms - 1000 * WINDOW_S, segments[0].created_ms)
    came = 0.0
    for one in segments:
        lasted_ms = one.modified_ms - one.created_ms
        within_ms = one.modified_ms - max(since_ms, one.created_ms)
        if within_ms >= 0:
            came += one.size_bytes * (within_ms / lasted_ms if lasted_ms > 0 else 1.0)
    return 1000 * came / max(now_ms - since_ms, 1000 * LEAST_S)


def headroom_hours(
    servers: Iterable[ServerInfo], rates: Iterable[tuple[str, float]]
) -> Mapping[str, float]:
    """Hours until a server refuses appends, by its name.

    Args:
        rates: the server of each partition, and its stored bytes a second.

    Returns:
        None of servers that have no limit, or to which nothing was appended of late.
    """
    total: dict[str, float] = {}
    for name, rate in rates:
        total[name] = total.get(name, 0.0) + rate
    found = {}
    for server in servers:
        rate = MEMORY_ONE_BY_ONE * total.get(server.name, 0.0)
        if server.memory_headroom_bytes is not None and rate > 0:
            found[server.name] = server.memory_headroom_bytes / rate / HOUR_S
    return found


def high_water_marks(
    hot: HotLog, topics: Iterable[Topic], servers: Iterable[ServerInfo]
) -> dict[str, float]:
    """Of each server, the lowest mark of the tiered topics that have a partition there."""
    marked = [(one.config.high_water_percent, one) for one in topics]
    unmarked = {server.name for server in servers}
    marks: dict[str, float] = {}
    for mark, topic in sorted(marked, key=lambda one: one[0]):
        if mark == inf or not unmarked:
            break  # all others are no lower
        for name in hot.server_names(topic.topic_partitions()) & unmarked:
            unmarked.remove(name)
            marks[name] = mark
    return marks


def throttle_ms(servers: Iterable[ServerInfo], marks: Mapping[str, float]) -> dict[str, int]:
    """Milliseconds after each small call, of the topic that is held back the longest, by server."""
    return {one.name: throttle_time_ms(one.memory, marks.get(one.name, inf)) for one in servers}
