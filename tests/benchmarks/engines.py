"""What work costs in this process and on Spark, and what `lakelog.engines.choice` makes of it.

Each case is a topic of 4 partitions with random values, which neither engine can compress. It is
archived in two halves, verified, and the two files of each segment are merged; each engine has a
topic of its own. Spark's start is that of a fresh process, up to the end of its first job. Then
come the constants of the choice beside what they should be by the medians of these figures. There
are three rounds at most.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from lakelog import Lakelog
from lakelog.engines import choice
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.engines.spark import SparkEngine
from lakelog.operate.verification import verify
from lakelog.values.config import KIB

from .bench import Bench, Side, timed
from .made_records import PARTITIONS, Case, appends, random_table
from .measures import OURS, SECONDS, Row

CASES = [Case(100, 2_000_000), Case(KIB, 500_000)]
TINY = Case(100, 4 * PARTITIONS)
SPARK, CHOICE = "Spark, up already", "`lakelog.engines.choice`"
JOBS = {"archive": 2, "verify": PARTITIONS, "optimize": 1}  # of Spark's, by step
COSTS = {
    "archive": (choice.COPY_RECORD_S, choice.COPY_BYTE_S),
    "verify": (choice.READ_RECORD_S, choice.READ_BYTE_S),
    "optimize": (choice.COPY_RECORD_S, choice.COPY_BYTE_S),
}

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
    start = bench.interleaved({OURS: start_s}, bench.few, warm=0)
    yield Row("Spark's start", SECONDS, {**start, CHOICE: (choice.START_S,)})
    engines: dict[str, Engine] = {
        OURS: InlineEngine(),
        SPARK: SparkEngine(bench.spark.session()),
    }
    found: dict[tuple[Case, str, str], tuple[float, ...]] = {}
    with bench.redis({"appendonly": "no"}) as server:
        for case in (TINY, *cases):
            found |= measured(bench, server.url, engines, case)
            for step in JOBS:
                sides = {side: found[case, side, step] for side in engines}
                yield Row(f"{step} in one process, {case}", SECONDS, sides)
    yield Row("a job of Spark's", SECONDS, {OURS: (job_s(found),), CHOICE: (choice.JOB_S,)})
    for step, chosen in COSTS.items():
        by_figures = per_record_and_byte(found, cases, step)
        for of, ours, theirs in zip(("record", "stored byte"), by_figures, chosen, strict=True):
            what = f"{step} in one process, a {of}"
            yield Row(what, SECONDS, {OURS: (ours,), CHOICE: (theirs,)})


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


def per_record_and_byte(found: Figures, cases: list[Case], step: str) -> list[float]:
    """Seconds a record and a byte in this process, by two cases."""
    equations = np.array([[case.records, case.size_bytes] for case in cases], float)
    seconds = np.array([statistics.median(found[case, OURS, step]) for case in cases])
    return [float(one) for one in np.linalg.solve(equations, seconds)]


def job_s(found: Figures) -> float:
    """What one job costs that has all but nothing to do."""

    def above(step: str) -> float:
        spark, here = (statistics.median(found[TINY, side, step]) for side in (SPARK, OURS))
        return spark - here

    return min(above(step) / jobs for step, jobs in JOBS.items())
