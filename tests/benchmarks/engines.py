"""What work costs in this process and on Spark.

Each case is a topic of 4 partitions with random values, which neither engine can compress. It is
archived in two halves, verified, and the two files of each segment are merged; each engine has a
topic of its own. Spark's start is that of a fresh process, up to the end of its first job. There
are three rounds at most.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from lakelog import Lakelog
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.engines.spark import SparkEngine
from lakelog.operate.check.verification import verify
from lakelog.values.config import KIB

from .bench import Bench, Side, timed
from .made_records import PARTITIONS, Case, appends, random_table
from .measures import OURS, SECONDS, Row

CASES = [Case(100, 2_000_000), Case(KIB, 500_000)]
TINY = Case(100, 4 * PARTITIONS)
SPARK = "Spark, up already"
STEPS = ("archive", "verify", "optimize")

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

Figures = Mapping[tuple[Case, str, str], tuple[float, ...]]  # by case, side and step


def rows(bench: Bench) -> Iterator[Row]:
    cases = [case.scaled(bench) for case in CASES]
    yield Row("Spark's start", SECONDS, bench.interleaved({OURS: start_s}, bench.few, warm=0))
    engines: dict[str, Engine] = {
        OURS: InlineEngine(),
        SPARK: SparkEngine(bench.spark.session()),
    }
    found: dict[tuple[Case, str, str], tuple[float, ...]] = {}
    with bench.redis({"appendonly": "no"}) as server:
        for case in (TINY, *cases):
            found |= measured(bench, server.url, engines, case)
            for step in STEPS:
                sides = {side: found[case, side, step] for side in engines}
                yield Row(f"{step} in one process, {case}", SECONDS, sides)


def start_s() -> float:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measured(bench: Bench, url: str, engines: Mapping[str, Engine], case: Case) -> Figures:
    taken: dict[tuple[str, str], list[float]] = {}

    def side(name: str, engine: Engine) -> Side:
        def run() -> None:
            for step, seconds in steps(url, bench.new_folder(), engine, case).items():
                taken.setdefault((name, step), []).append(seconds)

        return run

    bench.interleaved({name: side(name, engine) for name, engine in engines.items()}, bench.few)
    return {(case, *of): tuple(values[1:]) for of, values in taken.items()}


def steps(url: str, folder: Path, engine: Engine, case: Case) -> dict[str, float]:
    """Seconds of each, on a topic of its own."""
    with Lakelog.connect(url, folder, engine=engine) as lake:
        name = lake.topics.create("t", PARTITIONS, {"retention.ms": -1}).name
        try:
            archive_s = 0.0
            for _ in range(2):
                append(lake, name, case)
                archive_s += timed(lambda: lake.archive(name))
            log = lake.log(name)
            verify_s = timed(lambda: list(verify(log, tiers=["cold"])))
            optimize_s = timed(lambda: lake.cleanup(name, steps=["optimize"]))
        finally:
            lake.topics.delete(name)
            lake.purge(name)
    return {"archive": archive_s, "verify": verify_s, "optimize": optimize_s}


def append(lake: Lakelog, topic: str, case: Case) -> None:
    """Half of the case's records."""
    with lake.producer(compression_type="none") as producer:
        for partition in range(PARTITIONS):
            for count in appends(case.records // 2 // PARTITIONS):
                table = random_table(count, case.value_bytes)
                producer.send_batch(topic, table, partition=partition)
