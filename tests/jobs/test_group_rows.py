"""Rows of groups in the status table: what they say, and that there are never too many."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog import Lakelog, TopicPartition
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.recorded_offset import GroupType
from lakelog.hot.keys import Keys
from lakelog.jobs import JobRun, add_readings, group_history, standing, status_history
from lakelog.jobs import run_record as module
from lakelog.jobs.run_record import now_behind, with_rows
from lakelog.operate.group_lag import GroupOffset
from lakelog.testing.eventually import eventually
from lakelog.values.record import OffsetAndMetadata

TOPIC = "readings"


def at(group_id: str, partition: int, unread: int) -> GroupOffset:
    place = TopicPartition("orders", partition)
    return GroupOffset(group_id, GroupType.CLASSIC, place, 1000 - unread, 1000, unread)


# -- which groups get a row ------------------------------------------------------------------------


def test_at_first_all_do_and_then_those_that_are_behind_or_were() -> None:
    idle, late, done = at("idle", 0, 0), at("late", 0, 5), at("done", 0, 7)
    first = with_rows([idle, late, done], None)
    assert first == [idle, late, done]
    behind = now_behind(first, None)
    caught_up = at("done", 0, 0)
    second = with_rows([idle, late, caught_up], behind)
    assert second == [late, caught_up]
    assert with_rows([idle, late, caught_up], now_behind(second, behind)) == [late]


def test_of_too_many_each_group_has_its_worst_partition_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 3)
    seen = [at("one", 0, 5), at("one", 1, 900), at("one", 2, 800), at("two", 0, 1), at("two", 1, 0)]
    assert with_rows(seen, None) == [at("one", 1, 900), at("two", 0, 1), at("one", 2, 800)]
    before = {one.place for one in seen if one.unread}
    caught_up = at("one", 0, 0)  # comes before what is known to be behind
    assert with_rows([caught_up, *seen[1:]], before)[0] == caught_up


@given(
    st.lists(
        st.dictionaries(
            st.tuples(st.sampled_from("abc"), st.integers(0, 3)), st.sampled_from([0, 0, 1, 9])
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 15),
)
def test_who_has_no_row_since_a_zero_is_at_zero(
    looks: list[dict[tuple[str, int], int]], most: int
) -> None:
    """Of a group that is there at every look; what was cut off at the limit is the exception."""
    behind = None
    told: dict[object, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ROWS", most)
        for look in looks:
            seen = [at(group, partition, unread) for (group, partition), unread in look.items()]
            rows = with_rows(seen, behind)
            assert len(rows) <= most
            assert len({row.place for row in rows}) == len(rows)
            wanted = [one for one in seen if behind is None or one.unread or one.place in behind]
            assert len(rows) == min(most, len(wanted))
            told |= {row.place: row.unread for row in rows}
            behind = now_behind(rows, behind)
            if len(wanted) <= most:
                for one in seen:
                    assert told.get(one.place, 0) == one.unread


# -- what runs write -------------------------------------------------------------------------------


@pytest.fixture
def log(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as opened:
        add_readings(opened, TOPIC, 80)
        yield opened


def commit(log: Lakelog, group_id: str, *offsets: int) -> None:
    GroupCoordinator(log.hot.connections).commit(
        group_id,
        {TopicPartition(TOPIC, n): OffsetAndMetadata(offset) for n, offset in enumerate(offsets)},
        topic_ids={TOPIC: log.topics.get(TOPIC).topic_id},
    )


def rows(log: Lakelog, run_id: str | None = None) -> list[tuple[object, ...]]:
    found = group_history(log)
    if run_id is not None:
        found = found.filter(pc.equal(found["run_id"], run_id))
    return sorted(
        (row["group_id"], row["partition"], row["committed_offset"], row["group_lag_records"])
        for row in found.to_pylist()
    )


@pytest.mark.parametrize("job", ["archive", "cleanup"])
def test_a_run_tells_how_far_groups_are_behind(log: Lakelog, job: str) -> None:
    commit(log, "nightly", 10, 50)
    run = JobRun(log, job, "4711")
    result = run.once(log.archive if job == "archive" else log.cleanup)
    assert rows(log) == [("nightly", 0, 10, 20), ("nightly", 1, 50, 0)]
    behind, level = sorted(group_history(log).to_pylist(), key=lambda row: row["partition"])
    assert behind["group_lag_ms"] > 0
    assert level["group_lag_ms"] is None
    assert (behind["job"], behind["run_id"], behind["done"]) == (job, "4711", True)
    assert (behind["group_state"], behind["group_members"], behind["log_end"]) == ("Empty", 0, 30)
    assert behind["state"] is None
    # Whoever asks where partitions stand sees nothing of it.
    assert result == standing(log) | {"job": job}
    assert JobRun(log, job, "4711").once(lambda: None) == result
    assert status_history(log)["partition"].to_pylist() == [0, 1]
    assert run.rows()["partition"].to_pylist() == [0, 1]
    assert group_history(log, ["other"]).num_rows == 0


def test_a_run_over_some_topics_tells_the_groups_of_those(log: Lakelog) -> None:
    commit(log, "nightly", 10)
    log.topics.create("other", 1)
    JobRun(log, "archive", "1", topics=["other"]).once(lambda: log.archive("other"))
    assert rows(log) == []
    JobRun(log, "archive", "2", topics=[TOPIC]).once(lambda: log.archive(TOPIC))
    assert rows(log) == [("nightly", 0, 10, 20)]


def test_a_continuous_run_tells_those_that_are_behind_again_and_that_they_caught_up(
    log: Lakelog,
) -> None:
    commit(log, "idle", 30, 50)
    commit(log, "nightly", 10)
    stop = threading.Event()
    run = JobRun(log, "archive", "4711", rows_interval_s=0.05)
    thread = threading.Thread(target=run.continuously, args=[1.0], kwargs={"stop": stop})
    thread.start()
    try:
        behind = ("nightly", 0, 10, 20)
        eventually(lambda: rows(log).count(behind) >= 3)
        commit(log, "nightly", 30)
        level = ("nightly", 0, 30, 0)
        eventually(lambda: level in rows(log))
        before = run.rows().num_rows
        eventually(lambda: run.rows().num_rows >= before + 6)
    finally:
        stop.set()
        thread.join()
    found = rows(log)
    assert found.count(level) == 1
    assert [row for row in found if row[0] == "idle"] == [("idle", 0, 30, 0), ("idle", 1, 50, 0)]


def test_a_run_whose_groups_cannot_be_told_is_done_all_the_same(
    log: Lakelog, caplog: pytest.LogCaptureFixture
) -> None:
    commit(log, "nightly", 10)
    key = Keys(log.hot.keyspace).group("nightly").offsets
    log.hot.connections.for_key(key).call(("HSET", key, "readings-1", "nonsense"))
    result = JobRun(log, "archive", "4711").once(lambda: log.archive())
    assert [part["archived_end"] for part in result["partitions"]] == [30, 50]
    assert rows(log) == []
    assert "how far groups are behind cannot be told" in caplog.text


def test_many_groups_leave_a_bounded_number_of_rows(
    log: Lakelog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    for n in range(30):
        commit(log, f"group-{n:02}", n, 50)
    JobRun(log, "archive", "4711").once(lambda: log.archive())
    found = rows(log)
    assert len(found) == 10
    assert {row[1] for row in found} == {0}  # those that are behind, furthest first
    assert {row[0] for row in found} == {f"group-{n:02}" for n in range(10)}


def test_without_redis_nothing_is_told_of_groups(log: Lakelog, tmp_path: Path) -> None:
    commit(log, "nightly", 10)
    log.archive()
    cold = Lakelog.connect(None, tmp_path / "cold", engine="inline")
    JobRun(cold, "cleanup", "1").once(cold.cleanup)
    assert rows(log) == []
