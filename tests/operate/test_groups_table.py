"""The recordings of groups at a path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from groups_contract import CONTRACT, KEYSPACE, Make, at_path, offset, recording

from lakelog.base.failpoints import armed
from lakelog.cold.store.storage import Storage
from lakelog.errors import CorruptRecordError, ForeignTableError, NewerVersionError
from lakelog.groups.recorded_offset import RecordedOffset
from lakelog.operate.groups_table import VACUUM_COMMITS, GroupsTable


@pytest.fixture
def table(tmp_path: Path) -> GroupsTable:
    return at_path(Storage(str(tmp_path)))


@pytest.mark.parametrize("rule", CONTRACT, ids=lambda rule: rule.__name__)
def test_in_a_folder(rule: Callable[[Make], None], tmp_path: Path) -> None:
    rule(lambda: at_path(Storage(str(tmp_path))))


@pytest.mark.parametrize("rule", CONTRACT, ids=lambda rule: rule.__name__)
def test_in_an_object_store(rule: Callable[[Make], None], s3_storage: Storage) -> None:
    rule(lambda: at_path(s3_storage))


class _CutShort(Exception):
    pass


def _cut_short() -> None:
    raise _CutShort


@pytest.mark.parametrize(
    ("step", "left"), [("groups.before_commit", 1), ("groups.after_commit", 2)]
)
def test_a_write_that_is_cut_short_is_all_there_or_not_at_all(
    table: GroupsTable, step: str, left: int
) -> None:
    assert table.write(recording(1, offset("nightly", 1)))
    with armed(step, _cut_short), pytest.raises(_CutShort):
        table.write(recording(2, offset("nightly", 2)))
    found = table.read(KEYSPACE)
    assert found == recording(left, offset("nightly", left))
    assert table.write(recording(3, offset("nightly", 3)))


def test_it_stays_small(table: GroupsTable) -> None:
    """A thousand groups of ten partitions, and no file that nobody reads."""
    offsets = [
        RecordedOffset(
            f"group-{n}",
            one.group_type,
            one.protocol_type,
            one.topic_partition,
            UUID(int=n),
            one.committed._replace(offset=n * 7919 % 1_000_003, metadata=""),
            one.committed_ms,
        )
        for n in range(1_000)
        for one in (offset("", 0, partition) for partition in range(10))
    ]
    assert table.write(recording(1, *offsets))
    (path,) = [f for f in Path(table.where).rglob("*.parquet") if "_delta_log" not in f.parts]
    assert path.stat().st_size < 200_000


def test_files_that_no_reader_needs_go(table: GroupsTable) -> None:
    table.write(recording(1, offset("nightly", 1)))
    DeltaTable(table.where).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    )
    for sequence in range(2, 2 * VACUUM_COMMITS):
        table.write(recording(sequence, offset("nightly", sequence)))
    files = [f for f in Path(table.where).rglob("*.parquet") if "_delta_log" not in f.parts]
    assert len(files) <= VACUUM_COMMITS + 1
    assert table.read(KEYSPACE) is not None


def test_a_table_that_is_none_of_groups_is_refused(table: GroupsTable) -> None:
    write_deltalake(table.where, pa.table({"a": [1]}))
    for ask in (lambda: table.read(KEYSPACE), lambda: table.write(recording(1))):
        with pytest.raises(ForeignTableError, match="Move it away"):
            ask()


def test_a_folder_of_somebody_else_is_left_alone(table: GroupsTable) -> None:
    theirs = Path(table.where, str(KEYSPACE), "records.parquet")
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    with pytest.raises(ForeignTableError, match="Move it away"):
        table.write(recording(1, offset("nightly", 1)))
    assert theirs.read_bytes() == b"theirs"


def test_a_table_of_a_newer_lakelog_is_refused(table: GroupsTable) -> None:
    table.write(recording(1, offset("nightly", 1)))
    DeltaTable(table.where).alter.set_table_properties(
        {"lakelog.format": "99"}, raise_if_not_exists=False
    )
    for ask in (lambda: table.read(KEYSPACE), lambda: table.write(recording(2))):
        with pytest.raises(NewerVersionError):
            ask()


def test_rows_that_somebody_else_wrote_are_refused(table: GroupsTable) -> None:
    table.write(recording(1, offset("nightly", 1)))
    rows = DeltaTable(table.where).to_pyarrow_table()
    rows = rows.set_column(rows.schema.get_field_index("sequence"), "sequence", pa.array([9]))
    write_deltalake(table.where, rows, mode="append")
    with pytest.raises(CorruptRecordError, match="one recording"):
        table.read(KEYSPACE)
