"""A consumer catches up from a table by name, read ahead where it lies and through Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from spark_log import SparkLog

from lakelog import TopicPartition

pytestmark = pytest.mark.slow


@pytest.fixture
def log(redis_url: str, schema: str) -> Iterator[SparkLog]:
    named = SparkLog(redis_url, schema).create(2)
    for _ in range(3):
        for partition in range(2):
            named.append(200, partition)
        named.archive()
    named.append(50)
    yield named
    named.lakelog.close()


@pytest.fixture(params=["where it lies", "through Spark"])
def _way(request: pytest.FixtureRequest) -> None:
    if request.param == "through Spark":
        request.getfixturevalue("through_spark")


@pytest.mark.usefixtures("_way")
def test_all_records_come_in_order_and_no_thread_is_left(log: SparkLog) -> None:
    seen: dict[int, list[int]] = {0: [], 1: []}
    consumer = log.lakelog.consumer("orders", auto_offset_reset="earliest")
    with consumer:
        while sum(map(len, seen.values())) < len(log.rows):
            for tp, records in consumer.poll(5_000, max_records=70).items():
                seen[tp.partition] += [record.offset for record in records]
        consumer.seek(TopicPartition("orders", 1), 150)
        (again,) = consumer.poll(5_000, max_records=10).values()
        assert [record.offset for record in again] == list(range(150, 160))
    assert seen == {0: list(range(650)), 1: list(range(600))}
    assert not [one for one in threading.enumerate() if "ahead" in one.name]
