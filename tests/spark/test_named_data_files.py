"""The data files of a table by name, and their row groups, where it is read where it lies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from spark_log import EPOCH_MS, SPARKS_OWN, SparkLog

from lakelog.cli import main as cli
from lakelog.explore import record_times
from lakelog.explore.picture import Picture, pictures
from lakelog.read.tiers import SegmentedLook, join

pytestmark = pytest.mark.slow


@pytest.fixture
def log(redis_url: str, schema: str) -> Iterator[SparkLog]:
    named = SparkLog(redis_url, schema).create(2, internal_segment_bytes=4_000)
    for _ in range(2):
        named.append(100, batch=20)
        named.archive()
    named.append(5, 1)
    named.archive()
    yield named
    named.lakelog.close()


JSON = ("--output", "json")


def files_said(out: str) -> list[dict[str, Any]]:
    said = [json.loads(line) for line in out.splitlines()]
    return [one for one in said if one["kind"] == "file"]


def dump(log: SparkLog, schema: str, capsys: Any, *more: str, code: int = 0) -> tuple[str, str]:
    where = ["--redis", log.url, "--cold", schema]
    told = ["segments", "dump", "orders", "-p", "0", "--tier", "cold", *more]
    assert cli.main([*where, *told]) == code
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return said.out, said.err


def test_a_dump_shows_files_row_groups_and_records(log: SparkLog, schema: str, capsys) -> None:
    out, _ = dump(log, schema, capsys, "--output", "json", "--records")
    said = [json.loads(line) for line in out.splitlines()]
    of = {kind: [one for one in said if one["kind"] == kind] for kind in ("file", "row group")}
    files = of["file"]
    assert len(files) > 2
    assert sum(one["records"] for one in files) == 200
    assert [one["first_offset"] for one in files] == sorted(one["first_offset"] for one in files)
    assert all(one["flaw"] is None and one["path"].endswith(".parquet") for one in files)
    assert sum(one["row_groups"] for one in files) == len(of["row group"])
    assert min(one["min_timestamp_ms"] for one in files) == EPOCH_MS
    records = [one["offset"] for one in said if one["kind"] == "record"]
    assert records == list(range(200))
    text, _ = dump(log, schema, capsys)
    assert files[0]["path"] in text


def test_rows_that_a_deletion_vector_hides_are_neither_shown_nor_counted(
    log: SparkLog, schema: str, catalog: str, spark: Any, capsys, monkeypatch
) -> None:
    """A DELETE of somebody else leaves the files as they are, with a vector beside each."""
    table = log.lakelog.log("orders").table
    assert table is not None
    before = [one["path"] for one in files_said(dump(log, schema, capsys, *JSON)[0])]
    gone = {0, 7, 130, *range(20, 40)}
    if catalog == SPARKS_OWN:
        spark.sql(
            f"ALTER TABLE {table.where} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
    spark.sql(
        f"DELETE FROM {table.where} WHERE offset IN ({', '.join(map(str, gone))}) AND partition = 0"
    )
    left = [offset for offset in range(200) if offset not in gone]

    out, _ = dump(log, schema, capsys, *JSON, "--records")
    said = [json.loads(line) for line in out.splitlines()]
    files = files_said(out)
    assert {one["path"] for one in files} <= {*before}  # none was rewritten
    assert all(one["flaw"] is None for one in files)
    assert sum(one["records"] for one in files) == len(left)
    assert files[0]["first_offset"] == 1
    stored = [one for one in said if one["kind"] == "row group"]
    assert sum(one["records"] for one in stored) == len(left)
    assert sum(one["rows"] for one in stored) > len(left)  # as they are stored
    assert [one["offset"] for one in said if one["kind"] == "record"] == left

    # Nor does the explorer's picture of time, by indexes, by footers and by records.
    unified = log.lakelog.log("orders")
    assert unified.table is not None
    where = unified.topic.partition(0)
    hot, cold = log.lakelog.hot.segments([where])[where], unified.table.unchecked()
    # Unchecked: what was lost is an error.
    look = SegmentedLook({0: join(hot, cold, 0)}, cold, {0: hot})
    made: list[Picture] = []
    window = (EPOCH_MS, EPOCH_MS + 201_000)
    for budget in (record_times.Budget(0, 0, 0, 1), record_times.PICTURE):
        monkeypatch.setattr(record_times, "PICTURE", budget)
        monkeypatch.setattr(record_times, "ROW_GROUP_ROWS", 1)  # so that a row group tells more
        made.append(pictures(unified, look, window, on_coarse=made.append))
    drawn = [one.found for one in made if one.found is not None]
    assert len(drawn) == len(made) == 4
    assert [one.records for one in drawn] == [pytest.approx(len(left))] * len(drawn)
    expected, _ = np.histogram([EPOCH_MS + 1000 * n for n in left], drawn[-1].edges_ms)
    assert drawn[-1].totals.tolist() == expected.tolist()
    assert drawn[-1].exact.all()


@pytest.mark.usefixtures("through_spark")
def test_through_spark_no_files_are_seen_and_that_is_said(
    log: SparkLog, schema: str, capsys
) -> None:
    _, said = dump(log, schema, capsys, code=1)
    assert "the files of" in said
    assert "are not to be seen, as it is read through Spark" in said
    assert "DESCRIBE DETAIL" in said


def test_row_groups_say_between_which_times_their_records_are(log: SparkLog) -> None:
    table = log.lakelog.log("orders").table
    assert table is not None
    files = table.snapshot().files.files_between(0, 0, 200)
    groups = table.row_groups(files, 0, 200)
    assert sum(group.records for group in groups) == 200
    assert min(group.min_timestamp_ms for group in groups) == EPOCH_MS
    assert max(group.max_timestamp_ms for group in groups) == EPOCH_MS + 1000 * 199


@pytest.mark.parametrize("way", ["through_spark", "where_it_lies"])
def test_what_is_dumped_can_be_verified(
    way: str, log: SparkLog, schema: str, spark: Any, capsys, request: pytest.FixtureRequest
) -> None:
    if way == "through_spark":
        request.getfixturevalue("through_spark")
    out, _ = dump(log, schema, capsys, "--verify")
    assert "everything holds what it says" in out
    spark.sql(f"DELETE FROM {schema}.orders WHERE partition = 0 AND offset IN (30, 150)")
    out, _ = dump(log, schema, capsys, "--verify", "--from", "100", *JSON, code=1)
    said = [json.loads(line) for line in out.splitlines()]
    found = [one for one in said if one["kind"] == "finding"]
    assert [(one["fault"], one["offsets"]) for one in found] == [("hole", [[150, 151]])]
