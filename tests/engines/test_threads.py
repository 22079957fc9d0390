"""Threads: a few values at once, none left running that nobody knows of, and the process's end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from lakelog.engines import threads
from lakelog.engines.threads import each_at_once
from lakelog.testing.eventually import eventually

LIVENESS_S = 60.0


def interrupt_main_thread() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def all_ended(threads: set[threading.Thread]) -> bool:
    return not any(thread.is_alive() for thread in threads)


def test_each_is_done_once_as_many_at_a_time_as_may_be_and_the_first_ones_first():
    begun, threads, together = [], set(), threading.Barrier(3)

    def work(value: int) -> None:
        begun.append(value)
        threads.add(threading.current_thread())
        together.wait(LIVENESS_S)  # only if three are there at a time

    each_at_once(range(12), work, 3)
    assert [sorted(begun[at : at + 3]) for at in range(0, 12, 3)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
        [9, 10, 11],
    ]
    assert len(threads) == 3
    eventually(lambda: all_ended(threads))


@pytest.mark.parametrize("count", [1, 2])
def test_after_an_error_nothing_begins_and_what_is_under_way_ends(count):
    together, begun, done = threading.Barrier(count), [], []

    def work(value: int) -> None:
        begun.append(value)
        if value < count:
            together.wait(LIVENESS_S)
        if value == 0:
            raise ZeroDivisionError(value)
        while 0 not in raised:
            pass
        done.append(value)

    raised: list[int] = []

    def watched(value: int) -> None:
        try:
            work(value)
        finally:
            raised.append(value)

    with pytest.raises(ZeroDivisionError):
        each_at_once(range(9), watched, count)
    assert done == [value for value in begun if value]
    assert len(begun) < 9


@pytest.fixture
def interruptible() -> Iterator[threading.Event]:
    """The main thread gets `KeyboardInterrupt`, even in a run that a shell put in the background.

    Set once it was interrupted.
    """
    interrupted = threading.Event()

    def interrupt(*_: object) -> None:
        interrupted.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    yield interrupted
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_caller_leaves_what_hangs_and_nothing_more_begins(
    interruptible, monkeypatch
):
    monkeypatch.setattr(threads, "STOP_TIMEOUT_S", 0.01)
    begun, taken, go = [], set(), threading.Event()

    def work(value: int) -> None:
        begun.append(value)
        taken.add(threading.current_thread())
        if value == 1:
            interrupt_main_thread()
        go.wait(LIVENESS_S)

    with pytest.raises(KeyboardInterrupt):
        each_at_once(range(9), work, 2)
    go.set()
    eventually(lambda: all_ended(taken))
    assert sorted(begun) == [0, 1]


def test_a_call_that_hangs_does_not_keep_the_process():
    program = """
import signal, threading
from lakelog.engines import threads
threads.EXIT_TIMEOUT_S = threads.STOP_TIMEOUT_S = 0.01
signal.signal(signal.SIGINT, signal.default_int_handler)

def work(value):
    if value:
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    threading.Event().wait()

threads.each_at_once(range(2), work, 2)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert "KeyboardInterrupt" in done.stderr
    assert "the process was ended without it" in done.stderr
