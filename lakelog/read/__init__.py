"""Both tiers as one log: seek, fetch, ranges, consumers."""

from typing import TYPE_CHECKING

from ..base.lazy_names import lazy_names

if TYPE_CHECKING:
    from .consumer import Consumer
    from .range_read import RangeRead
    from .topic_log import TopicLog, UnifiedLog

__all__ = ["Consumer", "RangeRead", "TopicLog", "UnifiedLog"]

__getattr__ = lazy_names(
    __name__,
    {
        "Consumer": ".consumer",
        "RangeRead": ".range_read",
        "TopicLog": ".topic_log",
        "UnifiedLog": ".topic_log",
    },
)
