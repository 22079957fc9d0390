"""Tables by name in a catalog that others use too: what they have there, take, give and forbid."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from spark_log import SPARKS_OWN, Row, SparkLog, rows_of

from lakelog import Lakelog
from lakelog.archive.report import NOT_ARCHIVED
from lakelog.errors import ColdTierError, ForeignTableError
from lakelog.testing.eventually import eventually
from lakelog.values.topic_partition import TopicPartition
from tests.support.object_store import Fault
from tests.support.unity_catalog import UnityCatalogServer


@pytest.fixture
def forbid(catalog: str, unity_server: UnityCatalogServer | None) -> Iterator[Callable[..., None]]:
    """``forbid("POST")``: the catalog refuses such requests; none if called without any."""
    if catalog == SPARKS_OWN:
        pytest.skip("Spark's own catalog knows no rights")
    assert unity_server is not None
    front = unity_server.front

    def refuse(*methods: str) -> None:
        front.inject(*(Fault(method, "", status=403, times=None) for method in methods))

    yield refuse
    refuse()


@pytest.mark.slow
def test_of_a_schema_with_a_thousand_tables_each_is_not_asked_about(
    log: SparkLog, spark: Any, schema: str, catalog: str, unity_server: Any, monkeypatch: Any
) -> None:
    for number in range(1000):
        name = f"foreign_{number}"
        if catalog == SPARKS_OWN:
            spark.sql(f"CREATE TABLE {schema}.{name} (a INT) USING parquet")
            continue
        unity_server.ask(
            "POST",
            "/tables",
            {
                "catalog_name": catalog,
                "schema_name": schema.split(".")[1],
                "name": name,
                "table_type": "EXTERNAL",
                "data_source_format": "PARQUET",
                "columns": [],
                "storage_location": f"file:///tmp/{schema}/{name}",
            },
        )
    log.create(1).append(3)
    log.archive()
    asked: list[str] = []
    sql = type(spark).sql
    monkeypatch.setattr(type(spark), "sql", lambda *of: asked.append(of[1]) or sql(*of))
    if unity_server is not None:
        unity_server.front.requests.clear()
    with Lakelog.connect(None, schema) as alone:
        assert [topic.name for topic in alone.topics.list()] == ["orders"]
    requests = [] if unity_server is None else unity_server.front.requests
    assert len(asked) + len(requests) < 100  # Unity Catalog lists them by pages


@pytest.mark.slow
def test_somebodys_view_of_the_tables_name_is_refused_and_stays(
    log: SparkLog, spark: Any, schema: str
) -> None:
    spark.sql(f"CREATE VIEW {schema}.orders AS SELECT 1 AS a")
    log.create(1).append(3)
    with pytest.raises(ForeignTableError, match=r"orders.*view"):
        log.archive()
    assert spark.table(f"{schema}.orders").columns == ["a"]
    spark.sql(f"DROP VIEW {schema}.orders")
    log.archive()
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()


def test_while_the_catalog_refuses_commits_all_is_read_and_then_archived_once(
    log: SparkLog, spark: Any, schema: str, forbid: Any, unity_server: UnityCatalogServer
) -> None:
    """As while somebody else is the owner of the table: Delta asks again, for minutes."""
    log.create(1).append(20)
    log.archive()
    log.append(10)
    orders = log.lakelog.log("orders")
    assert orders.offsets()[0].archived_end == 20
    forbid("POST")
    unity_server.front.requests.clear()
    with ThreadPoolExecutor(1) as thread:
        archived = thread.submit(log.archive)
        eventually(lambda: [m for m, *_ in list(unity_server.front.requests)].count("POST") > 2)
        read = [record.offset for record in orders.read(0, 15).records()]
        forbid()
        assert read == list(range(15, 30))
        archived.result()
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()


@pytest.mark.slow
def test_while_the_catalog_is_down_the_tail_is_consumed_and_archived_once_it_is_back(
    log: SparkLog, spark: Any, schema: str, forbid: Any, unity_server: UnityCatalogServer
) -> None:
    """It takes a minute and more: Spark and lakelog try again for so long, each in turn."""
    log.create(1, lakelog_flush_rows=1).append(20)
    log.archive()
    orders = log.lakelog.log("orders")
    consumer = log.lakelog.consumer(auto_offset_reset="earliest")
    consumer.assign([TopicPartition("orders", 0)])
    seen: list[int] = []

    def has_read(end: int) -> bool:
        polled = consumer.poll(100).values()
        seen.extend(record.offset for records in polled for record in records)
        return seen == list(range(end))

    eventually(lambda: has_read(20))
    stop, reports = threading.Event(), []
    run = log.lakelog.archive_continuously(stop=stop)
    with ThreadPoolExecutor(1) as thread:
        archived = thread.submit(lambda: reports.extend(run))
        try:
            unity_server.front.inject(
                *(Fault(method, "", status=503, times=None) for method in ("GET", "POST", "DELETE"))
            )
            log.append(10)
            eventually(lambda: [one for one in run.troubles() if one.tries > 1])
            (trouble,) = run.troubles()
            assert (trouble.topic, trouble.state) == ("orders", NOT_ARCHIVED)
            eventually(lambda: has_read(30))
            with pytest.raises(ColdTierError) as away, Lakelog.connect(log.url, schema) as other:
                list(other.log("orders").read(0).records())
            assert away.value.retriable
            assert not archived.done()
            forbid()
            eventually(lambda: sum(report.records for report in reports) == 10)
            eventually(lambda: run.troubles() == ())
        finally:
            forbid()
            stop.set()
        archived.result()
    assert [record.offset for record in orders.read(0).records()] == list(range(30))
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()


@dataclass(frozen=True)
class Streamed:
    """A stream of the log into a table of the test's, one run after the other."""

    log: SparkLog
    spark: Any
    tables_at: str
    folder: Path

    def run(self) -> None:
        frame = self.spark.readStream.format("lakelog").options(
            **self.log.options(startingOffsets="earliest", tablesAt=self.tables_at)
        )
        writer = frame.load().writeStream.format("delta").trigger(availableNow=True)
        at = str(self.folder / "checkpoint")
        writer.option("checkpointLocation", at).start(str(self.folder / "sink")).awaitTermination()

    def failure(self) -> str:
        """As `run`: what went wrong, with its causes; empty: nothing."""
        try:
            self.run()
        except StreamingQueryException as error:
            said, cause = "", error
            while cause is not None:  # who writes files says of a task that it failed, and no more
                said, cause = f"{said}\n{cause}", cause._cause
            return said
        return ""

    def rows(self) -> list[Row]:
        sink = self.folder / "sink"
        if not any(sink.glob("_delta_log/*.json")):  # nothing was committed yet
            return []
        return rows_of(self.spark.read.format("delta").load(str(sink)))


