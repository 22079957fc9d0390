"""One task works at a time; one more may wait."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from lakelog.engines.turns import in_turn, only_waits


def test_results_come_in_the_order_of_the_tasks() -> None:
    assert list(in_turn([partial(int, text) for text in ("3", "1", "2")])) == [3, 1, 2]
    assert list(in_turn([lambda: 5])) == [5]
    assert list(in_turn([])) == []


def test_the_next_one_begins_while_one_only_waits() -> None:
    begun = threading.Event()

    def waits() -> bool:
        only_waits()
        return begun.wait(60)

    assert list(in_turn([waits, begun.set])) == [True, None]


def test_without_a_word_of_it_one_begins_after_the_other() -> None:
    at_work = threading.Lock()

    def works() -> bool:
        free = at_work.acquire(blocking=False)
        try:
            return free
        finally:
            if free:
                at_work.release()

    assert list(in_turn([works] * 20)) == [True] * 20


def test_no_more_than_one_waits() -> None:
    lock, waiting, most = threading.Lock(), [0], [0]
    steps: list[threading.Event] = [threading.Event() for _ in range(6)]

    def task(number: int) -> int:
        if number:
            steps[number - 1].set()  # only now is the one before done
        with lock:
            waiting[0] += 1
            most[0] = max(most[0], waiting[0])
        only_waits()
        if number < len(steps) - 1:
            assert steps[number].wait(60)
        with lock:
            waiting[0] -= 1
        return number

    assert list(in_turn([partial(task, number) for number in range(len(steps))])) == [*range(6)]
    assert most[0] == 2  # the one that waits, and the one that begins


@pytest.mark.parametrize("waits", [only_waits, lambda: None])
def test_what_a_task_raises_is_raised_where_its_result_would_be(waits: Callable[[], None]) -> None:
    def fails() -> None:
        waits()
        raise ZeroDivisionError

    results = in_turn([lambda: 1, fails, lambda: 3])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_elsewhere_it_says_nothing() -> None:
    only_waits()
