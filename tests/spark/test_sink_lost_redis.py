"""Rows of the sink that are archived are appended once, also when Redis is lost altogether."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from sink_attempts import (
    COUNT,
    TASK,
    LostAttempts,
    StoppingAppend,
    expected,
    flat,
    is_in_order,
    rows,
)

from lakelog.base.back_off import ASK_AGAIN
from lakelog.cold.by_path.producer_snapshots import FOLDER
from lakelog.errors import ProducerFencedError, RepeatDiffersError, UnknownProducerError
from lakelog.hot import Acks, AppendCall
from lakelog.spark.sink import append_rows
from lakelog.spark.sink_append import TaskIdentity
from lakelog.spark.sink_rows import TaskRows


@pytest.fixture
def lost(redis_url: str, tmp_path: Path) -> LostAttempts:
    return LostAttempts(redis_url, tmp_path / "cold")


@pytest.mark.parametrize(("archived", "more"), [(2, 0), (4, 0), (4, 3), (9, 0), (1, 9)])
def test_what_was_archived_of_a_task_is_not_appended_again(
    lost: LostAttempts, archived: int, more: int
) -> None:
    table = rows()
    lost.begin(table, archived)
    lost.archive()
    held = lost.values()
    if more:
        lost.begin(table, archived + more)
    lost.lose()
    assert lost.values() == held
    assert lost.append(table, arriving=50) == COUNT
    assert [now[: len(of_one)] for now, of_one in zip(lost.values(), held, strict=True)] == held
    lost.compare(table)
    assert lost.append(table) == COUNT
    lost.archive()
    lost.compare(table)


def test_a_task_that_was_archived_as_a_whole_appends_nothing(lost: LostAttempts) -> None:
    table = rows(60)
    lost.append(table)
    lost.archive()
    ends = [o.log_end for o in lost.lakelog.log("orders").offsets().values()]
    lost.lose()
    after_loss = [o.log_end for o in lost.lakelog.log("orders").offsets().values()]
    assert all(after > end for after, end in zip(after_loss, ends, strict=True))
    assert lost.append(table) == 60
    assert [o.log_end for o in lost.lakelog.log("orders").offsets().values()] == after_loss
    lost.compare(table)


def test_a_call_that_is_archived_answers_with_its_first_offset(lost: LostAttempts) -> None:
    sent: list[AppendCall] = []

    class Watched(StoppingAppend):
        def send(self, calls: Any) -> None:
            sent.extend(calls)
            super().send(calls)

    append = Watched(
        lost.lakelog.hot,
        TASK,
        Acks(),
        recover=lambda *_: None,
        repair=lost.lakelog.topics.repair,
        back_off=ASK_AGAIN.within(0.2),
    )
    append_rows(append, TaskRows(lambda _: lost.topic, lost.topic, 0), rows(60).to_batches())
    newest = {call.topic_partition: call for call in sent}
    first = {tp: lost.lakelog.hot.append(tp, c.topic_id, c.batch) for tp, c in newest.items()}
    lost.archive()
    lost.lose()
    for tp, call in newest.items():
        again = lost.lakelog.hot.append(tp, call.topic_id, call.batch)
        assert (again.duplicate, again.base_offset) == (True, first[tp].base_offset)


def test_a_second_loss_takes_no_more_than_the_first(lost: LostAttempts) -> None:
    """What came back is archived again with what followed, and with what did not follow."""
    table, other = rows(), rows(40, seed=2)
    lost.begin(table, 4)
    lost.archive()
    lost.lose()
    lost.append(other, TaskIdentity("other", 0))
    lost.archive()
    lost.lose()
    lost.lose()
    assert lost.append(other, TaskIdentity("other", 0)) == 40
    assert lost.append(table) == COUNT
    assert flat(lost.values()) == sorted(expected(table) + expected(other))


def test_epochs_hold(lost: LostAttempts) -> None:
    table = rows(40)
    for epoch in (6, 7):
        lost.append(table, TaskIdentity("query", 3, epoch))
    lost.archive()
    lost.lose()
    with pytest.raises(ProducerFencedError, match=r"micro-batch 6 of query query .* micro-batch 7"):
        lost.append(table, TaskIdentity("query", 3, 6))
    lost.append(table, TaskIdentity("query", 3, 7))
    lost.compare(table, times=2)
    lost.append(table, TaskIdentity("query", 3, 8))
    lost.compare(table, times=3)


def test_other_rows_are_refused_as_before(lost: LostAttempts) -> None:
    table = rows()
    lost.begin(table, 6)
    lost.archive()
    held = lost.values()
    lost.lose()
    with pytest.raises(RepeatDiffersError, match="sortWithinPartitions"):
        lost.append(rows(seed=2))
    assert lost.values() == held
    lost.append(table)
    lost.compare(table)


def test_a_task_under_way_when_redis_is_lost_is_completed_by_the_next_attempt(
    lost: LostAttempts,
) -> None:
    table = rows()

    losing = {4: lost.archive, 6: lost.lose}
    with pytest.raises(UnknownProducerError, match="the next attempt of the task appends"):
        lost.append(table, meanwhile=losing)
    assert lost.append(table) == COUNT
    lost.compare(table)


# -- a tail that was archived --------------------------------------------------------------------


@pytest.mark.parametrize("who", ["archiver", "sink", "producer"])
def test_a_lost_tail_that_was_archived_is_not_appended_again(
    make_redis: Callable[..., Any], tmp_path: Path, who: str
) -> None:
    """Redis comes back with less than what is archived; whoever recovers it says so."""
    server = make_redis(appendfsync="always")
    lost = LostAttempts(server.url, tmp_path / "cold")
    table = rows()
    lost.begin(table, 3)
    size = server.append_only_size()
    lost.begin(table, 7)
    lost.archive()
    held = lost.values()
    lost.begin(table, 9)
    server.cut_append_only_file(to_size=size)
    server.start()
    if who == "archiver":
        lost.archive()
    elif who == "producer":
        with lost.lakelog.producer() as producer:
            producer.send("orders", b"999999/", partition=0).result()
            producer.send("orders", b"999999/", partition=1).result()
    assert [now[: len(of_one)] for now, of_one in zip(lost.values(), held, strict=True)] == held
    assert lost.append(table, patience_s=30) == COUNT
    values = [[value for value in of_one if value != b"999999/"] for of_one in lost.values()]
    assert flat(values) == expected(table)
    assert is_in_order(values)


# -- archives that were told where to end ----------------------------------------------------------


def test_work_that_an_archive_cut_at_an_unknown_place_is_refused(lost: LostAttempts) -> None:
    table = rows()
    lost.begin(table, 9)
    lost.archive(until={0: 5, 1: 5})  # within the first calls
    held = [of_one[:5] for of_one in lost.values()]
    lost.lose()
    with pytest.raises(RepeatDiffersError, match=r"how many of its rows .* idempotent=false"):
        lost.append(table)
    assert lost.values() == held
    lost.append(table, TaskIdentity("query", 3, TASK.epoch + 1))  # what comes next is taken
    assert [now[5:] for now in lost.values()] != [[], []]


def test_where_the_end_was_does_not_matter_once_all_is_archived(lost: LostAttempts) -> None:
    table = rows()
    lost.begin(table, 9)
    lost.archive(until={0: 5, 1: 5})
    lost.archive()
    lost.lose()
    assert lost.append(table) == COUNT
    lost.compare(table)


def test_what_a_loss_cut_stays_cut_in_the_next(lost: LostAttempts) -> None:
    table, other = rows(), rows(20, seed=2)
    lost.begin(table, 9)
    lost.archive(until={0: 5, 1: 5})
    lost.lose()
    lost.append(other, TaskIdentity("other", 0))
    lost.archive()
    lost.lose()
    with pytest.raises(RepeatDiffersError, match="how many of its rows"):
        lost.append(table)


# -- what others do to the table -------------------------------------------------------------------


def table_folder(lost: LostAttempts) -> Path:
    return Path(lost.lakelog.place.table(lost.topic).path)


def clean_the_log(folder: Path) -> None:
    table = DeltaTable(folder)
    table.create_checkpoint()
    for file in (folder / "_delta_log").glob("*.json"):
        if int(file.stem) < table.version():
            file.unlink()


DONE_TO_THE_TABLE: dict[str, Callable[[LostAttempts], object]] = {
    "nothing": lambda lost: None,
    "cleanup": lambda lost: lost.lakelog.cleanup("orders"),
    "optimize by another": lambda lost: DeltaTable(table_folder(lost)).optimize.compact(),
    "log cleaned": lambda lost: clean_the_log(table_folder(lost)),
    "full vacuum": lambda lost: DeltaTable(table_folder(lost)).vacuum(
        0, dry_run=False, enforce_retention_duration=False, full=True
    ),
    "orphans removed": lambda lost: lost.lakelog.place.table(lost.topic).remove_orphans(),
}


@pytest.mark.slow
@pytest.mark.parametrize("done", DONE_TO_THE_TABLE)
@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_nothing_that_is_done_to_the_table_forgets_it(
    redis_url: str, tmp_path: Path, done: str, policy: str
) -> None:
    lost = LostAttempts(redis_url, tmp_path / "cold", **{"cleanup.policy": policy})
    table = rows()
    table = table.set_column(0, "key", pa.array([b"%d" % n for n in range(COUNT)]))
    lost.begin(table, 2)
    lost.archive()
    lost.begin(table, 5)
    lost.archive()
    DONE_TO_THE_TABLE[done](lost)
    lost.lose()
    assert lost.append(table) == COUNT
    lost.compare(table)


def test_a_table_of_which_that_is_gone_is_restored_without_it(lost: LostAttempts) -> None:
    """As one that an older lakelog archived."""
    table = rows(40)
    lost.append(table)
    lost.archive()
    shutil.rmtree(table_folder(lost) / FOLDER)
    lost.lose()
    lost.append(table)
    lost.compare(table, times=2)


def test_a_deleted_topic_comes_back_with_it(lost: LostAttempts) -> None:
    table = rows()
    lost.begin(table, 4)
    lost.archive()
    lost.lakelog.topics.delete("orders")
    for server in lost.lakelog.hot._servers.all():
        server.call(("FLUSHALL",))
    lost.lakelog.undelete("orders")
    lost.topic = lost.lakelog.topics.get("orders")
    assert lost.append(table) == COUNT
    lost.compare(table)
