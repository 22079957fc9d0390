"""What a process counts while it works on a log."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakelog.base import metrics as m
from lakelog.base.metrics import COUNTS, Metric
from lakelog.errors import ArchiveUnfinishedError, CleanupFailedError, LakelogError
from lakelog.lakelog import Lakelog
from lakelog.testing.eventually import eventually
from tests.support.servers import RedisServer


@pytest.fixture
def log(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    COUNTS.clear()
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as log:
        yield log


def counted(metric: Metric, *labels: str) -> float:
    """What was counted; of a histogram, how many observations."""
    (found,) = [one for one in COUNTS.measured() if one.metric is metric]
    if metric.buckets:
        return dict(found.histograms)[labels].count if found.histograms else 0
    return dict(found.samples).get(labels, 0)


def test_a_producer_counts_what_it_appended(log):
    log.topics.create("t", 2)
    with log.producer() as producer:
        producer.send_batch("t", [b"v" * 100] * 1_000)
        for _ in range(5):
            producer.send("t", b"v").result()
    sizes = [
        one.size_bytes for one in log.hot.offsets(log.topics.get("t").topic_partitions()).values()
    ]
    assert counted(m.PRODUCED_RECORDS, "t") == 1_005
    assert counted(m.PRODUCED_BYTES, "t") == sum(sizes)
    assert counted(m.REQUEST_SECONDS) >= 6
    assert (counted(m.PRODUCER_ERRORS, "t"), counted(m.PRODUCER_RETRIES, "t")) == (0, 0)


def test_a_producer_counts_what_failed(log):
    log.topics.create("t", 1, {"max.message.bytes": 1_000})
    with pytest.raises(LakelogError), log.producer() as producer:
        producer.send("t", os.urandom(2_000))
    assert (counted(m.PRODUCED_RECORDS, "t"), counted(m.PRODUCER_ERRORS, "t")) == (0, 1)


def test_a_producer_counts_what_it_sends_again(make_redis, tmp_path):
    COUNTS.clear()
    server: RedisServer = make_redis(appendonly="yes", appendfsync="always")
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as log:
        log.topics.create("t", 1)
        with log.producer() as producer:
            producer.send("t", "v").result()
            server.kill()
            sent = producer.send("t", "v")
            eventually(lambda: not sent.done() and counted(m.PRODUCER_RETRIES, "t") > 0)
            server.start()
            sent.result()
    assert (counted(m.PRODUCED_RECORDS, "t"), counted(m.PRODUCER_ERRORS, "t")) == (2, 0)


def test_a_consumer_counts_each_record_once_however_it_is_handed_out(log):
    log.topics.create("t", 1)
    with log.producer() as producer:
        producer.send_batch("t", [b"v" * 10] * 2_000)
    log.archive()
    with log.consumer("t", auto_offset_reset="earliest") as consumer:
        for _, _ in zip(range(700), consumer, strict=False):
            pass
        assert 700 <= counted(m.CONSUMED_RECORDS, "t") <= 1_000  # those of a chunk, together
        consumer.poll(1_000, max_records=100)
        while consumer.poll_arrow(100):
            pass
    assert counted(m.CONSUMED_RECORDS, "t") == 2_000
    assert counted(m.CONSUMED_BYTES, "t") > 20_000
    assert counted(m.FETCH_SECONDS) >= 1


def test_members_count_their_rebalances(log):
    log.topics.create("t", 2)
    with log.consumer("t", group_id="g") as one, log.consumer("t", group_id="g") as other:
        eventually(lambda: one.poll(50) or len(one.assignment()) == 2)
        first = counted(m.REBALANCES, "g")
        eventually(
            lambda: one.poll(0) or other.poll(0) or len(one.assignment()) == len(other.assignment())
        )
    assert first >= 1
    assert counted(m.REBALANCES, "g") >= first + 2


def test_a_share_consumer_counts_what_it_took(log):
    log.topics.create("t", 1)
    with log.producer() as producer:
        producer.send_batch("t", [b"v"] * 10)
    with log.share_consumer("t", group_id="w", share_auto_offset_reset="earliest") as consumer:
        eventually(lambda: consumer.poll(100))
    assert counted(m.CONSUMED_RECORDS, "t") == 10


def test_an_archiver_counts_its_commits(log):
    log.topics.create("t", 2)
    with log.producer() as producer:
        producer.send_batch("t", [b"v"] * 10, partition=0)
        producer.send_batch("t", [b"v"] * 10, partition=1)
    (report,) = log.archive()
    assert counted(m.ARCHIVE_COMMITS, "t") == 1  # of both partitions
    assert counted(m.ARCHIVED_RECORDS, "t") == 20
    assert counted(m.ARCHIVED_BYTES, "t") == report.size_bytes
    assert counted(m.COMMIT_SECONDS) == 1
    log.archive()
    assert counted(m.ARCHIVE_COMMITS, "t") == 1


def test_a_continuous_archiver_counts_outages_and_retries(log, tmp_path):
    log.topics.create("t", 1, {"lakelog.flush.rows": 1})
    with log.producer() as producer:
        producer.send("t", "v")
    log.archive()
    (path,) = (tmp_path / "cold" / "t").iterdir()
    DeltaTable(str(path)).restore(0)  # a contradiction: nothing is archived into it
    with log.producer() as producer:
        producer.send("t", "v")
    stop = threading.Event()

    def archive() -> None:
        with pytest.raises(ArchiveUnfinishedError):
            list(log.archive_continuously(stop=stop))

    thread = threading.Thread(target=archive)
    thread.start()
    try:
        eventually(lambda: counted(m.ARCHIVE_RETRIES, "t") >= 2)
    finally:
        stop.set()
        thread.join()
    assert counted(m.ARCHIVE_OUTAGES, "t") == 1


def test_a_cleanup_counts_what_it_did(log):
    log.topics.create("t", 1, {"cleanup.policy": "compact", "internal.segment.bytes": 200})
    with log.producer() as producer:
        for n in range(8):
            producer.send("t", b"v" * 50, key=b"k%d" % (n % 2)).result()
    log.archive()
    (report,) = log.cleanup()
    (compacted,) = report.compacted
    assert counted(m.CLEANER_RUNS, "t") == counted(m.CLEANER_SECONDS) == 1
    assert counted(m.RECOPY_RATIO, "t") == pytest.approx(compacted.recopy_percent / 100)
    assert counted(m.MAX_CLEAN_SECONDS, "t") == compacted.seconds
    assert counted(m.CLEANER_FAILURES, "t") == counted(m.CLEANER_FAILED, "t") == 0


def test_a_cleanup_that_fails_counts_it(log, tmp_path):
    log.topics.create("t", 1)
    with log.producer() as producer:
        producer.send("t", "v")
    log.archive()
    (path,) = (tmp_path / "cold" / "t").iterdir()
    DeltaTable(str(path)).restore(0)
    with pytest.raises(CleanupFailedError):
        log.cleanup()
    assert counted(m.CLEANER_FAILURES, "t") == counted(m.CLEANER_FAILED, "t") == 1
