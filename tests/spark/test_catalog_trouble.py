"""A catalog that does not take a view or a name: what is archived is archived, and it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from spark_log import SparkLog, rows_of

from lakelog import Lakelog
from lakelog.archive.report import NOT_SHOWN
from lakelog.cli import main as cli
from lakelog.errors import ForeignTableError
from lakelog.jobs import JobRun
from lakelog.testing.eventually import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def taken(log: SparkLog, spark, schema) -> Iterator[str]:
    """Somebody's view of the name that one of the topic's views has."""
    log.create().append(20)
    name = f"{schema}.orders_latest"
    spark.sql(f"CREATE VIEW {name} AS SELECT 1 AS a")
    return name


def test_a_view_that_cannot_be_made_fails_no_archive(log: SparkLog, taken: str, spark, schema):
    lake = log.lakelog
    (report,) = lake.archive("orders")
    assert report.records == 20
    (trouble,) = report.troubles
    assert (trouble.topic, trouble.state, trouble.tries) == ("orders", NOT_SHOWN, 1)
    assert "ForeignTableError" in trouble.why
    assert "not shown in the catalog since" in str(report)
    assert rows_of(spark.table(f"{schema}.orders")) == log.expected()
    with pytest.raises(ForeignTableError, match="orders_latest"):
        lake.register("orders")

    log.append(5)
    (again,) = lake.archive()
    assert again.troubles[0].since_ms == trouble.since_ms
    assert again.troubles[0].tries == 2
    spark.sql(f"DROP VIEW {taken}")
    (mended,) = lake.archive()
    assert mended.troubles == ()
    assert spark.table(taken).count() == 5


def test_a_name_that_is_taken_fails_no_archive_at_a_location(redis_url, spark, schema, tmp_path):
    spark.sql(f"CREATE VIEW {schema}.orders AS SELECT 1 AS a")
    at = tmp_path / "cold"
    with Lakelog.connect(redis_url, schema, location=at, engine="inline") as lake:
        log = SparkLog(redis_url, at).create()
        log.append(20)
        (report,) = lake.archive("orders")
        assert "is the view that belongs to no topic" in report.troubles[0].why
        assert rows_of(lake.dataframe("orders")) == log.expected()
        log.lakelog.close()


def test_a_job_tells_it_in_its_rows_and_gives_the_same_result(log: SparkLog, taken: str) -> None:
    def run(run_id: str) -> tuple[object, list[dict[str, object]]]:
        job = JobRun(log.lakelog, "archive", run_id)
        return job.once(log.lakelog.archive), job.rows().to_pylist()

    result, rows = run("1")
    (told,) = [row for row in rows if row["partition"] is None]
    assert (told["topic"], told["state"], told["done"]) == ("orders", NOT_SHOWN, True)
    assert "orders_latest" in told["error"]
    assert run("1")[0] == run("2")[0] == result
    assert [one["partition"] for one in result["partitions"]] == [0]


def test_a_continuous_run_tells_it_while_it_lasts(
    log: SparkLog, taken: str, schema: str, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    stop = threading.Event()
    log.lakelog.topics.alter("orders", {"lakelog.flush.rows": 1})
    run = log.lakelog.archive_continuously(stop=stop)
    monkeypatch.setenv("LAKELOG_REDIS", log.url)

    def said() -> list[str]:
        assert cli.main(["--cold", schema, "status", "--output", "json"]) == 0
        return [row["text"] for row in json.loads(capsys.readouterr().out)["archiving"]]

    for report in run:
        assert report.records == 20
        eventually(said)
        (trouble,) = run.troubles()
        assert trouble.state == NOT_SHOWN
        assert said() == [str(trouble)]
        stop.set()
