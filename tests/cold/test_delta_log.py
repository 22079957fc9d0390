"""Checkpoints and the cleaning up of log files: opening stays cheap, and nothing is forgotten."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest
from contract import offsets, rewrite
from deltalake import DeltaTable
from made_up import archive

from lakelog.base import failpoints
from lakelog.cold.answers import Orphans
from lakelog.cold.change import Change
from lakelog.cold.log_names import LAST_CHECKPOINT
from lakelog.cold.properties import CHECKPOINT_INTERVAL
from lakelog.cold.registers import LogStart
from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierError

DAY_S = 24 * 60 * 60


@pytest.fixture
def table(make_table: Any) -> Any:
    return make_table()


def log_files(table: Any, suffix: str) -> list[int]:
    """The versions of the log's files of a kind."""
    names = [path.name for path in (Path(table.path) / "_delta_log").glob(f"*{suffix}")]
    return sorted(int(name.partition(".")[0]) for name in names)


def commit(table: Any, topic: Any, times: int) -> Any:
    """Archives ten records a commit."""
    snapshot = table.snapshot()
    for _ in range(times):
        change = archive(topic, snapshot, snapshot.archived_end(0) + 10)
        snapshot = table.apply(change, snapshot).snapshot
    return snapshot


def grow_old(table: Any, days: int) -> None:
    """As if everything in the log had been written so long ago."""
    then_s = time.time() - days * DAY_S
    for path in (Path(table.path) / "_delta_log").iterdir():
        os.utime(path, (then_s, then_s))


def test_there_is_a_checkpoint_every_so_many_commits(table, topic):
    snapshot = commit(table, topic, 2 * CHECKPOINT_INTERVAL + 7)
    checkpoints = log_files(table, ".checkpoint.parquet")
    assert len(checkpoints) == 2
    assert snapshot.version - checkpoints[-1] < CHECKPOINT_INTERVAL


@pytest.mark.parametrize("deaths", [1, 3])
def test_who_dies_before_the_checkpoint_leaves_it_to_the_next(table, make_table, topic, deaths):
    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    snapshot = commit(table, topic, CHECKPOINT_INTERVAL - 2)
    for _ in range(deaths):  # each after its commit, before what follows it
        dying = make_table()
        with failpoints.armed("cold.after_commit", die), pytest.raises(Killed):
            commit(dying, topic, 1)
    assert log_files(table, ".checkpoint.parquet") == []

    snapshot = commit(make_table(), topic, 1)

    assert log_files(table, ".checkpoint.parquet") == [snapshot.version]


def test_a_checkpoint_that_fails_fails_no_commit(table, topic, monkeypatch, caplog):
    def refuse(self: DeltaTable) -> None:
        raise OSError(28, "No space left on device")

    commit(table, topic, CHECKPOINT_INTERVAL - 2)
    with (
        monkeypatch.context() as patched,
        caplog.at_level(logging.WARNING, "lakelog.cold.by_path.delta_log"),
    ):
        patched.setattr(DeltaTable, "create_checkpoint", refuse)
        snapshot = commit(table, topic, 1)
    assert "No space left" in caplog.text
    assert log_files(table, ".checkpoint.parquet") == []
    snapshot = commit(table, topic, 1)
    assert log_files(table, ".checkpoint.parquet") == [snapshot.version]


@pytest.mark.slow
def test_registers_and_files_survive_checkpoints_and_the_cleaning_up_of_the_log(
    table, make_table, topic
):
    commit(table, topic, 30)
    early = table.snapshot()
    table.apply(Change(removes=tuple(early.files)[:5], registers={LogStart(0): 50}), early)
    reader = make_table()
    seen = reader.snapshot()
    for _ in range(3):
        commit(table, topic, CHECKPOINT_INTERVAL)
        grow_old(table, days=8)
    newest = commit(table, topic, CHECKPOINT_INTERVAL)

    assert len(log_files(table, ".json")) <= 2 * CHECKPOINT_INTERVAL
    assert len(log_files(table, ".checkpoint.parquet")) <= 2
    assert table._log.commit_at(seen.version) is None  # the reader's own version is gone
    for opened in (make_table(), reader):
        snapshot = opened.snapshot()
        assert snapshot.version == newest.version
        assert snapshot.registers == newest.registers
        assert list(snapshot.files) == list(newest.files)
        assert offsets(opened, snapshot) == list(range(50, newest.archived_end(0)))
    assert offsets(reader, seen) == list(range(50, seen.archived_end(0)))  # it goes on reading


