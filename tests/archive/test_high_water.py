"""A Redis that is nearly full: what is archived goes from there, and the rest is archived soon."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from lakelog import Lakelog
from lakelog.errors import InvalidConfigError
from lakelog.hot.connection import connect
from lakelog.hot.server_info import MEMORY_INFO, MemoryUse
from lakelog.testing.eventually import eventually
from tests.support.servers import RedisServer

#: Everything stays hot, and nothing is due for hours.
CONFIG = {
    "retention.ms": -1,
    "lakelog.flush.rows": 1_000_000,
    "lakelog.flush.interval.ms": 86_400_000,
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path / "redis", {"appendonly": "no"}).start()
    yield started
    started.kill()


@pytest.fixture
def lake(server: RedisServer, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lake:
        yield lake


def fill(lake: Lakelog, topic: str, records: int) -> None:
    with lake.producer() as producer:
        for _ in range(records):
            producer.send(topic, b"v" * 1000, partition=0)


def use_percent(server: RedisServer, percent: int) -> None:
    """Sets the limit so that what is used now is that much of it; 0: no limit."""
    with redis.Redis.from_url(server.url) as client:
        used = client.info("memory")["used_memory"]
        client.config_set("maxmemory", used * 100 // percent if percent else 0)


def local_log_start(lake: Lakelog, topic: str) -> int:
    return lake.log(topic).offsets()[0].local_log_start


def test_at_the_mark_all_that_is_archived_goes_from_redis_and_nothing_else(
    lake: Lakelog, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    lake.topics.create("t", 1, CONFIG)
    lake.topics.create("kept", 1, {**CONFIG, "lakelog.high.water.percent": 100})
    for topic in ("t", "kept"):
        fill(lake, topic, 200)
    use_percent(server, 70)
    lake.archive()
    assert [local_log_start(lake, topic) for topic in ("t", "kept")] == [0, 0]
    fill(lake, "t", 5)
    use_percent(server, 85)
    lake.archive(until=200)
    assert [local_log_start(lake, topic) for topic in ("t", "kept")] == [200, 0]
    assert "lakelog.high.water.percent=80" in caplog.text
    assert [r.offset for r in lake.log("t").read(0).records()] == list(range(205))


def test_at_the_mark_a_continuous_archiver_waits_for_neither_rows_nor_time(
    lake: Lakelog, server: RedisServer
) -> None:
    lake.topics.create("t", 1, CONFIG)
    fill(lake, "t", 200)
    stop = threading.Event()
    reports = []

    def archive() -> None:
        reports.extend(lake.archive_continuously(stop=stop))

    archiver = threading.Thread(target=archive)
    archiver.start()
    try:
        use_percent(server, 90)
        eventually(lambda: local_log_start(lake, "t") == 200)
        use_percent(server, 0)  # as adding memory does
    finally:
        stop.set()
        archiver.join()
    assert sum(report.records for report in reports) == 200


def test_what_does_not_count_against_the_limit_is_left_out(server: RedisServer) -> None:
    (one,) = connect(server.url).all()
    use = MemoryUse.of(one.call(MEMORY_INFO)[0])
    assert use is not None
    assert (use.percent, use.max_bytes) == (0.0, 0)
    info = b"used_memory:90\r\nmem_not_counted_for_evict:10\r\nmaxmemory:100\r\n"
    use = MemoryUse.of(info)
    assert use is not None
    assert use.percent == 80
    assert MemoryUse.of(ValueError("refused")) is MemoryUse.of(b"# Memory\r\n") is None


@pytest.mark.parametrize("value", [0, 101, "much"])
def test_marks_that_are_no_share_are_refused(lake: Lakelog, value: object) -> None:
    with pytest.raises(InvalidConfigError, match=r"high\.water\.percent"):
        lake.topics.create("t", 1, {"lakelog.high.water.percent": value})
