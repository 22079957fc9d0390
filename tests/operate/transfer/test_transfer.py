"""Topics leave a log as files and come into another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from transfer_bench import rows, send

from lakelog import Lakelog
from lakelog.errors import (
    ColdTierRefusedError,
    ContradictionError,
    InvalidArgumentError,
    TopicExistsError,
)
from lakelog.operate.transfer.exporting import Progress
from lakelog.values.topic_partition import TopicPartition


def committed(lake: Lakelog, topic: str = "orders") -> list[object]:
    with lake.consumer(group_id="nightly") as consumer:
        return [consumer.committed(TopicPartition(topic, n)) for n in range(3)]


def ends(lake: Lakelog, topic: str = "orders") -> dict[int, int]:
    return {number: one.log_end for number, one in lake.log(topic).offsets().items()}


@pytest.mark.parametrize("name", ["export", "export.tar"])
def test_a_topic_comes_into_another_log_as_it_was(
    lake: Lakelog, other: Lakelog, tmp_path: Path, name: str
) -> None:
    manifest = lake.export(tmp_path / name, "orders")
    before = rows(lake, "orders")
    assert [one.records for one in manifest.topics] == [960]

    (imported,) = other.import_topics(tmp_path / name)

    assert imported.records == sum(table.num_rows for table in before.values()) == 960
    assert rows(other, "orders") == before
    assert ends(other) == ends(lake)
    assert all(one.gaps == () for one in other.log("orders").offsets().values())
    assert imported.topic.topic_id != lake.topics.get("orders").topic_id
    assert imported.topic.config == lake.topics.get("orders").config
    assert committed(other) == committed(lake) != [None] * 3
    send(other, "orders", 960, 40)
    other.archive("orders")
    after = rows(other, "orders")
    assert sum(table.num_rows for table in after.values()) == 1000
    assert all(after[n].slice(0, before[n].num_rows) == before[n] for n in before)
    assert other.status().failures == ()


def test_delta_rs_and_duckdb_read_an_exported_table(lake: Lakelog, tmp_path: Path) -> None:
    lake.export(tmp_path / "export", "orders")
    (path,) = (tmp_path / "export" / "orders").iterdir()

    counted = DeltaTable(str(path)).get_add_actions(flatten=True)["num_records"].to_pylist()
    assert sum(counted) == 960
    files = f"{path}/partition=*/segment=*/*.parquet"
    query = "SELECT count(*), count(DISTINCT value) FROM read_parquet(?, hive_partitioning = true)"
    sent = sum(1 for n in range(960) if n % 7)
    assert duckdb.execute(query, [files]).fetchall() == [(960, sent)]


def test_an_exported_folder_is_a_cold_root(lake: Lakelog, tmp_path: Path) -> None:
    lake.export(tmp_path / "export", "orders")
    archived = Lakelog.connect(None, tmp_path / "export", engine="inline")
    assert rows(archived, "orders") == rows(lake, "orders")  # type: ignore[arg-type]


def test_what_is_archived_is_exported_without_redis(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    lake.archived.export(tmp_path / "export", "orders")
    (imported,) = other.import_topics(tmp_path / "export")
    assert imported.records == 900
    assert committed(other) == [None] * 3


def test_a_topic_comes_back_beside_itself_under_another_name(lake: Lakelog, tmp_path: Path) -> None:
    lake.export(tmp_path / "export", "orders")
    with pytest.raises(TopicExistsError, match="--as NAME"):
        lake.import_topics(tmp_path / "export")
    lake.import_topics(tmp_path / "export", name="copy")
    assert rows(lake, "copy") == rows(lake, "orders")
    assert committed(lake, "copy") == committed(lake)


def test_an_import_that_was_deleted_comes_again_as_a_new_topic(
    lake: Lakelog, tmp_path: Path
) -> None:
    lake.export(tmp_path / "export", "orders")
    (first,) = lake.import_topics(tmp_path / "export", name="copy")
    lake.topics.delete("copy")
    (second,) = lake.import_topics(tmp_path / "export", name="copy")
    assert first.topic.topic_id != second.topic.topic_id
    assert rows(lake, "copy") == rows(lake, "orders")


def test_an_untiered_topic_becomes_a_tiered_one(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    lake.topics.create("local", 2, {"remote.storage.enable": False, "retention.ms": -1})
    send(lake, "local", 0, 90)
    lake.export(tmp_path / "export", "local")
    with pytest.raises(InvalidArgumentError, match=r"--config remote\.storage\.enable=true"):
        other.import_topics(tmp_path / "export")
    other.import_topics(tmp_path / "export", config={"remote.storage.enable": True})
    assert rows(other, "local") == rows(lake, "local")


def test_an_export_is_brought_up_to_date_in_its_folder(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    lake.export(tmp_path / "export", "orders")
    first = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("export/**/archive-*")}
    lake.archive("orders")
    send(lake, "orders", 960, 30)

    lake.export(tmp_path / "export", "orders")

    second = {path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("export/**/archive-*")}
    kept = [name for name, time_ns in first.items() if second.get(name) == time_ns]
    assert len(kept) == 9  # three archives of three partitions; what was hot was written anew
    other.import_topics(tmp_path / "export")
    assert rows(other, "orders") == rows(lake, "orders")


@pytest.mark.parametrize("name", ["export", "export.tar"])
@pytest.mark.parametrize("change", [b"x", None], ids=["longer", "shorter"])
def test_a_file_that_is_not_what_the_table_says_is_named_and_not_exported(
    lake: Lakelog, tmp_path: Path, name: str, change: bytes | None
) -> None:
    file = sorted((tmp_path / "cold").rglob("archive-*.parquet"))[1]
    file.write_bytes(file.read_bytes() + change if change else file.read_bytes()[:-1])
    with pytest.raises(ContradictionError, match=f"{file.name} has .* the table says"):
        lake.export(tmp_path / name, "orders")
    assert not (tmp_path / name).is_file()
    assert not (tmp_path / name / "manifest.json").exists()


@pytest.mark.parametrize("name", ["export", "export.tar"])
def test_progress_tells_of_all_bytes_once(
    lake: Lakelog, other: Lakelog, tmp_path: Path, name: str
) -> None:
    told: list[Progress] = []
    manifest = lake.export(tmp_path / name, "orders", progress=told.append)
    assert told[-1].done_bytes == told[-1].total_bytes == manifest.topics[0].size_bytes
    assert [one.done_bytes for one in told] == sorted({one.done_bytes for one in told})
    told.clear()
    other.import_topics(tmp_path / name, progress=told.append)
    assert told[-1].done_bytes == sum(one.file.size_bytes for one in manifest.topics[0].files)


def test_an_unpacked_archive_is_an_export_in_a_folder(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    lake.export(tmp_path / "export.tar", "orders")
    (tmp_path / "unpacked").mkdir()
    subprocess.run(
        ["tar", "-xf", str(tmp_path / "export.tar"), "-C", str(tmp_path / "unpacked")], check=True
    )
    other.import_topics(tmp_path / "unpacked")
    assert rows(other, "orders") == rows(lake, "orders")


def test_nothing_is_written_into_a_folder_of_somebody_elses(lake: Lakelog, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("dear")
    with pytest.raises(InvalidArgumentError, match="no export and not empty"):
        lake.export(tmp_path / "mine", "orders")
    with pytest.raises(InvalidArgumentError, match="lies in the cold root"):
        lake.export(tmp_path / "cold" / "export", "orders")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    with pytest.raises(ColdTierRefusedError, match="the folder /proc/export cannot be made"):
        lake.export("/proc/export", "orders")


def test_statistics_of_value_columns_come_along(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    columns = {"lakelog.value.columns": "price DECIMAL(20,4), city STRING"}
    lake.topics.create("typed", 1, {"retention.ms": -1, **columns})
    with lake.producer() as producer:
        producer.send("typed", b'{"price": 12345678901234.5678, "city": "Oslo"}')
        producer.send("typed", b'{"price": -0.0001, "city": "Rome"}')
    lake.archive("typed")
    lake.export(tmp_path / "export", "typed")
    other.import_topics(tmp_path / "export")
    said = [
        [one.stats for one in table.described()[1]]  # type: ignore[attr-defined]
        for table in (lake.log("typed").table, other.log("typed").table)
    ]
    assert said[0] == said[1]
    assert "12345678901234.5678" in said[1][0]


def test_offsets_that_were_skipped_are_so_in_the_copy_and_nothing_was_lost(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    lake.archive("orders")
    lake.log("orders").recover(0, ends(lake)[0] + 1)
    lake.export(tmp_path / "export", "orders")
    other.import_topics(tmp_path / "export")
    assert ends(other) == ends(lake)
    (skipped,) = other.status().partitions[0].skipped
    assert not skipped.was_lost
    assert (skipped.start_offset, skipped.end_offset) == (
        other.log("orders").offsets()[0].archived_end,
        ends(lake)[0],
    )
