"""Writing a Parquet file whose footer and Bloom filters have checksums.

Runs on: executor (or in process).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ...base.failpoints import failpoint
from ..store.in_place import can_be_changed
from ..store.storage import Storage
from ..store.write_behind import WriteBehind
from .footer_seal import SEALED, SealedFile, SealingSink
from .key_column import key_options


def write_file(
    storage: Storage,
    path: str,
    groups: Iterable[pa.Table],
    schema: pa.Schema,
    options: Mapping[str, Any],
    *,
    key: str = "key",
    filtered: bool = False,
    stored: Callable[[pa.Table], pa.Table] = lambda group: group,
    metadata: Callable[[], Mapping[str, str]] = dict,
) -> int:
    """Write tables as the row groups of one file.

    An error of the store names the path; an error of the tables' source stays as it is.

    Args:
        schema: as stored.
        options: for `pq.ParquetWriter`.
        key: what the file calls the column ``key``.
        filtered: whether its values get Bloom filters.
        stored: a row group under the names in the file.
        metadata: what the footer is to say besides, asked for when all groups are written.

    Returns:
        The file's size in bytes.
    """
    import pyarrow.parquet as pq

    def opened(first: pa.Table | None) -> tuple[SealedFile | SealingSink, Any]:
        chosen = options if first is None else key_options(first, key, options, filtered=filtered)
        failpoint("cold.before_file")
        with storage.naming(path):
            in_place = storage.is_local and can_be_changed(path)
            out = storage.filesystem().open_output_stream(storage.arrow_path(path))
            sink: SealedFile | SealingSink
            if in_place:
                sink = SealedFile(out, path)
            else:
                sink = SealingSink(out if storage.is_local else WriteBehind(out))
            return sink, pq.ParquetWriter(sink.target, schema, **chosen)

    sink = writer = None
    try:
        for group in groups:  # one is held at a time: it may be a single huge record
            if writer is None:
                sink, writer = opened(group)
            with storage.naming(path):
                writer.write_table(stored(group), row_group_size=group.num_rows)
            del group
        if sink is None or writer is None:
            sink, writer = opened(None)
        failpoint("cold.amid_file")
        writer.add_key_value_metadata({**metadata(), **SEALED})
    except BaseException:
        for one in (writer, sink):
            if one is not None:
                with suppress(OSError, pa.ArrowException):
                    one.close()
        raise
    with storage.naming(path):
        sink.hold()
        writer.close()
        sink.close()
    return sink.size_bytes
