"""How a file keeps its keys: in a dictionary where they repeat, with Bloom filters where asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from .bloom_filters import filter_options

#: Above this share of distinct keys a dictionary costs time and bytes. Of a row group of keys of 16
#: bytes, none of which repeats (a cleaned segment's), the dictionary took twice the time and a
#: sixth more bytes; with half as many keys as records it took three quarters of the bytes.
MOST_DISTINCT = 0.75


def key_options(
    first: pa.Table, column: str, options: Mapping[str, Any], *, filtered: bool
) -> dict[str, Any]:
    """Options for `pq.ParquetWriter`: those given, with what suits the keys.

    Args:
        first: the file's first row group; the others are taken to be alike.
        column: what the file calls the column ``key``.
        options: with ``use_dictionary`` as a list.
        filtered: whether each row group gets a Bloom filter of its keys.
    """
    keys = first["key"]
    # Arrow's `count_distinct` takes twice as long: it counts by chunk, and joins what it counted.
    distinct = len(keys.unique()) - bool(keys.null_count)
    found = dict(options)
    if distinct > MOST_DISTINCT * first.num_rows:
        found["use_dictionary"] = [name for name in options["use_dictionary"] if name != column]
    return {**found, **(filter_options(distinct, column) if filtered else {})}
