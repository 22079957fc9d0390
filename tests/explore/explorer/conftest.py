"""Topics for the explorer: made-up logs with gaps, and a lakelog with widgets over it."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # hands.py is no test module,
sys.path.insert(0, str(Path(__file__).parents[2] / "read"))  # nor are bench.py, gapped_story.py

from bench import Bench

from lakelog import Lakelog
from lakelog.explore.explorer import launch
from lakelog.explore.explorer.view import Source

EPOCH_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def make_bench(redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes a `Bench`: a topic whose tiers a test moves by hand."""
    benches = []

    def make(*, partitions: int = 1, tiered: bool = True, **settings: object) -> Bench:
        given = {"remote.storage.enable": tiered, **settings}
        benches.append(Bench(redis_url, tmp_path / f"cold-{len(benches)}", partitions, given))
        return benches[-1]

    yield make
    for bench in benches:
        bench.hot.close()


class Shop:
    """A lakelog, and what is sent to it: record n is a second later than the one before."""

    def __init__(self, lakelog: Lakelog) -> None:
        self.lakelog = lakelog
        self._sent = itertools.count()
        self._widgets: list[Any] = []

    def topic(self, name: str = "orders", partitions: int = 1, **settings: object) -> None:
        given = {"retention.ms": -1, "local.retention.ms": 0, **settings}
        self.lakelog.topics.create(name, partitions, given)

    def send(self, *records: Any, topic: str = "orders", partition: int = 0) -> None:
        """Values, or (key, value), or (key, value, headers)."""
        with self.lakelog.producer() as producer:
            for record in records:
                key, value, *rest = record if isinstance(record, tuple) else (None, record)
                producer.send(
                    topic,
                    value,
                    key=key,
                    headers=rest[0] if rest else (),
                    partition=partition,
                    timestamp_ms=EPOCH_MS + 1000 * next(self._sent),
                )

    def explore(self, topic: str | None = "orders", **options: Any) -> Any:
        if "page_records" in options:
            names = [one.name for one in self.lakelog.topics.list()]
            explorer = launch(Source(self.lakelog.log, lambda: names), topic, **options)
        else:
            explorer = self.lakelog.explore(topic, **options)
        self._widgets.append(explorer)
        explorer.wait()
        return explorer

    def close(self) -> None:
        for widget in self._widgets:
            widget.close()
        self.lakelog.close()


@pytest.fixture
def shop(redis_url: str, tmp_path: Path) -> Iterator[Shop]:
    """Without topics."""
    made = Shop(Lakelog.connect(redis_url, tmp_path / "cold", engine="inline"))
    yield made
    made.close()


@pytest.fixture
def orders(shop: Shop) -> Shop:
    """A topic of one partition, [0, 100) cold, [100, 130) hot; keys k0 to k6 in turn."""
    shop.topic()
    shop.send(*((f"k{n % 7}", f'{{"n": {n}}}', [("h", b"%d" % n)]) for n in range(100)))
    shop.lakelog.archive("orders")
    shop.send(*((f"k{n % 7}", f"text {n}") for n in range(100, 130)))
    return shop
