"""What others use: the CPU time of Redis, and the memory of Spark's workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import redis


def redis_cpu_s(client: redis.Redis) -> float:
    """CPU time of a Redis so far, by its own count: that of the system has steps of 10 ms."""
    told = client.info("cpu")
    return float(told["used_cpu_user"] + told["used_cpu_sys"])


@contextmanager
def worker_peak() -> Iterator[list[int]]:
    """Watches Spark's Python workers; afterwards the list holds the largest resident size seen."""
    peaks = [0]
    stop = threading.Event()

    def look() -> None:
        for process in psutil.Process().children(recursive=True):
            try:
                if "pyspark.daemon" in " ".join(process.cmdline()):
                    peaks[0] = max(peaks[0], process.memory_info().rss)
            except psutil.Error:  # it ended while we looked
                continue

    def watch() -> None:
        while not stop.wait(0.02):
            look()
        look()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        stop.set()
        watcher.join()
