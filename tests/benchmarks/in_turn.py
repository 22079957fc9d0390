"""``python -m tests.benchmarks.in_turn REVISION``: this lakelog and an earlier one, in turn.

What two runs of different days say of a change is mostly what the machine did on these days. Here
the same `workloads` are run by both, in processes of their own and with a Redis of their own, by
turns. It takes some two minutes a round; ``--write`` puts the table on the page `before.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from .bench import Bench, temporary_folder
from .local_spark import LocalSpark
from .machine import look
from .measures import SECONDS
from .readme import between

HERE = Path(__file__).parent
PROJECT = HERE.parent.parent
PAGE = HERE / "before.md"
BEGIN = "<!-- written by in_turn -->"
HEAD = "| what | before | now | times as fast |\n|---|---:|---:|---:|"

Samples = Mapping[str, Sequence[float]]


def main() -> int:
    given = _arguments()
    machine = look()
    git = ["git", "-C", str(PROJECT)]
    commit = subprocess.check_output(
        [*git, "show", "-s", "--format=%h of %cs", f"{given.revision}^{{commit}}"], text=True
    ).strip()
    with temporary_folder() as folder:
        earlier = folder / "earlier"
        subprocess.run(
            [*git, "worktree", "add", "--detach", "-q", str(earlier), given.revision], check=True
        )
        try:
            before, now = measured(folder, earlier, given.rounds, given.scale)
        finally:
            subprocess.run([*git, "worktree", "remove", "--force", str(earlier)], check=True)
    day = datetime.now(timezone.utc).date().isoformat()
    head = (
        f"Before is commit {commit}. Taken {day}, {given.rounds} rounds, on {machine.sentence()}."
    )
    print(f"{head}\n\n{table(before, now)}")
    if given.write:
        page = between(PAGE.read_text("utf-8"), BEGIN, f"{head}\n\n{table(before, now)}")
        PAGE.write_text(page, "utf-8")
    return 0


def measured(folder: Path, earlier: Path, rounds: int, scale: float) -> tuple[Samples, Samples]:
    """The seconds of each workload, of both; after a round that warms the caches."""
    bench = Bench(folder, LocalSpark(folder), rounds=rounds)
    trees = (earlier, PROJECT)
    found: tuple[dict[str, list[float]], dict[str, list[float]]] = ({}, {})
    for turn in range(rounds + 1):
        for side in (0, 1) if turn % 2 else (1, 0):
            with bench.redis() as server:
                taken = run(trees[side], server.url, bench.new_folder(), scale)
            for what, seconds in taken.items() if turn else ():
                found[side].setdefault(what, []).append(seconds)
    return found


def run(tree: Path, url: str, folder: Path, scale: float) -> dict[str, float]:
    """The workloads by the lakelog of a tree."""
    surroundings = {**os.environ, "PYTHONPATH": str(tree)}
    surroundings.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles what it imports
    start = "import runpy, sys; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", start, HERE / "workloads.py", url, str(folder), str(scale)],
        cwd=tree,  # with -c, Python looks there first
        env=surroundings,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    taken: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return taken


def table(before: Samples, now: Samples) -> str:
    """Medians, how far the rounds lie apart, and the median ratio of a round."""
    lines = [HEAD]
    for what, seconds in now.items():
        ratios = [old / new for old, new in zip(before[what], seconds, strict=True)]
        spread = (max(ratios) - min(ratios)) / 2 / statistics.median(ratios)
        old, new = (SECONDS.show(statistics.median(side)) for side in (before[what], seconds))
        lines.append(f"| {what} | {old} | {new} | {statistics.median(ratios):.2f} ± {spread:.0%} |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.in_turn", description=__doc__.split("\n\n", 1)[1]
    )
    parser.add_argument("revision", metavar="REVISION", help="a commit, tag or branch")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--scale", type=float, default=1.0, help="of all counts; default: 1")
    parser.add_argument("--write", action="store_true", help=f"also into {PAGE.name}")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
