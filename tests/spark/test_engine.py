"""The Spark engine keeps the promises of `Engine`, which the inline one keeps by itself."""

from __future__ import annotations

import functools
import gc
import os
import signal
import threading

import pytest

from lakelog.engines.engine import InlineEngine
from lakelog.errors import CorruptRecordError, LakelogError, TrimmedError
from lakelog.spark import SparkEngine


@pytest.fixture(params=["inline", "spark"])
def engine(request):
    if request.param == "inline":
        return InlineEngine()
    return SparkEngine(request.getfixturevalue("spark"))


@pytest.fixture
def spark_engine(spark):
    return SparkEngine(spark)


def square(number: int) -> int:
    return number * number


def raise_it(error: BaseException) -> None:
    raise error


class Odd(Exception):
    """Pickles, but does not come back."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("odd")


def raise_odd(_: int) -> None:
    raise Odd(1, 2)


def test_every_task_gives_one_result(engine):
    assert sorted(engine.map(square, range(7))) == [0, 1, 4, 9, 16, 25, 36]


def test_what_is_bound_to_the_function_and_any_value_travel(engine):
    offset = 10**18
    plus = functools.partial(lambda bound, task: (bound + task["n"], task["name"]), offset)
    tasks = [{"n": 1, "name": "ä\0"}, {"n": 2, "name": None}]
    assert list(engine.map(plus, tasks)) == [(offset + 1, "ä\0"), (offset + 2, None)]


def test_an_error_arrives_as_it_was_raised(engine):
    error = TrimmedError("asked, holds, do", local_log_start=7)
    with pytest.raises(TrimmedError, match=r"^asked, holds, do$") as raised:
        list(engine.map(raise_it, [error]))
    assert raised.value.local_log_start == 7
    assert raised.value.__cause__ is None


def test_no_task_starts_no_spark_job(spark, spark_engine):
    before = spark.sparkContext.statusTracker().getJobIdsForGroup()
    assert list(spark_engine.map(square, [])) == []
    assert spark.sparkContext.statusTracker().getJobIdsForGroup() == before


def test_results_come_in_the_order_of_the_tasks(spark_engine):
    assert list(spark_engine.map(square, range(20))) == [n * n for n in range(20)]


def test_each_task_is_a_spark_task_and_runs_once_though_it_fails(spark, spark_engine, tmp_path):
    def note(number: int) -> None:
        with (tmp_path / str(number)).open("a") as file:
            file.write("x")
        if number == 1:
            raise CorruptRecordError("no")

    with pytest.raises(CorruptRecordError):
        list(spark_engine.map(note, range(4)))
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == dict.fromkeys(
        "0123", "x"
    )


def test_an_unexpected_error_shows_where_on_the_executor_it_was_raised(spark_engine):
    with pytest.raises(ZeroDivisionError) as raised:
        list(spark_engine.map(lambda n: 1 // n, [0]))
    assert "1 // n" in str(raised.value.__cause__) or "<lambda>" in str(raised.value.__cause__)


def test_an_error_that_cannot_travel_still_says_what_it_said(spark_engine):
    with pytest.raises(LakelogError, match="a task failed with Odd: odd"):
        list(spark_engine.map(raise_odd, [1]))


def test_a_result_that_cannot_travel_is_an_error(spark_engine):
    with pytest.raises(TypeError, match="lock"):
        list(spark_engine.map(lambda _: threading.Lock(), [1]))


def test_a_function_that_cannot_travel_fails_before_spark(spark_engine):
    lock = threading.Lock()
    with pytest.raises(TypeError, match="lock"):
        list(spark_engine.map(lambda _: lock, [1]))


def test_an_interrupt_cancels_the_job_and_leaves_the_session_usable(spark, spark_engine, tmp_path):
    started = tmp_path / "started"
    os.mkfifo(started)

    def hang(_: int) -> None:
        with started.open("w"):
            threading.Event().wait()

    def interrupt_once_it_runs() -> None:
        with started.open():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)

    def on_signal(*_: object) -> None:
        raise SystemExit(15)

    before = signal.signal(signal.SIGTERM, on_signal)
    try:
        waiter = threading.Thread(target=interrupt_once_it_runs)
        waiter.start()
        with pytest.raises(SystemExit):
            list(spark_engine.map(hang, [1]))
        waiter.join()
    finally:
        signal.signal(signal.SIGTERM, before)
    # Both slots: were one still taken by the hanging task, this would wait for ever.
    assert list(spark_engine.map(square, [1, 2, 3])) == [1, 4, 9]
    tracker = spark.sparkContext.statusTracker()
    assert not tracker.getActiveJobsIds()


def test_the_job_says_what_it_runs(spark, spark_engine):
    def look(_: int) -> str:
        from pyspark import TaskContext

        return TaskContext.get().getLocalProperty("spark.job.description")

    seen = list(spark_engine.map(look, [1, 2]))
    assert seen == ["lakelog: look × 2"] * 2
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_what_workers_import_is_kept_out_of_their_garbage_collections(spark):
    def kept(_: int) -> int:
        return gc.get_freeze_count()

    assert all(count > 10_000 for count in SparkEngine(spark).map(kept, range(4)))
