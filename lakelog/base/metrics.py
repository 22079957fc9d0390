"""A metric, what was measured of it, and what a process counts of its own work: of all logs that it
has open, together.
"""

from __future__ import annotations

import os
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


_TOPIC = ("topic",)
_PRODUCER = "kafka.producer:type=producer-topic-metrics,name="
_CONSUMER = "kafka.consumer:type=consumer-fetch-manager-metrics,name="
_CLEANER = "kafka.log:type=LogCleaner,name="

#: From a round trip on the same machine to a server that is away for a moment.
_ROUND_TRIP = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0)
#: From a small local table to what a Spark takes minutes for.
_WORK = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

PRODUCED_RECORDS = counter(
    "lakelog_producer_records_total",
    "records",
    _TOPIC,
    "Records that producers have appended",
    f"{_PRODUCER}record-send-total",
)
PRODUCED_BYTES = counter(
    "lakelog_producer_bytes_total",
    "bytes",
    _TOPIC,
    "Their stored bytes",
    f"{_PRODUCER}byte-total",
)
PRODUCER_RETRIES = counter(
    "lakelog_producer_retries_total",
    "records",
    _TOPIC,
    "Records that had to be sent once more",
    f"{_PRODUCER}record-retry-total",
)
PRODUCER_ERRORS = counter(
    "lakelog_producer_errors_total",
    "records",
    _TOPIC,
    "Records that failed, or of which it is not known",
    f"{_PRODUCER}record-error-total",
)
REQUEST_SECONDS = histogram(
    "lakelog_producer_request_seconds",
    "seconds",
    (),
    "Round trips of producers' appends, each of one or more batches",
    _ROUND_TRIP,
    "kafka.producer:type=producer-metrics,name=request-latency-avg",
)
THROTTLE_SECONDS = histogram(
    "lakelog_producer_throttle_seconds",
    "seconds",
    (),
    "How long producers held a partition's calls back: Redis was nearly full, or a quota used up",
    _ROUND_TRIP,
    "kafka.producer:type=producer-metrics,name=produce-throttle-time-avg",
)
CONSUMED_RECORDS = counter(
    "lakelog_consumer_records_total",
    "records",
    _TOPIC,
    "Records that consumers have handed out",
    f"{_CONSUMER}records-consumed-total",
)
CONSUMED_BYTES = counter(
    "lakelog_consumer_bytes_total",
    "bytes",
    _TOPIC,
    "Bytes of these records in memory; not of those of share groups",
    f"{_CONSUMER}bytes-consumed-total",
)
FETCH_SECONDS = histogram(
    "lakelog_consumer_fetch_seconds",
    "seconds",
    (),
    "What consumers waited for the next records of a partition to be read, from either tier",
    _ROUND_TRIP,
    f"{_CONSUMER}fetch-latency-avg",
)
REBALANCES = counter(
    "lakelog_consumer_rebalances_total",
    "rebalances",
    ("group",),
    "Rebalances that members of a group have come through",
    "kafka.consumer:type=consumer-coordinator-metrics,name=rebalance-total",
)
ARCHIVE_COMMITS = counter(
    "lakelog_archive_commits_total",
    "commits",
    _TOPIC,
    "Commits of archivers",
    "kafka.server:type=BrokerTopicMetrics,name=RemoteCopyRequestsPerSec",
)
COMMIT_SECONDS = histogram(
    "lakelog_archive_commit_seconds",
    "seconds",
    (),
    "From an archiver's plan to its commit, the copying included",
    _WORK,
)
ARCHIVED_RECORDS = counter(
    "lakelog_archive_records_total", "records", _TOPIC, "Records that were archived"
)
ARCHIVED_BYTES = counter(
    "lakelog_archive_bytes_total",
    "bytes",
    _TOPIC,
    "Bytes of the files that archivers have committed",
    "kafka.server:type=BrokerTopicMetrics,name=RemoteCopyBytesPerSec",
)
ARCHIVE_RETRIES = counter(
    "lakelog_archive_retries_total",
    "runs",
    _TOPIC,
    "Runs of continuous archivers that failed and are tried again",
    "kafka.server:type=BrokerTopicMetrics,name=RemoteCopyErrorsPerSec",
)
ARCHIVE_OUTAGES = counter(
    "lakelog_archive_outages_total",
    "outages",
    _TOPIC,
    "Times that these began to fail after it had gone well",
)
CLEANER_RUNS = counter("lakelog_cleaner_runs_total", "runs", _TOPIC, "Cleanup runs")
CLEANER_FAILURES = counter(
    "lakelog_cleaner_failures_total", "failures", _TOPIC, "What cleanup runs could not do"
)
CLEANER_FAILED = gauge(
    "lakelog_cleaner_failed_partitions",
    "partitions",
    _TOPIC,
    "Partitions that the last run could not clean; 1 if it failed as a whole",
    "kafka.log:type=LogCleanerManager,name=uncleanable-partitions-count",
)
CLEANER_SECONDS = histogram(
    "lakelog_cleaner_seconds", "seconds", (), "Cleanup runs over a topic, all their steps", _WORK
)
RECOPY_RATIO = gauge(
    "lakelog_cleaner_recopy_ratio",
    "ratio",
    _TOPIC,
    "Of the bytes that the last compaction read, those that it kept",
    f"{_CLEANER}cleaner-recopy-percent",
)
MAX_CLEAN_SECONDS = gauge(
    "lakelog_cleaner_max_clean_seconds",
    "seconds",
    _TOPIC,
    "What the last compaction took, of the partition that took the longest",
    f"{_CLEANER}max-clean-time-secs",
)
_REQUESTS = "kafka.network:type=RequestMetrics,name="

