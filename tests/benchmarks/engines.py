"""What work costs in this process and on Spark, and what `lakelog.engines.choice` makes of it.

    python tests/benchmarks/engines.py

Each case is a topic of 4 partitions with random values, which neither engine can compress. It is
archived in two halves, verified, and the two files of each segment are merged; each engine has a
topic of its own. Spark's start is that of a fresh process, up to the end of its first job. What
counts is the best of the rounds. Prints two tables of Markdown: the figures, and the constants of
the choice beside what they should be by these figures.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakelog import Lakelog
from lakelog.config import KIB
from lakelog.engines import choice
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.engines.spark import SparkEngine
from lakelog.operate.verification import verify
from lakelog.spark.session import session
from lakelog.testing.servers import RedisServer

PARTITIONS = 4
KEY_BYTES = 8
APPEND_RECORDS = 20_000
CORES = 2

#: In a process of its own. The first job starts Python workers, and loads what Spark needs for it.
START = """
import time
started_s = time.perf_counter()
from lakelog.engines.spark import SparkEngine
from lakelog.spark.session import session
engine = SparkEngine(session(cores=2))
list(engine.map(abs, [-1, -2]))
print(time.perf_counter() - started_s)
"""


@dataclass(frozen=True)
class Case:
    value_bytes: int
    records: int

    @property
    def size_bytes(self) -> int:
        return self.records * (self.value_bytes + KEY_BYTES)


CASES = [Case(100, 2_000_000), Case(KIB, 500_000)]
STEPS = ("archive", "verify", "optimize")


def rows(count: int, value_bytes: int) -> pa.Table:
    """Records with a key of 8 bytes and random values."""
    random = np.random.default_rng()
    return pa.table(
        {
            "key": fixed(random.integers(65, 91, count * KEY_BYTES, np.uint8), count, KEY_BYTES),
            "value": fixed(random.bytes(count * value_bytes), count, value_bytes),
        }
    )


def fixed(data: bytes | np.ndarray, count: int, width: int) -> pa.Array:
    buffers = [None, pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(width), count, buffers).cast(pa.binary())


def append(lake: Lakelog, topic: str, case: Case, records: int) -> None:
    with lake.producer(compression_type="none") as producer:
        for partition in range(PARTITIONS):
            for _ in range(0, max(1, records // PARTITIONS), APPEND_RECORDS):
                count = min(APPEND_RECORDS, records // PARTITIONS)
                producer.send_batch(topic, rows(count, case.value_bytes), partition=partition)


def timed(work: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def measure(url: str, folder: str, engine: Engine, case: Case) -> dict[str, float]:
    """Seconds of each step, on a topic of its own."""
    with Lakelog.connect(url, folder, engine=engine) as lake:
        name = lake.topics.create("t", PARTITIONS, {"retention.ms": -1}).name
        try:
            archive_s = 0.0
            for _ in range(2):
                append(lake, name, case, case.records // 2)
                archive_s += timed(lambda: lake.archive(name))
            log = lake.log(name)
            verify_s = timed(lambda: list(verify(log, tiers=["cold"])))
            optimize_s = timed(lambda: lake.cleanup(name, steps=["optimize"]))
        finally:
            lake.topics.delete(name)
            lake.purge(name)
    return {"archive": archive_s, "verify": verify_s, "optimize": optimize_s}


def started_s() -> float:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    return float(done.stdout)


def per_record_and_byte(measured: dict[Case, float]) -> tuple[float, float]:
    """Seconds a record and a byte, of two cases."""
    (small, small_s), (large, large_s) = measured.items()
    equations = [[small.records, small.size_bytes], [large.records, large.size_bytes]]
    record_s, byte_s = np.linalg.solve(np.array(equations, float), np.array([small_s, large_s]))
    return float(record_s), float(byte_s)


def job_s(best: dict[tuple[str, Case, str], float], tiny: Case) -> float:
    """What one job costs that has all but nothing to do; archiving is two, verifying four."""
    jobs = {"archive": 2, "verify": PARTITIONS, "optimize": 1}
    return min(
        (best["spark", tiny, step] - best["inline", tiny, step]) / count
        for step, count in jobs.items()
    )


def rows_of(
    of: str, record_s: float, byte_s: float, measured: dict[Case, float]
) -> list[tuple[str, str, str]]:
    found_record_s, found_byte_s = per_record_and_byte(measured)
    return [
        (f"a record {of}", f"{record_s * 1e6:.1f} µs", f"{found_record_s * 1e6:.1f} µs"),
        (f"a byte {of}", f"{byte_s * 1e9:.1f} ns", f"{found_byte_s * 1e9:.1f} ns"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of the record counts")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    cases = [Case(case.value_bytes, int(case.records * arguments.scale)) for case in CASES]
    tiny = Case(100, 4 * PARTITIONS)
    start_s = min(started_s() for _ in range(arguments.rounds))
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder) / "redis", {"appendonly": "no"}).start()
        spark = session(cores=CORES)
        try:
            engines: dict[str, Engine] = {"inline": InlineEngine(), "spark": SparkEngine(spark)}
            best: dict[tuple[str, Case, str], float] = {}
            for name, engine in engines.items():
                for case in [tiny, *cases]:
                    for _ in range(arguments.rounds):
                        found = measure(server.url, folder, engine, case)
                        for step, seconds in found.items():
                            key = (name, case, step)
                            best[key] = min(seconds, best.get(key, seconds))
        finally:
            spark.stop()
            server.kill()
    print("| step | records | bytes each | inline | Spark, 2 tasks at once |")
    print("|---|---:|---:|---:|---:|")
    for step in STEPS:
        for case in [tiny, *cases]:
            inline_s, spark_s = (best[name, case, step] for name in engines)
            print(
                f"| {step} | {case.records:,} | {case.value_bytes + KEY_BYTES:,} "
                f"| {inline_s:.2f} s | {spark_s:.2f} s |"
            )
    print("\n| constant of the choice | is | by these figures |\n|---|---:|---:|")
    for name, is_now, found in [
        ("Spark's start", f"{choice.START_S:.0f} s", f"{start_s:.0f} s"),
        ("a job", f"{choice.JOB_S:.1f} s", f"{job_s(best, tiny):.1f} s"),
        *(
            row
            for of, step, record_s, byte_s in [
                ("archived", "archive", choice.COPY_RECORD_S, choice.COPY_BYTE_S),
                ("merged", "optimize", choice.COPY_RECORD_S, choice.COPY_BYTE_S),
                ("verified", "verify", choice.READ_RECORD_S, choice.READ_BYTE_S),
            ]
            for row in rows_of(of, record_s, byte_s, {c: best["inline", c, step] for c in cases})
        ),
    ]:
        print(f"| {name} | {is_now} | {found} |")


if __name__ == "__main__":
    main()
