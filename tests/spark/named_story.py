"""A log with a table by name that things happen to, beside the plain list of what it must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import strangers
from bench import Bench
from gapped_story import Story

from lakelog.cold.by_name.named_table import NamedTable
from lakelog.cold.change import RowsOf
from lakelog.place import NamedRoot


class NamedBench(Bench):
    """As `Bench`, with its table in a schema of Spark's catalog."""

    def __init__(self, url: str, spark: Any, schema: str, tables_at: str, partitions: int) -> None:
        self.spark = spark
        self.schema = schema
        self.tables_at = tables_at
        super().__init__(url, Path(), partitions, {})

    def table_of(self, rows_of: RowsOf) -> NamedTable:
        root = NamedRoot(self.schema, lambda: self.spark)
        return root.table(self.topic, rows_of)


class NamedStory(Story):
    """As `Story`; what strangers do, they do with Spark."""

    def optimize_by_a_stranger(self) -> None:
        if self.bench.table.snapshot().version >= 0:
            # By a column that has statistics, and that is in no order.
            strangers.rewrite(self.bench.spark, self.bench.table.name, z_order_by="timestamp")

    def vacuum(self) -> None:
        if self.bench.table.snapshot().version >= 0:
            strangers.vacuum(self.bench.spark, self.bench.table.name)
