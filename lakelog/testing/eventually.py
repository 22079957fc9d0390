"""How a test waits: for something to be so, never for a time."""

from __future__ import annotations

from collections.abc import Callable

from ..back_off import POLL, wait_until

#: No assertion on time: what hangs is to fail in the end, however slow the machine.
LIVENESS_S = 300.0


def eventually(condition: Callable[[], object], *, said: Callable[[], object] = lambda: "") -> None:
    """Return once something is so, by another thread's or process's doing.

    Args:
        condition: looked at again and again; what it raises ends the wait, so it may assert that
            whoever is to do it still lives.
        said: what an error should tell besides.

    Raises:
        AssertionError: it is not so within `LIVENESS_S`.
    """
    if not wait_until("a test's condition", lambda: bool(condition()), POLL.within(LIVENESS_S)):
        raise AssertionError(f"it did not come to be so within {LIVENESS_S:.0f} s: {said()}")
