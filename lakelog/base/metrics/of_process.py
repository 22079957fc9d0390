"""What a process counts of its own work: of all logs that it has open, together."""

from __future__ import annotations

import os

from .metric import Counts, Metric, counter, gauge, histogram

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

#: In the order in which they are shown.
OF_PROCESS: tuple[Metric, ...] = (
    *(PRODUCED_RECORDS, PRODUCED_BYTES, PRODUCER_RETRIES, PRODUCER_ERRORS),
    *(REQUEST_SECONDS, THROTTLE_SECONDS),
    *(CONSUMED_RECORDS, CONSUMED_BYTES, FETCH_SECONDS, REBALANCES),
    *(ARCHIVE_COMMITS, COMMIT_SECONDS, ARCHIVED_RECORDS, ARCHIVED_BYTES),
    *(ARCHIVE_RETRIES, ARCHIVE_OUTAGES),
    *(CLEANER_RUNS, CLEANER_FAILURES, CLEANER_FAILED, CLEANER_SECONDS),
    *(RECOPY_RATIO, MAX_CLEAN_SECONDS),
)

#: What this process has counted.
COUNTS = Counts(OF_PROCESS)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=COUNTS.clear)
