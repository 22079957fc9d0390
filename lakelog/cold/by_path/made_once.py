"""Makes a Delta table, once where several processes make it at the same moment."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def make_table(path: str, columns: pa.Schema, **definition: Any) -> None:
    """As ``DeltaTable.create``, but nothing is written where a table has appeared meanwhile.

    By itself, delta-rs tries the commit of whoever comes second again behind the first one, and
    the table has another id from then on.

    Raises:
        DeltaError: it could not be made, or somebody else was faster.
    """
    from deltalake import CommitProperties, DeltaTable

    once = CommitProperties(max_commit_retries=0)
    DeltaTable.create(path, columns, commit_properties=once, **definition)
