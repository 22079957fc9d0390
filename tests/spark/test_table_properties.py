"""Table properties that somebody set with Spark, whose every commit then writes a checkpoint."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

import pytest
from spark_log import SparkLog, rows_of

from lakelog import Lakelog
from lakelog.cold.log_names import LOG, commit_name
from lakelog.errors import CleanupFailedError, ColdTierError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_S = 24 * 3600

HARMLESS = {
    "a CHECK constraint": "ADD CONSTRAINT sound CHECK (offset >= 0)",
    "change data feed": "SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
    "few statistics": "SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '0')",
    "a short log": "SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 hour',"
    " 'delta.logRetentionDuration' = 'interval 1 hour')",
    "statistics as structs": "SET TBLPROPERTIES ('delta.checkpoint.writeStatsAsJson' = 'false',"
    " 'delta.checkpoint.writeStatsAsStruct' = 'true')",
    "no statistics": "SET TBLPROPERTIES ('delta.checkpoint.writeStatsAsJson' = 'false')",
    "old transactions": "SET TBLPROPERTIES"
    " ('delta.setTransactionRetentionDuration' = 'interval 1 second')",
    "random prefixes": "SET TBLPROPERTIES ('delta.randomizeFilePrefixes' = 'true')",
    "serializable": "SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')",
}


class Altered:
    """A log, and somebody with Spark at its table; its newest records by key are in the end what
    all readers find.
    """

    def __init__(self, log: SparkLog, spark: SparkSession) -> None:
        self.log, self.spark = log, spark
        log.append(90, batch=20)
        log.archive()
        topic_id = log.lakelog.topics.get(log.name).topic_id
        self.path = log.cold / log.name / str(topic_id)

    def alter(self, what: str) -> None:
        self.spark.sql(f"ALTER TABLE delta.`{self.path}` {what}")

    def write_checkpoint(self) -> None:
        """By a commit, after which Spark deletes what is old of the log."""
        self.alter("SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")

    def grow_old(self) -> None:
        for file in (self.path / LOG).iterdir():
            os.utime(file, (time.time() - 9 * DAY_S,) * 2)

    def check_whole(self) -> None:
        log = self.log
        newest = {row[2]: row[3] for row in log.rows}
        with Lakelog.connect(log.url, log.cold, engine="inline") as anew:
            for lakelog in (log.lakelog, anew):
                records = list(lakelog.log(log.name).read(0).records())
                assert {record.key: record.value for record in records} == newest
        frame = rows_of(log.lakelog.dataframe(log.name))
        assert {row[2]: row[3] for row in frame} == newest
        assert len(frame) == len(records)


@pytest.fixture
def altered(make_log, spark: SparkSession) -> Altered:
    return Altered(make_log(**{"segment.ms": 60_000, "cleanup.policy": "compact"}), spark)


@pytest.mark.slow
@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_somebody_s_property_is_in_nobody_s_way(altered: Altered, change: str) -> None:
    altered.write_checkpoint()
    altered.alter(change)
    altered.check_whole()
    log = altered.log
    log.append(70, batch=20)
    assert log.lakelog.archive("orders")[0].records == 70
    altered.grow_old()
    altered.write_checkpoint()
    assert not (altered.path / LOG / commit_name(0)).exists()
    altered.check_whole()
    (report,) = log.lakelog.cleanup("orders")
    assert report.compacted
    altered.write_checkpoint()
    altered.spark.sql(f"OPTIMIZE delta.`{altered.path}`")
    altered.check_whole()
    log.append(10)
    log.archive()
    altered.check_whole()
    assert not log.lakelog.check("orders").findings


def test_a_table_that_takes_no_deletions_is_archived_and_says_why_it_is_not_cleaned_up(
    altered: Altered,
) -> None:
    altered.alter("SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    log = altered.log
    log.append(70, batch=20)
    log.archive()
    undo = "UNSET TBLPROPERTIES ('delta.appendOnly')"
    with pytest.raises(CleanupFailedError, match=re.escape(undo)):
        log.lakelog.cleanup("orders")
    altered.check_whole()
    altered.alter(undo)
    assert log.lakelog.cleanup("orders")[0].compacted
    altered.check_whole()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "feature"),
    [
        ("'delta.checkpointPolicy' = 'v2'", "v2Checkpoint"),
        ("'delta.enableTypeWidening' = 'true'", "typeWidening"),
        ("'delta.enableInCommitTimestamps' = 'true'", "InCommitTimestamp"),
        ("'delta.feature.allowColumnDefaults' = 'supported'", "AllowColumnDefaults"),
    ],
)
def test_what_archiving_cannot_go_on_with_is_named_with_a_way_out(
    altered: Altered, change: str, feature: str
) -> None:
    sql, log = altered.spark.sql, altered.log
    altered.write_checkpoint()
    (sound,) = sql(f"DESCRIBE HISTORY delta.`{altered.path}` LIMIT 1").collect()
    altered.alter(f"SET TBLPROPERTIES ({change})")
    log.append(70, batch=20)
    for _ in range(2):
        with pytest.raises(ColdTierError, match=f"{feature}.*protocolDowngradeAllowed.*RESTORE"):
            log.archive()
        altered.write_checkpoint()
    allowed = "spark.databricks.delta.restore.protocolDowngradeAllowed"
    sql(f"SET {allowed} = true")
    try:
        sql(f"RESTORE TABLE delta.`{altered.path}` TO VERSION AS OF {sound.version}")
    finally:
        altered.spark.conf.unset(allowed)
    altered.check_whole()
    assert log.lakelog.archive("orders")[0].records == 70
    altered.write_checkpoint()
    altered.check_whole()
