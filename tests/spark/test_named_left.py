"""Tables by name whose catalog keeps OPTIMIZE and VACUUM to itself: cleanup does what it can.

Spark's own catalog keeps nothing to itself, so there a session stands in that refuses the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from spark_log import SPARKS_OWN, SparkLog, rows_of

from lakelog import Lakelog
from lakelog.base import failpoints
from lakelog.cleanup.report import LeftToCatalog
from lakelog.cli import main as cli
from lakelog.cold.by_name.named_table import NamedTable

pytestmark = pytest.mark.slow


@dataclass
class Refusing:
    """A session that refuses what Unity Catalog refuses, in its words."""

    spark: Any

    def sql(self, statement: str) -> Any:
        command = statement.partition(" ")[0]
        if command in ("OPTIMIZE", "VACUUM"):
            raise RuntimeError(
                f"[DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION] {command} is blocked by the "
                "catalog for Catalog-Managed tables."
            )
        return self.spark.sql(statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spark, name)


@pytest.fixture
def log(
    redis_url: str, schema: str, catalog: str, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SparkLog]:
    if catalog == SPARKS_OWN:
        monkeypatch.setattr(NamedTable, "spark", property(lambda table: Refusing(spark)))
    named = SparkLog(redis_url, schema)
    yield named
    named.lakelog.close()


def archived(log: SparkLog, *counts: int, partition: int = 0) -> None:
    """Each with an archive run, and so with a file, of its own."""
    for count in counts:
        log.append(count, partition)
        log.archive()


def files(log: SparkLog, spark: Any, schema: str) -> list[int]:
    """How many files each segment has, in order."""
    rows = spark.sql(
        f"SELECT segment, count(DISTINCT _metadata.file_path) FROM {schema}.orders "
        "GROUP BY segment ORDER BY segment"
    ).collect()
    return [row[1] for row in rows]


def test_closed_segments_are_merged_and_the_newest_is_left_and_counted(
    log: SparkLog, spark, schema
) -> None:
    log.create(segment_ms=10_000, file_delete_delay_ms=0)
    archived(log, 4, 4, 4, 4, 4)
    assert files(log, spark, schema) == [3, 3]

    (report,) = log.lakelog.cleanup("orders")

    assert files(log, spark, schema) == [1, 3]
    (optimized,) = report.optimized
    assert (optimized.segments, optimized.files_before, optimized.records) == (1, 3, 11)
    assert report.left == (LeftToCatalog("optimize", 3), LeftToCatalog("vacuum", 3))
    assert not report.failures
    assert "vacuum is left to the catalog: 3 files could be deleted" in str(report)
    assert rows_of(log.lakelog.dataframe("orders")) == log.expected()
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()

    (again,) = log.lakelog.cleanup("orders")
    assert not again
    assert again.left == report.left
    archived(log, 4)  # rolls
    (last,) = log.lakelog.cleanup("orders")
    assert files(log, spark, schema) == [1, 1, 1]
    assert [one.step for one in last.left] == ["vacuum"]
    with Lakelog.connect(log.url, schema) as other:
        assert rows_of(other.dataframe("orders")) == log.expected()


def test_a_stream_over_the_table_sees_no_merge(
    log: SparkLog, spark, schema, tmp_path: Path
) -> None:
    def stream() -> None:
        frame = spark.readStream.table(f"{schema}.orders")
        writer = frame.writeStream.format("delta").trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "seen.at")).start(
            str(tmp_path / "seen")
        ).awaitTermination()

    log.create(segment_ms=10_000)
    archived(log, 4, 4)
    stream()
    archived(log, 4, 4)
    log.lakelog.cleanup("orders")
    assert files(log, spark, schema)[0] == 1
    said = spark.sql(f"DESCRIBE HISTORY {schema}.orders").selectExpr(
        "get_json_object(userMetadata, '$.operation') operation"
    )
    assert {row["operation"] for row in said.collect()} >= {"archive", "optimize"}
    archived(log, 3)
    stream()
    assert rows_of(spark.read.format("delta").load(str(tmp_path / "seen"))) == log.expected()


@pytest.mark.parametrize(
    ("step", "options", "error"),
    [
        ("retain", {}, "DELTA_SOURCE_IGNORE_DELETE"),
        ("retain", {"ignoreDeletes": "true"}, None),
        ("compact", {"ignoreDeletes": "true"}, "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        ("compact", {"skipChangeCommits": "true"}, None),
    ],
)
def test_a_stream_over_the_table_needs_what_the_readme_says(
    step: str,
    options: dict[str, str],
    error: str | None,
    log: SparkLog,
    spark,
    schema,
    tmp_path: Path,
) -> None:
    def stream() -> None:
        frame = spark.readStream.options(**options).table(f"{schema}.orders")
        writer = frame.writeStream.format("delta").trigger(availableNow=True)
        writer.option("checkpointLocation", str(tmp_path / "seen.at")).start(
            str(tmp_path / "seen")
        ).awaitTermination()

    log.create(
        cleanup_policy="compact,delete", min_cleanable_dirty_ratio=0, internal_segment_bytes=4_000
    )
    log.append(200, keys=5, batch=20)
    log.archive()
    stream()
    if step == "retain":
        log.lakelog.topics.alter("orders", {"retention.bytes": 1})
    (report,) = log.lakelog.cleanup("orders", steps=(step,))
    assert report
    log.append(20, keys=5)
    log.archive()
    if error is None:
        stream()
        seen = spark.read.format("delta").load(str(tmp_path / "seen"))
        assert rows_of(seen) == log.expected()
    else:
        with pytest.raises(Exception, match=error):
            stream()


def test_who_archives_while_segments_are_merged_loses_nothing(log: SparkLog, spark, schema) -> None:
    log.create(segment_ms=10_000)
    archived(log, 4, 4, 4)
    passed = []

    def meanwhile() -> None:
        if not passed:  # the other one passes here too
            passed.append(True)
            log.append(4)
            with Lakelog.connect(log.url, schema, engine="inline") as other:
                other.archive("orders")

    with failpoints.armed("cold.before_commit", meanwhile):
        (report,) = log.lakelog.cleanup("orders", steps=["optimize"])
    assert passed
    assert report.optimized
    assert files(log, spark, schema)[0] == 1
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()
    assert rows_of(log.lakelog.dataframe("orders")) == log.expected()


def test_the_command_says_what_is_left(
    log: SparkLog, schema: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    log.create()
    archived(log, 4, 8)  # a larger file is merged with the one before it
    command = ["--cold", schema, "cleanup"]
    assert cli.main([*command, "run"]) == 0
    said = capsys.readouterr().out
    assert "orders: optimize is left to the catalog: 2 files of newest segments" in said
    assert cli.main([*command, "run", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_to_catalog"] == [
        {"topic": "orders", "step": "optimize", "files": 2},
        {"topic": "orders", "step": "vacuum", "files": 0},
    ]
    assert cli.main([*command, "plan"]) == 0
    assert "the catalog keeps VACUUM to itself" in capsys.readouterr().out
