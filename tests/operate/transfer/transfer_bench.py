"""What the tests of exports and imports begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from lakelog import Lakelog
from tests.support.servers import RedisServer

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
    """All records by partition."""
    log = lake.log(topic)
    partitions = range(lake.topics.get(topic).partitions)
    return {number: log.read(number).to_arrow() for number in partitions}


@contextmanager
def filled(redis_url: str, cold: Path) -> Iterator[Lakelog]:
    """A topic of three partitions, archived but for the last 60 of 960 records, and a group."""
    with Lakelog.connect(redis_url, cold, engine="inline") as lake:
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
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with filled(redis_url, tmp_path / "cold") as lake:
        yield lake


@pytest.fixture
def other(make_redis: Callable[..., RedisServer], tmp_path: Path) -> Iterator[Lakelog]:
    """A log of nobody yet, with a Redis and a root of its own."""
    with Lakelog.connect(make_redis().url, tmp_path / "other", engine="inline") as lake:
        yield lake
