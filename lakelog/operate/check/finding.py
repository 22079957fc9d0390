"""What a verification of a log found wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct, field

from ...errors import ColdTierAccessError, HotTierAccessError, LakelogError
from ...values.record import MAX_OFFSET
from ...values.topic_partition import OffsetRange, TopicPartition

if TYPE_CHECKING:
    from ...cold.store.abilities import Ability
    from ...engines.engine import Choice

HOT, COLD = "hot", "cold"
TIERS = (HOT, COLD)
BOTH = "both"

#: Every offset.
ALL = OffsetRange(0, MAX_OFFSET)

#: Kept for one tier of one partition: a log with every entry damaged must not fill the memory.
MOST = 10_000

#: Called with the number of records that were read since the last call.
Progress = Callable[[int], None]


class Kind(str, Enum):
    """What a finding is about, by the name that scripts compare."""

    CORRUPT = "corrupt"  # an entry, a key or a file is not what was written
    FOREIGN = "foreign"  # an entry or a key was written by somebody else
    MISSING_FILE = "missing-file"  # the table names a file that is gone
    ORDER = "order"  # records lie where their offsets do not belong
    DOUBLED = "doubled"  # an offset is there more than once
    HOLE = "hole"  # offsets are missing, and nothing says that they were skipped
    DIFFERS = "differs"  # the tiers hold different records under one offset
    STATISTICS = "statistics"  # what is said of segments, entries or files is not what they hold
    TIME_INDEX = "time-index"  # Redis's time index does not say where timestamps are
    SEGMENT = "segment"  # Redis's segments do not cover the log
    GAP = "gap"  # a gap is declared in one place and not in the other
    REGISTER = "register"  # a number that says where the log starts or ends is not what is there
    TABLE = "table"  # a table cannot be read, or contradicts itself
    PROPERTIES = "properties"  # a table's properties are not the topic's settings
    REGISTRY = "registry"  # a partition does not go by its topic's settings
    PARTITION = "partition"  # Redis does not have a partition
    TOPIC = "topic"  # only its table knows a topic
    ORPHAN = "orphan"  # a file that no commit names, or can ever name
    GROUP_OFFSET = "group-offset"  # a group's offset is of something that cannot be
    STORE = "store"  # the cold root's store does not do what is needed
    UNREACHABLE = "unreachable"  # a tier, or a file, cannot be read now: not known to be wrong


class Finding(Struct, frozen=True):
    """One thing that is not as it should be."""

    kind: Kind
    tier: str  # hot, cold; both: the tiers contradict each other
    topic: str | None  # None: of the whole root or keyspace
    partition: int | None  # None: of the whole topic
    where: str  # the entry, key, segment, file or register
    what: str
    offsets: tuple[OffsetRange, ...] = ()  # that it is about; of very many, the first ranges
    repairable: bool = False  # whether it can be derived from what is sound

    @property
    def place(self) -> str:
        """The partition or topic, as people call it."""
        if self.topic is None:
            return "the log"
        return self.topic if self.partition is None else f"{self.topic}-{self.partition}"


class Findings(Struct):
    """Collects the findings of one tier of one partition; beyond `MOST` they are only counted."""

    tier: str
    topic_partition: TopicPartition
    found: list[Finding] = field(default_factory=list)
    left_out: int = 0

    def add(
        self,
        kind: Kind,
        where: str,
        what: str,
        offsets: Iterable[OffsetRange] = (),
        *,
        repairable: bool = False,
    ) -> None:
        if len(self.found) < MOST:
            self.found.append(self._of(kind, where, what, tuple(offsets), repairable))
        else:
            self.left_out += 1

    def all(self) -> list[Finding]:
        if not self.left_out:
            return self.found
        more = f"{self.left_out:,} more were found; mend these first"
        return [*self.found, self._of(self.found[-1].kind, "the rest", more)]

    def differs(
        self,
        where: str,
        name: str,
        said: object,
        holds: object,
        *,
        of: str,
        offsets: Iterable[OffsetRange] = (),
        repairable: bool = False,
    ) -> bool:
        """Adds a finding if what is said is not what holds, and tells whether it did."""
        if said == holds:
            return False
        what = f"says {name} {said}, but {of} {name} {holds}"
        self.add(Kind.STATISTICS, where, what, offsets, repairable=repairable)
        return True

    def _of(
        self,
        kind: Kind,
        where: str,
        what: str,
        offsets: tuple[OffsetRange, ...] = (),
        repairable: bool = False,
    ) -> Finding:
        topic, partition = self.topic_partition
        return Finding(kind, self.tier, topic, partition, where, what, offsets, repairable)


def is_no_answer(error: LakelogError) -> bool:
    """Whether an error says nothing of what is stored: who has it is away, full or refuses us."""
    return error.retriable or isinstance(error, (ColdTierAccessError, HotTierAccessError))


def predicate(message: str, subject: str) -> str:
    """An error's sentence without the subject it begins with, which is shown beside it."""
    return message.removeprefix(f"{subject} ")


OK, FAULTS, NOT_CHECKED = "ok", "faults", "not checked"


class PartitionVerdict(Struct, frozen=True):
    """What is to be thought of a partition."""

    topic: str
    partition: int
    verdict: str  # ok, faults or not checked
    records: int  # that were read; those in both tiers count once
    faults: int
    not_checked: str = ""  # which tier was not, or what of one, and why


class Repair(Struct, frozen=True):
    """What became of something that was to be put right."""

    kind: str  # as `Finding.kind`
    topic: str
    partition: int | None  # None: of the whole topic
    done: bool
    what: str  # what was done, or why it was not


class CheckReport(Struct, frozen=True):
    """The result of `Lakelog.check`."""

    partitions: tuple[PartitionVerdict, ...]
    findings: tuple[Finding, ...]  # faults, by topic
    notices: tuple[Finding, ...] = ()  # what may be so, but may not be meant
    store: tuple[Ability, ...] = ()  # empty: there is no cold root, or it was not asked
    repairs: tuple[Repair, ...] = ()  # after them, all was checked again
    engines: Mapping[str, Sequence[Choice]] = field(default_factory=dict)  # by topic

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong, as far as was checked."""
        return not self.findings
