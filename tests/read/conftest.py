"""Topics in both tiers, beside the plain list of what was appended to them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # bench.py and gapped_story.py are no test modules

from bench import Bench, Disguised


@pytest.fixture
def make_bench(redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Makes a `Bench`: ``make_bench(partitions=2, **{"segment.ms": 1})``; ``tiered=False`` too."""
    benches = []

    def make(
        *, partitions: int = 1, tiered: bool = True, url: str = redis_url, **settings: object
    ) -> Bench:
        given = {"remote.storage.enable": tiered, **settings}
        benches.append(Bench(url, tmp_path / "cold", partitions, given))
        return benches[-1]

    yield make
    for bench in benches:
        bench.hot.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """A tiered topic of one partition."""
    return make_bench()


@pytest.fixture
def disguised() -> type[Disguised]:
    return Disguised
