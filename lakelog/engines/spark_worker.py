"""Spark's Python workers, which run one task after the other."""

from __future__ import annotations

import gc

#: Modules are imported by the first tasks that need them, not all by the first of all.
_IMPORTING_TASKS = 4

_tasks = 0


def spare_imports() -> None:
    """Keep what is imported out of the garbage collection that a worker makes after each task.

    Before it takes the next task, Spark's worker looks for garbage among all objects, nearly all of
    which are the code and types of imported packages: 130 ms of a core a task, as much as a small
    task takes (measured with Arrow, pandas and lakelog). Called where a task begins.

    Runs on: executor.
    """
    global _tasks
    if _tasks < _IMPORTING_TASKS:
        _tasks += 1
        gc.freeze()
