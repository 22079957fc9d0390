"""A job run is done once, tells where things stand, and can be killed anywhere."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.base import failpoints
from lakelog.errors import (
    ArchiveStalledError,
    CleanupFailedError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    MissingFileError,
)
from lakelog.jobs import JobRun, add_readings, run_history, standing, status_history
from lakelog.operate import status
from lakelog.operate.metrics.cold_looks import ColdLooks
from lakelog.values.topic import Topic
from tests.support.servers import RedisServer

TOPIC = "readings"


class Killed(BaseException):
    """The end of a process, played."""


def killed() -> None:
    raise Killed


def archive(log: Lakelog, run_id: str = "4711") -> Any:
    return JobRun(log, "archive", run_id).once(lambda: log.archive())


def test_a_run_tells_what_it_did_and_where_things_stand(log: Lakelog) -> None:
    add_readings(log, TOPIC, 80)
    assert archive(log) == standing(log) | {"job": "archive"}
    rows = sorted(status_history(log).to_pylist(), key=lambda row: row["partition"])
    assert [
        (row["topic"], row["partition"], row["start_offset"], row["end_offset"], row["records"])
        for row in rows
    ] == [(TOPIC, 0, 0, 30, 30), (TOPIC, 1, 0, 50, 50)]
    for row in rows:
        assert (row["run_id"], row["job"], row["done"], row["error"]) == (
            "4711",
            "archive",
            True,
            None,
        )
        assert row["state"] == "ok"
        assert row["archived_end"] == row["log_end"] == row["local_log_start"]
        assert (row["archive_lag_records"], row["archive_lag_ms"]) == (0, None)
        assert row["redis_used_bytes"] > 0
        assert row["cold_size_bytes"] > 0
        assert row["duration_ms"] > 0


def test_a_run_that_was_done_does_nothing_and_answers_the_same(log: Lakelog) -> None:
    add_readings(log, TOPIC, 80)
    first = archive(log)
    add_readings(log, TOPIC, 160)  # what came since is the next run's

    def work() -> None:
        raise AssertionError("done before")

    assert JobRun(log, "archive", "4711").once(work) == first
    assert status_history(log).num_rows == 2
    assert archive(log, "4712") != first


@pytest.mark.parametrize("step", ["jobs.before_rows", "jobs.after_rows"])
def test_a_run_that_was_killed_is_done_again_and_nothing_is_doubled(
    log: Lakelog, step: str
) -> None:
    def ingest() -> Any:
        run = JobRun(log, "ingest", "4711", topics=[TOPIC])
        return run.once(lambda: add_readings(log, TOPIC, 80))

    for run in (ingest, lambda: archive(log, "4712")):
        with failpoints.armed(step, killed), pytest.raises(Killed):
            run()
        assert run() == run()
    # What a run did that was killed before its rows is not known; it is not nothing.
    known = None if step == "jobs.before_rows" else 80
    assert [(one.result, one.records) for one in run_history(log)] == [("done", known)] * 2
    assert [part["archived_end"] for part in standing(log)["partitions"]] == [30, 50]
    found = log.log(TOPIC)
    assert sum(found.read(number, 0).to_arrow().num_rows for number in (0, 1)) == 80
    assert status_history(log).num_rows == 4


@pytest.mark.parametrize("step", ["jobs.before_rows", "jobs.after_rows"])
def test_a_run_that_stands_still_while_others_go_on_tells_once_what_it_did(
    log: Lakelog, tmp_path: Path, step: str
) -> None:
    add_readings(log, TOPIC, 80)
    pause = failpoints.Pause(tmp_path / "pause")
    pause.folder.mkdir()
    answers: list[Any] = []
    paused = threading.Thread(target=lambda: answers.append(archive(log, "4711")))

    def hold_up() -> None:
        if threading.current_thread() is paused:
            pause()

    with failpoints.armed(step, hold_up):
        paused.start()
        assert pause.wait_reached(lambda: not paused.is_alive())
        others = [archive(log, "4711"), archive(log, "4712")]  # a repeat of it, and the next one
        pause.release()
        paused.join()

    assert answers == others[:1]
    assert status_history(log).num_rows == 4
    found = log.log(TOPIC)
    assert sum(found.read(number, 0).to_arrow().num_rows for number in (0, 1)) == 80


def test_without_a_run_id_the_result_is_the_same_as_long_as_nothing_happens(log: Lakelog) -> None:
    add_readings(log, TOPIC, 80)
    assert archive(log, "") == archive(log, "")
    assert len(set(status_history(log)["run_id"].to_pylist())) == 2


def test_a_log_without_topics_has_nothing_to_tell(log: Lakelog) -> None:
    assert archive(log) == {"job": "archive", "partitions": []}
    assert archive(log) == {"job": "archive", "partitions": []}
    assert status_history(log).num_rows == 0


def test_untiered_topics_are_told_without_an_archive(log: Lakelog) -> None:
    log.topics.create("clicks", 1, {"remote.storage.enable": False})
    archive(log)
    (row,) = status_history(log).to_pylist()
    assert (row["log_end"], row["archived_end"], row["archive_lag_records"]) == (0, None, None)


def test_tasks_of_one_run_with_other_topics_or_steps_are_done_each(log: Lakelog) -> None:
    for topic in ("one", "other"):
        add_readings(log, topic, 8)
    asked: list[tuple[str, ...]] = []
    for topics, steps in [(["one"], ("retain",)), (["one"], ("vacuum",)), (["other"], ("retain",))]:
        for _ in range(2):
            run = JobRun(log, "cleanup", "4711", topics=topics, steps=steps)
            run.once(lambda topics=topics, steps=steps: asked.append((*topics, *steps)))
    assert asked == [("one", "retain"), ("one", "vacuum"), ("other", "retain")]
    assert set(status_history(log)["run_id"].to_pylist()) == {
        "4711/retain/one",
        "4711/vacuum/one",
        "4711/retain/other",
    }


def test_a_run_that_failed_says_why_and_is_done_again(log: Lakelog) -> None:
    add_readings(log, TOPIC, 80)

    def fails() -> None:
        raise MissingFileError("a file is missing", path="a file")

    run = JobRun(log, "archive", "4711")
    with pytest.raises(MissingFileError):
        run.once(fails)
    failed = run.rows().to_pylist()
    assert [(row["done"], row["error"]) for row in failed] == [
        (False, "MissingFileError: a file is missing")
    ] * 2
    assert [row["archive_lag_records"] for row in failed] == [30, 50]
    archive(log)
    assert [row["done"] for row in run.rows().to_pylist()].count(True) == 2


def test_an_error_that_is_not_our_own_is_told_too(log: Lakelog) -> None:
    add_readings(log, TOPIC, 80)

    def fails() -> None:
        raise OSError("no space left on device")

    run = JobRun(log, "archive", "4711")
    with pytest.raises(OSError, match="no space"):
        run.once(fails)
    assert run.rows()["error"].to_pylist() == ["OSError: no space left on device"] * 2


def test_a_topic_of_which_nothing_can_be_said_has_a_row_and_hides_no_other(
    log: Lakelog, redis_url: str, tmp_path: Path
) -> None:
    for topic in (TOPIC, "broken"):
        add_readings(log, topic, 80)
    log.archive()
    for file in (tmp_path / "cold" / "broken").rglob("_delta_log/*.json"):
        file.write_text("no JSON")

    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as anew:
        run = JobRun(anew, "archive", "4711")
        with pytest.raises(LakelogError):
            run.once(lambda: None)
        rows = {(row["topic"], row["partition"]): row for row in run.rows().to_pylist()}
    assert set(rows) == {(TOPIC, 0), (TOPIC, 1), ("broken", None)}
    assert rows[TOPIC, 1]["archived_end"] == 50
    assert "broken" in rows["broken", None]["error"]
    assert not any(row["done"] for row in rows.values())


def test_what_a_failed_cleanup_did_all_the_same_is_told(log: Lakelog) -> None:
    log.topics.create("clicks", 1, {"retention.ms": 1, "local.retention.ms": 0})
    with log.producer() as producer:
        for second in range(8):
            producer.send("clicks", "a click", timestamp_ms=1_700_000_000_000 + second)
    log.archive()

    def cleanup() -> Any:
        reports = log.cleanup()
        raise CleanupFailedError("one table is broken", reports=reports, failures=())

    run = JobRun(log, "cleanup", "4711")
    with pytest.raises(CleanupFailedError):
        run.once(cleanup)
    (row,) = run.rows().to_pylist()
    assert (row["start_offset"], row["end_offset"], row["records"]) == (0, 8, 8)
    assert row["log_start"] == 8


def test_a_run_whose_redis_is_away_leaves_a_row_that_says_so(
    make_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    server = make_redis()
    with Lakelog.connect(server.url, tmp_path, engine="inline") as log:
        add_readings(log, TOPIC, 8)
        server.kill()
        run = JobRun(log, "archive", "4711")
        with pytest.raises(HotTierUnavailableError):
            run.once(lambda: log.archive())
        (row,) = run.rows().to_pylist()
    assert row["topic"] is None
    assert row["error"].startswith("HotTierUnavailableError: ")


def test_a_cold_root_alone_is_cleaned_and_told_without_redis(log: Lakelog, tmp_path: Path) -> None:
    add_readings(log, TOPIC, 80)
    log.archive()
    cold = Lakelog.connect(None, tmp_path / "cold", engine="inline")
    run = JobRun(cold, "cleanup", "4711")
    result = run.once(cold.cleanup)
    assert run.once(cold.cleanup) == result
    assert [part["archived_end"] for part in result["partitions"]] == [30, 50]
    for row in run.rows().to_pylist():
        assert (row["state"], row["log_end"], row["redis_used_bytes"]) == ("cold only", None, None)


# -- continuously --------------------------------------------------------------------------------


def test_a_continuous_run_ends_by_itself_with_all_archived(log: Lakelog) -> None:
    add_readings(log, TOPIC, 80)
    result = JobRun(log, "archive", "4711").continuously(0.5 / 3600)
    assert [part["archive_lag_records"] for part in result["partitions"]] == [0, 0]
    add_readings(log, TOPIC, 160)
    assert JobRun(log, "archive", "4711").continuously(1) == result  # at once: it was done
    rows = status_history(log)
    assert sum(filter(None, rows["records"].to_pylist())) == 80


def test_a_continuous_run_tells_where_things_stand_while_it_runs(log: Lakelog) -> None:
    log.topics.create(TOPIC, 2, {"lakelog.flush.rows": 1, "lakelog.flush.interval.ms": 1})
    stop, told = threading.Event(), threading.Semaphore(0)
    run = JobRun(log, "archive", "4711", rows_interval_s=0.01)
    tell = run._tell

    def counted(*given: Any, **more: Any) -> bool:
        told.release()
        return tell(*given, **more)

    run._tell = counted  # type: ignore[method-assign]
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(run.continuously(1, stop=stop)))
    thread.start()
    try:
        add_readings(log, TOPIC, 80)
        for _ in range(3):
            assert told.acquire(timeout=60)
    finally:
        stop.set()
        thread.join()
    rows = run.rows().to_pylist()
    assert [row["done"] for row in rows].count(True) == 2
    assert [row["done"] for row in rows].count(False) >= 4  # all of the first, one of each other
    assert sum(row["records"] or 0 for row in rows) == 80
    assert [part["archived_end"] for part in ended[0]["partitions"]] == [30, 50]


@pytest.mark.slow
def test_what_was_archived_while_nothing_could_be_told_is_told_later(log: Lakelog) -> None:
    log.topics.create(TOPIC, 2, {"lakelog.flush.rows": 1, "lakelog.flush.interval.ms": 1})
    stop, looked = threading.Event(), threading.Semaphore(0)
    run = JobRun(log, "archive", "4711", rows_interval_s=0.01)
    status_of = run._status

    def away() -> Any:
        if stop.is_set():
            return status_of()
        looked.release()
        raise HotTierUnavailableError("Redis does not answer")

    run._status = away  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: run.continuously(1, stop=stop))
    thread.start()
    try:
        add_readings(log, TOPIC, 80)
        for _ in range(100):
            assert looked.acquire(timeout=60)
    finally:
        stop.set()
        thread.join()
    rows = run.rows().to_pylist()
    assert sum(row["records"] or 0 for row in rows) == 80
    assert [row["done"] for row in rows].count(True) == 2


def test_a_table_that_hangs_in_a_look_keeps_no_row_of_another_back_and_fails_no_run(
    log: Lakelog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "LOOK_TIMEOUT_S", 2.0)
    for topic in (TOPIC, "hangs"):
        log.topics.create(topic, 2, {"lakelog.flush.rows": 1, "lakelog.flush.interval.ms": 1})
        add_readings(log, topic, 80)
    gate = threading.Event()

    def table_of(topic: Topic) -> Any:
        if topic.name == "hangs":
            gate.wait(300)
        return log._table(topic)

    log.log_look.tables = ColdLooks(table_of)
    run = JobRun(log, "archive", "4711", rows_interval_s=0.05)
    try:
        result = run.continuously(3 / 3600)
    finally:
        gate.set()
    assert {part["topic"] for part in result["partitions"]} == {TOPIC}
    assert [part["archive_lag_records"] for part in result["partitions"]] == [0, 0]
    rows = run.rows().to_pylist()
    for done in (False, True):  # while it goes on, and at its end
        told = {(one["topic"], one["partition"]) for one in rows if one["done"] == done}
        assert {(TOPIC, 0), (TOPIC, 1), ("hangs", None)} <= told
    errors = {one["error"] for one in rows if one["topic"] == "hangs"}
    assert any("did not answer within 2 s" in error for error in errors)
    assert log.log("hangs").offsets()[1].archived_end == 50


def test_an_interrupted_continuous_run_archives_what_is_left(log: Lakelog) -> None:
    add_readings(log, TOPIC, 80)
    run = JobRun(log, "archive", "4711", rows_interval_s=0.01)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    run._tell = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run.continuously(1)
    assert [part["archive_lag_records"] for part in standing(log)["partitions"]] == [0, 0]
    assert run.rows().num_rows == 0  # it did not end well, so it may be done again


def damage(tmp_path: Path, topic: str) -> None:
    for file in (tmp_path / "cold" / topic).rglob("_delta_log/*.json"):
        file.write_text("no JSON")


def test_a_topic_without_progress_for_too_long_fails_the_run_and_no_other_topic(
    log: Lakelog, redis_url: str, tmp_path: Path
) -> None:
    for topic in (TOPIC, "broken"):
        log.topics.create(topic, 2, {"lakelog.flush.rows": 1, "lakelog.flush.interval.ms": 1})
        add_readings(log, topic, 80)
    log.archive()
    damage(tmp_path, "broken")
    for topic in (TOPIC, "broken"):
        add_readings(log, topic, 160)
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as anew:
        run = JobRun(anew, "archive", "4711", rows_interval_s=0.05)
        with pytest.raises(ArchiveStalledError, match=r"max_stall_hours=.*broken: not archived"):
            run.continuously(1, max_stall_hours=0.3 / 3600)
        rows = run.rows().to_pylist()
    assert not any(row["done"] for row in rows)
    troubles = [row for row in rows if row["state"] == "not archived"]
    assert {row["topic"] for row in troubles} == {"broken"}
    assert "next try" in troubles[0]["error"] or "being tried" in troubles[0]["error"]
    ends = {part["archived_end"] for part in standing(log, [TOPIC])["partitions"]}
    assert ends == {60, 100}


def test_a_trouble_that_is_not_old_yet_fails_no_run(
    log: Lakelog, redis_url: str, tmp_path: Path
) -> None:
    for topic in (TOPIC, "broken"):
        add_readings(log, topic, 80)
    log.archive()
    damage(tmp_path, "broken")
    add_readings(log, "broken", 160)
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as anew:
        run = JobRun(anew, "archive", "4711", topics=[TOPIC, "broken"])
        result = run.continuously(1 / 3600)
        rows = run.rows().to_pylist()
    assert {part["topic"] for part in result["partitions"]} == {TOPIC}
    (trouble,) = [row for row in rows if row["state"] == "not archived"]
    assert (trouble["topic"], trouble["done"]) == ("broken", False)


def test_redis_away_at_the_end_for_less_than_too_long_is_told(
    make_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    server = make_redis()
    with Lakelog.connect(server.url, tmp_path, engine="inline") as log:
        add_readings(log, TOPIC, 8)
        run = JobRun(log, "archive", "4711", rows_interval_s=0.05)
        stop = threading.Event()
        failed: list[BaseException] = []

        def go() -> None:
            try:
                run.continuously(1, stop=stop)
            except LakelogError as error:
                failed.append(error)

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        try:
            server.kill()
            while not any(row["state"] == "not archived" for row in run.rows().to_pylist()):
                assert thread.is_alive()
        finally:
            stop.set()
            thread.join()
    assert isinstance(failed[0], HotTierUnavailableError)
    told = [row for row in run.rows().to_pylist() if row["state"] == "not archived"]
    assert told[0]["topic"] is None
    assert "cannot reach Redis" in told[0]["error"]


def test_a_continuous_run_that_fails_says_why(log: Lakelog, tmp_path: Path) -> None:
    run = JobRun(log, "archive", "4711", topics=["nothing of that name"])
    with pytest.raises(InvalidArgumentError):
        run.continuously(1 / 3600)
    assert [row["error"][:17] for row in run.rows().to_pylist()] == ["InvalidTopicError"]


def test_what_a_run_cannot_be_is_refused(log: Lakelog, redis_url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="max_hours=0"):
        JobRun(log, "archive").continuously(0)
    cold = Lakelog.connect(None, tmp_path, engine="inline")
    with pytest.raises(InvalidArgumentError, match="needs Redis"):
        JobRun(cold, "archive").continuously(1)
    with (
        Lakelog.connect(redis_url, engine="inline") as hot,
        pytest.raises(InvalidArgumentError, match="give cold"),
    ):
        JobRun(hot, "archive")
