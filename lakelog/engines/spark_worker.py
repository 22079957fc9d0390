"""Spark's Python workers, which run one task after the other."""

from __future__ import annotations

import gc

#: The first tasks that need modules import them; that need not be the very first task.
_IMPORTING_TASKS = 4

_tasks = 0


def spare_imports() -> None:
    """Keep imported modules out of the garbage collection that a worker does after each task.

    Before it takes the next task, Spark's worker looks for garbage among all objects, nearly all of
    which are the code and types of imported packages. That takes 130 ms of a core per task, as much
    as a small task (measured with Arrow, pandas and lakelog). Call it where a task begins.

    Runs on: executor.
    """
    global _tasks
    if _tasks < _IMPORTING_TASKS:
        _tasks += 1
        gc.freeze()
