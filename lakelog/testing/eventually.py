"""How a test waits: for a condition, never for a time."""

from __future__ import annotations

from collections.abc import Callable

from ..base.back_off import POLL, wait_until

#: Not an assertion on time: a test that hangs must fail in the end, on the slowest machine too.
LIVENESS_S = 300.0


def eventually(condition: Callable[[], object], *, said: Callable[[], object] = lambda: "") -> None:
    """Return once another thread or process has made a condition true.

    Args:
        condition: called again and again; an error from it ends the wait, so it may assert that the
            other thread or process still lives.
        said: more for the error's message.

    Raises:
        AssertionError: it is not true within `LIVENESS_S`.
    """
    if not wait_until("a test's condition", lambda: bool(condition()), POLL.within(LIVENESS_S)):
        raise AssertionError(f"it did not become true within {LIVENESS_S:.0f} s: {said()}")
