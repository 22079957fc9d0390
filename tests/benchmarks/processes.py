"""Work of several processes at once, timed without their start and their end."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from typing import Any

PROCESSES = 2
TIMEOUT_S = 300  # a process that died must not hang the others


def timed_on_processes(work: Callable[..., None], *arguments: Any) -> float:
    """Seconds from the moment all processes are ready to the moment the last one is done.

    `work` is given the barrier and its process's number before the arguments, and meets the others
    before and after what is to be timed.
    """
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES + 1)
    workers = [
        context.Process(target=work, args=(barrier, number, *arguments))
        for number in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    meet(barrier)
    met_s = time.perf_counter()
    meet(barrier)
    taken_s = time.perf_counter() - met_s
    for worker in workers:
        worker.join()
    return taken_s


def meet(barrier: Barrier) -> None:
    barrier.wait(TIMEOUT_S)
