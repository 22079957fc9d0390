"""The columns of Spark's Kafka source, in its order: what frames and streams have, and sinks take.

As Arrow has them; Spark's types and the sink's are made of these.
"""

from __future__ import annotations

import pyarrow as pa

COLUMNS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)

#: The last column, with the option ``includeHeaders``.
HEADERS = pa.field(
    "headers",
    pa.list_(
        pa.field(
            "element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        )
    ),
)


def source_schema(value_columns: pa.Schema, *, headers: bool) -> pa.Schema:
    """The columns of rows that are read.

    Args:
        value_columns: of `value_schema`, which come after all others.
    """
    return pa.schema([*COLUMNS, *([HEADERS] if headers else []), *value_columns])
