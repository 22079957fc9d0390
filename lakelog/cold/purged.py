"""What a purge removed. Values."""

from __future__ import annotations

from msgspec import Struct

from ..values.topic import Topic


class Purged(Struct, frozen=True):
    """A table that was removed with all that it had."""

    place: str  # where it was
    files: int
    size_bytes: int | None  # None: the platform does not say
    left: tuple[str, ...] = ()  # what a listing found afterwards, but for the mark of a purge


class PurgedTopic(Struct, frozen=True):
    """A deleted topic that is gone for good. As a string, a sentence."""

    topic: Topic
    cold: Purged | None  # None: it had no cold tier

    def __str__(self) -> str:
        gone = f"{self.topic.name}: what was deleted (id {self.topic.topic_id}) is gone for good"
        if self.cold is None or not self.cold.files:
            return gone
        size = "" if self.cold.size_bytes is None else f", {self.cold.size_bytes:,} bytes"
        return f"{gone}: {self.cold.files:,} files{size} at {self.cold.place}"
