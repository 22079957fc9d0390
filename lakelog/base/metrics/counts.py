"""The counts that this process keeps. Cheap: a lock and a dictionary, once a batch."""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from .metric import Histogram, Kind, Measured, Metric
from .of_process import OF_PROCESS


class Counts:
    """Counters, histograms and last values by metric and labels. Thread-safe.

    A forked process begins with nothing: what its parent did is not its own.

    Args:
        metrics: those that may be counted, in the order in which they are told.
    """

    def __init__(self, metrics: tuple[Metric, ...] = OF_PROCESS) -> None:
        self._metrics = metrics
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self._lock = threading.Lock()
        self._values: dict[Metric, dict[tuple[str, ...], float]] = {}
        self._buckets: dict[Metric, dict[tuple[str, ...], tuple[list[int], list[float]]]] = {}

    def add(self, metric: Metric, amount: float, *labels: str) -> None:
        """Count so much more."""
        with self._lock:
            of_metric = self._values.setdefault(metric, {})
            of_metric[labels] = of_metric.get(labels, 0) + amount

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """That is how it is now."""
        with self._lock:
            self._values.setdefault(metric, {})[labels] = value

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Something took, or was, so much."""
        place = bisect_left(metric.buckets, value)
        with self._lock:
            of_metric = self._buckets.setdefault(metric, {})
            found = of_metric.get(labels)
            if found is None:
                found = of_metric[labels] = ([0] * (len(metric.buckets) + 1), [0.0])
            found[0][place] += 1
            found[1][0] += value

    def measured(self) -> list[Measured]:
        """What was counted so far: each metric, also without any."""
        with self._lock:
            values = {metric: dict(found) for metric, found in self._values.items()}
            histograms = {
                metric: {labels: Histogram(tuple(n), s[0]) for labels, (n, s) in found.items()}
                for metric, found in self._buckets.items()
            }
        return [_measured(one, values, histograms) for one in self._metrics]

    def beside(self, told: Sequence[Measured]) -> list[Measured]:
        """What a log tells, and what was counted here of that which it tells nothing of."""
        known = {one.metric for one in told}
        return [*told, *(one for one in self.measured() if one.metric not in known)]


def _measured(
    metric: Metric,
    values: Mapping[Metric, Mapping[tuple[str, ...], float]],
    histograms: Mapping[Metric, Mapping[tuple[str, ...], Histogram]],
) -> Measured:
    if metric.kind is Kind.HISTOGRAM:
        return Measured(metric, histograms=sorted(histograms.get(metric, {}).items(), key=_labels))
    return Measured(metric, sorted(values.get(metric, {}).items()))


def _labels(item: tuple[tuple[str, ...], object]) -> tuple[str, ...]:
    return item[0]


#: Of this process.
COUNTS = Counts()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COUNTS.clear)
