"""What the cold tier's README says to other engines' users is what holds."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import readers
import table_statements
from archived_topic import ArchivedTopic
from deltalake import DeltaTable

from lakelog.cold.store.storage import Storage
from lakelog.values.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = (Path(__file__).parents[2] / "lakelog" / "cold" / "README.md").read_text("utf-8")
SECTION = README.split("## Read it with other engines\n")[1].split("\n## ")[0]

ORDERS = Topic("orders", UUID("6f1c3a52-9d0e-4b7a-8f35-2c1d4e5f6a7b"), partitions=1)


def test_its_statements_are_those_for_a_topics_table() -> None:
    location = Storage("s3://bucket/lake").table_path(ORDERS)
    shown = SECTION.split("```sql\n")[1].split("```")[0]
    found = dict(re.findall(r"-- ([\w, ]+?) \([^\n]*\n(.*?);\n", shown, re.DOTALL))
    assert found == table_statements.statements("orders", location)


def test_spark_reads_a_table_made_known_by_its_statement(
    spark: SparkSession, archived: ArchivedTopic
) -> None:
    statement = table_statements.statements("orders", str(archived.path))["Databricks, Spark"]
    spark.sql("CREATE SCHEMA lake")
    try:
        spark.sql(statement)
        assert readers.rows(spark.table("lake.orders").toArrow()) == archived.rows
    finally:
        spark.sql("DROP SCHEMA lake CASCADE")


def test_its_columns_are_those_of_the_table(archived: ArchivedTopic) -> None:
    lines = [line for line in SECTION.splitlines() if line.startswith("| `")]
    shown = [tuple(re.findall(r"`([^`]+)`", line)) for line in lines]
    table = DeltaTable(str(archived.path))
    assert [row for row in shown if len(row) == 3] == table_statements.columns(table)[
        : len(readers.COLUMNS)
    ]


def test_its_calls_are_those_that_are_tested() -> None:
    tested = inspect.getsource(readers)
    calls = re.findall(r"^\| \w[^|]*\| `[^`]*?([\w.]+\([^`]*)`", SECTION, re.MULTILINE)
    names = {re.findall(r"(\w+)\(", call)[-1] for call in calls}
    assert len(names) == 5
    assert [name for name in names if f"{name}(" not in tested] == []
