"""A Spark session that knows `format("lakelog")`."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .open_session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)


def session(
    app_name: str = "lakelog",
    *,
    cores: int | None = None,
    conf: Mapping[str, str] | None = None,
    object_stores: Iterable[str] = (),
) -> SparkSession:
    """A Spark session that reads and writes Delta.

    On Databricks, with a Spark Connect server in SPARK_REMOTE, or when this process has a session
    already: that one, untouched but for `register`. Else a new local one, with settings for a
    small machine. A session that refuses the data source is given all the same, with a warning.

    Runs on: driver.

    Args:
        app_name: the name of a new session.
        cores: how many tasks a new session runs at once; default all of the machine.
        conf: settings of a new session, over the defaults. ``spark.jars.ivySettings`` is also
            where the Delta jars are fetched from, and ``spark.jars`` come in addition to them.
        object_stores: ``["s3"]`` if a new session's own readers (frames over a log, not archiving
            and cleanup) shall open tables there. For others, name their jars in `conf`.

    Raises:
        MissingExtraError: pyspark, delta-spark or a Java is not installed.
        SparkUnavailableError: the Delta jars cannot be fetched, or Java refuses to start.
    """
    found = open_session(app_name, cores=cores, conf=conf, object_stores=object_stores)
    try:
        register(found)
    except Exception as error:  # py4j's and Connect's have no common base
        # Archiving, cleanup and tables by name do without it.
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        logger.warning(
            'this Spark does not take the data source, so format("lakelog") is not known to it; '
            "all else works. lakelog.spark.register(spark) says why: %s",
            why,
        )
    return found


def register(spark: SparkSession) -> None:
    """Make ``format("lakelog")`` known to a session; `session` does so by itself.

    Whether all hosts of a cluster have lakelog, `reach` tells.

    Runs on: driver.
    """
    if spark in _REGISTERED:  # Spark would say each time that it replaces one
        return
    from .datasource import LakelogDataSource

    try:
        spark.dataSource.register(LakelogDataSource)
    except Exception as error:  # py4j's and Connect's have no common base
        # A clone of a session that knows it, such as foreachBatch gets, keeps what it was given.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
    _REGISTERED.add(spark)


_REGISTERED: weakref.WeakSet[SparkSession] = weakref.WeakSet()
