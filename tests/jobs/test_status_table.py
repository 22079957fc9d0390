"""The rows of job runs at a path: once each, at the same time, and never too many."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from threading import Barrier

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.transaction import Transaction
from status_contract import (
    CONTRACT,
    NOW_MS,
    OLDER,
    Make,
    an_older_table_is_read_and_goes_on,
    at_path,
    rows_of,
)

from lakelog.base import failpoints
from lakelog.base.back_off import BackOff
from lakelog.cold import root_table
from lakelog.cold.by_path import root_table as by_path
from lakelog.cold.by_path.listing import tables
from lakelog.cold.store.storage import Storage
from lakelog.errors import (
    ColdTierAccessError,
    ColdTierError,
    CorruptRecordError,
    ForeignTableError,
)
from lakelog.jobs import status_table as module
from lakelog.jobs.status_rows import STATUS, RunKey, check_rows
from lakelog.jobs.status_table import KEPT_DAYS, StatusTable, app_id
from lakelog.operate.groups_table import GROUPS, recording_of
from tests.support.object_store import Fault, FaultyFront, s3_options

DAY_MS = 86_400_000


@pytest.fixture
def table(tmp_path: Path) -> StatusTable:
    return at_path(Storage(str(tmp_path)))


@pytest.mark.parametrize("rule", CONTRACT, ids=lambda rule: rule.__name__)
def test_a_table_at_a_path_keeps_the_contract(rule: Callable[[Make], None], tmp_path: Path) -> None:
    rule(lambda: at_path(Storage(str(tmp_path))))


@pytest.mark.parametrize("older", OLDER, ids=lambda older: older.__name__)
def test_a_table_that_an_older_lakelog_made_is_read_and_goes_on(
    older: Callable[[pa.Table], pa.Table], tmp_path: Path
) -> None:
    rows = rows_of(RunKey("archive", "old"), "orders")
    table = at_path(Storage(str(tmp_path)))
    write_deltalake(
        table.where,
        older(rows),
        commit_properties=CommitProperties(
            app_transactions=[Transaction(app_id(RunKey("archive", "old")), 1)]
        ),
    )
    an_older_table_is_read_and_goes_on(lambda: at_path(Storage(str(tmp_path))), rows)


def test_a_table_in_an_object_store_keeps_the_contract(s3_storage: Storage) -> None:
    for number, rule in enumerate(CONTRACT[:2]):
        storage = Storage(f"{s3_storage.root}/{number}", dict(s3_storage.store_options))
        rule(lambda storage=storage: at_path(storage))


def test_of_many_that_end_one_run_at_once_one_writes_and_all_give_its_rows(
    tmp_path: Path,
) -> None:
    key = RunKey("archive", "4711")
    together = Barrier(4)

    def end(number: int) -> pa.Table:
        own = at_path(Storage(str(tmp_path)))
        rows = rows_of(key, "orders", log_end=120 + number)
        together.wait()
        return own.append(rows, key)

    with ThreadPoolExecutor(4) as threads:
        given = list(threads.map(end, range(4)))
    there = at_path(Storage(str(tmp_path))).read()
    assert there.num_rows == 1
    assert all(one == there for one in given)


def test_a_store_that_refuses_the_commit_is_said_to_have_refused_it(
    s3_storage: Storage,
    s3_front: FaultyFront,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(root_table, "COMMITS", BackOff(0.01, 0.01, tries=2))
    own = at_path(Storage(s3_storage.root, s3_options(s3_front.url)))
    first, second = RunKey("archive", "1"), RunKey("archive", "2")
    own.append(rows_of(first, "orders", log_end=1), first)
    s3_front.inject(Fault("PUT", "_lakelog_status/_delta_log", 403, times=None))
    with pytest.raises(ColdTierAccessError, match="took no commit in 1 attempt"):
        own.append(rows_of(second, "orders", log_end=2), second)
    s3_front.inject()
    assert own.append(rows_of(second, "orders", log_end=2), second).num_rows == 1


def test_different_runs_at_once_all_write(tmp_path: Path) -> None:
    together = Barrier(4)

    def run(number: int) -> None:
        own = at_path(Storage(str(tmp_path)))
        key = RunKey("archive", str(number))
        together.wait()
        own.append(rows_of(key, "orders"), key)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(4)))
    there = at_path(Storage(str(tmp_path))).read()
    assert sorted(there["run_id"].to_pylist()) == ["0", "1", "2", "3"]


def test_who_dies_after_the_commit_has_written(table: StatusTable) -> None:
    key = RunKey("archive", "4711")

    def die() -> None:
        raise SystemExit

    with failpoints.armed("jobs.after_rows", die), pytest.raises(SystemExit):
        table.append(rows_of(key, "orders", log_end=120), key)
    assert table.append(rows_of(key, "orders", log_end=130), key)["log_end"].to_pylist() == [120]


def test_old_rows_go_and_young_ones_stay(table: StatusTable) -> None:
    days = [KEPT_DAYS + 2, KEPT_DAYS + 1.5, KEPT_DAYS - 1, 0]
    for number, ago in enumerate(days):
        key = RunKey("archive", str(number))
        table.append(rows_of(key, "orders", now_ms=NOW_MS - int(ago * DAY_MS)), key)
    assert table.read()["run_id"].to_pylist() == ["2", "3"]


def test_rows_are_not_rewritten_within_a_day_of_their_time(table: StatusTable) -> None:
    for number, ago in enumerate([KEPT_DAYS + 0.5, 0]):
        key = RunKey("archive", str(number))
        table.append(rows_of(key, "orders", now_ms=NOW_MS - int(ago * DAY_MS)), key)
    assert table.read().num_rows == 2


def test_files_of_many_runs_are_merged_and_no_row_is_lost(
    table: StatusTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MERGED_FILES", 8)
    for minute in range(20):
        table.append(rows_of(RunKey("archive", "1"), "orders", done=False, now_ms=NOW_MS + minute))
        assert len(DeltaTable(table.where).file_uris()) <= 8
    assert table.read().num_rows == 20


def test_what_only_keeps_it_tidy_fails_without_harm(
    table: StatusTable, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(by_path, "rows_are_due", refused)
    table.append(rows_of(RunKey("archive", "1"), "orders"), RunKey("archive", "1"))
    assert table.read().num_rows == 1
    assert "no room" in caplog.text


def test_the_log_of_the_table_is_kept_for_a_while_only(table: StatusTable) -> None:
    table.append(rows_of(RunKey("archive", "1"), "orders"))
    properties = DeltaTable(table.where).metadata().configuration
    assert properties["delta.logRetentionDuration"] == "interval 7 days"
    assert properties["delta.setTransactionRetentionDuration"] == f"interval {KEPT_DAYS} days"


def test_it_is_no_topics_table(table: StatusTable, tmp_path: Path) -> None:
    table.append(rows_of(RunKey("archive", "1"), "orders"))
    found = tables(Storage(str(tmp_path)))
    assert (found.topics, found.broken) == ((), ())


def test_a_table_of_somebody_else_is_not_written_to(table: StatusTable) -> None:
    write_deltalake(table.where, pa.table({"a": [1]}))
    with pytest.raises(ForeignTableError, match="has no column"):
        table.append(rows_of(RunKey("archive", "1"), "orders"))
    assert DeltaTable(table.where).version() == 0


def test_a_place_that_takes_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    table = at_path(Storage(str(tmp_path / "a file")))
    with pytest.raises(ColdTierError, match="a file"):
        table.append(rows_of(RunKey("archive", "1"), "orders"))


def test_rows_recorded_by_another_clock_are_told_by_that(table: StatusTable) -> None:
    key = RunKey("archive", "1")
    table.append(rows_of(key, "orders", now_ms=NOW_MS + DAY_MS), key)
    since = datetime.fromtimestamp(NOW_MS / 1000, timezone.utc) + timedelta(hours=1)
    assert table.read(since).num_rows == 1


@pytest.mark.parametrize("at_us", [2**62, -(2**62)])
def test_a_row_whose_time_is_damaged_is_named_and_stops_no_run(
    table: StatusTable, at_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = rows_of(RunKey("archive", "1"), "orders")
    at = pa.array([at_us] * rows.num_rows).cast(pa.timestamp("us", "UTC"))
    table.append(rows.set_column(rows.column_names.index("recorded_at"), "recorded_at", at))
    with pytest.raises(CorruptRecordError, match="recorded_at") as caught:
        table.read()
    assert caught.value.path == table.where
    monkeypatch.setattr(module, "MERGED_FILES", 2)  # the next one looks after the table, too
    for _ in range(2):
        table.append(rows_of(RunKey("archive", "2"), "orders"))
    assert table.rows_of(RunKey("archive", "2")).num_rows == 2


def test_files_go_whose_removal_a_checkpoint_has_forgotten(
    table: StatusTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MERGED_FILES", 4)
    for n in range(4):
        table.append(rows_of(RunKey("archive", str(n)), "orders"))  # the last one merges files
    at_once = {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    DeltaTable(table.where).alter.set_table_properties(at_once)
    DeltaTable(table.where).create_checkpoint()  # as if their time were over by now
    for n in range(4, 8):
        table.append(rows_of(RunKey("archive", str(n)), "orders"))
    files = [f for f in Path(table.where).rglob("*.parquet") if "_delta_log" not in f.parts]
    assert len(files) <= 4


def test_text_that_is_none_is_damage_in_rows_of_runs_and_of_groups() -> None:
    broken = pa.StringArray.from_buffers(
        1, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xe1")
    )
    for schema, read in ((STATUS, check_rows), (GROUPS, recording_of)):
        columns = [
            broken if field.type == pa.string() else pa.nulls(1, field.type) for field in schema
        ]
        with pytest.raises(CorruptRecordError, match="somewhere"):
            read(pa.table(columns, schema=schema), "somewhere")
