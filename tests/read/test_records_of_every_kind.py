"""Records of every kind as objects, by each call that makes objects, from both tiers.

Against the rows that Arrow gives of the same log.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog, Record, TimestampType, TopicPartition
from lakelog.values.record import RECORDS_AT_ONCE

HEADERS = [("h", b"1"), ("h", b"2"), ("none", None), ("", b"")]
KINDS = (
    (b"key", b"value", []),
    (None, b'{"delay": 7, "origin": "JFK"}', HEADERS),
    (b"", b"", []),
    (b"key", None, HEADERS[:1]),
    (b"large", b"." * 40_000, []),
)
TOPICS = {
    "plain": {},
    "typed": {"lakelog.value.columns": "delay int, origin string"},
    "encrypted": {"lakelog.encryption.key": "env:LAKE_KEY"},
    "kafka": {"lakelog.entry.format": "kafka"},
    "kafka-encrypted": {
        "lakelog.entry.format": "kafka",
        "lakelog.encryption.key": "env:LAKE_KEY",
        "message.timestamp.type": "LogAppendTime",
    },
    "appended": {"message.timestamp.type": "LogAppendTime", "lakelog.entry.format": "fields"},
}


@pytest.fixture
def lake(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lakelog]:
    monkeypatch.setenv("LAKE_KEY", "A" * 43 + "=")
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        yield lake


def fill(lake: Lakelog, topic: str) -> int:
    """More in each tier than is made at a time, of both formats of entries."""
    each = RECORDS_AT_ONCE + 40
    lake.topics.create(topic, 1, {"retention.ms": -1, "local.retention.ms": 0, **TOPICS[topic]})
    for tier in ("cold", "hot"):
        with lake.producer() as producer:
            for number in range(each):
                key, value, headers = KINDS[number % 5 if number < 40 else number % 4]
                time_ms = 1_700_000_000_000 + number
                producer.send(topic, value, key=key, headers=headers, timestamp_ms=time_ms)
        if tier == "cold":
            lake.archive(topic)
    with lake.producer(linger_ms=0) as producer:
        producer.send(topic, b"alone", key=b"alone").result()
    return 2 * each + 1


@pytest.mark.parametrize("topic", TOPICS)
def test_objects_are_the_rows_that_arrow_gives(lake: Lakelog, topic: str) -> None:
    count = fill(lake, topic)
    log, place = lake.log(topic), TopicPartition(topic, 0)
    offsets = log.offsets()[0]
    assert 0 < offsets.local_log_start < offsets.log_end == count
    expected = [
        Record(
            topic,
            0,
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            tuple((pair["key"], pair["value"]) for pair in row["headers"]),
            TimestampType(row["timestampType"]),
        )
        for row in log.read(0).to_arrow().to_pylist()
    ]
    sent = [KINDS[n % 5 if n < 40 else n % 4] for n in range(RECORDS_AT_ONCE + 40)] * 2
    assert [(r.key, r.value, [*r.headers]) for r in expected[:-1]] == [
        (key, value, [*headers]) for key, value, headers in sent
    ]

    assert [*log.read(0).records()] == expected
    middle = RECORDS_AT_ONCE // 2
    assert [*log.read(0, middle, count - 7).records()] == expected[middle:-7]
    assert [*log.search().records()] == expected
    with lake.consumer(topic, auto_offset_reset="earliest", consumer_timeout_ms=0) as consumer:
        assert [*consumer] == expected
        consumer.seek_to_beginning()
        polled: list[Record] = []
        while (position := consumer.position(place)) != count:
            assert position == len(polled)
            polled += consumer.poll(10_000)[place]
        assert polled == expected
    shared: list[Record] = []
    with lake.share_consumer(topic, group_id="queue", share_auto_offset_reset="earliest") as queue:
        while polled_now := queue.poll(0 if len(shared) == count else 10_000):
            shared += polled_now[place]
    assert shared == expected
