"""What single files of a Delta log say that delta-rs does not tell of them, registers above all.

Source: Delta's protocol, "Actions", "Checkpoints".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import msgspec
from msgspec import Struct, field

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
from ..store.storage import Storage
from ..table import ColdSnapshot
from .orphans import SETTLING_MS

#: In each commit's ``commitInfo``: tells after a lost reply whose commit landed.
COMMIT_ID = "lakelog.commit"


class Commit(Struct, frozen=True):
    """What lakelog needs of one version's file."""

    version: int
    commit_id: str | None
    transactions: Mapping[str, int]  # by app id
    removed: Mapping[str, int]  # path → when, in epoch milliseconds
    vacuums: bool = False  # a VACUUM with so short a retention that it takes files in flight

    @classmethod
    def of(cls, version: int, content: bytes) -> Commit:
        """Of a file's content.

        Raises:
            ValueError: it is not what Delta writes.
        """
        lines = list(filter(bytes.strip, content.splitlines()))
        if not lines:
            raise ValueError("it is empty")
        commit_id = None
        transactions: dict[str, int] = {}
        removed: dict[str, int] = {}
        vacuums = False
        try:
            for action in map(_action, lines):
                if (txn := action.txn) is not None:  # most are
                    transactions[txn.app_id] = txn.version
                elif action.remove is not None:
                    removed[unquote(action.remove.path)] = action.remove.deletion_timestamp or 0
                elif (info := action.commit_info) is not None:
                    commit_id = info.commit_id
                    vacuums = info.operation == "VACUUM START" and _is_short(info.parameters)
        except RecursionError:
            raise ValueError("it nests too deep") from None
        return cls(version, commit_id, transactions, removed, vacuums)


class _Txn(Struct, rename="camel", gc=False):
    app_id: str
    version: int


class _Remove(Struct, rename="camel", gc=False):
    path: str
    deletion_timestamp: int | None = None


class _CommitInfo(Struct, gc=False):
    commit_id: Any = field(default=None, name=COMMIT_ID)
    operation: Any = None
    parameters: Any = field(default=None, name="operationParameters")


class _Action(Struct, rename="camel", gc=False):
    """A line of a commit; what is not asked for is passed over, and takes no time."""

    txn: _Txn | None = None
    remove: _Remove | None = None
    commit_info: _CommitInfo | None = None


_action = msgspec.json.Decoder(_Action).decode


def _is_short(said: Any) -> bool:
    """Whether a VACUUM of these parameters takes files that are being written."""
    said = said if isinstance(said, dict) else {}
    kept = said.get("specifiedRetentionMillis", said.get("defaultRetentionMillis"))
    try:
        return int(kept) < SETTLING_MS
    except (TypeError, ValueError):
        return False


def transactions_in(storage: Storage, path: str) -> dict[str, int]:
    """The txn versions by app id in a file of a checkpoint.

    Raises:
        MissingFileError, CorruptRecordError, ColdTierError: it cannot be read.
    """
    import pyarrow.parquet as pq

    with (
        storage.naming(path),
        storage.filesystem().open_input_file(storage.arrow_path(path)) as source,
    ):
        file = pq.ParquetFile(source, pre_buffer=False)
        found: dict[str, int] = {}
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, ["txn.appId", "txn.version"], use_threads=False)
            if "txn" in rows.column_names:
                for txn in rows["txn"].drop_null().to_pylist():
                    found[txn["appId"]] = txn["version"]
    return found


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