GATEWAY_CONNECTIONS = gauge(
    "lakelog_gateway_connections",
    "connections",
    (),
    "Connections of Kafka's clients to a gateway",
    "kafka.server:type=socket-server-metrics,name=connection-count",
)
GATEWAY_REFUSED = counter(
    "lakelog_gateway_refused_total",
    "connections",
    (),
    "Connections that the gateway closed for what came, or did not come, by them",
)
GATEWAY_REQUEST_SECONDS = histogram(
    "lakelog_gateway_request_seconds",
    "seconds",
    ("api",),
    "From where the gateway takes a request up to its answer; those of a fetch wait for records",
    _ROUND_TRIP,
    f"{_REQUESTS}TotalTimeMs",
)
GATEWAY_REQUEST_BYTES = counter(
    "lakelog_gateway_request_bytes_total",
    "bytes",
    ("api",),
    "Bytes of these requests",
    f"{_REQUESTS}RequestBytes",
)
GATEWAY_RESPONSE_BYTES = counter(
    "lakelog_gateway_response_bytes_total", "bytes", ("api",), "Bytes of the answers"
)

#: In the order in which they are shown.
OF_PROCESS: tuple[Metric, ...] = (
    *(PRODUCED_RECORDS, PRODUCED_BYTES, PRODUCER_RETRIES, PRODUCER_ERRORS),
    *(REQUEST_SECONDS, THROTTLE_SECONDS),
    *(CONSUMED_RECORDS, CONSUMED_BYTES, FETCH_SECONDS, REBALANCES),
    *(ARCHIVE_COMMITS, COMMIT_SECONDS, ARCHIVED_RECORDS, ARCHIVED_BYTES),
    *(ARCHIVE_RETRIES, ARCHIVE_OUTAGES),
    *(CLEANER_RUNS, CLEANER_FAILURES, CLEANER_FAILED, CLEANER_SECONDS),
    *(RECOPY_RATIO, MAX_CLEAN_SECONDS),
    *(GATEWAY_CONNECTIONS, GATEWAY_REFUSED),
    *(GATEWAY_REQUEST_SECONDS, GATEWAY_REQUEST_BYTES, GATEWAY_RESPONSE_BYTES),
)

#: What this process has counted.
COUNTS = Counts(OF_PROCESS)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COUNTS.clear)
