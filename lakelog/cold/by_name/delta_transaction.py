"""Commits files that lie ready, by the transaction that Spark's own Delta writer uses.

No SQL and no DataFrame leads to it: they take rows. So this calls Delta in the driver's JVM, where
there is one with the open-source Delta. There is none over Spark Connect, and Databricks has other
classes and keeps callers out; then the caller has Spark write the rows.

What the transaction does is Delta's: it commits through the catalog where commits are the
catalog's, refuses a txn version that another commit took, gives row ids and in-commit timestamps,
writes checkpoints. What Spark's writer sees to besides is left to the caller: names in files (see
`file_layout`) and statistics. A table that asks a writer for more than that is not for files.

Runs on: driver.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

from ...engines.spark import spark_context
from ...errors import ColdTierRefusedError, LakelogError
from ..schema import TOPIC_ID_PROPERTY
from ..store.storage import Storage
from ..store_errors import one_line
from .file_layout import FileLayout
from .location import plain_url
from .names import unquoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ...values.topic import Topic

logger = logging.getLogger(__name__)

_DELTA = "org.apache.spark.sql.delta"

#: Writer features that ask nothing of those who write the files of an append, or nothing that is
#: not seen to here. Whether a table has constraints or generated columns, its metadata tells.
_FEATURES = frozenset(
    {
        "appendOnly",
        "catalogManaged",
        "catalogOwned",
        "catalogOwned-preview",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "coordinatedCommits-preview",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "identityColumns",
        "inCommitTimestamp",
        "inCommitTimestamp-preview",
        "invariants",
        "rowTracking",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)

#: The newest writer version that names no features, and the one that does.
_LEGACY, _WITH_FEATURES = 6, 7


class DeltaTransaction(Struct, frozen=True):
    """One commit that has begun. It lands if nobody has committed or commits its txn version.

    Args:
        layout: of the files that it takes.
        is_taken: the txn version is, by another commit.
    """

    layout: FileLayout
    is_taken: bool
    _spark: SparkSession
    _transaction: Any
    _app_id: str
    _txn_version: int

    @classmethod
    def begin(
        cls,
        spark: SparkSession,
        name: str,
        topic: Topic,
        values: pa.Schema,
        app_id: str,
        txn_version: int,
        known: int,
        storage: Callable[[], Storage | None],
    ) -> DeltaTransaction | None:
        """Begin on the newest version; None where files cannot be handed to this table.

        Args:
            name: as SQL takes it.
            values: the value columns to write.
            storage: the table's place as it is read, asked for if that is an object store, whose
                keys are Spark's own; None: nobody else reads it.
            known: a version of the table up to which the txn version is known to be free.
        """
        if "DATABRICKS_RUNTIME_VERSION" in os.environ or spark_context(spark) is None:
            return None
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        try:
            with _active(spark):
                table = _table(spark, unquoted(name))
                if table.getClass().getName() != f"{_DELTA}.catalog.DeltaTableV2":
                    return None
                newest = _class(spark, "scala.Option").empty()
                transaction = table.startTransaction(newest)
                layout = _layout(transaction, topic, values, storage)
                if layout is None:
                    return None
                if transaction.snapshot().version() == known:
                    is_taken = False
                    transaction.readTxn().addOne(app_id)  # so that a commit of it conflicts
                else:  # does the same, and asks: Spark goes through the table's log for it
                    is_taken = transaction.txnVersion(app_id) >= txn_version
        except (Py4JError, PySparkException, LakelogError) as error:
            # Spark's writer does without, or says the same.
            logger.debug("files cannot be handed to %s: %s", name, one_line(error))
            return None
        return cls(layout, is_taken, spark, transaction, app_id, txn_version)

    def _check_seen(self, adds: Sequence[Mapping[str, Any]]) -> None:
        """Whether Delta finds the files where tasks put them.

        Tasks and Spark are told by different settings how to open an object store. If those led to
        two places, the commit would name files that no reader finds. One file tells.

        Raises:
            ColdTierRefusedError: it does not.
        """
        if self.layout.storage.is_local:
            return
        log = self._transaction.deltaLog()
        path = _class(self._spark, "org.apache.hadoop.fs.Path")
        for add in adds[:1]:
            there = path(log.dataPath(), add["path"])
            files = there.getFileSystem(log.newDeltaHadoopConf())
            size = files.getFileStatus(there).getLen() if files.exists(there) else None
            if size != add["size"]:
                raise ColdTierRefusedError(
                    f"{there.toString()} was written with {add['size']} bytes and Spark finds "
                    f"{'no such file' if size is None else f'{size} there'}: the environment of "
                    "the tasks and Spark's settings lead to different stores",
                    path=there.toString(),
                )

    def commit(
        self, adds: Iterable[Mapping[str, Any]], note: str, metrics: Mapping[str, int]
    ) -> int:
        """Commit; the new version. Errors of Delta's are raised as they are.

        Args:
            note: the commit's ``userMetadata``.
            metrics: of the operation, for the table's history.
        """
        spark, transaction = self._spark, self._transaction
        adds = list(adds)
        self._check_seen(adds)
        txn = {
            "appId": self._app_id,
            "version": self._txn_version,
            "lastUpdated": time.time_ns() // 1_000_000,
        }
        action = _class(spark, f"{_DELTA}.actions.Action")
        actions = _class(spark, "java.util.ArrayList")()
        for content in [*({"add": add} for add in adds), {"txn": txn}]:
            actions.add(action.fromJson(json.dumps(content)))
        converters = _class(spark, "scala.jdk.javaapi.CollectionConverters")
        operation = _append(spark, note)
        with _active(spark):
            _tell(spark, transaction, metrics)
            return int(transaction.commit(converters.asScala(actions).toSeq(), operation))


def _class(spark: SparkSession, name: str) -> Any:
    """A class of the driver's JVM.

    By its whole name: to be asked for by packages costs PySpark a second for each class.
    """
    from py4j.java_gateway import JavaClass

    return JavaClass(name, spark._jvm._gateway_client)


def _array(spark: SparkSession, of: str, *values: Any) -> Any:
    kind = _class(spark, "java.lang.Class").forName(of)
    array = _class(spark, "java.lang.reflect.Array").newInstance(kind, len(values))
    for number, value in enumerate(values):
        array[number] = value
    return array


def _table(spark: SparkSession, parts: list[str]) -> Any:
    """What the catalog has under the name."""
    catalog, schema, table = parts
    identifiers = _class(spark, "org.apache.spark.sql.connector.catalog.Identifier")
    identifier = identifiers.of(_array(spark, "java.lang.String", schema), table)
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    return catalogs.catalog(catalog).loadTable(identifier)


def _layout(
    transaction: Any,
    topic: Topic,
    values: pa.Schema,
    storage: Callable[[], Storage | None],
) -> FileLayout | None:
    """The layout of files for the table as it is; None if it asks for more than files."""
    protocol = json.loads(transaction.protocol().json())["protocol"]
    metadata = json.loads(transaction.metadata().json())["metaData"]
    properties = metadata["configuration"]
    version = protocol["minWriterVersion"]
    if version > _WITH_FEATURES or not _FEATURES.issuperset(protocol.get("writerFeatures", ())):
        return None
    if any(name.startswith("delta.constraints.") for name in properties):
        return None
    if properties.get(TOPIC_ID_PROPERTY) != str(topic.topic_id):
        return None  # somebody put another table in its place
    to = _to_write(transaction.deltaLog().dataPath().toUri().toString(), storage)
    if to is None:
        return None
    return FileLayout.of(to, metadata, values, topic.config)


def _to_write(folder: str, storage: Callable[[], Storage | None]) -> Storage | None:
    """A table's folder, opened to be written by tasks; None if Spark alone can.

    Raises:
        ColdTierError, MissingExtraError: nobody gives keys for it.
    """
    if folder.startswith("file:"):
        return Storage(folder)
    read_at = storage()
    if read_at is None or read_at.root != plain_url(folder):
        return None
    to = read_at.to_write()
    to.to_hand_on()  # so that tasks have keys that last
    return to


def _append(spark: SparkSession, note: str) -> Any:
    """The operation that Spark's writer names for an append.

    Versions of Delta differ in how many options follow the ``userMetadata``.
    """
    loader = _class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    constructor = loader.loadClass(f"{_DELTA}.DeltaOperations$Write").getConstructors()[0]
    options = _class(spark, "scala.Option")
    values = [options.empty() for _ in range(constructor.getParameterCount())]
    values[0] = _class(spark, "org.apache.spark.sql.SaveMode").Append
    values[3] = options.apply(note)
    return constructor.newInstance(_array(spark, "java.lang.Object", *values))


def _tell(spark: SparkSession, transaction: Any, metrics: Mapping[str, int]) -> None:
    """Have the history show the metrics."""
    context = spark._jsparkSession.sparkContext()
    creates = _class(spark, "org.apache.spark.sql.execution.metric.SQLMetrics")
    told = _class(spark, "scala.collection.immutable.HashMap")()
    for name, value in metrics.items():
        metric = creates.createMetric(context, name)
        metric.set(value)
        told = told.updated(name, metric)
    transaction.registerSQLMetrics(spark._jsparkSession, told)


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Delta's classes take the settings of this thread's active session."""
    sessions = _class(spark, "org.apache.spark.sql.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
