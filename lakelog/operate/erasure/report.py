"""What was erased of a topic, or would be, and what could not be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from ...cleanup.erasure import ColdErased
from ...errors import LakelogError
from ...hot.persistence import Persistence
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange
from ..transfer.known_exports import ExportTold


class HotErased(Struct, frozen=True, eq=False):
    """What became of one topic's hot tier.

    Attributes:
        ends: by partition, where the log ended at the beginning: matches below it are gone.
        matches: by partition, how many matching records Redis held.
        trimmed: by partition, the offsets that Redis let go of for them.
        given_up: by partition, the ids of the damaged entries that an older version kept, and whose
            bytes went.
        servers: what became of the servers' files on disk; empty for a plan.
        beyond: what may hold matches and was not reached, in sentences.
    """

    ends: Mapping[int, int]
    matches: Mapping[int, int] = field(default_factory=dict)
    trimmed: Mapping[int, OffsetRange] = field(default_factory=dict)
    given_up: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    servers: Sequence[Persistence] = ()
    beyond: tuple[str, ...] = ()


class Erased(Struct, frozen=True, eq=False):
    """One erasure of records of a topic.

    Attributes:
        asked: SHA-256 of a salt and what was asked for, in hex.
        salt: random bytes.
        hot: None without a Redis.
        failures: why something could not be done; running it again does it.
        unarchived: by partition, matches that Redis alone holds; of a plan, which archives nothing.
        exports: those that the log knows of and that hold the topic.
    """

    topic: Topic
    asked: str
    salt: bytes
    who: str
    version: str  # of lakelog
    began_ms: int
    ended_ms: int
    cold: ColdErased
    hot: HotErased | None = None
    failures: tuple[LakelogError, ...] = ()
    unarchived: Mapping[int, int] = field(default_factory=dict)
    exports: tuple[ExportTold, ...] = ()

    @property
    def records(self) -> int:
        """How many records were, or would be, erased; each once, whichever tiers hold it."""
        return sum(self.records_of(number) for number in self.partitions)

    @property
    def partitions(self) -> list[int]:
        """The partitions that hold a match."""
        hot = () if self.hot is None else self.hot.matches
        return sorted({*self.cold.partitions, *hot})

    def records_of(self, partition: int) -> int:
        """As `records`, of one partition."""
        found = self.cold.partitions.get(partition)
        cold = 0 if found is None else found.records
        return cold + self.unarchived.get(partition, 0)

    @property
    def beyond(self) -> tuple[str, ...]:
        """What may hold matches and was not reached, in sentences."""
        hot = (_WITHOUT_REDIS,) if self.hot is None else self.hot.beyond
        return (*self.cold.beyond, *hot, *map(str, self.exports), *_ALWAYS)


_WITHOUT_REDIS = (
    "Redis, which was not asked: what it still holds of archived records, and records that are not "
    "archived; erase again with --redis"
)

#: What no log can reach.
_ALWAYS = (
    "backups, other exports and copies that others made of the tables, of Redis or of its disk; "
    "older versions of files that a bucket keeps; blocks of a disk that are free but not "
    "overwritten",
    "what consumers and queries have read already, and records appended since the erasure began",
)
