"""The Spark that runs the jobs: the platform's where there is one, else one for this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidArgumentError, MissingExtraError, SparkUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


def open_session(
    app_name: str = "lakelog",
    *,
    cores: int | None = None,
    conf: Mapping[str, str] | None = None,
    object_stores: Iterable[str] = (),
) -> SparkSession:
    """A Spark session that reads and writes Delta.

    On Databricks, with a Spark Connect server in SPARK_REMOTE, or when this process has a session
    already: that one, untouched. Else a new local one, with settings for a small machine.

    Runs on: driver.

    Args, Raises: see `session.session`, which has this one know the data source besides.
    """
    from ..hot.embedded.java import java_home
    from .delta_jars import PIP_COMMAND

    if cores is not None and cores < 1:
        raise InvalidArgumentError(f"cores={cores}: a session runs at least one task at once")
    # Importing its submodules pulls in pandas if that is installed; with one newer than Spark
    # knows comes a warning about features that lakelog does not use.
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtraError(
            f"pyspark is not installed. Install Spark and Delta with: {PIP_COMMAND}"
        )
    from pyspark.sql import SparkSession

    found = session_there()
    if found is None and is_given():
        with _said():
            found = SparkSession.builder.getOrCreate()
    elif found is None:
        java = java_home()
        with _said():
            found = _local_session(app_name, java, cores, dict(conf or {}), set(object_stores))
    return found


def is_given() -> bool:
    """Whether the platform gives this process a session: Databricks, a Spark Connect server."""
    return "DATABRICKS_RUNTIME_VERSION" in os.environ or "SPARK_REMOTE" in os.environ


def session_there() -> SparkSession | None:
    """The session that this process has, whichever thread made it; None: it has none."""
    from ..engines.spark import spark_context

    if "pyspark.sql" not in sys.modules:  # whoever has one has imported it
        return None
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    try:
        found = SparkSession.active()
    except PySparkRuntimeError:
        return None
    context = spark_context(found)
    if context is not None:
        try:
            context.defaultParallelism  # noqa: B018, what a context that was stopped cannot tell
        except Exception:  # nor does it say so by an error of one kind
            return None
    return found


def _local_session(
    app_name: str, java: Path, cores: int | None, conf: dict[str, str], object_stores: set[str]
) -> SparkSession:
    import pyspark
    from pyspark.sql import SparkSession

    from .delta_jars import delta_jars, s3_jars

    ivy_settings = conf.get("spark.jars.ivySettings")
    jars = [str(jar) for jar in delta_jars(java, ivy_settings)]
    if "s3" in object_stores:
        jars += [str(jar) for jar in s3_jars(java, ivy_settings)]
        conf = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"} | conf
    if more := conf.pop("spark.jars", ""):
        jars.append(more)
    slots = cores or os.cpu_count() or 1
    with resources.as_file(resources.files(__package__) / "log4j2.properties") as log4j2:
        settings = local_settings(slots, jars, log4j2) | conf
        builder = SparkSession.builder.appName(app_name).config(map=settings)
        environment = {
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(Path(pyspark.__file__).parent),  # not another Spark of the machine
            # Workers are this Python, which has lakelog, whatever python3 is on PATH.
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        with _environment(environment):
            try:
                return builder.getOrCreate()
            except pyspark.errors.PySparkRuntimeError as error:
                if error.getCondition() != "JAVA_GATEWAY_EXITED":
                    raise
                raise SparkUnavailableError(
                    f"Java ended before Spark was up, with the settings {settings}. What it said "
                    "is printed above"
                ) from error


def local_settings(slots: int, jars: list[str], log4j2: Path) -> dict[str, str]:
    """Spark's defaults are for a cluster; these are for one small machine."""
    from ..cold.schema import ROW_GROUP_ROWS

    return {
        "spark.master": f"local[{slots}]",
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Nothing listens beyond this machine, and no host name needs to resolve.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={log4j2.as_uri()}"',
        # A port and a thread pool that nobody looks at; progress is drawn by lakelog.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # 200 and 50 by default: each is a task, and a task costs more than its rows here.
        "spark.sql.shuffle.partitions": str(slots),
        "spark.databricks.delta.snapshotPartitions": "2",
        # 10,000 by default: a VACUUM would start as many.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(slots),
        # 3 by default, which takes a third of a write's processor time for a few bytes less. Tables
        # at a path are written at 1 too: pyarrow's default.
        "spark.hadoop.parquet.compression.codec.zstd.level": "1",
        # Without it Spark sorts what each task writes by the folder it goes to. A task of lakelog's
        # writes to one: sorting 750 MB for nothing took a tenth of an archive's time.
        "spark.sql.maxConcurrentOutputFileWriters": "2",
        # INT96 by default, whose values Spark's writer compares byte by byte: 7 % of an archive's
        # time by name. And of INT96 a file keeps no lowest and highest.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        # Else a row group has 128 MB, and one record of it takes as long to find. Tables at a path
        # are written alike.
        "spark.hadoop.parquet.block.row.count.limit": str(ROW_GROUP_ROWS),
        # By default a page is looked at after 100 rows, and a column is read 4,096 rows at a time:
        # of records of megabytes that compress to nothing, more than Spark's memory.
        "spark.hadoop.parquet.page.size.row.check.min": "1",
        "spark.sql.parquet.columnarReaderBatchSize": "512",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.worker.reuse": "true",
        # Timestamps are moments; a local zone would only shift how they print.
        "spark.sql.session.timeZone": "UTC",
    }


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Tell the log that Spark starts, and that it is up."""
    started_s = time.monotonic()
    logger.info("Spark is starting, which takes a laptop 5 to 30 s, once a process")
    yield
    logger.info("Spark is up after %.0f s", time.monotonic() - started_s)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """These variables for what is started within; afterwards the environment is as before."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
