"""How far a reader is behind: by records that there are, and by the age of the first of them."""

from __future__ import annotations

import pytest

from lakelog import Lakelog, TopicLog
from lakelog.read.lag import Lag, RecordCount, lag_of

FIRST_MS = 1_700_000_000_000
NOW_MS = FIRST_MS + 1_000_000


def filled(lake: Lakelog, **settings: object) -> TopicLog:
    """Twenty records, a key in five of them, of which twelve are archived; one each second."""
    config = {"retention.ms": -1, "local.retention.ms": 0, **settings}
    lake.topics.create("orders", 1, config)
    for first, last in ((0, 12), (12, 20)):
        with lake.producer() as producer:
            for n in range(first, last):
                key = b"k%d" % (n % 5)
                producer.send("orders", b"v", key=key, timestamp_ms=FIRST_MS + 1_000 * n)
        if last == 12:
            lake.archive("orders")
    return lake.log("orders")


def lag(log: TopicLog, position: int, now_ms: int = NOW_MS) -> Lag:
    def first_ms() -> int | None:
        start = max(position, log.offsets([0])[0].log_start)
        return next(iter(log.read(0, start).records())).timestamp_ms

    return lag_of(log.tiers().look([0]), 0, position, first_ms, now_ms, log.table)


@pytest.mark.parametrize("position", [0, 5, 11, 12, 15, 19])
def test_it_counts_the_records_of_both_tiers_and_tells_the_age_of_the_first(
    lake: Lakelog, position: int
) -> None:
    found = lag(filled(lake), position)
    assert found == Lag(RecordCount(20 - position), NOW_MS - FIRST_MS - 1_000 * position)


@pytest.mark.parametrize("position", [20, 25])
def test_who_has_read_all_or_claims_more_is_not_behind(lake: Lakelog, position: int) -> None:
    assert lag(filled(lake), position) == Lag(RecordCount(0), None)


def test_a_record_of_the_future_is_not_old(lake: Lakelog) -> None:
    assert lag(filled(lake), 0, FIRST_MS - 5_000).age_ms == 0


def test_a_record_without_a_timestamp_has_no_age(lake: Lakelog) -> None:
    log = filled(lake)
    found = lag_of(log.tiers().look([0]), 0, 0, lambda: -1, NOW_MS, log.table)
    assert found == Lag(RecordCount(20), None)
