"""How much a micro-batch takes, by the options of Kafka's source and of Delta's."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ..base.clock import Clock
from ..errors import InvalidArgumentError
from ..values.config import MINUTE_MS
from ..values.record import MAX_OFFSET


class TriggerLimits(Struct, frozen=True):
    """What the options say of a micro-batch's size; None: nothing.

    Source: Spark's KafkaMicroBatchStream for those in records, Delta's streaming source for
    ``maxBytesPerTrigger``, which is about as much and at least a record of each partition.
    """

    max_offsets: int | None = None
    max_bytes: int | None = None  # stored
    min_offsets: int | None = None
    max_delay_ms: int = 15 * MINUTE_MS  # of fewer than `min_offsets`

    def __post_init__(self) -> None:
        if (self.min_offsets or 0) > (self.max_offsets or MAX_OFFSET):
            raise InvalidArgumentError(
                f"minOffsetsPerTrigger={self.min_offsets} is more than "
                f"maxOffsetsPerTrigger={self.max_offsets}: no micro-batch could have so many"
            )

    def __bool__(self) -> bool:
        return (self.max_offsets, self.max_bytes, self.min_offsets) != (None, None, None)

    def most_records(self, available: int, size_bytes: Callable[[], float]) -> int:
        """How many records a micro-batch takes of those that there are.

        Args:
            size_bytes: tells how many bytes they are; asked where it matters.
        """
        most = available if self.max_offsets is None else min(available, self.max_offsets)
        if self.max_bytes is not None and available and self.max_bytes < (size := size_bytes()):
            most = min(most, int(available * self.max_bytes / size))
        return max(most, min(available, 1))


class Delay:
    """Puts a micro-batch of fewer than `TriggerLimits.min_offsets` off.

    For `TriggerLimits.max_delay_ms` since it last did not, so not when a query starts: what is
    remembered goes with the process, as in Kafka's source.
    """

    def __init__(self, limits: TriggerLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._last_ms: int | None = None

    def puts_off(self, available: int) -> bool:
        """Whether no micro-batch is made now of so many records."""
        least = self._limits.min_offsets
        if least is None:
            return False
        now_ms = self._clock.now_ms()
        waited_ms = None if self._last_ms is None else now_ms - self._last_ms
        is_early = waited_ms is not None and 0 <= waited_ms < self._limits.max_delay_ms
        if is_early and available < least:
            return True
        self._last_ms = now_ms
        return False
