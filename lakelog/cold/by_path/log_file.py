"""What single files of a Delta log say that delta-rs does not tell of them.

Source: Delta's protocol, "Actions", "Checkpoints".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from ..store.storage import Storage
from .orphans import SETTLING_MS

#: In each commit's ``commitInfo``: tells after a lost reply whose commit landed.
COMMIT_ID = "lakelog.commit"


class Commit(Struct, frozen=True):
    """What lakelog needs of one version's file."""

    version: int
    commit_id: str | None
    transactions: Mapping[str, int]  # by app id
    removed: tuple[str, ...]  # paths
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
        removed: list[str] = []
        vacuums = False
        try:
            for action in map(_action, lines):
                if (txn := action.txn) is not None:  # most are
                    transactions[txn.app_id] = txn.version
                elif action.remove is not None:
                    removed.append(unquote(action.remove.path))
                elif (info := action.commit_info) is not None:
                    commit_id = info.commit_id
                    vacuums = info.operation == "VACUUM START" and _is_short(info.parameters)
        except RecursionError:
            raise ValueError("it nests too deep") from None
        return cls(version, commit_id, transactions, tuple(removed), vacuums)


class _Txn(Struct, rename="camel", gc=False):
    app_id: str
    version: int


class _Remove(Struct, gc=False):
    path: str


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
