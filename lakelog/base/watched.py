"""How far a read is that lasts: shown in a notebook or a shell of Python, where somebody waits.

It is rich's bar, which the commands have too: it draws on a terminal, and in Jupyter by a widget,
and goes once the read is done. ``LAKELOG_PROGRESS=0`` leaves it out.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

#: Nothing is shown of what is done sooner.
PATIENCE_S = 2.0


class Watch(Protocol):
    """Takes how much is done, in the unit of the total."""

    def __call__(self, done: float, said: str = "") -> None: ...


@contextmanager
def watched(what: str, total: float) -> Iterator[Watch]:
    """What takes how much is done.

    Args:
        what: is done, as a bar says it: "reading orders".
    """
    if not _is_watched():
        yield lambda done, said="": None
        return
    bar: Any = None
    begun_s = time.monotonic()

    def show(done: float, said: str = "") -> None:
        nonlocal bar
        if bar is None and time.monotonic() - begun_s < PATIENCE_S:
            return
        if bar is None:
            bar = _bar()
            bar.start()
            bar.add_task(what, total=total, said="")
        bar.update(bar.task_ids[0], completed=done, said=said)

    try:
        yield show
    finally:
        if bar is not None:
            bar.stop()


def _is_watched() -> bool:
    if os.environ.get("LAKELOG_PROGRESS") == "0":
        return False
    if "IPython" in sys.modules:
        from IPython import get_ipython

        if get_ipython() is not None:
            return True
    return hasattr(sys, "ps1") and sys.stderr.isatty()


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} % {task.fields[said]}"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)
