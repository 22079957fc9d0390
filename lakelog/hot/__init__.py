"""The hot tier: records in Redis Streams."""

from .append import Acks, AppendCall, AppendResult
from .hot_log import HotLog, HotSource
from .registry import TopicRegistry

__all__ = ["Acks", "AppendCall", "AppendResult", "HotLog", "HotSource", "TopicRegistry"]
