"""What a process counts, and the names that it is told by."""

from __future__ import annotations

import re
import subprocess
import sys
import threading

import pytest

from lakelog.base.metrics import Counts, Histogram, Kind, Measured, counter, gauge, histogram
from lakelog.operate.metrics.exposition import METRICS

SENT = counter("sent_total", "records", ("topic",), "Sent")
LAST = gauge("last_seconds", "seconds", (), "Last")
TOOK = histogram("took_seconds", "seconds", ("topic",), "Took", (0.1, 1.0))


@pytest.fixture
def counts() -> Counts:
    return Counts((SENT, LAST, TOOK))


def test_a_count_grows_by_its_labels(counts: Counts) -> None:
    counts.add(SENT, 2, "b")
    counts.add(SENT, 3, "a")
    counts.add(SENT, 4, "b")
    assert counts.measured()[0] == Measured(SENT, [(("a",), 3), (("b",), 6)])


def test_a_last_value_takes_the_place_of_the_one_before(counts: Counts) -> None:
    counts.set(LAST, 5)
    counts.set(LAST, 1)
    assert counts.measured()[1] == Measured(LAST, [((), 1)])


def test_an_observation_lies_in_the_first_bucket_that_takes_it(counts: Counts) -> None:
    for took in (0.05, 0.1, 0.5, 1.0, 7.0):
        counts.observe(TOOK, took, "a")
    ((labels, found),) = counts.measured()[2].histograms
    assert (labels, found) == (("a",), Histogram((2, 2, 1), pytest.approx(8.65)))
    assert found.up_to(TOOK.buckets) == [(0.1, 2), (1.0, 4), (float("inf"), 5)]


def test_what_was_never_counted_is_known_all_the_same(counts: Counts) -> None:
    found = counts.measured()
    assert [one.metric for one in found] == [SENT, LAST, TOOK]
    assert not any(one.samples or one.histograms for one in found)


def test_threads_lose_no_count(counts: Counts) -> None:
    def count() -> None:
        for _ in range(2_000):
            counts.add(SENT, 1, "a")
            counts.observe(TOOK, 0.5, "a")

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sent, _, took = counts.measured()
    assert sent.samples == [(("a",), 16_000)]
    assert took.histograms[0][1].count == 16_000


def test_a_forked_process_has_counted_nothing() -> None:
    program = """
import os
from lakelog.base.metrics import COUNTS
from lakelog.base.metrics import PRODUCED_RECORDS
COUNTS.add(PRODUCED_RECORDS, 3, "a")
if os.fork() == 0:
    print(sum(len(one.samples) for one in COUNTS.measured()), flush=True)
    os._exit(0)
os.wait()
print(sum(len(one.samples) for one in COUNTS.measured()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.split() == [b"0", b"1"]


def test_names_are_prometheus_s_and_each_is_one_metric_s() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"lakelog_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM)
        assert list(metric.buckets) == sorted(set(metric.buckets))
        assert not metric.help.endswith(".")
        assert len(set(metric.labels)) == len(metric.labels)


def test_a_name_says_its_unit() -> None:
    for metric in METRICS:
        if metric.unit in ("bytes", "seconds", "ratio"):
            assert metric.unit in metric.name, metric
