"""Writing a Parquet file whose footer and Bloom filters have checksums.

Runs on: executor (or in process).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ...base.failpoints import failpoint
from ..store.storage import Storage
from .bloom_filters import checksums_of, filter_options
from .footers import FOOTER_END, SEALED, seal_of


def write_file(
    storage: Storage,
    path: str,
    groups: Iterable[pa.Table],
    schema: pa.Schema,
    options: Mapping[str, Any],
    *,
    filtered: bool = False,
    metadata: Callable[[], Mapping[str, str]] = dict,
) -> int:
    """Write tables as the row groups of one file.

    An error of the store names the path; an error of the tables' source stays as it is.

    Args:
        schema: as stored.
        options: for `pq.ParquetWriter`.
        filtered: whether keys get Bloom filters.
        metadata: what the footer is to say besides, asked for when all groups are written.

    Returns:
        The file's size in bytes.
    """
    import pyarrow.parquet as pq

    def opened(first: pa.Table | None) -> tuple[SealingSink, Any]:
        chosen = options if first is None else key_options(first, options, filtered=filtered)
        failpoint("cold.before_file")
        with storage.naming(path):
            sink = SealingSink(storage.new_file(path))
            return sink, pq.ParquetWriter(sink.target, schema, **chosen)

    sink = writer = None
    try:
        for group in groups:  # one is held at a time: it may be a single huge record
            if writer is None:
                sink, writer = opened(group)
            with storage.naming(path):
                writer.write_table(group, row_group_size=group.num_rows)
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


#: Above this share of distinct keys a dictionary costs time and bytes. Of a row group of keys of 16
#: bytes, none of which repeats (a cleaned segment's), the dictionary took twice the time and a
#: sixth more bytes; with half as many keys as records it took three quarters of the bytes.
MOST_DISTINCT = 0.75


def key_options(first: pa.Table, options: Mapping[str, Any], *, filtered: bool) -> dict[str, Any]:
    """Options for `pq.ParquetWriter`: those given, with what suits the keys.

    Args:
        first: the file's first row group; the others are taken to be alike.
        options: with ``use_dictionary`` as a list.
        filtered: whether each row group gets a Bloom filter of its keys.
    """
    keys = first["key"]
    # Arrow's `count_distinct` takes twice as long: it counts by chunk, and joins what it counted.
    distinct = len(keys.unique()) - bool(keys.null_count)
    found = dict(options)
    if distinct > MOST_DISTINCT * first.num_rows:
        found["use_dictionary"] = [name for name in options["use_dictionary"] if name != "key"]
    return {**found, **(filter_options(distinct, "key") if filtered else {})}


class SealingSink:
    """What a Parquet writer writes to: puts the seal in front of the footer.

    Args:
        out: `pa.NativeFile`, open for writing, or what is like one.
    """

    def __init__(self, out: Any) -> None:
        self._out = out
        self._end: list[bytes] | None = None
        self.closed = False
        self.size_bytes = 0  # given up to now; of the file, once it is closed

    @property
    def target(self) -> pa.PythonFile:
        """For the writer."""
        return pa.PythonFile(self, mode="w")

    def write(self, data: Any) -> int:
        if self._end is None:
            self._out.write(data)
        else:
            self._end.append(bytes(data))
        self.size_bytes += len(data)
        return len(data)

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None: ...

    def hold(self) -> None:
        """Hold back what comes from now on: it is the file's end."""
        self._end = []

    def close(self) -> None:
        """Write the end, and close the file."""
        if self.closed:
            return
        self.closed = True
        if self._end is not None:
            held = b"".join(self._end)
            end = sealed_end(held, self.size_bytes - len(held))
            self._out.write(end)
            self.size_bytes += len(end) - len(held)
        self._out.close()


def sealed_end(end: bytes, at_byte: int = 0) -> bytes:
    """The last bytes of a file, from before its Bloom filters on, with what seals them.

    Args:
        at_byte: where in the file they begin.
    """
    length, _ = FOOTER_END.unpack(end[-FOOTER_END.size :])
    at = len(end) - length - FOOTER_END.size
    footer = end[at : -FOOTER_END.size]
    return end[:at] + checksums_of(end, at_byte, footer) + seal_of(footer) + end[at:]
