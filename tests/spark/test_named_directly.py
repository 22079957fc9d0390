"""Tables by name read where they lie: what Spark shows and what the log says are one."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from made_up import MadeUpRows, archive
from spark_log import SPARKS_OWN, SparkLog, rows_of

from lakelog.cold.by_name.location import TableLocation
from lakelog.cold.by_name.named_table import NamedTable
from lakelog.cold.by_name.names import TableName
from lakelog.cold.table import ColdSnapshot
from lakelog.errors import ColdTierRefusedError, ContradictionError
from lakelog.values.record import Record, to_records
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition


class Both:
    """A table of three partitions, read where it lies without a Spark, and through Spark alone."""

    def __init__(self, make_named: Any, schema: str, tables_at: str) -> None:
        self.topic = Topic("orders", uuid4(), 3)
        self.name = TableName(*schema.split("."), "orders")
        self._make_named = make_named
        self._tables_at = tables_at
        self.writer: NamedTable = make_named(self.topic)

    def archive(self, end: int, partition: int = 0) -> None:
        snapshot = self.writer.snapshot()
        change = archive(self.topic, snapshot, end, partition=partition)
        self.writer.apply(change, snapshot)

    def direct(self) -> NamedTable:
        location = TableLocation(self.name, None, self._tables_at)
        return NamedTable(self.topic, None, str(self.name), MadeUpRows(), location=location)

    def by_spark(self) -> NamedTable:
        return self._make_named(self.topic, directly=False)

    def sql(self, statement: str) -> None:
        self.writer.spark.sql(statement.format(table=self.name)).collect()

    def check(self, direct: NamedTable | None = None) -> ColdSnapshot:
        """Whether both see the same, and say the same of all that is asked."""
        direct, by_spark = direct or self.direct(), self.by_spark()
        found, seen = direct.unchecked(), by_spark.unchecked()
        assert found.version == seen.version
        assert found.registers == seen.registers
        columns = [n for n in found.files.columns.column_names if n != "modified_ms"]
        assert found.files.columns.select(columns) == seen.files.columns.select(columns)
        assert records(direct, found) == records(by_spark, seen)
        for partition in found.files.partitions:
            for time_ms in (0, 1_700_000_000_050, 1_700_000_000_150, 1_800_000_000_000):
                asked = (partition, time_ms, 3)
                assert direct.offset_for_timestamp(found, *asked) == (
                    by_spark.offset_for_timestamp(seen, *asked)
                )
            newest = direct.max_timestamp(found, partition, 0)
            assert newest == by_spark.max_timestamp(seen, partition, 0)
        return found


def records(table: NamedTable, snapshot: ColdSnapshot) -> list[Record]:
    return [
        record
        for partition in snapshot.files.partitions
        for batch in table.read(snapshot.files.of_partition(partition), 0, 2**53)
        for record in to_records(TopicPartition("orders", partition), batch)
    ]


@pytest.fixture
def both(make_named: Any, schema: str, tables_at: str) -> Both:
    return Both(make_named, schema, tables_at)


@pytest.mark.slow
def test_what_was_archived_is_seen_without_a_spark(both: Both) -> None:
    assert both.check().version == -1
    direct = both.direct()
    for end in (70, 140, 210):
        both.archive(end)
        both.archive(end // 2, 1)
        both.check(direct)
    snapshot = both.check()
    assert len(records(direct, snapshot)) == 210 + 105
    assert direct.mirrored() == both.by_spark().mirrored()


@pytest.mark.slow
def test_what_somebody_deleted_is_gone(both: Both, catalog: str) -> None:
    """With deletion vectors, which the server demands; and without."""
    for end in (100, 200):
        both.archive(end)
    direct = both.direct()
    before = direct.unchecked()
    if catalog == SPARKS_OWN:
        both.sql("ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    both.sql("DELETE FROM {table} WHERE offset IN (5, 7, 130)")
    found = both.check(direct)
    assert [r.offset for r in records(direct, found)] == [
        n for n in range(200) if n not in (5, 7, 130)
    ]
    with pytest.raises(ContradictionError):
        direct.snapshot()
    both.sql("DELETE FROM {table} WHERE offset < 60")
    both.check(direct)
    both.sql(f"RESTORE TABLE {{table}} TO VERSION AS OF {before.version}")
    assert len(records(direct, direct.unchecked())) == 200
    assert len(records(both.direct(), both.check())) == 200  # as a task that made no look


@pytest.mark.slow
def test_a_log_with_checkpoints_is_opened_anew(both: Both) -> None:
    both.archive(10)
    both.sql("ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    direct = both.direct()
    for end in (20, 30, 40, 50, 60):
        both.archive(end)
        both.check(direct)
    both.check()


@pytest.mark.slow
def test_a_table_that_took_anothers_place_is_noticed(both: Both, catalog: str) -> None:
    both.archive(50)
    direct = both.direct()
    direct.snapshot()
    both.sql("DROP TABLE {table}")
    with pytest.raises((ContradictionError, ColdTierRefusedError)):
        direct.snapshot()
    other = Both(both._make_named, f"{both.name.catalog}.{both.name.schema}", both._tables_at)
    other.archive(50)
    with pytest.raises((ContradictionError, ColdTierRefusedError)):
        direct.snapshot()


@pytest.mark.slow
def test_a_batch_of_the_data_source_reads_both_tiers(
    log: SparkLog, tables_at: str, spark: Any
) -> None:
    log.create(1)
    log.append(40)
    log.archive()
    log.append(5)
    frame = spark.read.format("lakelog").options(**log.options(tablesAt=tables_at)).load()
    assert rows_of(frame) == log.expected()


WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
from lakelog import Lakelog
with Lakelog.connect(None, sys.argv[1]) as lake:
    log = lake.log("orders")
    print(log.offsets()[0].archived_end, log.seek(0, 7), log.seek(0, "2023-11-14T22:13:29Z"))
    print([record.value.decode() for record in log.read(0, 18, 20).records()])
"""


def test_a_process_that_has_no_spark_reads_what_is_archived(
    log: SparkLog, schema: str, tables_at: str, catalog: str
) -> None:
    if catalog == SPARKS_OWN:
        pytest.skip("Spark's own catalog answers Spark alone")
    log.create(1)
    log.append(20)
    log.archive()
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, schema],
        env={**os.environ, "UNITY_CATALOG_URL": tables_at},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["20 7 9", "['0/18', '0/19']"]
