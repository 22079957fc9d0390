"""Spark's OPTIMIZE, VACUUM and readStream beside us, on the same tables: no answer changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from contract import offsets, read, rewrite, settings
from made_up import EPOCH_MS, MadeUpRows, archive

from lakelog.base import failpoints
from lakelog.cold.answers import Orphans
from lakelog.cold.change import Change, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.properties import CONFIG_PROPERTY, FILE_RETENTION_PROPERTY
from lakelog.cold.registers import CleanedEnd, LogStart
from lakelog.errors import MissingFileError
from lakelog.values.config import INT64_MAX
from lakelog.values.record import OffsetAndTimestamp
from lakelog.values.topic_partition import TopicPartition

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS_0 = TopicPartition("orders", 0)


class Neighbour:
    """Somebody who runs SQL on the table."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark = spark
        self.path = path

    def optimize(self) -> None:
        self.spark.sql(f"OPTIMIZE delta.`{self.path}`").collect()

    def vacuum(self) -> None:
        """Everything that the newest version does not name, whatever its age."""
        check = "spark.databricks.delta.retentionDurationCheck.enabled"
        self.spark.conf.set(check, "false")
        try:
            self.spark.sql(f"VACUUM delta.`{self.path}` RETAIN 0 HOURS").collect()
        finally:
            self.spark.conf.unset(check)

    def properties(self) -> dict[str, str]:
        rows = self.spark.sql(f"SHOW TBLPROPERTIES delta.`{self.path}`").collect()
        return {row["key"]: row["value"] for row in rows}

    def offsets(self) -> list[int]:
        rows = self.spark.read.format("delta").load(self.path).select("offset").collect()
        return sorted(row["offset"] for row in rows)


@pytest.fixture
def table(make_table: Any) -> Any:
    return make_table()


@pytest.fixture
def archived(table: Any, topic: Any) -> Any:
    """[0, 500), [500, 1000), and, after a gap, [1200, 1600) in two files."""
    empty = table.snapshot()
    first = table.apply(archive(topic, empty, 500, 1000), empty).snapshot
    return table.apply(archive(topic, first, 1400, 1600, segment=1200), first).snapshot


@pytest.fixture
def neighbour(spark: SparkSession, table: Any, archived: Any) -> Iterator[Neighbour]:
    listing_tasks = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
    spark.conf.set(listing_tasks, "2")  # VACUUM would start 10,000 of them
    yield Neighbour(spark, table.path)
    spark.conf.unset(listing_tasks)


def check(table: Any, expected: list[int]) -> None:
    """Every kind of read, at the edges and in between."""
    snapshot = table.snapshot()
    rows = MadeUpRows()
    assert read(table, snapshot, 0, 2000) == [rows.record(ORDERS_0, offset) for offset in expected]
    for start in (0, 499, 500, 1100, 1399, expected[-1], expected[-1] + 1):
        above = [offset for offset in expected if offset >= start]
        assert [r.offset for r in read(table, snapshot, start, start + 7)] == [
            offset for offset in above if offset < start + 7
        ]
        first = next((OffsetAndTimestamp(offset, EPOCH_MS + offset) for offset in above), None)
        assert table.offset_for_timestamp(snapshot, 0, EPOCH_MS + start, 0) == first
        assert (snapshot.files.file_at(0, start) is None) == (first is None)
    assert table.max_timestamp(snapshot, 0, 0) == OffsetAndTimestamp(
        expected[-1], EPOCH_MS + expected[-1]
    )
    assert table.orphans() == Orphans()


def once(action: Callable[[], object]) -> Callable[[], None]:
    done: list[object] = []

    def act() -> None:
        if not done:
            done.append(None)
            action()

    return act


