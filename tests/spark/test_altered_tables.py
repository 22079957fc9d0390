"""Tables that somebody altered with Delta features lakelog has none of: refused, and undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from spark_log import SparkLog, rows_of

from lakelog.base import failpoints
from lakelog.errors import CleanupFailedError, ColdTierError
from lakelog.spark import read

pytestmark = pytest.mark.slow

DELETION_VECTORS = (
    "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "DELETE FROM {table} WHERE offset = 5",
)
RENAMED_COLUMN = (
    "ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name',"
    " 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
    "ALTER TABLE {table} RENAME COLUMN value TO payload",
)
ROW_TRACKING = ("ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')",)
ADDED_COLUMN = ("ALTER TABLE {table} ADD COLUMN note string FIRST",)


class Altered:
    """A log of [0, 60) cold and [60, 90) hot, and somebody with SQL on its table."""

    def __init__(self, log: SparkLog, spark: Any) -> None:
        self.log, self.spark = log, spark
        log.append(60, batch=20)
        log.archive()
        log.append(30)
        topic = log.lakelog.topics.get("orders")
        self.table = f"delta.`{log.cold}/orders/{topic.topic_id}`"
        self.sound = self.version()

    def version(self) -> int:
        newest = self.sql("DESCRIBE HISTORY {table} LIMIT 1")[0]
        return int(newest["version"])

    def sql(self, *statements: str) -> list[Any]:
        rows: list[Any] = []
        for statement in statements:
            rows = self.spark.sql(statement.format(table=self.table)).collect()
        return rows

    def undo(self) -> None:
        """As the errors say."""
        allowed = "spark.databricks.delta.restore.protocolDowngradeAllowed"
        try:
            self.sql(
                f"SET {allowed} = true", f"RESTORE TABLE {{table}} TO VERSION AS OF {self.sound}"
            )
        finally:
            self.spark.conf.unset(allowed)

    def check_whole(self) -> None:
        """Every record is there, in whichever tier, and archiving goes on."""
        log = self.log
        assert [r.value for r in log.lakelog.log("orders").read(0).records()] == [
            row[3] for row in log.expected()
        ]
        assert log.lakelog.archive("orders")[0].records == 30
        assert rows_of(log.lakelog.dataframe("orders")) == log.expected()
        assert rows_of(read(self.spark, None, str(log.cold), "orders")) == log.expected()


@pytest.fixture
def altered(make_log, spark) -> Altered:
    return Altered(make_log(segment_ms=60_000, local_retention_ms=-1), spark)


def cleanup(log: SparkLog) -> None:
    try:
        log.lakelog.cleanup("orders")
    except CleanupFailedError as error:
        raise ColdTierError(error.message) from error


@pytest.mark.parametrize(
    ("statements", "feature"),
    [
        pytest.param(DELETION_VECTORS, "deletionVectors", marks=pytest.mark.slow),
        pytest.param(RENAMED_COLUMN, "columnMapping", marks=pytest.mark.slow),
    ],
    ids=["deletion vectors", "a renamed column"],
)
def test_what_would_give_wrong_rows_is_refused_everywhere_until_it_is_undone(
    altered: Altered, spark, statements, feature
) -> None:
    log = altered.log
    altered.sql(*statements)
    after = altered.version()
    source = spark.read.format("lakelog").options(**log.options())
    ways: dict[str, Callable[[], object]] = {
        "read": lambda: list(log.lakelog.log("orders").read(0).records()),
        "seek": lambda: log.lakelog.log("orders").seek(0, 7),
        "archive": lambda: log.lakelog.archive("orders"),
        "cleanup": lambda: cleanup(log),
        "frame": lambda: log.lakelog.dataframe("orders"),
        "cold frame": lambda: read(spark, None, str(log.cold), "orders"),
        "data source": lambda: source.load().collect(),
    }
    for name, way in ways.items():
        with pytest.raises(Exception, match=f"{feature}.*protocolDowngradeAllowed") as refused:
            way()
        assert name == "data source" or isinstance(refused.value, ColdTierError)
    assert altered.version() == after
    altered.undo()
    altered.check_whole()


@pytest.mark.slow
def test_what_delta_rs_cannot_write_can_still_be_read(altered: Altered) -> None:
    altered.sql(*ROW_TRACKING)
    after = altered.version()
    log = altered.log
    assert rows_of(log.lakelog.dataframe("orders")) == log.expected()
    with pytest.raises(ColdTierError, match=r"RowTracking.*Somebody turned them on\. Undo it: SET"):
        log.lakelog.archive("orders")
    assert altered.version() == after
    altered.undo()
    altered.check_whole()


def test_a_column_that_somebody_added_changes_nothing(altered: Altered) -> None:
    altered.sql(*ADDED_COLUMN)
    altered.check_whole()
    assert altered.sql("SELECT count(*) AS n FROM {table} WHERE note IS NULL")[0]["n"] == 90


@pytest.mark.slow
def test_a_feature_turned_on_between_plan_and_commit(altered: Altered) -> None:
    done: list[int] = []

    def alter() -> None:
        if not done:
            done.append(1)
            altered.sql(*DELETION_VECTORS)

    with (
        failpoints.armed("cold.before_commit", alter),
        pytest.raises(ColdTierError, match="somebody turned on deletionVectors"),
    ):
        altered.log.lakelog.archive("orders")
    altered.undo()
    altered.check_whole()


@pytest.mark.slow
def test_a_stream_fails_and_goes_on_after_it_was_undone(altered: Altered, spark, tmp_path) -> None:
    log = altered.log

    def drain() -> None:
        frame = spark.readStream.format("lakelog").options(**log.options()).load()
        writer = frame.writeStream.format("delta").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.start(str(tmp_path / "sink"))
        try:
            query.awaitTermination()
        finally:
            query.stop()

    log.append(0)
    drain()  # begins at the log end
    log.append(10)
    altered.sql(*DELETION_VECTORS)
    with pytest.raises(StreamingQueryException, match="deletionVectors"):
        drain()
    altered.undo()
    drain()
    sink = spark.read.format("delta").load(str(tmp_path / "sink"))
    assert rows_of(sink) == log.expected(90)
