"""No more of what takes memory is held at a time than there are places."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakelog.engines.engine import TASKS_AT_ONCE, InlineEngine
from lakelog.engines.places import LONG_S, Places

LIVENESS_S = 60.0


class Together:
    """Lets nobody go before so many have come, and counts those that are inside."""

    def __init__(self, count: int) -> None:
        self._come = threading.Barrier(count)
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0

    def __call__(self, task: int) -> int:
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        self._come.wait(LIVENESS_S)
        with self._lock:
            self._inside -= 1
        self._come.wait(LIVENESS_S)  # all of a round have left before one of the next comes
        return task


@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_places_are_held_at_a_time_and_no_more(count):
    places, together = Places(count), Together(count)

    def hold(number: int) -> int:
        with places.taken():
            return together(number)

    with ThreadPoolExecutor(2 * count) as threads:
        assert list(threads.map(hold, range(6 * count))) == list(range(6 * count))
    assert together.most == count


def test_a_place_is_given_back_by_whoever_ends_with_an_error():
    places = Places(1)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), places.taken():
            raise ZeroDivisionError
    places.take()


def test_a_place_that_is_held_for_long_stops_nobody():
    now_s = 0.0
    places = Places(2, lambda: now_s)
    first = places.take()
    now_s = 1.0
    places.take()
    now_s = LONG_S  # the first counts no more, the second does
    third = places.take()
    now_s = LONG_S + 1.0
    places.take()
    places.give_back(first)  # it did not hang after all
    places.give_back(third)
    places.take()


def test_threads_of_an_inline_engine_run_a_few_tasks_at_a_time():
    engine, together = InlineEngine(), Together(TASKS_AT_ONCE)
    with ThreadPoolExecutor(2 * TASKS_AT_ONCE) as threads:
        answers = threads.map(
            lambda number: list(engine.map(together, [number])), range(6 * TASKS_AT_ONCE)
        )
        assert list(answers) == [[number] for number in range(6 * TASKS_AT_ONCE)]
    assert together.most == TASKS_AT_ONCE
