"""How long Python takes until lakelog can be used: imports and the help of the command line.

Each side is a fresh process, in turn with the others. What counts is its time beside that of a
Python that does nothing: on a busy machine even that takes its time.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .bench import Bench, Side
from .measures import OURS, SECONDS, Goal, Row

BARE = "an empty Python"
LIBRARIES = "pyarrow, redis and deltalake alone"
IMPORT_ABOVE_S, HELP_S = 0.030, 0.100

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


def process(*arguments: str) -> Side:
    def run() -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    return run
