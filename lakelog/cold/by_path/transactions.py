"""The registers of a table at a path, as Delta's txn versions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from ..change import Change
from ..registers import ArchivedEnd, CleanedEnd, LogStart, Register, ReservedEnd, app_id
from ..table import ColdSnapshot


def registers_of(partition: int) -> tuple[Register, ...]:
    """The registers of a partition; those that every table has come first."""
    return (
        ArchivedEnd(partition),
        LogStart(partition),
        CleanedEnd(partition),
        ReservedEnd(partition),
    )


def transactions_of(
    topic_id: UUID, change: Change, standing: frozenset[int], current: ColdSnapshot
) -> dict[str, int]:
    """The txn versions of a commit; a partition's first one states all of its registers."""
    values = {
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
    partitions = set()
    for name in transactions:
        owner, _, rest = name.partition(f"/{topic_id}/")
        number = rest.partition("/")[0]
        if owner == "lakelog" and number.isdecimal():
            partitions.add(int(number))
    ids = {
        app_id(topic_id, register): register
        for partition in partitions
        for register in registers_of(partition)
    }
    return {ids[name]: version for name, version in transactions.items() if name in ids}
