"""Somebody's hands in the cold tier: each case is noticed, named, and nothing is made worse."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from contract import offsets, read, rewrite
from deltalake import DeltaTable, write_deltalake
from made_up import EPOCH_MS, MadeUpRows, archive

from lakelog.cold.change import Change
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.registers import CleanedEnd, LogStart
from lakelog.cold.schema import FILE_SCHEMA, PARTITION_COLUMNS
from lakelog.cold.table import ColdSnapshot
from lakelog.errors import (
    ColdTierError,
    ContradictionError,
    CorruptRecordError,
    ForeignTableError,
    MissingFileError,
)
from lakelog.values.record import OffsetAndTimestamp
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

ORDERS_0 = TopicPartition("orders", 0)


@pytest.fixture
def table(make_table: Any) -> Any:
    return make_table()


@pytest.fixture
def archived(table: Any, topic: Any) -> Any:
    """Three files: [0, 500), [500, 1000), and, after a gap, [1000, 1600) from 1200 on."""
    empty = table.snapshot()
    first = table.apply(archive(topic, empty, 500, 1000), empty).snapshot
    return table.apply(archive(topic, first, 1600, segment=1200), first).snapshot


ARCHIVED = [*range(1000), *range(1200, 1600)]


def insert_by_hand(table: Any, snapshot: Any, partition: int) -> None:
    """Ten rows that are in the table already, as rows of that partition."""
    rows = pa.Table.from_batches(table.read(list(snapshot.files), 0, 10, columns=FILE_SCHEMA.names))
    rows = rows.add_column(0, "segment", pa.array([0] * 10, pa.int64()))
    rows = rows.add_column(0, "partition", pa.array([partition] * 10, pa.int32()))
    write_deltalake(table.path, rows, mode="append", partition_by=PARTITION_COLUMNS)


# -- the table's log ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
def test_a_restored_older_version_stops_the_work(table, make_table, topic, archived, version):
    DeltaTable(table.path).restore(version)
    for opened in (table, make_table()):
        with pytest.raises(ContradictionError, match=r"archived_end says 1600.*RESTOREd") as caught:
            opened.snapshot()
        assert caught.value.topic_partition == ORDERS_0
    with pytest.raises(ContradictionError):
        table.apply(archive(topic, archived, 1700), archived)

    DeltaTable(table.path).restore(archived.version)  # the way out that the message names
    assert offsets(table, table.snapshot()) == ARCHIVED


def test_a_restore_that_brings_back_dropped_files_changes_no_answer(table, archived):
    dropped = Change(removes=tuple(archived.files)[:1], registers={LogStart(0): 500})
    after = table.apply(dropped, archived).snapshot
    DeltaTable(table.path).restore(archived.version)
    restored = table.snapshot()
    assert restored.log_start(0) == after.log_start(0) == 500
    assert table.offset_for_timestamp(restored, 0, EPOCH_MS, 0) == OffsetAndTimestamp(
        500, EPOCH_MS + 500
    )


def without(predicate: str) -> Callable[[Any, Any], object]:
    return lambda table, _: DeltaTable(table.path).delete(predicate)


@pytest.mark.parametrize(
    ("move", "what"),
    [
        (without("offset = 700"), "lost records"),
        (without("offset = 0"), "lost records"),
        (without("offset = 1200"), "lost records"),
        (without("offset = 1599"), "the files end at 1599"),
        (without("segment = 1200"), "the files end at 1000"),
        (without("segment = 0"), r"no file covers the offsets \[0, 1000\)"),
        (partial(insert_by_hand, partition=0), "more rows than offsets"),
        (partial(insert_by_hand, partition=2), r"orders-2.*archived_end says 0"),
    ],
)
def test_deleted_and_inserted_rows_are_noticed(table, archived, move, what):
    move(table, archived)
    with pytest.raises(ContradictionError, match=what):
        table.snapshot()


def test_an_old_copy_put_back_is_noticed(table, topic, archived, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(table.path, copy)
    newest = table.apply(archive(topic, archived, 1700, segment=1200), archived).snapshot
    shutil.rmtree(table.path)
    shutil.copytree(copy, table.path)
    with pytest.raises(ContradictionError, match=f"from version {newest.version} back to"):
        table.snapshot(newest)


def test_an_older_table_than_another_process_saw_is_noticed(make_table, topic, table, archived):
    newest = table.apply(archive(topic, archived, 1700, segment=1200), archived).snapshot
    (Path(table.path) / "_delta_log" / f"{newest.version:020}.json").unlink()
    with pytest.raises(ContradictionError, match="put back an old copy"):
        make_table().snapshot(newest)


def test_a_deleted_table_is_noticed_and_not_begun_anew(table, topic, archived):
    shutil.rmtree(table.path)
    with pytest.raises(ContradictionError, match="somebody deleted it"):
        table.apply(archive(topic, archived, 1700, segment=1200), archived)
    assert not Path(table.path).exists()


def test_a_broken_log_is_named(table, make_table, archived):
    (Path(table.path) / "_delta_log" / f"{0:020}.json").write_text("{}")
    with pytest.raises(ColdTierError, match="_delta_log") as caught:
        make_table().snapshot()
    assert caught.value.path == table.path


def test_deletion_vectors_are_refused(table, archived):
    log = Path(table.path) / "_delta_log" / f"{archived.version + 1:020}.json"
    log.write_text(
        '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,'
        '"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}\n'
    )
    with pytest.raises(ColdTierError, match="deletionVectors"):
        table.snapshot()


# -- other people's tables ---------------------------------------------------------------------


def test_a_table_that_lakelog_did_not_make_is_refused(table, topic):
    write_deltalake(table.path, pa.table({"a": [1]}))
    for attempt in (
        table.snapshot,
        lambda: table.apply(archive(topic, ColdSnapshot(), 10), ColdSnapshot()),
    ):
        with pytest.raises(ForeignTableError, match="lakelog did not make"):
            attempt()
    assert DeltaTable(table.path).version() == 0


def test_the_table_of_another_topic_is_refused(table, make_table, topic, archived, root):
    other = Topic(topic.name, UUID(int=7), 3)
    moved = root / other.name / str(other.topic_id)
    shutil.copytree(table.path, moved)
    with pytest.raises(ForeignTableError, match=str(topic.topic_id)):
        make_table(topic=other).snapshot()


def test_a_folder_with_other_data_is_refused(table, topic):
    Path(table.path).mkdir(parents=True)
    (Path(table.path) / "notes.txt").write_text("mine")
    with pytest.raises(ForeignTableError, match=r"no Delta table but 'notes\.txt'"):
        table.snapshot()


# -- the files ---------------------------------------------------------------------------------


def test_a_missing_file_is_named(table, archived):
    file = archived.files.of_partition(0)[1]
    (Path(table.path) / file.path).unlink()
    assert len(read(table, archived, 0, 500)) == 500  # what is there is still read
    with pytest.raises(MissingFileError, match="deleted behind the table's back") as caught:
        read(table, archived, 0, 1600)
    assert caught.value.path == f"{table.path}/{file.path}"
    with pytest.raises(MissingFileError):
        table.offset_for_timestamp(archived, 0, EPOCH_MS + 700, 0)
    with pytest.raises(MissingFileError):
        table.apply(rewrite(archived), archived)


@pytest.mark.parametrize("place", ["head", "middle", "footer", "cut", "empty"])
def test_a_damaged_file_is_named(table, archived, place):
    file = Path(table.path) / archived.files.of_partition(0)[1].path
    content = bytearray(file.read_bytes())
    if place == "cut":
        content = content[:-20]
    elif place == "empty":
        content = bytearray()
    else:
        at = {"head": 60, "middle": len(content) // 3, "footer": len(content) - 6}[place]
        content[at] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(CorruptRecordError, match=file.name) as caught:
        read(table, archived, 0, 1600)
    assert caught.value.path == str(file)


# -- somebody's OPTIMIZE -----------------------------------------------------------------------


@pytest.mark.parametrize("columns", [["value"], ["key", "timestamp"]])
def test_rows_in_any_order_are_found_all_the_same(table, make_table, archived, columns):
    DeltaTable(table.path).optimize.z_order(columns, target_size=8_000)
    rows = [row for row in MadeUpRows().records(ORDERS_0, 0, 1600) if row.offset in set(ARCHIVED)]
    for opened in (table, make_table()):
        snapshot = opened.snapshot()
        assert read(opened, snapshot, 0, 2000) == rows
        for start, end in [(0, 1), (499, 501), (990, 1210), (1100, 1190), (1599, 1700)]:
            found = read(opened, snapshot, start, end)
            assert [row.offset for row in found] == [o for o in ARCHIVED if start <= o < end]
        for target, expected in [(0, 0), (700, 700), (1000, 1200), (1599, 1599)]:
            assert opened.offset_for_timestamp(snapshot, 0, EPOCH_MS + target, 0) == (
                expected,
                EPOCH_MS + expected,
            )
        assert opened.offset_for_timestamp(snapshot, 0, EPOCH_MS, 321) == (321, EPOCH_MS + 321)
        assert opened.max_timestamp(snapshot, 0, 0) == (1599, EPOCH_MS + 1599)
        assert snapshot.files.file_at(0, 1100).segment == 1200  # the gap is covered again


def test_shuffled_rows_of_small_windows_come_in_order(table, archived, monkeypatch):
    DeltaTable(table.path).optimize.z_order(["value"])
    monkeypatch.setattr("lakelog.cold.parquet.segment_reader.BATCH_ROWS", 7)
    assert offsets(table, table.snapshot()) == ARCHIVED


def test_lakelog_rewrites_what_somebody_shuffled(table, archived):
    DeltaTable(table.path).optimize.z_order(["value"])
    snapshot = table.snapshot()
    after = table.apply(rewrite(snapshot), snapshot)
    assert after.superseded == frozenset()
    assert offsets(table, after.snapshot) == ARCHIVED


def test_compacted_files_may_be_optimized_by_others(table, archived):
    change = rewrite(archived, without=OffsetSet.of(range(0, 1000, 3)))
    change = Change(change.adds, change.removes, {CleanedEnd(0): 1000})
    table.apply(change, archived)
    DeltaTable(table.path).optimize.z_order(["value"])
    kept = [offset for offset in ARCHIVED if offset % 3 or offset >= 1000]
    assert offsets(table, table.snapshot()) == kept


def test_foreign_files_without_statistics_are_refused(table, archived):
    DeltaTable(table.path).alter.set_table_properties({"delta.dataSkippingStatsColumns": "value"})
    DeltaTable(table.path).optimize.z_order(["value"])
    with pytest.raises(ContradictionError, match="without statistics on offset"):
        table.snapshot()
