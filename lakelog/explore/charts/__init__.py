"""Charts of a log: where its offsets lie, its segments, the rate of ingest, how long records wait
to be archived, how far groups are behind, what compaction saved.

Each is a pure function of an Arrow table, beside the function that makes the table from a log. Its
title says what the chart shows. Where plotly is not installed, a plain table takes its place.
"""

from .compaction_savings import compaction_report_rows, compaction_rows, compaction_savings
from .ingest_rate import ingest_rate, ingest_rates
from .lag import archive_lag, group_lag
from .partition_map import partition_map, partition_ranges
from .segment_map import segment_choices, segment_map, segment_rows
from .shown import PlainTable, show, table_html

__all__ = [
    "PlainTable",
    "archive_lag",
    "compaction_report_rows",
    "compaction_rows",
    "compaction_savings",
    "group_lag",
    "ingest_rate",
    "ingest_rates",
    "partition_map",
    "partition_ranges",
    "segment_choices",
    "segment_map",
    "segment_rows",
    "show",
    "table_html",
]
