"""A metric, what was measured of it, and the counts that a process keeps."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

#: Values of a metric's labels, in its order, and what was measured there.
Sample = tuple[tuple[str, ...], float]


class Kind(str, Enum):
    """Prometheus's types."""

    GAUGE = "gauge"  # goes up and down
    COUNTER = "counter"  # only grows, until its process or Redis begins anew
    HISTOGRAM = "histogram"  # how many observations were at most so large


class Metric(Struct, frozen=True, eq=False):
    """One metric, whoever shows it; the same as itself alone."""

    name: str  # as Prometheus has it: with its unit, and of a counter with ``_total``
    kind: Kind
    unit: str
    labels: tuple[str, ...]
    help: str  # one sentence
    kafka: str | None = None  # the MBean, or client metric, that says the same of Kafka
    buckets: tuple[float, ...] = ()  # of a histogram: upper bounds (inclusive), ascending


class Histogram(Struct, frozen=True):
    """The observations under one set of labels."""

    counts: Sequence[int]  # in each bucket alone; one more than there are bounds
    sum: float

    @property
    def count(self) -> int:
        return sum(self.counts)

    def up_to(self, buckets: Sequence[float]) -> list[tuple[float, int]]:
        """Each bound, infinity last, with how many observations are at most that."""
        found, total = [], 0
        for bound, count in zip((*buckets, float("inf")), self.counts, strict=True):
            total += count
            found.append((bound, total))
        return found


class Measured(Struct, frozen=True):
    """All that was measured of one metric."""

    metric: Metric
    samples: Sequence[Sample] = ()
    histograms: Sequence[tuple[tuple[str, ...], Histogram]] = ()  # in place of samples


def gauge(
    name: str, unit: str, labels: tuple[str, ...], help: str, kafka: str | None = None
) -> Metric:
    """A metric that goes up and down."""
    return Metric(name, Kind.GAUGE, unit, labels, help, kafka)


def counter(
    name: str, unit: str, labels: tuple[str, ...], help: str, kafka: str | None = None
) -> Metric:
    """A metric that only grows."""
    return Metric(name, Kind.COUNTER, unit, labels, help, kafka)


def histogram(
    name: str,
    unit: str,
    labels: tuple[str, ...],
    help: str,
    buckets: tuple[float, ...],
    kafka: str | None = None,
) -> Metric:
    """A metric of how long, or how much, things take."""
    return Metric(name, Kind.HISTOGRAM, unit, labels, help, kafka, buckets)


class Counts:
    """Counters, histograms and last values by metric and labels. Thread-safe.

    A forked process begins with nothing: what its parent did is not its own.

    Args:
        metrics: those that may be counted, in the order in which they are told.
    """

    def __init__(self, metrics: tuple[Metric, ...]) -> None:
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
