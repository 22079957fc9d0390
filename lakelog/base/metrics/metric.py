"""A metric, and what was measured of it."""

from __future__ import annotations

from collections.abc import Sequence
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
