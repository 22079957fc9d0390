"""How long the explorer takes from a wish to the page it has drawn. Run by hand.

    python tests/benchmarks/explore.py

Prints, as a Markdown table, the median and the 95th percentile of each kind of step over random
places of a log of 1,000,000 records of 200 bytes: 800,000 in a Delta table in a local folder, in
some 30 files, the rest in Redis. Beside it: what a search reads a second.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelog import Lakelog
from lakelog.testing.servers import RedisServer

ROUNDS = 200
SEARCHES = 5
COLD, HOT = 800_000, 200_000
BATCH = 10_000
EPOCH_MS = 1_700_000_000_000
LIMIT_MS = {"hot": 100, "cold": 300}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder) / "redis", {"appendfsync": "everysec"})
        server.start()
        try:
            with Lakelog.connect(server.url, Path(folder) / "cold", engine="inline") as lakelog:
                fill(lakelog)
                explorer = lakelog.explore("readings")
                print("| step | median | p95 | at most |\n|---|---:|---:|---:|")
                for name, tier, step in steps(explorer, random.Random(1)):
                    median, p95 = measured(step)
                    print(f"| {name} | {median:.0f} ms | {p95:.0f} ms | {LIMIT_MS[tier]} ms |")
                print("\n| search of all, nothing found | records/s |\n|---|---:|")
                for name, match in (
                    ("key", 'key = "nobody"'),
                    ("header", "header.nothing exists"),
                    ("text", "nowhere"),
                    ("member that no value has", "value.nothing exists"),
                    ("member that each value has", "value.sensor = -1"),
                ):
                    print(f"| {name} | {searched(explorer, match):,.0f} |")
                explorer.close()
        finally:
            server.kill()


def fill(lakelog: Lakelog) -> None:
    settings = {"retention.ms": -1, "local.retention.ms": 0, "segment.bytes": 4 << 20}
    lakelog.topics.create("readings", 1, settings)
    chance = random.Random(0)
    with lakelog.producer() as producer:
        for start in range(0, COLD + HOT, BATCH):
            if start == COLD:
                lakelog.archive("readings")
            offsets = range(start, start + BATCH)
            values = [
                b'{"sensor": %d, "celsius": %d, "note": "%s"}'
                % (offset % 1000, chance.randrange(40), chance.randbytes(60).hex().encode())
                for offset in offsets
            ]
            table = pa.table(
                {
                    "key": pa.array([b"sensor %d" % (offset % 1000) for offset in offsets]),
                    "value": pa.array(values, pa.binary()),
                    "timestamp_ms": pa.array([EPOCH_MS + offset for offset in offsets]),
                }
            )
            producer.send_batch("readings", table, partition=0)


def steps(explorer: Any, chance: random.Random) -> Iterator[tuple[str, str, Callable[[], object]]]:
    def hot() -> int:
        return chance.randrange(COLD, COLD + HOT - 100)

    def cold() -> int:
        return chance.randrange(100, COLD - 100)

    yield "seek to an offset, hot", "hot", lambda: explorer.seek(hot())
    yield "seek to an offset, cold", "cold", lambda: explorer.seek(cold())
    yield "seek to a time, hot", "hot", lambda: explorer.seek(f"@{EPOCH_MS + hot()}")
    yield "seek to a time, cold", "cold", lambda: explorer.seek(f"@{EPOCH_MS + cold()}")
    yield "to the end", "hot", lambda: explorer.seek("latest")
    explorer.seek(COLD + HOT // 2)
    yield "a page forward, hot", "hot", explorer.forward
    yield "a page back, hot", "hot", explorer.back
    explorer.seek(COLD // 2)
    yield "a page forward, cold", "cold", explorer.forward
    yield "a page back, cold", "cold", explorer.back


def measured(step: Callable[[], object]) -> tuple[float, float]:
    """Median and 95th percentile in milliseconds, from the wish to the drawn page."""
    step()
    times_ms = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        step()
        times_ms.append(1000 * (time.perf_counter() - start))
    return statistics.median(times_ms), statistics.quantiles(times_ms, n=20)[-1]


def searched(explorer: Any, match: str) -> float:
    """Records a second, median of some searches from the log start to the end."""
    rates = []
    for _ in range(SEARCHES):
        start = time.perf_counter()
        explorer.search(match)
        rates.append((COLD + HOT) / (time.perf_counter() - start))
    explorer.search()
    return statistics.median(rates)


if __name__ == "__main__":
    main()
