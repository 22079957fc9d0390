"""How long calls are held back where Redis is nearly full."""

from __future__ import annotations

from .server_info import MemoryUse

#: The wait after a small call, just before Redis is full. Half of the way from the mark to there it
#: is a quarter of that, so that who is at the mark hardly notices: archivers need a second or two
#: to make room.
SMALL_CALL_MS = 1_000

#: After a large one: so long that what is free now would last this long at that rate.
ROOM_LASTS_MS = 2_000

#: The longest wait.
MOST_MS = 5_000


def throttle_time_ms(
    memory: MemoryUse | None, high_water_percent: float, size_bytes: int = 0
) -> int:
    """Milliseconds for which to hold back a partition's next calls; 0: none.

    From a topic's high-water mark on, archivers make room. Where they fall behind, producers wait
    after each round of calls, the longer the fuller Redis is: so what comes in falls to what goes
    out before anything is refused. As with Kafka's quotas, the answer comes at once, and the next
    call is held back (KIP-219).

    Args:
        memory: of the partition's server; None: not known.
        high_water_percent: the topic's mark; infinite: none.
        size_bytes: what was appended at once.
    """
    if memory is None or memory.percent <= high_water_percent:
        return 0
    share = min(1.0, (memory.percent - high_water_percent) / (100 - high_water_percent))
    by_room_ms = ROOM_LASTS_MS * size_bytes / max(1, memory.free_bytes or 0)
    return round(min(MOST_MS, max(SMALL_CALL_MS * share**2, by_room_ms)))
