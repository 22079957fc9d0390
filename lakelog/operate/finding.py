"""What a look through a log found wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..record import TopicPartition

HOT, COLD = "hot", "cold"
TIERS = (HOT, COLD)
BOTH = "both"

#: Of one tier of one partition: a log of which every entry is damaged must not fill the memory.
MOST = 10_000

#: Called with how many records were looked at since the last call.
Progress = Callable[[int], None]


class Finding(NamedTuple):
    """One thing that is not as it should be."""

    tier: str  # hot, cold; both: the tiers contradict each other
    topic_partition: TopicPartition
    where: str  # the entry, key, segment, file or register
    what: str


@dataclass
class Findings:
    """Collects those of one tier of one partition; of more than `MOST` the rest is counted."""

    tier: str
    topic_partition: TopicPartition
    found: list[Finding] = field(default_factory=list)
    left_out: int = 0

    def add(self, where: str, what: str) -> None:
        if len(self.found) < MOST:
            self.found.append(Finding(self.tier, self.topic_partition, where, what))
        else:
            self.left_out += 1

    def all(self) -> list[Finding]:
        if not self.left_out:
            return self.found
        more = f"{self.left_out:,} more were found; mend these first"
        return [*self.found, Finding(self.tier, self.topic_partition, "the rest", more)]

    def differs(self, where: str, name: str, said: object, holds: object, *, of: str) -> None:
        """Adds one if what was said of something is not what holds."""
        if said != holds:
            self.add(where, f"says {name} {said}, but {of} {name} {holds}")


def predicate(message: str, subject: str) -> str:
    """An error's sentence without the subject that it begins with, which stands beside it."""
    return message.removeprefix(f"{subject} ")
