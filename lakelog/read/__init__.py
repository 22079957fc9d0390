"""Both tiers as one log: seek, fetch, ranges, consumers."""

from .consumer import Consumer
from .range_read import RangeRead
from .unified_log import UnifiedLog

__all__ = ["Consumer", "RangeRead", "UnifiedLog"]
