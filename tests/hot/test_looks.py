"""Partitions of many segments: looked at, trimmed, searched by time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lakelog.hot import fetch

SIZE = 600_000  # more than half a segment
CONFIG = {
    "segment_bytes": 1 << 20,
    "index_interval_bytes": 1,
    "retention_ms": -1,
    "remote_storage_enable": False,
}


@pytest.fixture
def many(make_bench: Callable[..., Any]) -> Any:
    """Forty segments of a record, and the open one."""
    bench = make_bench(**CONFIG)
    for n in range(41):
        bench.append_sized(SIZE, bench.clock.now_ms() + n)
    return bench


def bases(seen: Any) -> list[int]:
    return [segment.base_offset for segment in seen.segments]


def test_all_segments_are_told(many: Any) -> None:
    seen = many.offsets()
    assert bases(seen) == [*range(41)]
    assert (seen.segment_count, seen.size_bytes) == (41, 41 * SIZE)
    look = many.hot.inspection().look(many.tp(), many.topic.topic_id)
    assert (look.segments, look.flaws) == (seen.segments, ())


def test_where_a_partition_ends_is_told_without_its_segments(many: Any) -> None:
    def scripts() -> int:
        stats = many.client.info("commandstats")
        return int(stats["cmdstat_evalsha_ro"]["calls"])

    before = scripts()
    assert many.hot.offsets([many.tp()])[many.tp()].log_end == 41
    assert scripts() == before + 1
    assert "segments" not in type(many.hot.offsets([many.tp()])[many.tp()]).__slots__
    assert scripts() == before + 2
    many.offsets()
    assert scripts() == before + 3


def test_trimming_goes_by_parts_and_all_the_way(many: Any) -> None:
    """More segments than one script drops, put there by hand."""
    _, state, segments, *_ = many.keys()
    closed = {f"{n} {n + 1} 100 {n} {n} 0 0": n for n in range(1_300)}
    many.client.delete(segments)
    many.client.zadd(segments, closed)
    many.client.hset(state, mapping={"closed_bytes": 130_000, "log_end": 1_400})
    many.client.hset(state, "segment", "1300 0 -1 -1 0 0")

    def scripts() -> int:
        return int(many.client.info("commandstats")["cmdstat_evalsha"]["calls"])

    before = scripts()
    many.hot.raise_log_start(many.tp(), 1_250)
    assert scripts() == before + 5
    seen = many.offsets()
    assert (seen.log_start, seen.local_log_start, seen.segments[0].base_offset) == (1_250,) * 3
    assert seen.size_bytes == 5_000


def test_foreign_segments_of_one_score_are_all_looked_at(many: Any) -> None:
    key = many.keys()[2]
    many.client.zadd(key, {f"foreign {n}": 7 for n in range(8)})
    look = many.hot.inspection().look(many.tp(), many.topic.topic_id)
    assert sum("foreign" in flaw.what for flaw in look.flaws) == 8
    assert bases(look) == [*range(41)]


def steps(chance: random.Random) -> Iterator[int]:
    """Timestamps that mostly grow, with some far ahead of the others."""
    now = 0
    for _ in range(60):
        now += chance.randrange(3)
        yield now + (chance.randrange(200) if chance.random() < 0.1 else 0)


@pytest.mark.parametrize("seed", range(6))
def test_a_time_is_found_whatever_was_trimmed(
    make_bench: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Also where the records that reached it first, and raised the index, are gone."""
    monkeypatch.setattr(fetch, "SEGMENTS_AT_ONCE", 2)
    chance = random.Random(seed)
    bench = make_bench(**CONFIG)
    times = [*steps(chance)]
    for one in times:
        bench.append_sized(SIZE, one)
    for start in (0, chance.randrange(20, 40), chance.randrange(40, 60)):
        bench.hot.raise_log_start(bench.tp(), start)
        for target in range(0, max(times) + 2, 3):
            first = next((n for n in range(start, 60) if times[n] >= target), None)
            found = bench.hot.offset_for_timestamp(bench.tp(), target)
            assert (None if found is None else found.offset) == first
        largest = bench.hot.max_timestamp(bench.tp())
        assert largest is not None
        assert largest.offset == start + times[start:].index(max(times[start:]))
