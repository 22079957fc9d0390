"""Work of several processes at once, timed without their start and their end."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from itertools import pairwise
from multiprocessing.synchronize import Barrier
from typing import Any

PROCESSES = 2  # unless asked for more
TIMEOUT_S = 300  # a process that died must not hang the others


def timed_on_processes(work: Callable[..., None], *arguments: Any) -> float:
    """Seconds from the moment all processes are ready to the moment the last one is done.

    `work` is given the barrier and its process's number before the arguments, and meets the others
    before and after what is to be timed.
    """
    (seconds,) = phases_on_processes(work, *arguments)
    return seconds


def phases_on_processes(
    work: Callable[..., None], *arguments: Any, processes: int = PROCESSES, phases: int = 1
) -> list[float]:
    """The same for work in several phases, which meets the others after each of them."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes + 1)
    workers = [
        context.Process(target=work, args=(barrier, number, *arguments))
        for number in range(processes)
    ]
    for worker in workers:
        worker.start()
    meet(barrier)
    met_s = [time.perf_counter()]
    for _ in range(phases):
        meet(barrier)
        met_s.append(time.perf_counter())
    for worker in workers:
        worker.join()
    return [end_s - began_s for began_s, end_s in pairwise(met_s)]


def meet(barrier: Barrier) -> None:
    barrier.wait(TIMEOUT_S)
