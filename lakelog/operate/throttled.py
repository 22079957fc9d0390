"""For how long producers hold calls back, by the server that is nearly full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from ..hot import HotLog
from ..hot.server_info import ServerInfo
from ..ingest.verdict import throttle_time_ms
from ..values.topic import Topic


def high_water_marks(
    hot: HotLog, topics: Iterable[Topic], servers: Iterable[ServerInfo]
) -> dict[str, float]:
    """Of each server, the lowest mark of the tiered topics that have a partition there."""
    tiered = [(one.config.high_water_percent, one) for one in topics if one.config.tiered]
    unmarked = {server.name for server in servers}
    marks: dict[str, float] = {}
    for mark, topic in sorted(tiered, key=lambda one: one[0]):
        if mark == inf or not unmarked:
            break  # all others are no lower
        for name in hot.server_names(topic.topic_partitions()) & unmarked:
            unmarked.remove(name)
            marks[name] = mark
    return marks


def throttle_ms(servers: Iterable[ServerInfo], marks: Mapping[str, float]) -> dict[str, int]:
    """Milliseconds after each small call, of the topic that is held back the longest, by server."""
    return {one.name: throttle_time_ms(one.memory, marks.get(one.name, inf)) for one in servers}