@pytest.mark.parametrize("commits", [3, CHECKPOINT_INTERVAL + 7, 2 * CHECKPOINT_INTERVAL])
def test_who_is_behind_sees_what_a_first_look_sees(table, make_table, topic, commits):
    behind = make_table()
    behind.snapshot()
    commit(table, topic, commits)
    early = table.snapshot()
    newest = table.apply(Change(registers={LogStart(0): 10}), early).snapshot
    for opened in (make_table(), behind):
        assert opened.snapshot().registers == newest.registers
        assert list(opened.snapshot().files) == list(newest.files)


def test_a_checkpoint_is_on_the_disk_before_the_log_files_it_stands_for_go(
    table, make_table, topic, monkeypatch
):
    steps: list[str] = []
    sync, cleanup = Storage.sync, DeltaTable.cleanup_metadata

    def noting(self: Storage, *paths: str) -> None:
        sync(self, *paths)
        steps.extend(Path(path).name for path in paths)

    def cleaning(self: DeltaTable) -> None:
        cleanup(self)
        steps.append("clean up")

    monkeypatch.setattr(Storage, "sync", noting)
    monkeypatch.setattr(DeltaTable, "cleanup_metadata", cleaning)
    commit(table, topic, CHECKPOINT_INTERVAL + 20)
    (version,) = log_files(table, ".checkpoint.parquet")
    checkpoint = f"{version:020}.checkpoint.parquet"
    assert steps.index(checkpoint) < steps.index("clean up")

    steps.clear()  # another process that would trim by what it sees
    newest = make_table().snapshot().version
    later = {f"{number:020}.json" for number in range(version + 1, newest + 1)}
    assert set(steps) == {*later, checkpoint, LAST_CHECKPOINT, "_delta_log", table.path[-36:]}


@pytest.mark.slow
def test_log_files_stay_for_a_week(table, topic):
    commit(table, topic, CHECKPOINT_INTERVAL)
    grow_old(table, days=6)
    snapshot = commit(table, topic, CHECKPOINT_INTERVAL)
    assert log_files(table, ".json") == list(range(snapshot.version + 1))


def test_the_tables_own_properties_say_when(table, topic):
    commit(table, topic, 1)
    DeltaTable(table.path).alter.set_table_properties(
        {"delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 0 seconds"}
    )
    commit(table, topic, 40)
    assert len(log_files(table, ".json")) <= 7


def test_what_was_removed_stays_known_as_removed_through_checkpoints(table, make_table, topic):
    """Else it would look like left over, and a reader of a moment ago would lose it."""
    before = commit(table, topic, 3)
    table.apply(rewrite(before), before)
    after = commit(table, topic, CHECKPOINT_INTERVAL)
    grow_old(table, days=8)
    commit(table, topic, CHECKPOINT_INTERVAL)

    opened = make_table()
    assert opened.orphans() == Orphans()
    assert offsets(opened, before) == list(range(30))
    assert table.vacuum().files == 0
    assert offsets(opened, after) == list(range(after.archived_end(0)))


def test_looking_again_lists_nothing(table, make_table, topic, monkeypatch):
    """Local folders are listed as a whole, and a log has thousands of files."""
    snapshot = commit(table, topic, 3)

    for news in (0, 1):
        commit(make_table(), topic, news)
        with monkeypatch.context() as patched:
            patched.setattr(Storage, "file_names", None)
            assert table.snapshot().version == snapshot.version + news


def test_a_log_that_cannot_be_read_is_an_error_and_not_an_end(table, topic, monkeypatch):
    snapshot = commit(table, topic, 3)
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "missing", _away)
        with pytest.raises(ColdTierError, match="does not answer"):
            table.snapshot()
    assert table.snapshot() is snapshot


def _away(*_: object) -> bytes:
    raise ColdTierError("the store does not answer")


def test_what_was_removed_is_known_though_another_cleaned_up_the_log_behind_it(
    table, make_table, topic
):
    snapshot = commit(table, topic, 3)
    files = tuple(snapshot.files)
    table.apply(Change(removes=files, registers={LogStart(0): 30}), snapshot)
    removed = {one.file.path for one in table.leftovers().files}
    assert removed == {file.path for file in files}
    other = make_table()
    other.snapshot()
    assert other._log.forget_history()  # as where there are value columns
    assert {one.file.path for one in table.leftovers().files} == removed
