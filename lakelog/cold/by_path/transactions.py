"""The registers of a table at a path, as Delta's txn versions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from uuid import UUID

from ..change import Change
from ..registers import (
    REGISTER_NAMES,
    ArchivedEnd,
    CleanedEnd,
    ErasedEnd,
    LogStart,
    Register,
    ReservedEnd,
    app_id,
)
from ..table import ColdSnapshot

_KINDS = {name: kind for kind, name in REGISTER_NAMES.items()}


def registers_of(partition: int) -> tuple[Register, ...]:
    """The registers of a partition; those that every table has come first."""
    return (
        ArchivedEnd(partition),
        LogStart(partition),
        CleanedEnd(partition),
        ReservedEnd(partition),
        ErasedEnd(partition),
    )


def transactions_of(
    topic_id: UUID,
    change: Change,
    standing: frozenset[int],
    current: ColdSnapshot,
    *,
    anew: bool = False,
) -> dict[str, int]:
    """The txn versions of a commit; a partition's first one states all of its registers.

    Args:
        anew: state all that there are.
    """
    values = dict(current.registers) if anew else {}
    values |= {
        register: 0
        for partition in standing
        for register in registers_of(partition)
        if register not in current.registers
    }
    values |= {
        register: value
        for register, value in change.registers.items()
        if register.partition in standing
    }
    return {app_id(topic_id, register): values[register] for register in values}


def registers_in(topic_id: UUID, transactions: Mapping[str, int]) -> dict[Register, int]:
    """The registers among txn versions."""
    ours = f"lakelog/{topic_id}/"
    own = len(ours)
    return {
        register: version
        for name, version in transactions.items()
        if name.startswith(ours) and (register := _named(name[own:])) is not None
    }


@lru_cache(maxsize=65_536)  # those of 1,000 tables are mostly the same
def _named(name: str) -> Register | None:
    number, _, kind = name.partition("/")
    register = _KINDS.get(kind)
    return register(int(number)) if register is not None and number.isdecimal() else None
