"""What a verification of a log found wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from ..record import TopicPartition

HOT, COLD = "hot", "cold"
TIERS = (HOT, COLD)
BOTH = "both"

#: Kept for one tier of one partition: a log with every entry damaged must not fill the memory.
MOST = 10_000

#: Called with the number of records that were read since the last call.
Progress = Callable[[int], None]


class Finding(NamedTuple):
    """One thing that is not as it should be."""

    tier: str  # hot, cold; both: the tiers contradict each other
    topic_partition: TopicPartition
    where: str  # the entry, key, segment, file or register
    what: str


@dataclass
class Findings:
    """Collects the findings of one tier of one partition; beyond `MOST` they are only counted."""

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
        """Adds a finding if what is said is not what holds."""
        if said != holds:
            self.add(where, f"says {name} {said}, but {of} {name} {holds}")


def predicate(message: str, subject: str) -> str:
    """An error's sentence without the subject it begins with, which is shown beside it."""
    return message.removeprefix(f"{subject} ")
