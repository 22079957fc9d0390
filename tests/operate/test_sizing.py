"""The sizing formula, by hand; and a topic's own rate."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError
from lakelog.operate.sizing import GIB, TopicRate, sizing, topic_rate

EPOCH_MS = 1_700_000_000_000
RATE = TopicRate(records_per_second=1000, hot_bytes=1000, cold_bytes=400)
HOURS = {"local_retention_hours": 1.75, "headroom_hours": 10}


def test_by_hand() -> None:
    found = sizing(RATE, **HOURS, retention_days=30, memory_factor=1.0)
    assert found.redis_gib == pytest.approx(1000 * 1000 * 12 * 3600 / GIB)  # 1.75 + 0.25 + 10 h
    assert found.cold_gib == pytest.approx(1000 * 400 * 30 * 86400 / GIB)
    assert found.headroom_hours == 10
    assert (found.archive_machines, found.continuous_hours_per_day) == (1, 24)
    assert found.scheduled_hours_per_day == pytest.approx(8.04, abs=0.01)  # 96 starts of 5 minutes


def test_twice_the_rate_takes_twice_the_room() -> None:
    once = sizing(RATE, **HOURS, retention_days=30)
    twice = sizing(replace(RATE, records_per_second=2000), **HOURS, retention_days=30)
    assert twice.redis_gib == pytest.approx(2 * once.redis_gib)
    assert twice.cold_gib == pytest.approx(2 * once.cold_gib)


def test_a_rate_that_one_machine_cannot_copy_takes_more() -> None:
    found = sizing(TopicRate(7_000_000, 10, 5), **HOURS, retention_days=1)
    assert (found.archive_machines, found.continuous_hours_per_day) == (3, 72)
    assert found.scheduled_hours_per_day == 72  # it never ends


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="records_per_second is -1"):
        TopicRate(-1, 1, 1)
    with pytest.raises(InvalidArgumentError, match="archive_every_minutes > 0"):
        sizing(RATE, **HOURS, retention_days=1, archive_every_minutes=0)
    with pytest.raises(InvalidArgumentError, match="should be ≥ 0"):
        sizing(RATE, local_retention_hours=-1, headroom_hours=1, retention_days=1)


def test_a_topics_own_rate(redis_url: str, tmp_path: Path) -> None:
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as log:
        log.topics.create("orders", 2, {"retention.ms": -1, "local.retention.ms": 0})
        with pytest.raises(InvalidArgumentError, match="no rate"):
            topic_rate(log.log("orders"))
        with log.producer(compression_type="none") as producer:
            for number in range(2001):
                at_ms = 1_700_000_000_000 + number * 10
                producer.send("orders", b"x" * 100, partition=number % 2, timestamp_ms=at_ms)
        fresh = topic_rate(log.log("orders"))
        assert fresh.records_per_second == pytest.approx(100, rel=0.01)  # 2,001 within 20 s
        assert 100 < fresh.hot_bytes < 200
        assert fresh.cold_bytes == fresh.hot_bytes  # nothing is archived yet
        log.archive("orders")
        archived = topic_rate(log.log("orders"))
        assert archived.records_per_second == pytest.approx(100, rel=0.01)
        assert 0 < archived.cold_bytes < 20  # a hundred times the same byte


def test_a_topics_own_rate_counts_no_gap_and_asks_for_no_order(full) -> None:
    before = topic_rate(full.log).records_per_second
    assert before == pytest.approx(1000, rel=0.01)  # 400 records, a millisecond apart
    full.log.recover(0, 400 + 3_600_000 * 16_384)  # an hour's outage
    end = full.offsets.log_end
    # The newest come first, and the first has no older one in any segment's head.
    full.appends(20, times=lambda offset: EPOCH_MS + 799 - (offset - end))
    assert topic_rate(full.log).records_per_second == pytest.approx(1000, rel=0.05)
    full.log.raise_log_start(0, end)
    assert topic_rate(full.log).records_per_second == pytest.approx(1000, rel=0.05)


def test_a_topics_own_rate_counts_what_compaction_removed_but_not_what_was_deleted(full) -> None:
    full.log.raise_log_start(0, 200)
    assert topic_rate(full.log).records_per_second == pytest.approx(1000, rel=0.05)


def test_a_rate_counts_no_time_of_deleted_records(redis_url: str, tmp_path: Path) -> None:
    """A wrong clock's records were deleted, and their segment has others still."""
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as log:
        log.topics.create(
            "orders", 1, {"retention.ms": -1, "message.timestamp.after.max.ms": 2**60}
        )
        with log.producer() as producer:
            for ahead_ms in (-(10**10), 10**13):
                producer.send("orders", b"wrong", timestamp_ms=EPOCH_MS + ahead_ms)
            for number in range(1001):
                producer.send("orders", b"right", timestamp_ms=EPOCH_MS + number * 10)
        for tier in ("hot", "both"):
            if tier == "both":
                log.archive("orders")
            else:
                log.log("orders").raise_log_start(0, 2)
            rate = topic_rate(log.log("orders")).records_per_second
            assert rate == pytest.approx(100, rel=0.01), tier
