"""Engines run a function over values: small ones as their results are asked for, others at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest

from lakelog.engines.choice import Work
from lakelog.engines.engine import TASKS_AT_ONCE, THREADS_S, InlineEngine


@dataclass
class Task:
    number: int
    work: Work = Work(seconds=THREADS_S)  # noqa: RUF009, an immutable value


def test_each_task_has_its_result_and_errors_come_as_they_were() -> None:
    results = InlineEngine().map(lambda task: 10 // task, [1, 5, 0])
    assert [next(results), next(results)] == [10, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(InlineEngine().map(str, [])) == []


@pytest.mark.parametrize("tasks", [[Task(1)], [Task(n, Work()) for n in range(5)]])
def test_little_work_takes_no_threads(tasks: list[Task]) -> None:
    threads = InlineEngine().map(lambda _: threading.current_thread(), tasks)
    assert set(threads) == {threading.current_thread()}


def test_other_work_is_done_at_once() -> None:
    meet = threading.Barrier(TASKS_AT_ONCE, timeout=60)

    def doubled(task: Task) -> int:
        meet.wait()
        return 2 * task.number

    tasks = [Task(n) for n in range(3 * TASKS_AT_ONCE)]
    found = InlineEngine().map(doubled, tasks)
    assert sorted(found) == [2 * task.number for task in tasks]


def test_after_an_error_no_more_of_it_begins() -> None:
    begun = []

    def fails(task: Task) -> None:
        begun.append(task.number)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(InlineEngine().map(fails, [Task(n) for n in range(100)]))
    assert len(begun) <= TASKS_AT_ONCE
