"""Records too old for their topic's retention: the producer says so once, and they are appended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakelog.codec import Entry, encode
from lakelog.ingest.answers import age_limit_ms, oldest_expired_ms
from lakelog.values.config import DAY_MS, Compression, EntryFormat, TopicConfig
from lakelog.values.record import produced_batch

NOW_MS = 1_700_000_000_000
UNTIERED = {"remote.storage.enable": False}


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What was warned of, by ``lakelog.ingest.answers`` alone."""
    with caplog.at_level(logging.WARNING, "lakelog.ingest.answers"):
        yield lambda: [
            record.getMessage()
            for record in caplog.records
            if record.name == "lakelog.ingest.answers"
        ]


def entries_of(*timestamps_ms: int, layout: EntryFormat = EntryFormat.FIELDS) -> tuple[Entry, ...]:
    rows = [(timestamp_ms, None, b"v", ()) for timestamp_ms in timestamps_ms]
    return encode(produced_batch(rows), layout, Compression.NONE)


# -- deciding ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "limit_ms"),
    [
        ({}, 7 * DAY_MS),
        ({"retention.ms": 0}, 0),
        ({"retention.ms": -1}, None),
        ({"cleanup.policy": ""}, None),
        ({"cleanup.policy": "compact"}, None),
        ({"cleanup.policy": "compact,delete", "retention.ms": 5}, 5),
        ({"message.timestamp.type": "LogAppendTime"}, None),
    ],
)
def test_only_a_topic_that_deletes_by_the_producers_timestamps_has_a_limit(
    settings: dict[str, object], limit_ms: int | None
) -> None:
    assert age_limit_ms(TopicConfig.of(settings)) == limit_ms


@pytest.mark.parametrize("layout", [EntryFormat.FIELDS, EntryFormat.ARROW, EntryFormat.KAFKA])
def test_the_oldest_record_counts_and_the_limit_itself_is_not_beyond(layout: EntryFormat) -> None:
    def oldest(*timestamps_ms: int) -> int | None:
        return oldest_expired_ms(entries_of(*timestamps_ms, layout=layout), 1000, NOW_MS)

    assert oldest(NOW_MS, NOW_MS - 1000) is None
    assert oldest(NOW_MS, NOW_MS - 1001, NOW_MS - 1002, NOW_MS) == NOW_MS - 1002
    assert oldest(-1, NOW_MS - 1001) == NOW_MS - 1001
    assert oldest(-1, -1) is None
    assert oldest(0) == 0


# -- saying ------------------------------------------------------------------------------------


def test_an_old_record_stays_readable_and_is_warned_of_once_a_topic(
    tier: Any, make_producer: Any, said: Callable[[], list[str]]
) -> None:
    for name in ("t", "u"):
        tier.topics.create(name, 2, {**UNTIERED, "retention.ms": 60_000})
    producer = make_producer(tier)
    producer.send("t", b"new").result()
    assert said() == []
    for partition in (0, 1, 0):
        producer.send("t", b"old", timestamp_ms=1_000, partition=partition).result()
    assert tier.values("t").count(b"old") == 2
    assert said() == [
        "topic 't' takes records that are older than retention.ms=60000 already, such as one of "
        "1970-01-01 00:00:01.000+00:00: they go when retention is checked next, every "
        "log.retention.check.interval.ms=300000, with all of their segment, unless it holds a "
        "younger record. To keep them, raise the topic's retention.ms (-1: no limit): "
        "`lakelog topics alter t --config retention.ms=-1`"
    ]
    producer.send("u", b"old", timestamp_ms=1_000).result()
    assert len(said()) == 2


def test_the_old_records_of_a_table_are_warned_of(
    tier: Any, make_producer: Any, said: Callable[[], list[str]]
) -> None:
    tier.topics.create("t", config=UNTIERED)
    table = pa.table({"value": [b"v"] * 1000, "timestamp_ms": [0] * 1000})
    make_producer(tier).send_batch("t", table)
    assert len(tier.values("t")) == 1000
    assert [text.partition(",")[0] for text in said()] == [
        "topic 't' takes records that are older than retention.ms=604800000 already"
    ]


def test_of_a_tiered_topic_it_is_said_that_a_cleanup_takes_them(
    tier: Any, make_producer: Any, said: Callable[[], list[str]]
) -> None:
    tier.topics.create("t")
    make_producer(tier).send("t", b"old", timestamp_ms=0).result()
    (text,) = said()
    assert "they go with the first cleanup after they are archived, with all" in text


@pytest.mark.parametrize(
    "settings", [{"retention.ms": -1}, {"message.timestamp.type": "LogAppendTime"}]
)
def test_nothing_is_said_where_nothing_goes_by_it(
    tier: Any, make_producer: Any, said: Callable[[], list[str]], settings: dict[str, object]
) -> None:
    tier.topics.create("t", config={**UNTIERED, **settings})
    make_producer(tier).send("t", b"old", timestamp_ms=0).result()
    assert said() == []
