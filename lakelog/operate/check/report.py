"""What a check of a log found. Values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from ...cold.store.abilities import Ability
from ...engines.engine import Choice
from .finding import Finding

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
