"""A Redis that is nearly full: producers are held back before anything is refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest
import redis

from lakelog import Lakelog
from lakelog.base.clock import SystemClock
from lakelog.base.metrics import COUNTS, THROTTLE_SECONDS
from lakelog.errors import DeliveryError, HotTierFullError
from lakelog.hot.connection import Wire
from lakelog.hot.server_info import MemoryUse, skew_ms
from lakelog.hot.throttle import MOST_MS, ROOM_LASTS_MS, SMALL_CALL_MS, throttle_time_ms
from lakelog.operate.diagnosis import diagnose
from tests.support.servers import RedisServer

MIB = 2**20
LIMIT = 100 * MIB


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    started = RedisServer(tmp_path_factory.mktemp("redis"), {"appendonly": "no"}).start()
    yield started
    started.kill()


@pytest.fixture
def client(server: RedisServer) -> Iterator[redis.Redis]:
    with server.client() as client:
        client.config_set("maxmemory", 0)
        client.flushall()
        yield client


@pytest.fixture
def lake(server: RedisServer, client: redis.Redis, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lake:
        yield lake


def use_percent(client: redis.Redis, percent: int) -> None:
    """Sets the limit to what 64 MiB are about so much of."""
    client.config_set("maxmemory", 0)
    client.setrange("ballast", 64 * MIB, "b")
    used = client.info("memory")["used_memory"]
    client.config_set("maxmemory", used * 100 // percent)


def wait_ms(percent: int, mark: float = 80, size_bytes: int = 0) -> int:
    return throttle_time_ms(MemoryUse(percent * LIMIT // 100, LIMIT), mark, size_bytes)


def held_back() -> tuple[int, float]:
    """How often producers of this process were, and for how many seconds."""
    (found,) = [one for one in COUNTS.measured() if one.metric is THROTTLE_SECONDS]
    counts = [sum(one.counts) for _, one in found.histograms]
    return sum(counts), sum(one.sum for _, one in found.histograms)


def send(lake: Lakelog, topic: str, calls: int) -> tuple[int, float]:
    """Sends calls of one record, each after the answer to the one before; how it was held back."""
    before = held_back()
    with lake.producer() as producer:
        for _ in range(calls):
            producer.send(topic, b"v" * 100).result()
    after = held_back()
    return after[0] - before[0], after[1] - before[1]


def test_the_fuller_the_longer_from_the_mark_on() -> None:
    waits = [wait_ms(percent) for percent in (0, 80, 82, 85, 90, 95, 100, 120)]
    assert waits == sorted(waits)
    assert waits[:2] == [0, 0]
    assert 0 < waits[2] <= SMALL_CALL_MS // 100
    assert waits[-2:] == [SMALL_CALL_MS, SMALL_CALL_MS]
    assert wait_ms(100, mark=inf) == 0
    assert throttle_time_ms(None, 80, MIB) == 0


def test_what_is_free_lasts_a_while_at_the_rate_of_large_calls() -> None:
    assert wait_ms(79, size_bytes=MIB) == 0
    assert wait_ms(90, size_bytes=LIMIT // 10) == ROOM_LASTS_MS
    assert wait_ms(90, size_bytes=LIMIT) == wait_ms(100, size_bytes=MIB) == MOST_MS


def test_between_the_mark_and_full_each_answer_holds_the_next_call_back(
    lake: Lakelog,
    server: RedisServer,
    client: redis.Redis,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lake.topics.create("t", 1)
    lake.topics.create("unmarked", 1, {"lakelog.high.water.percent": 100})
    lake.topics.create("untiered", 1, {"remote.storage.enable": False})
    use_percent(client, 70)
    assert send(lake, "t", 3) == (0, 0)
    assert list(lake.status().throttle_ms.values()) == [0]
    use_percent(client, 90)
    with Lakelog.connect(server.url, str(lake.place.cold)) as other:  # that looks at once
        times, seconds = send(other, "t", 3)
        assert send(other, "unmarked", 3) == send(other, "untiered", 3) == (0, 0)
    assert times == 3
    assert seconds == pytest.approx(3 * wait_ms(90) / 1000, rel=0.2)
    assert caplog.text.count("Redis is nearly full") == 1
    (told,) = lake.status().throttle_ms.values()
    assert told == pytest.approx(wait_ms(90), rel=0.2)
    rows = {row["metric"]: row["value"] for row in lake.metrics().to_pylist()}
    assert rows["lakelog_redis_throttle_seconds"] == pytest.approx(told / 1000, rel=0.1)
    assert client.info("stats")["evicted_keys"] == 0
    assert [r.offset for r in lake.log("t").read(0).records()] == list(range(6))


def test_who_is_held_back_for_longer_than_a_delivery_may_take_hears_why(
    lake: Lakelog, client: redis.Redis
) -> None:
    lake.topics.create("t", 1)
    use_percent(client, 99)
    with lake.producer(delivery_timeout_ms=600) as producer:
        producer.send("t", b"v").result()
        with pytest.raises(DeliveryError, match="Redis is nearly full") as failed:
            producer.send("t", b"v").result()
    assert isinstance(failed.value.last_error, HotTierFullError)
    assert (failed.value.not_written, failed.value.unknown) == (1, 0)


def test_it_takes_no_round_trip_more(
    lake: Lakelog, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.topics.create("t", 1)
    use_percent(client, 85)
    sent: list[str] = []
    exchange = Wire.exchange

    def counted(self: Wire, commands: list[tuple[object, ...]]) -> list[object]:
        sent.append(" ".join(str(command[0]) for command in commands))
        return exchange(self, commands)

    with lake.producer() as producer:
        producer.send("t", b"v").result()
        with monkeypatch.context() as patched:
            patched.setattr(Wire, "exchange", counted)
            for _ in range(4):
                producer.send("t", b"v").result()
    assert len(sent) == 4
    assert set(sent) <= {"EVALSHA", "EVALSHA INFO"}


@pytest.mark.slow
def test_a_producer_that_is_faster_than_the_archiver_is_slowed(
    lake: Lakelog, client: redis.Redis
) -> None:
    before = held_back()[0]
    lake.topics.create("t", 2, {"segment.bytes": 8 * MIB})
    client.config_set("maxmemory", 96 * MIB)
    stop, archived = threading.Event(), []

    def archive() -> None:
        archived.extend(lake.archive_continuously(stop=stop))

    archiver = threading.Thread(target=archive)
    archiver.start()
    values = [b"v%06d" % n * 140 for n in range(20_000)]  # ~ 980 bytes each
    try:
        with lake.producer(compression_type="none") as producer:
            for _ in range(20):
                producer.send_batch("t", values)
    finally:
        client.config_set("maxmemory", 0)
        stop.set()
        archiver.join()
    ends = [offsets.log_end for offsets in lake.log("t").offsets().values()]
    assert sum(ends) == 20 * len(values)  # 392 MB through 96 MiB
    assert held_back()[0] > before
    assert client.info("stats")["evicted_keys"] == 0


def test_what_an_exchange_cannot_tell_is_no_skew() -> None:
    assert skew_ms(100, 150, 200) == skew_ms(100, 100, 200) == skew_ms(100, 200, 200) == 0
    assert skew_ms(100, 5200, 200) == 5000
    assert skew_ms(5100, 100, 5200) == -5000


@pytest.mark.parametrize(("minutes", "said"), [(5, "behind"), (-5, "ahead of")])
def test_a_clock_that_is_off_is_told_with_by_how_much(
    lake: Lakelog,
    server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    minutes: int,
    said: str,
) -> None:
    lake.topics.create("t", 1)
    now_ms = SystemClock.now_ms
    monkeypatch.setattr(SystemClock, "now_ms", lambda clock: now_ms(clock) + minutes * 60_000)
    with Lakelog.connect(server.url) as other:
        (seen,) = other.status().servers
        assert abs(seen.clock_skew_ms + minutes * 60_000) < 10_000
    (finding,) = [one for one in diagnose(redis_url=server.url) if one.what == "Redis clock"]
    assert finding.state == "risky"
    assert said in finding.found