@pytest.mark.slow
def test_optimize_and_vacuum_between_all_changes_alter_no_answer(
    table, make_table, topic, archived, neighbour
):
    expected = [*range(1000), *range(1200, 1600)]

    def interfere() -> Any:
        neighbour.optimize()
        neighbour.vacuum()
        for opened in (table, make_table()):
            check(opened, expected)
        assert neighbour.offsets() == expected
        return table.snapshot()

    before = interfere()
    assert len(before.files) == 2  # a segment each

    applied = table.apply(archive(topic, before, 1700, segment=1200), before)
    expected += range(1600, 1700)
    before = interfere()

    files = tuple(before.files.of_partition(0))
    change = Change((Rewrite(ORDERS_0, 0, files[:1]),), files[:1], data_change=False)
    table.apply(change, before)
    before = interfere()

    superseded = [offset for offset in expected[:-1] if offset % 3 == 0]
    files = tuple(before.files.of_partition(0))
    change = Change(
        tuple(Rewrite(ORDERS_0, f.segment, (f,), OffsetSet.of(superseded)) for f in files),
        files,
        {CleanedEnd(0): files[-1].end_offset},
    )
    applied = table.apply(change, before)
    assert applied.superseded == frozenset()
    expected = [offset for offset in expected if offset not in set(superseded)]
    before = interfere()

    gone = [file for file in before.files.of_partition(0) if file.segment == 0]
    table.apply(Change(removes=tuple(gone), registers={LogStart(0): 1000}), before)
    expected = [offset for offset in expected if offset >= 1000]
    interfere()

    assert table.snapshot().log_start(0) == 1000
    assert table.vacuum().files == 0  # the neighbour was faster


@pytest.mark.parametrize("kind", ["archive", "rewrite", "retention"])
def test_an_optimize_between_plan_and_commit(table, topic, archived, neighbour, kind):
    """An archive run goes through; what names files that are gone is planned again."""
    first = tuple(file for file in archived.files if file.segment == 0)

    def planned(snapshot: Any) -> Change:
        files = tuple(file for file in snapshot.files if file.segment == 0)
        if kind == "archive":
            return archive(topic, snapshot, 1700, segment=1200)
        if kind == "rewrite":
            return Change((Rewrite(ORDERS_0, 0, files),), files, data_change=False)
        return Change(removes=files, registers={LogStart(0): 1000})

    with failpoints.armed("cold.before_commit", once(neighbour.optimize)):
        applied = table.apply(planned(archived), archived)

    assert applied.snapshot.files.missing(file.path for file in first)
    if kind == "archive":
        assert applied.superseded == frozenset()
        check(table, [*range(1000), *range(1200, 1700)])
        return
    assert applied.superseded == {0}
    assert table.remove_orphans() == Orphans()
    check(table, [*range(1000), *range(1200, 1600)])

    again = table.apply(planned(applied.snapshot), applied.snapshot)
    assert again.superseded == frozenset()
    check(table, [*(range(1000) if kind == "rewrite" else ()), *range(1200, 1600)])


@pytest.mark.parametrize("kind", ["archive", pytest.param("rewrite", marks=pytest.mark.slow)])
def test_a_vacuum_that_takes_a_file_in_flight(table, topic, archived, neighbour, kind):
    change = (
        archive(topic, archived, 1700, segment=1200) if kind == "archive" else rewrite(archived)
    )
    with (
        failpoints.armed("cold.after_files", neighbour.vacuum),
        pytest.raises(MissingFileError, match=r"full VACUUM.*run again"),
    ):
        table.apply(change, archived)
    check(table, [*range(1000), *range(1200, 1600)])

    again = table.apply(change, table.snapshot())
    assert again.superseded == frozenset()
    expected = [*range(1000), *range(1200, 1700 if kind == "archive" else 1600)]
    assert offsets(table, again.snapshot) == expected


@pytest.mark.slow
def test_spark_understands_the_properties(table, topic, neighbour):
    for delay_ms in (0, 86_400_000, INT64_MAX):
        changed = settings(topic, table.snapshot().version + 2, file_delete_delay_ms=delay_ms)
        table.mirror(changed)
        properties = neighbour.properties()
        assert properties[CONFIG_PROPERTY] == changed.config.to_json()
        assert properties[FILE_RETENTION_PROPERTY].endswith(" milliseconds")
        check = f"VACUUM delta.`{table.path}` DRY RUN"  # by the table's own retention
        neighbour.spark.sql(check).collect()
        detail = neighbour.spark.sql(f"DESCRIBE DETAIL delta.`{table.path}`").collect()[0]
        assert detail["properties"][CONFIG_PROPERTY] == changed.config.to_json()
        neighbour.optimize()
        assert offsets(table, table.snapshot()) == neighbour.offsets()


@pytest.mark.slow
def test_spark_vacuums_by_the_topics_delay(table, topic, archived, neighbour):
    table.apply(rewrite(archived), archived)
    vacuum = f"VACUUM delta.`{table.path}`"
    neighbour.spark.sql(vacuum).collect()
    assert offsets(table, archived) == [*range(1000), *range(1200, 1600)]
    table.mirror(settings(topic, 2, file_delete_delay_ms=0))
    neighbour.spark.sql(vacuum).collect()
    with pytest.raises(MissingFileError):
        offsets(table, archived)
    assert table.vacuum().files == 0


