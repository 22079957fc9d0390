"""Registers: the five numbers a partition's cold tier keeps beside its files.

They only grow (but for a cleaned end past the archived end, to which nothing of lakelog leads), and
one that was never written reads as 0. Those that speak of files move only in the commit that adds
or removes the files.
"""

from __future__ import annotations

from uuid import UUID

from msgspec import Struct


class ArchivedEnd(Struct, frozen=True, gc=False):
    """One past the last archived offset: cold holds [log_start, archived_end)."""

    partition: int


class LogStart(Struct, frozen=True, gc=False):
    """The log start offset: records below it are gone, even if a file still holds them."""

    partition: int


class CleanedEnd(Struct, frozen=True, gc=False):
    """One past the last offset that compaction has looked at."""

    partition: int


class ReservedEnd(Struct, frozen=True, gc=False):
    """One past the last offset that the hot tier may give out; see `lakelog.reservation`."""

    partition: int


class ErasedEnd(Struct, frozen=True, gc=False):
    """One past the last offset whose record was erased: below it, offsets may be missing."""

    partition: int


Register = ArchivedEnd | LogStart | CleanedEnd | ReservedEnd | ErasedEnd

REGISTER_NAMES: dict[
    type[ArchivedEnd] | type[LogStart] | type[CleanedEnd] | type[ReservedEnd] | type[ErasedEnd], str
] = {
    ArchivedEnd: "archived_end",
    LogStart: "log_start",
    CleanedEnd: "cleaned_end",
    ReservedEnd: "reserved_end",
    ErasedEnd: "erased_end",
}


def app_id(topic_id: UUID, register: Register) -> str:
    """The Delta ``txn`` app id that holds the register."""
    return f"lakelog/{topic_id}/{register.partition}/{REGISTER_NAMES[type(register)]}"
