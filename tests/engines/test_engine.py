"""Engines run a function over values: small ones as their results are asked for, others at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelog.engines import engine as engine_module
from lakelog.engines.engine import (
    TASKS_AT_ONCE,
    Choice,
    Choices,
    InlineEngine,
    chosen,
)


def test_each_task_has_its_result_and_errors_come_as_they_were() -> None:
    results = InlineEngine().map(lambda task: 10 // task, [1, 5, 0])
    assert [next(results), next(results)] == [10, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(InlineEngine().map(str, [])) == []


def test_however_many_threads_ask_a_few_tasks_run_at_a_time() -> None:
    come, lock, inside = threading.Barrier(TASKS_AT_ONCE, timeout=60), threading.Lock(), [0, 0]

    def run(task: int) -> int:
        with lock:
            inside[0] += 1
            inside[1] = max(inside)
        come.wait()
        with lock:
            inside[0] -= 1
        come.wait()  # all of a round have left before one of the next comes
        return task

    tasks = range(6 * TASKS_AT_ONCE)
    with ThreadPoolExecutor(2 * TASKS_AT_ONCE) as threads:
        found = threads.map(lambda task: list(InlineEngine().map(run, [task])), tasks)
        assert [one for of_task in found for one in of_task] == list(tasks)
    assert inside[1] == TASKS_AT_ONCE


def test_a_task_that_hangs_stops_no_other_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "LONG_S", 0.01)
    hanging, go = threading.Semaphore(0), threading.Event()

    def hang(_: int) -> None:
        hanging.release()
        go.wait(60)

    with ThreadPoolExecutor(TASKS_AT_ONCE) as threads:
        for number in range(TASKS_AT_ONCE):
            threads.submit(lambda number=number: list(InlineEngine().map(hang, [number])))
        for _ in range(TASKS_AT_ONCE):
            hanging.acquire()
        assert list(InlineEngine().map(abs, [-1])) == [1]
        go.set()


# -- who watches is told what is chosen within a block, by its own thread ------------------------

HERE = Choice("inline", "as asked")
THERE = Choice("spark", "it is up")


def test_each_choice_is_told_once_to_all_blocks_around_it() -> None:
    outer, inner = Choices(), Choices()
    with outer.watched():
        chosen(HERE)
        with inner.watched():
            chosen(THERE)
            chosen(THERE)
        chosen(HERE)
    chosen(THERE)
    assert (outer.made, inner.made) == ((HERE, THERE), (THERE,))
