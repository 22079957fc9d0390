"""How long Python takes until lakelog can be used: imports and the help of the command line.

    python tests/benchmarks/startup.py

Each side is a fresh process, in turn with the others; its median is set against that of a process
that does nothing, since on a busy machine even that takes its time. Prints one Markdown table. The
goals are those of an idle machine, for the time above the empty process.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

BARE = "an empty process"
SIDES = {
    BARE: ["-c", "pass"],
    "import lakelog (goal ≤ 0.25 s)": ["-c", "import lakelog"],
    "from lakelog import Lakelog": ["-c", "from lakelog import Lakelog"],
    "pyarrow, redis and deltalake alone": ["-c", "import pyarrow, redis, deltalake"],
    "lakelog --help (goal < 0.3 s)": [str(Path(sys.executable).with_name("lakelog")), "--help"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    seconds: dict[str, list[float]] = {name: [] for name in SIDES}
    for turn in range(rounds + 1):
        for name, arguments in SIDES.items():
            started_s = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            if turn:  # the first one fills the page cache and writes bytecode
                seconds[name].append(time.perf_counter() - started_s)
    bare_s = statistics.median(seconds[BARE])
    print("| process | median | best | above an empty one | ratio |\n|---|---:|---:|---:|---:|")
    for name, times_s in seconds.items():
        median_s = statistics.median(times_s)
        print(
            f"| {name} | {median_s * 1e3:.0f} ms | {min(times_s) * 1e3:.0f} ms "
            f"| {(median_s - bare_s) * 1e3:.0f} ms | {median_s / bare_s:.1f} × |"
        )


if __name__ == "__main__":
    main()
