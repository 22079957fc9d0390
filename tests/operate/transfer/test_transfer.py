"""Topics leave a log as files and come into another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog import Lakelog
from lakelog.record import TopicPartition

FIRST_MS = 1_700_000_000_000


def send(lake: Lakelog, topic: str, start: int, count: int) -> None:
    with lake.producer() as producer:
        for n in range(start, start + count):
            producer.send(
                topic,
                None if n % 7 == 0 else f"v{n}".encode(),
                key=f"k{n % 5}",
                timestamp_ms=FIRST_MS + n,
                headers=[("n", str(n).encode())],
            )


def rows(lake: Lakelog, topic: str) -> dict[int, pa.Table]:
    log = lake.log(topic)
    partitions = range(lake.topics.get(topic).partitions)
    return {number: log.read(number).to_arrow() for number in partitions}


def committed(lake: Lakelog) -> list[object]:
    with lake.consumer(group_id="nightly") as consumer:
        return [consumer.committed(TopicPartition("orders", n)) for n in range(3)]


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    """A topic of three partitions, archived but for the last records, and a group."""
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("orders", 3, {"retention.ms": -1, "local.retention.ms": 0})
        for start in (0, 300, 600):
            send(lake, "orders", start, 300)
            lake.archive("orders")
        send(lake, "orders", 900, 60)
        with lake.consumer("orders", group_id="nightly", auto_offset_reset="earliest") as consumer:
            consumer.poll(timeout_ms=20_000)
            consumer.commit()
        yield lake


@pytest.fixture
def other(make_redis, tmp_path: Path) -> Iterator[Lakelog]:  # type: ignore[no-untyped-def]
    server = make_redis().start()
    with Lakelog.connect(server.url, tmp_path / "other", engine="inline") as lake:
        yield lake


@pytest.mark.parametrize("name", ["export", "export.tar"])
def test_a_topic_comes_into_another_log_as_it_was(
    lake: Lakelog, other: Lakelog, tmp_path: Path, name: str
) -> None:
    manifest = lake.export(tmp_path / name, "orders")
    before = rows(lake, "orders")
    assert sum(table.num_rows for table in before.values()) == 960
    assert [one.records for one in manifest.topics] == [960]

    (imported,) = other.import_topics(tmp_path / name)

    assert imported.records == 960
    assert rows(other, "orders") == before
    ends = {n: one.log_end for n, one in lake.log("orders").offsets().items()}
    assert {n: one.log_end for n, one in other.log("orders").offsets().items()} == ends
    assert imported.topic.topic_id != lake.topics.get("orders").topic_id
    assert committed(other) == committed(lake) != [None] * 3
    send(other, "orders", 960, 40)
    other.archive("orders")
    after = rows(other, "orders")
    assert sum(table.num_rows for table in after.values()) == 1000
    assert all(after[n].slice(0, before[n].num_rows) == before[n] for n in before)
    assert other.status().failures == ()
