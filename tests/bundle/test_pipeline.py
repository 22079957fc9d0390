"""The example of a declarative pipeline runs on Spark's own pipelines, and goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from bundle_files import ROOT
from deltalake import DeltaTable

from lakelog import Lakelog
from lakelog.cold.store.unity_catalog import URL_VARIABLE
from lakelog.engines.engine import InlineEngine
from lakelog.engines.spark import SparkEngine
from lakelog.hot.embedded.java import java_home
from lakelog.jobs import add_readings
from tests.support.connect_server import connect_server
from tests.support.unity_catalog import SPARKS_OWN, UnityCatalogServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pyspark = pytest.importorskip("pyspark", minversion="4.1")
pytestmark = pytest.mark.slow


@pytest.fixture
def cold(
    schema: str, catalog: str, tmp_path: Path, unity_server: UnityCatalogServer | None
) -> Iterator[str]:
    """The cold root: a folder, or a schema of a catalog that Spark's workers can ask."""
    if catalog == SPARKS_OWN:
        yield str(tmp_path / "cold")
        return
    assert unity_server is not None
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(URL_VARIABLE, unity_server.front.url)
        yield schema


@pytest.fixture
def connect_url(
    cold: str, tmp_path: Path, unity_server: UnityCatalogServer | None
) -> Iterator[str]:
    """A Spark that outlives the runs, as a catalog on Databricks does."""
    script = ROOT / "tests" / "spark" / "connect_server.py"
    conf = None if unity_server is None else unity_server.spark_conf()
    with connect_server(script, cwd=tmp_path, conf=conf) as url:  # where its tables lie
        yield url


def run(folder: Path, connect_url: str) -> None:
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        [home / "bin" / "spark-pipelines", "run", "--remote", connect_url],
        cwd=folder,
        env={
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "Run is COMPLETED" in done.stdout


def test_records_of_both_tiers_flow_into_tables_with_comments_once_each(
    redis_url: str, cold: str, catalog: str, spark: SparkSession, tmp_path: Path, connect_url: str
) -> None:
    shutil.copytree(ROOT / "conf" / "pipeline" / "definitions", tmp_path / "definitions")
    spec = {
        "name": "readings",
        "storage": (tmp_path / "storage").as_uri(),
        "libraries": [{"glob": {"include": "definitions/**"}}],
        "configuration": {
            "lakelog.redis_url": redis_url,
            "lakelog.cold": cold,
            "lakelog.topic": "readings",
            "spark.sql.sources.default": "delta",  # as on Databricks
        },
    }
    (tmp_path / "spark-pipeline.yml").write_text(json.dumps(spec), "utf-8")  # YAML, too
    engine = InlineEngine() if catalog == SPARKS_OWN else SparkEngine(spark)
    with Lakelog.connect(redis_url, cold, engine=engine) as log:
        add_readings(log, "readings", 300)
        log.archive()
        add_readings(log, "readings", 400)  # the rest is hot
        run(tmp_path, connect_url)
        tables = tmp_path / "spark-warehouse"
        first = DeltaTable(tables / "sensor_readings")
        assert sorted(first.to_pyarrow_table()["n"].to_pylist()) == list(range(400))
        add_readings(log, "readings", 500)
        log.archive()
    run(tmp_path, connect_url)

    readings = DeltaTable(tables / "sensor_readings")
    rows = readings.to_pyarrow_table()
    assert sorted(rows["n"].to_pylist()) == list(range(500))
    pairs = rows.select(["partition", "offset"]).to_pylist()
    assert len({tuple(pair.values()) for pair in pairs}) == 500
    assert readings.metadata().description == "Readings as sensors sent them, one row a record"
    comments = {one.name: one.metadata.get("comment") for one in readings.schema().fields}
    assert comments["sensor"] == "the key of the record"
    assert None not in comments.values()
    hours = DeltaTable(tables / "sensor_hours").to_pyarrow_table()
    assert pc.sum(hours["readings"]).as_py() == 500
