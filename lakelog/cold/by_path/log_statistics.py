"""What a table's log says of its files' rows, as it stands there: JSON text.

delta-rs gives statistics as columns, from which the text of a decimal or of a long string cannot be
made again. It writes them as they are into a checkpoint, so one is made of a copy of the log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from ..store.storage import Storage

_NAME = re.compile(r"(\d{20})\.(json|checkpoint\..*parquet)", re.ASCII)


def log_statistics(storage: Storage, path: str, version: int) -> Mapping[str, str | None]:
    """The statistics of each file of a version of a table, by path; None: it has none.

    Args:
        path: the table's.

    Raises:
        DeltaError, OSError: delta-rs cannot read it, or the log was cleaned up that far.
        ColdTierError: it cannot be read.
    """
    import pyarrow.parquet as pq
    from deltalake import DeltaTable

    found = {name: _NAME.fullmatch(name) for name in storage.file_names(f"{path}/_delta_log")}
    versions = {name: int(match[1]) for name, match in found.items() if match is not None}
    checkpoints = [v for name, v in versions.items() if ".checkpoint." in name and v <= version]
    since = max(checkpoints, default=0)
    with TemporaryDirectory(prefix="lakelog-log-") as folder:
        log = Path(folder, "_delta_log")
        log.mkdir()
        for name, number in versions.items():
            is_superseded = ".checkpoint." in name and number != since
            if since <= number <= version and not is_superseded:
                content = storage.read_bytes(f"{path}/_delta_log/{name}")
                if content is not None:
                    (log / name).write_bytes(content)
        DeltaTable(folder, version=version).create_checkpoint()
        added = pq.read_table(log / f"{version:020}.checkpoint.parquet", columns=["add"])["add"]
        rows = added.drop_null().combine_chunks()
    paths, statistics = rows.field("path").to_pylist(), rows.field("stats").to_pylist()
    return dict(zip(paths, statistics, strict=True))
