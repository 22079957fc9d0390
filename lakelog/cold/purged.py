"""What a purge removed. Values."""

from __future__ import annotations

from dataclasses import dataclass

from ..topic import Topic


@dataclass(frozen=True, slots=True)
class Purged:
    """A table that was removed with all that it had."""

    place: str  # where it was
    files: int
    size_bytes: int | None  # None: the platform does not say
    left: tuple[str, ...] = ()  # what a listing found afterwards, but for the mark of a purge


@dataclass(frozen=True, slots=True)
class PurgedTopic:
    """A deleted topic that is gone for good. As a string, a sentence."""

    topic: Topic
    cold: Purged | None  # None: it had no cold tier

    def __str__(self) -> str:
        gone = f"{self.topic.name}: what was deleted (id {self.topic.topic_id}) is gone for good"
        if self.cold is None or not self.cold.files:
            return gone
        size = "" if self.cold.size_bytes is None else f", {self.cold.size_bytes:,} bytes"
        return f"{gone}: {self.cold.files:,} files{size} at {self.cold.place}"
