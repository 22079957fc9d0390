"""A log that is measured."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakelog.lakelog import Lakelog


@pytest.fixture
def append(log: Lakelog) -> Callable[..., None]:
    """So many records of a topic, each in a call of its own."""

    def append(topic: str, count: int, partition: int = 0) -> None:
        with log.producer() as producer:
            for _ in range(count):
                producer.send(topic, b"v" * 50, partition=partition).result()

    return append


@pytest.fixture
def value_of(log: Lakelog) -> Callable[..., float | None]:
    """What a metric says under some labels; None: nothing."""

    def value_of(name: str, table: pa.Table | None = None, **labels: str) -> float | None:
        rows = (log.metrics() if table is None else table).to_pylist()
        found = [
            row["value"]
            for row in rows
            if row["metric"] == name and labels.items() <= dict(row["labels"]).items()
        ]
        assert len(found) <= 1, f"{name} {labels} is not one value"
        return found[0] if found else None

    return value_of