def test_registers_survive_a_checkpoint_that_spark_writes(table, make_table, topic, neighbour):
    table.apply(Change(registers={LogStart(0): 321}), table.snapshot())
    neighbour.spark.sql(
        f"ALTER TABLE delta.`{table.path}` SET TBLPROPERTIES ('delta.checkpointInterval' = '1')"
    )
    neighbour.optimize()
    log = Path(table.path) / "_delta_log"
    assert list(log.glob("*.checkpoint.parquet"))
    for old in sorted(log.glob("*.json"))[:-1]:
        old.unlink()
    snapshot = make_table().snapshot()
    assert (snapshot.log_start(0), snapshot.archived_end(0)) == (321, 1600)


# -- streams over the cold table ---------------------------------------------------------------


class Stream:
    """A plain readStream over the table, with a checkpoint of its own."""

    def __init__(self, spark: SparkSession, path: str, where: Path, **options: str) -> None:
        self.source = spark.readStream.format("delta").options(**options).load(path)
        self.checkpoint = str(where)

    def drain(self) -> list[int]:
        """Run until nothing is left to read; the offsets that came, sorted."""
        batches: list[list[int]] = []

        def keep(frame: Any, _: int) -> None:
            batches.append([row["offset"] for row in frame.select("offset").collect()])

        query = (
            self.source.writeStream.foreachBatch(keep)
            .option("checkpointLocation", self.checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return sorted(offset for batch in batches for offset in batch)


@pytest.fixture
def stream(spark: SparkSession, table: Any, tmp_path: Path) -> Callable[..., Stream]:
    numbers = count()
    return lambda **options: Stream(spark, table.path, tmp_path / str(next(numbers)), **options)


@contextmanager
def refused(what: str) -> Iterator[None]:
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException, match=what):
        yield


def retention(snapshot: Any) -> Change:
    gone = tuple(file for file in snapshot.files if file.segment == 0)
    return Change(removes=gone, registers={LogStart(0): 1000})


def compaction(snapshot: Any) -> Change:
    files = tuple(file for file in snapshot.files if file.segment == 0)
    without = OffsetSet.of(range(0, 900, 2))
    return Change((Rewrite(ORDERS_0, 0, files, without),), files, {CleanedEnd(0): 1000})


def optimization(snapshot: Any) -> Change:
    files = tuple(file for file in snapshot.files if file.segment == 0)
    return Change((Rewrite(ORDERS_0, 0, files),), files, data_change=False)


@pytest.mark.parametrize(
    ("change", "options", "error"),
    [
        (optimization, {}, None),
        pytest.param(retention, {}, "DELTA_SOURCE_IGNORE_DELETE", marks=pytest.mark.slow),
        pytest.param(retention, {"ignoreDeletes": "true"}, None, marks=pytest.mark.slow),
        pytest.param(retention, {"skipChangeCommits": "true"}, None, marks=pytest.mark.slow),
        pytest.param(compaction, {}, "DELTA_SOURCE_TABLE_IGNORE_CHANGES", marks=pytest.mark.slow),
        pytest.param(
            compaction,
            {"ignoreDeletes": "true"},
            "DELTA_SOURCE_TABLE_IGNORE_CHANGES",
            marks=pytest.mark.slow,
        ),
        (compaction, {"skipChangeCommits": "true"}, None),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_what_a_stream_needs_to_survive(
    table, topic, archived, neighbour, stream, change, options, error
):
    """It sees each archived record once, whatever else happens to the table."""
    over = stream(**options)
    assert over.drain() == [*range(1000), *range(1200, 1600)]

    applied = table.apply(change(archived), archived)
    assert applied.superseded == frozenset()
    table.mirror(settings(topic, 2, retention_ms=5))
    neighbour.optimize()
    after = table.snapshot()
    table.apply(archive(topic, after, 1700, segment=1200), after)

    if error is None:
        assert over.drain() == list(range(1600, 1700))
    else:
        with refused(error):
            over.drain()


def test_a_stream_that_starts_later_sees_what_is_left(table, topic, archived, stream, neighbour):
    after = table.apply(retention(archived), archived).snapshot
    table.apply(archive(topic, after, 1700, segment=1200), after)
    assert stream().drain() == list(range(1200, 1700))
