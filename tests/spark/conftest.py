"""Logs to read with Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # spark_log.py is no test module

from spark_log import SparkLog


@pytest.fixture
def make_log(redis_url: str, tmp_path: Path) -> Iterator[Callable[..., SparkLog]]:
    """``make_log(partitions=1, name="orders", **settings)``: a new topic in a log of the test's."""
    made: list[SparkLog] = []

    def make(partitions: int = 1, *, name: str = "orders", **settings: object) -> SparkLog:
        made.append(SparkLog(redis_url, tmp_path / "cold", name).create(partitions, **settings))
        return made[-1]

    yield make
    for log in made:
        log.lakelog.close()
