"""What encrypted values cost, by turns in one run: CPU time of this process, Redis not counted.

    python tests/benchmarks/encryption.py

For each size, a table of records is encrypted and decrypted alone, and sent (`send_batch`, `send`)
and read whole (`log.read`) in a topic whose values are encrypted and in one whose values are not.
The best of the rounds counts. Prints one Markdown table.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from lakelog import Lakelog
from lakelog.config import ENCRYPTION_KEY, KIB
from lakelog.encryption.of_topic import opening
from lakelog.testing.servers import RedisServer

ROUNDS = 5
CASES = {100: 200_000, KIB: 50_000}
UNTIERED = {"remote.storage.enable": False, "retention.ms": -1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of records")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    os.environ["LAKELOG_BENCHMARK_KEY"] = secrets.token_hex(32)
    print("| measured | encrypted, µs a record | in the clear | ratio |\n|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder), {"appendfsync": "no", "save": ""})
        server.start()
        try:
            with Lakelog.connect(server.url, engine="inline") as lake:
                for value_bytes, count in CASES.items():
                    records = max(20, int(count * arguments.scale))
                    for name, sealed_us, clear_us in measured(
                        lake, value_bytes, records, arguments.rounds
                    ):
                        clear = "" if clear_us is None else f"{clear_us:.2f}"
                        ratio = "" if clear_us is None else f"{sealed_us / clear_us:.1f} ×"
                        print(f"| {name}, {value_bytes} B | {sealed_us:.2f} | {clear} | {ratio} |")
        finally:
            server.kill()


def measured(
    lake: Lakelog, value_bytes: int, records: int, rounds: int
) -> list[tuple[str, float, float | None]]:
    chance = random.Random(1)
    keys = pa.array([b"%08d" % (n % 1000) for n in range(records)], pa.binary())
    values = pa.array([chance.randbytes(value_bytes) for _ in range(records)], pa.binary())
    table = pa.table({"key": keys, "value": values})
    rows = list(zip(keys.to_pylist(), values.to_pylist(), strict=True))[: max(20, records // 10)]
    best: dict[tuple[str, bool], float] = {}

    def take(name: str, is_sealed: bool, count: int, work: Callable[[], object]) -> None:
        began = time.process_time()
        work()
        took_us = (time.process_time() - began) / count * 1e6
        key = (name, is_sealed)
        best[key] = min(best.get(key, took_us), took_us)

    def send(name: str) -> None:
        with lake.producer() as producer:
            for key, value in rows:
                producer.send(name, value, key=key)

    def send_batch() -> None:
        with lake.producer() as producer:
            producer.send_batch("one", table)

    for _ in range(rounds):
        for is_sealed in (True, False):
            settings = {ENCRYPTION_KEY: "env:LAKELOG_BENCHMARK_KEY"} if is_sealed else {}
            topic = lake.topics.create("one", 1, {**UNTIERED, **settings})
            lake.topics.create("other", 1, {**UNTIERED, **settings})
            take("send_batch", is_sealed, records, send_batch)
            take("send", is_sealed, len(rows), lambda: send("other"))
            take("log.read", is_sealed, records, lambda: lake.log("one").read(0).to_arrow())
            if is_sealed:
                cipher = opening(topic)
                assert cipher is not None
                stored = cipher.seal(keys, values)
                take("encrypt", True, records, lambda c=cipher: c.seal(keys, values))
                take("decrypt", True, records, lambda c=cipher, s=stored: c.open(keys, s))
            for name in ("one", "other"):
                lake.topics.delete(name)
                lake.purge(name)
    names = dict.fromkeys(name for name, _ in best)
    return [(name, best[name, True], best.get((name, False))) for name in names]


if __name__ == "__main__":
    main()
