"""Work off the main thread: the newest question wins, whatever comes back when."""

from __future__ import annotations

import threading

from lakelog.explore.explorer.background import Background


class Gate:
    """Work that waits until it is let through."""

    def __init__(self, answer):
        self.answer = answer
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self, job):
        self.begun.set()
        assert self.open.wait(60)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def start(background, work, came, failed=None):
    return background.start(work, came.append, (failed if failed is not None else came).append)


def test_an_error_that_comes_late_is_dropped_too():
    background, came = Background(), []
    slow = Gate(ValueError("late"))
    first = start(background, slow, came)
    start(background, lambda job: "quick", came)
    slow.open.set()
    assert first.done.wait(60)
    assert background.wait(60)
    assert came == ["quick"]
    assert isinstance(first.error, ValueError)


def test_waiting_covers_what_is_started_meanwhile():
    background, came = Background(), []
    start(background, lambda job: start(background, lambda job: "second", came) and "first", came)
    assert background.wait(60)
    assert came == ["second"]


def test_waiting_has_an_end():
    background = Background()
    gate = Gate("slow")
    assert background.wait(0)
    job = start(background, gate, [])
    assert not background.wait(0.01)
    gate.open.set()
    assert job.done.wait(60)


def test_what_fails_while_it_is_shown_is_an_error_as_well():
    background, failed = Background(), []

    def cannot_be_shown(answer):
        raise ValueError(answer)

    job = background.start(lambda job: "x", cannot_be_shown, failed.append)
    assert background.wait(60)
    assert job.error is failed[0]
    assert str(failed[0]) == "x"
