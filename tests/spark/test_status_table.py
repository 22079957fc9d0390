"""The rows of job runs in a catalog: by name through Spark, and at a path that has a name."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark_log import SPARKS_OWN
from status_contract import (
    CONTRACT,
    NOW_MS,
    OLDER,
    an_older_table_is_read_and_goes_on,
    rows_of,
)

from lakelog import Lakelog
from lakelog.cold.by_name.root_table import NamedRootTable
from lakelog.cold.root_table import Txn
from lakelog.errors import CorruptRecordError, ForeignTableError
from lakelog.jobs import JobRun, add_readings, status_history
from lakelog.jobs import status_table as module
from lakelog.jobs.status_rows import STATUS, RunKey
from lakelog.jobs.status_table import DEFINITION, KEPT_DAYS, StatusTable, app_id, open_status_table
from lakelog.place import cold_root

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MS = 86_400_000


def by_name(spark: SparkSession, schema: str) -> StatusTable:
    return StatusTable(NamedRootTable(schema, DEFINITION, lambda: spark))


@pytest.fixture
def table(spark: SparkSession, schema: str) -> StatusTable:
    return by_name(spark, schema)


# The others say of reading and of runs that go on what the tests below say too.
@pytest.mark.parametrize("rule", CONTRACT[:2], ids=lambda rule: rule.__name__)
def test_a_table_by_name_keeps_the_contract(rule, spark: SparkSession, schema: str) -> None:
    rule(lambda: by_name(spark, schema))


@pytest.mark.slow
@pytest.mark.parametrize("older", OLDER, ids=lambda older: older.__name__)
def test_a_table_that_an_older_lakelog_made_is_read_and_goes_on(
    older, spark: SparkSession, schema: str
) -> None:
    rows = rows_of(RunKey("archive", "old"), "orders")
    name = by_name(spark, schema).where
    spark.createDataFrame(older(rows)).write.format("delta").saveAsTable(str(name))
    an_older_table_is_read_and_goes_on(lambda: by_name(spark, schema), rows)


def test_a_second_end_of_a_run_is_passed_over_also_without_a_look(table: StatusTable) -> None:
    key = RunKey("archive", "4711")
    for log_end in (120, 130):  # as two that both looked before either wrote
        rows = rows_of(key, "orders", log_end=log_end)
        table._table.append(rows, lambda _: False, Txn(app_id(key), 1))
    assert table.done_rows(key)["log_end"].to_pylist() == [120]
    assert table.rows_of(key).equals(table.done_rows(key))


def test_a_row_whose_time_is_damaged_is_named(table: StatusTable, spark: SparkSession) -> None:
    table.append(rows_of(RunKey("archive", "1"), "orders"))
    spark.sql(
        f"INSERT INTO {table.where} (run_id, recorded_at) VALUES ('2', timestamp_micros({2**62}))"
    )
    with pytest.raises(CorruptRecordError, match=f"{2**62} µs"):
        table.read()
    assert table.rows_of(RunKey("archive", "1")).num_rows == 1


@pytest.mark.slow
def test_old_rows_go_and_files_are_merged(
    spark: SparkSession, schema: str, catalog: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = by_name(spark, schema)
    monkeypatch.setattr(module, "MERGED_FILES", 3)

    def append(number: int, days_ago: int) -> None:
        key = RunKey("archive", str(number))
        table.append(rows_of(key, "orders", now_ms=NOW_MS - days_ago * DAY_MS), key)

    append(0, KEPT_DAYS + 2)
    assert table.read().num_rows == 0  # though there are few files
    table = by_name(spark, schema)  # as another run's
    for number, days_ago in enumerate([KEPT_DAYS - 1, 1, 0], start=1):
        append(number, days_ago)
    assert table.read()["run_id"].to_pylist() == ["1", "2", "3"]
    today = datetime.fromtimestamp(NOW_MS / 1000, timezone.utc) - timedelta(hours=1)
    assert table.read(today)["run_id"].to_pylist() == ["3"]
    (details,) = spark.sql(f"DESCRIBE DETAIL {table.where}").collect()
    # Where the catalog keeps OPTIMIZE to itself, those of the last hour stay as they are.
    assert details["numFiles"] == (1 if catalog == SPARKS_OWN else 2)


@pytest.mark.slow
def test_a_job_over_tables_by_name_is_done_once_with_redis_and_without(
    redis_url: str, spark: SparkSession, schema: str
) -> None:
    with Lakelog.connect(redis_url, schema) as log:
        add_readings(log, "readings", 80)
        first = JobRun(log, "archive", "4711").once(lambda: log.archive())
        add_readings(log, "readings", 160)
        assert JobRun(log, "archive", "4711").once(lambda: log.archive()) == first
        assert [part["archived_end"] for part in first["partitions"]] == [30, 50]
        cold = Lakelog.connect(None, schema, engine="inline")
        result = JobRun(cold, "cleanup", "4712").once(cold.cleanup)
        assert [part["archived_end"] for part in result["partitions"]] == [30, 50]
        assert status_history(log).num_rows == 4
    assert spark.table(f"{schema}._lakelog_status").columns == STATUS.names


@pytest.mark.slow
def test_two_jobs_that_begin_at_one_moment_make_one_table(
    redis_url: str, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2)
    is_there = NamedRootTable._is_there
    waited: set[int] = set()

    def both_find_none(self: NamedRootTable) -> bool:
        found = is_there(self)
        if id(self) not in waited:
            waited.add(id(self))
            together.wait(60)
        return found

    def run(job: str) -> None:
        with Lakelog.connect(redis_url, schema) as log:
            JobRun(log, job, "1").once(lambda: log.archive())

    monkeypatch.setattr(NamedRootTable, "_is_there", both_find_none)
    with Lakelog.connect(redis_url, schema) as log:
        add_readings(log, "readings", 80)
        log.archive()
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(run, job) for job in ("archive", "cleanup")]
        for one in both:
            one.result()
    jobs = spark.table(f"{schema}._lakelog_status").select("job").distinct().collect()
    assert sorted(row["job"] for row in jobs) == ["archive", "cleanup"]


def test_a_table_at_a_path_is_known_by_name_before_its_first_row(
    spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    place = cold_root(schema, tmp_path)
    key = RunKey("archive", "4711")
    for _ in range(2):
        table = open_status_table(place)
        assert table.where == f"{tmp_path}/_lakelog_status"
        table.append(rows_of(key, "orders"), key)
    (row,) = spark.table(f"{schema}._lakelog_status").collect()
    assert (row["run_id"], row["log_end"], row["done"]) == ("4711", 120, True)


def test_a_name_that_is_somebody_elses_is_refused_before_any_row(
    spark: SparkSession, schema: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE {schema}._lakelog_status (a INT) USING delta")
    table = open_status_table(cold_root(schema, tmp_path))
    with pytest.raises(ForeignTableError, match="_lakelog_status"):
        table.append(rows_of(RunKey("archive", "4711"), "orders"))
    assert table.read().num_rows == 0
