"""What a small Delta table of lakelog's own in a cold root is, beside those of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import Struct


class RootTableDefinition(Struct, frozen=True):
    """What such a table is made as, at a path or in a catalog."""

    name: str  # of its folder, or within its schema
    holds: str  # such as "the rows of job runs"
    schema: pa.Schema
    description: str
    properties: Mapping[str, str]
    partition_by: Sequence[str] = ()
