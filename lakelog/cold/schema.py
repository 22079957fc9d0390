"""The table's columns and properties, and how its Parquet files are laid out.

| column             | type                      |                                             |
|--------------------|---------------------------|---------------------------------------------|
| partition, segment | int, long                 | partition columns; not in the files         |
| offset             | long                      | files lakelog writes are sorted by it       |
| timestamp          | timestamp (ms precision)  | the record's                                |
| timestampType      | int                       | 0 CreateTime, 1 LogAppendTime               |
| key, value         | binary, nullable          | byte for byte                               |
| headers            | array<struct<key, value>> | in order                                    |
| delete_horizon     | timestamp, nullable       | set when compaction first keeps a tombstone |

Readers of version 1 suffice: no deletion vectors, no column mapping. Row groups are the sparse
index within a file: small enough to read one for one record, large enough to compress.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..config import MIB
from ..record import RECORDS
from ..topic import Topic

PARTITION_COLUMNS = ["partition", "segment"]

#: What a file holds: `RECORDS`, and what only cleanup asks for.
FILE_SCHEMA = RECORDS.append(pa.field("delete_horizon", pa.timestamp("us", tz="UTC")))

#: Every column is nullable to Delta, so that no writer of others is held up by a constraint.
TABLE_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("segment", pa.int64()),
        *(field.with_nullable(True) for field in FILE_SCHEMA),
    ]
)

TOPIC_ID_PROPERTY = "lakelog.topic.id"
TOPIC_NAME_PROPERTY = "lakelog.topic.name"

ROW_GROUP_ROWS = 64 * 1024
ROW_GROUP_BYTES = 16 * MIB  # of Arrow memory, before compression


def table_properties(topic: Topic) -> dict[str, str]:
    """What the table is created with."""
    return {
        TOPIC_ID_PROPERTY: str(topic.topic_id),
        TOPIC_NAME_PROPERTY: topic.name,
        # The add actions are the segment index, so these two must always have statistics.
        "delta.dataSkippingStatsColumns": "offset,timestamp",
        "delta.enableDeletionVectors": "false",
        "delta.autoOptimize.autoCompact": "false",
        "delta.autoOptimize.optimizeWrite": "false",
        # A checkpoint costs as much as some commits, and each log file since it costs an opener a
        # request.
        "delta.checkpointInterval": "50",
    }


#: For `pyarrow.parquet.ParquetWriter`. Offsets and timestamps hardly differ from their neighbours;
#: a dictionary pays where values repeat, which record values do not.
WRITER_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": ["timestampType", "key", "headers.list.element.key"],
    "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
    "write_statistics": ["offset", "timestamp"],
    "write_page_checksum": True,
}
