"""Answers of the explorer that come when a test lets them."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from lakelog.explore.explorer import questions
from lakelog.read.found import Progress

#: How long an answer is held at most: longer is a test that hangs.
PATIENCE_S = 120.0


class Held:
    """The explorer's answers, each held back until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._answer = questions.answer
        self.questions: list[tuple[Any, threading.Event]] = []
        monkeypatch.setattr(questions, "answer", self)

    def __call__(
        self, opened: Any, ask: Any, *, on_progress: Any, stopped: Any, on_first: Any = None
    ) -> Any:
        free = threading.Event()
        self.questions.append((ask, free))
        on_progress(Progress(1234, 0, 4936, 5_000_000, 7, {0: 99}))
        end_s = time.monotonic() + PATIENCE_S
        while not free.wait(0.01):
            if stopped() and ask.match:
                break
            assert time.monotonic() < end_s, "nobody lets this answer go"
        return self._answer(
            opened, ask, on_progress=on_progress, stopped=stopped, on_first=on_first
        )
