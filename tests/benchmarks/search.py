"""What a search reads a second, and what reading record by record takes. Run by hand.

    python tests/benchmarks/search.py

Two topics of four partitions hold the same records, of a key that no other has and a value of 100
bytes, all archived. One has Bloom filters in its files, the other has none. Nothing that is looked
for is there, so everything is to be gone through. The best of some rounds counts: whatever else
runs on the machine only ever adds. Prints one Markdown table; exits with 1 when a goal of it is
missed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakelog import Lakelog, UnifiedLog
from lakelog.testing.servers import RedisServer

PARTITIONS = 4
BATCH = 100_000
EPOCH_MS = 1_700_000_000_000

TEXT_GOAL, KEYS_GOAL, FILTERS_GOAL = 1e6, 2e6, 50  # records/s, records/s, times as fast as the scan
RECORDS_GOAL_S, JSON_GOAL_S = 3.0, 4.0  # for a million


def fill(lakelog: Lakelog, name: str, records: int, *, filters: bool) -> int:
    """Archives the records; gives the bytes of the files."""
    settings = {
        "retention.ms": -1,
        "local.retention.ms": 0,
        "lakelog.key.bloom.filter": filters,
    }
    lakelog.topics.create(name, PARTITIONS, settings)
    chance = np.random.default_rng(1)
    with lakelog.producer(compression_type="none") as producer:
        for start in range(0, records, BATCH):
            count = min(BATCH, records - start)
            table = pa.table(
                {
                    "key": pa.array([b"%016x" % one for one in chance.integers(0, 2**62, count)]),
                    "value": pa.array(_values(chance, count)),
                    "timestamp_ms": pa.array(range(EPOCH_MS + start, EPOCH_MS + start + count)),
                }
            )
            producer.send_batch(name, table, partition=start // BATCH % PARTITIONS)
            if start // BATCH % 20 == 19:
                lakelog.archive(name)
    lakelog.archive(name)
    table = lakelog.log(name).table
    assert table is not None
    return sum(file.size_bytes for file in table.snapshot().files)


def _values(chance: np.random.Generator, count: int) -> list[bytes]:
    random = chance.bytes(50 * count)
    return [random[50 * n : 50 * n + 50].hex().encode() for n in range(count)]


def best(call: Callable[[], object], rounds: int) -> float:
    """The seconds of the fastest round."""
    taken = []
    for _ in range(rounds):
        started_s = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started_s)
    return min(taken)


def searched(log: UnifiedLog, where: str, rounds: int) -> float:
    def search() -> None:
        found = log.search(where).to_arrow()
        assert not found.num_rows

    return best(search, rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    total, rounds = options.records, options.rounds
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder) / "redis", {"appendonly": "no", "save": ""})
        server.start()
        try:
            cold = str(Path(folder) / "cold")
            with Lakelog.connect(server.url, cold, engine="inline") as lakelog:
                plain_bytes = fill(lakelog, "plain", total, filters=False)
                filtered_bytes = fill(lakelog, "filtered", total, filters=True)
                plain, filtered = lakelog.log("plain"), lakelog.log("filtered")
                text_s = searched(plain, "nowhere", rounds)
                keys_s = searched(plain, 'key = "nobody"', rounds)
                filters_s = searched(filtered, 'key = "nobody"', rounds)
                million = min(total, 1_000_000)
                one_by_one_s = best(lambda: _first(plain, million), rounds)
            json_s = best(lambda: _consume(server.url, cold, million), rounds)
        finally:
            server.kill()
    at_most = "≤ {} s a million"
    rows = [
        ("text, all is decoded", f"{total / text_s:,.0f} records/s", f"≥ {TEXT_GOAL:,.0f}"),
        ("a key, without filters", f"{total / keys_s:,.0f} records/s", f"≥ {KEYS_GOAL:,.0f}"),
        (
            f"a key, with filters ({filtered_bytes / plain_bytes:.3f} × the bytes)",
            f"{1000 * filters_s:,.0f} ms, {text_s / filters_s:,.0f} × as fast as text",
            f"≥ {FILTERS_GOAL} ×",
        ),
        (
            f"`.records()` of {million:,}",
            f"{one_by_one_s:.1f} s",
            at_most.format(RECORDS_GOAL_S),
        ),
        (
            f"`consume --output json` of {million:,}",
            f"{json_s:.1f} s",
            at_most.format(JSON_GOAL_S),
        ),
    ]
    print(f"| of {total:,} archived records | measured | goal |\n|---|---:|---:|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    share = million / 1e6
    missed = (
        total / text_s < TEXT_GOAL
        or total / keys_s < KEYS_GOAL
        or text_s / filters_s < FILTERS_GOAL
        or one_by_one_s > RECORDS_GOAL_S * share
        or json_s > JSON_GOAL_S * share
    )
    return int(missed)


def _first(log: UnifiedLog, records: int) -> None:
    left = records
    for partition in range(PARTITIONS):
        for _ in log.read(partition).records():
            left -= 1
            if not left:
                return


def _consume(url: str, cold: str, records: int) -> None:
    command = [sys.executable, "-m", "lakelog", "--redis", url, "--cold", cold]
    command += ["consume", "plain", "--output", "json", "--max", str(records)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    sys.exit(main())
