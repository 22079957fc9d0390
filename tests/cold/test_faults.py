"""Others commit, replies are lost: each record is in the table once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contract import offsets, read, rewrite, settings
from deltalake import DeltaTable
from made_up import MadeUpRows, archive
from msgspec.structs import replace

from lakelog.base import failpoints
from lakelog.cold.answers import Orphans
from lakelog.cold.by_path import path_table
from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.change import Change
from lakelog.cold.properties import mirrored_topic
from lakelog.cold.registers import LogStart
from lakelog.errors import (
    ColdTierError,
    CommitConflictError,
    CommitUnknownError,
    ContradictionError,
    MissingFileError,
)
from lakelog.values.topic_partition import TopicPartition


@pytest.fixture
def table(make_table: Any) -> Any:
    return make_table()


@pytest.fixture
def archived(table: Any, topic: Any) -> Any:
    """A snapshot with two files of 500 records."""
    empty = table.snapshot()
    return table.apply(archive(topic, empty, 500, 1000), empty).snapshot


def parquet_files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*.parquet") if "_delta_log" not in path.parts)


# -- what others left ----------------------------------------------------------------------------


def test_a_failed_write_leaves_no_file(make_table, topic, root):
    table = make_table(MadeUpRows(lost=frozenset({99})))
    with pytest.raises(ContradictionError):
        table.apply(archive(topic, table.snapshot(), 100), table.snapshot())
    assert parquet_files(root) == []


# -- races -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stranger", ["compact", "z_order", "properties", "empty"])
def test_a_strangers_commit_in_between_costs_nothing(table, topic, archived, stranger):
    def interfere() -> None:
        delta = DeltaTable(table.path)
        if stranger == "compact":
            delta.optimize.compact()
        elif stranger == "z_order":
            delta.optimize.z_order(["value"])
        elif stranger == "properties":
            delta.alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})
        else:
            delta.delete("offset < 0")

    interfered = []

    def once() -> None:
        if not interfered:
            interfered.append(interfere())

    with failpoints.armed("cold.before_commit", once):
        applied = table.apply(archive(topic, archived, 1200), archived)

    assert interfered
    assert applied.superseded == frozenset()
    assert len(applied.files) == 1
    rows = MadeUpRows().records(TopicPartition("orders", 0), 0, 1200)
    assert read(table, applied.snapshot, 0, 1200) == rows
    assert table.orphans() == Orphans()


def test_files_removed_in_between_are_noticed(table, make_table, archived):
    """Delta-rs lets two removals of one file through when they change no data."""
    with failpoints.armed("cold.before_commit", _once(lambda: _rewrite_elsewhere(make_table))):
        applied = table.apply(rewrite(archived), archived)
    assert applied.superseded == {0}
    assert offsets(table, applied.snapshot) == list(range(1000))


def _rewrite_elsewhere(make_table: Any) -> None:
    other = make_table()
    snapshot = other.snapshot()
    other.apply(rewrite(snapshot), snapshot)


def _once(action: Callable[[], object]) -> Callable[[], None]:
    done: list[object] = []

    def act() -> None:
        if not done:
            done.append(None)
            action()

    return act


def test_a_register_that_moved_in_between_supersedes(table, make_table, topic, archived):
    other = make_table()
    raised = Change(registers={LogStart(0): 700})
    with failpoints.armed(
        "cold.before_commit", _once(lambda: other.apply(raised, other.snapshot()))
    ):
        applied = table.apply(Change(registers={LogStart(0): 600}), archived)
    assert applied.superseded == {0}
    assert applied.snapshot.log_start(0) == 700


def test_others_that_keep_committing_end_in_a_retriable_error(table, topic, archived, monkeypatch):
    races = replace(path_table.BACK_OFF.races, tries=5)
    monkeypatch.setattr(path_table, "BACK_OFF", replace(path_table.BACK_OFF, races=races))

    def interfere() -> None:
        DeltaTable(table.path).alter.set_table_description("mine")

    with (
        failpoints.armed("cold.before_commit", interfere),
        pytest.raises(CommitConflictError) as caught,
    ):
        table.apply(archive(topic, archived, 1100), archived)
    assert caught.value.retriable
    assert table.snapshot().archived_end(0) == 1000


@pytest.mark.parametrize("kind", ["archive", "rewrite"])
def test_a_file_deleted_before_its_commit_is_never_committed(table, topic, archived, root, kind):
    """As somebody's full VACUUM does."""
    before = set(parquet_files(root))
    change = archive(topic, archived, 1100) if kind == "archive" else rewrite(archived)

    def delete() -> None:
        for path in set(parquet_files(root)) - before:
            path.unlink()

    with (
        failpoints.armed("cold.after_files", delete),
        pytest.raises(MissingFileError, match=r"Nothing was committed.*run again"),
    ):
        table.apply(change, archived)
    assert table.snapshot() is archived
    assert table.apply(change, archived).superseded == frozenset()


def test_a_restore_does_not_revive_a_rewrite_whose_file_was_removed(table, make_table, archived):
    """What was superseded looks as planned again; only its file is gone."""

    def meanwhile() -> None:
        _rewrite_elsewhere(make_table)
        other = make_table()
        assert len(other.remove_orphans().old) == 1
        DeltaTable(table.path).restore(archived.version)

    with (
        failpoints.armed("cold.before_commit", _once(meanwhile)),
        pytest.raises(MissingFileError),
    ):
        table.apply(rewrite(archived), archived)
    assert offsets(table, table.snapshot()) == list(range(1000))


