"""How long a fresh process takes until lakelog is of use: imports, commands, Spark's first archive.

Each side is a process of its own, in turn with the others. What counts is its time beside that of
a Python that does nothing, or only imports the libraries: on a busy machine even that takes its
time. The demo is run as it is installed, without pip's part.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from lakelog import Lakelog

from .bench import Bench, Side
from .measures import OURS, SECONDS, Goal, Row

BARE = "an empty Python"
LIBRARIES = "pyarrow, redis and deltalake alone"
HOT_LIBRARIES = "numpy, pyarrow and redis alone"
SPARK_ALONE = "Spark's start alone"
IMPORT_ABOVE_S, HELP_S, CONSUME_S, DEMO_S = 0.030, 0.100, 0.300, 20.0

#: As few as an archive takes no time for beside Spark's start.
ARCHIVED = 1_000

ROUNDS = 15  # they are short


def rows(bench: Bench) -> Iterator[Row]:
    command = str(Path(sys.executable).with_name("lakelog"))
    bare, libraries = ["-c", "pass"], ["-c", "import pyarrow, redis, deltalake"]
    of_import = bench.interleaved(
        {OURS: process("-c", "import lakelog"), BARE: process(*bare)}, ROUNDS
    )
    above = tuple(
        max(0.0, ours - empty) for ours, empty in zip(of_import[OURS], of_import[BARE], strict=True)
    )
    yield Row("`import lakelog`", SECONDS, of_import)
    yield Row("the same, above an empty Python", SECONDS, {OURS: above}, (Goal(IMPORT_ABOVE_S),))
    of_class = bench.interleaved(
        {OURS: process("-c", "from lakelog import Lakelog"), LIBRARIES: process(*libraries)}
    )
    yield Row("`from lakelog import Lakelog`", SECONDS, of_class)
    of_help = bench.interleaved({OURS: process(command, "--help"), BARE: process(*bare)}, ROUNDS)
    yield Row("`lakelog --help`", SECONDS, of_help, (Goal(HELP_S),))
    with bench.redis() as server:
        yield consume(bench, command, server.url)
        yield first_archive(bench, command, server.url)
    of_demo = bench.interleaved({OURS: process(command, "demo", "--engine", "inline")}, bench.few)
    yield Row("`lakelog demo`", SECONDS, of_demo, (Goal(DEMO_S),))


def consume(bench: Bench, command: str, url: str) -> Row:
    """One record that is in Redis alone."""
    cold = str(bench.new_folder())
    with Lakelog.connect(url, cold, engine="inline") as log:
        log.topics.create("orders", 1)
        with log.producer() as producer:
            producer.send("orders", b"hello").result()
    sides = {
        OURS: process(command, "--redis", url, "--cold", cold, "consume", "orders"),
        HOT_LIBRARIES: process("-c", "import numpy, pyarrow, redis"),
    }
    seconds = bench.interleaved(sides, ROUNDS)
    return Row("`lakelog consume`, one hot record", SECONDS, seconds, (Goal(CONSUME_S),))


def first_archive(bench: Bench, command: str, url: str) -> Row:
    """A thousand records by Spark, in a process that has to start it."""

    def archived() -> float:
        cold = bench.new_folder()
        place = ["--redis", url, "--cold", str(cold), "--keyspace", f"archive{cold.name}"]
        with Lakelog.connect(url, cold, keyspace=place[-1], engine="inline") as log:
            log.topics.create("orders", 1)
            with log.producer() as producer:
                producer.send_batch("orders", [b"hello"] * ARCHIVED)
        started_s = time.monotonic()
        process(command, *place, "--engine", "spark", "archive")()
        return time.monotonic() - started_s

    alone = process("-c", "from lakelog.spark import session; session()")
    seconds = bench.interleaved({OURS: archived, SPARK_ALONE: alone}, bench.few)
    return Row("the first archive of a fresh Spark", SECONDS, seconds)


def process(*arguments: str) -> Side:
    def run() -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    return run