@pytest.fixture
def streamed(log: SparkLog, spark: Any, tables_at: str, tmp_path: Path) -> Streamed:
    return Streamed(log, spark, tables_at, tmp_path)


def test_a_stream_without_a_grant_says_so_and_skips_nothing(
    log: SparkLog, streamed: Streamed, forbid: Any
) -> None:
    log.create(1).append(20)
    log.archive()  # and trimmed: it is in the table alone
    log.append(10)
    forbid("GET", "POST")
    assert "ColdTierAccessError" in streamed.failure()
    assert streamed.rows() == []
    forbid()
    streamed.run()
    assert streamed.rows() == log.expected()


def test_a_stream_whose_grant_is_taken_away_reads_with_the_keys_it_has_or_not_at_all(
    log: SparkLog, streamed: Streamed, forbid: Any
) -> None:
    log.create(1).append(20)
    log.archive()
    streamed.run()
    assert streamed.rows() == log.expected()
    log.append(10)
    log.archive()
    forbid("GET", "POST")
    refused = streamed.failure()
    assert not refused or "ColdTierAccessError" in refused
    # A worker that read in the first run was handed keys then, which open the table for an hour.
    assert streamed.rows() == log.expected(0, 20 if refused else None)
    forbid()
    streamed.run()
    assert streamed.rows() == log.expected()