# -- settings ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("other_version", "winner"), [(9, 9), (4, 5)])
def test_settings_of_two_at_once_end_with_the_newer(
    table, make_table, topic, archived, monkeypatch, other_version, winner
):
    alter = DeltaLog.alter
    other = make_table()

    def late(self: DeltaLog, *args: Any) -> None:
        monkeypatch.setattr(DeltaLog, "alter", alter)
        other.mirror(settings(topic, other_version, retention_ms=other_version))
        alter(self, *args)

    monkeypatch.setattr(DeltaLog, "alter", late)
    table.mirror(settings(topic, 5, retention_ms=5))

    mirrored = mirrored_topic(DeltaTable(table.path).metadata().configuration)
    assert mirrored == settings(topic, winner, retention_ms=winner)


def test_a_lost_reply_to_changed_settings_is_settled_too(table, topic, archived, monkeypatch):
    alter = DeltaLog.alter

    def lossy(self: DeltaLog, *args: Any) -> None:
        alter(self, *args)
        raise OSError("connection reset by peer")

    monkeypatch.setattr(DeltaLog, "alter", lossy)
    table.mirror(settings(topic, 5, retention_ms=5))
    assert table.snapshot().version == archived.version + 1


def test_settings_that_the_store_does_not_take_say_so(table, topic, archived, monkeypatch):
    def refuse(self: DeltaLog, *args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "alter", refuse)
        with pytest.raises(ColdTierError, match=r"takes no commit.*No space left"):
            table.mirror(settings(topic, 5, file_delete_delay_ms=5))
    table.mirror(settings(topic, 5, file_delete_delay_ms=5))
    assert table.vacuum().retention_ms == 5


# -- replies -----------------------------------------------------------------------------------


def _lose_replies(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object] = bool) -> None:
    """The next commit lands, and then the answer is an error; others are left alone."""
    commit = DeltaLog.commit
    lost: list[int] = []

    def lossy(self: DeltaLog, *args: Any, **kwargs: Any) -> None:
        commit(self, *args, **kwargs)
        if not lost:
            lost.append(1)
            then()
            raise OSError("connection reset by peer")

    monkeypatch.setattr(DeltaLog, "commit", lossy)


def test_a_lost_reply_is_found_below_the_commits_of_others(
    table, make_table, topic, archived, monkeypatch
):
    """Also when they have taken away the files that it added."""
    _lose_replies(monkeypatch, then=lambda: DeltaTable(table.path).optimize.compact())
    applied = table.apply(archive(topic, archived, 1100), archived)
    assert applied.superseded == frozenset()
    assert applied.snapshot.version == archived.version + 2
    assert offsets(table, applied.snapshot) == list(range(1100))


@pytest.mark.parametrize("kind", ["archive", "rewrite", "log start"])
def test_a_lost_reply_is_settled_when_its_log_file_was_cleaned_up(
    table, make_table, topic, archived, monkeypatch, kind
):
    """A store that takes minutes to fail, others that commit a lot, a log that is kept briefly."""
    change = {
        "archive": archive(topic, archived, 1100),
        "rewrite": rewrite(archived),
        "log start": Change(registers={LogStart(0): 300}),
    }[kind]

    def clean_up() -> None:
        DeltaTable(table.path).alter.set_table_properties(
            {"delta.checkpointInterval": "5", "delta.logRetentionDuration": "interval 0 seconds"}
        )
        other = make_table()
        for end in range(1, 13):
            snapshot = other.snapshot()
            other.apply(archive(topic, snapshot, end, partition=1), snapshot)

    _lose_replies(monkeypatch, then=clean_up)
    applied = table.apply(change, archived)

    assert table._log.commit_at(archived.version + 1) is None
    # Without files nothing proves whose log start it is; planning again finds nothing to do.
    assert applied.superseded == ({0} if kind == "log start" else frozenset())
    assert applied.snapshot.log_start(0) == (300 if kind == "log start" else 0)
    assert len(offsets(table, applied.snapshot)) == (1100 if kind == "archive" else 1000)
    assert table.orphans() == Orphans()


def test_when_reading_back_fails_too_the_commit_is_unknown(
    table, make_table, topic, archived, monkeypatch
):
    refresh = DeltaLog.refresh

    def away(self: DeltaLog) -> None:
        raise ColdTierError("the store does not answer")

    _lose_replies(monkeypatch, then=lambda: monkeypatch.setattr(DeltaLog, "refresh", away))
    change = archive(topic, archived, 1100)
    with pytest.raises(CommitUnknownError) as caught:
        table.apply(change, archived)
    assert caught.value.retriable

    monkeypatch.setattr(DeltaLog, "refresh", refresh)
    again = table.apply(change, archived)  # once more is safe
    assert again.superseded == {0}
    assert offsets(table, again.snapshot) == list(range(1100))


def test_a_store_that_takes_no_commit_says_so(table, topic, archived, monkeypatch):
    def refuse(self: DeltaLog, *args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(DeltaLog, "commit", refuse)
    with pytest.raises(ColdTierError, match=r"takes no commit.*No space left.*has room"):
        table.apply(archive(topic, archived, 1100), archived)
    assert table.snapshot() is archived


def test_a_commit_that_drops_the_registers_is_noticed(table, topic, archived, monkeypatch):
    """As deltalake up to 1.5.1 does."""
    commit = DeltaLog.commit

    def dropping(self: DeltaLog, commit_id: str, adds: Any, removes: Any, *_: Any, **more: Any):
        commit(self, commit_id, adds, removes, {}, **more)

    monkeypatch.setattr(DeltaLog, "commit", dropping)
    with pytest.raises(ContradictionError, match="should carry the registers"):
        table.apply(archive(topic, archived, 1100), archived)
