"""``python -m tests.chaos``; see the package."""

from __future__ import annotations

import argparse
import logging
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from . import schedule
from .chaos_round import run_round
from .report import report
from .scenario import SCENARIOS, USUAL


def main() -> int:
    arguments = _arguments()
    seed = random.SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed
    scenarios = arguments.scenario or list(USUAL)
    again = f"python -m tests.chaos --minutes {arguments.minutes:g} --seed {seed}" + "".join(
        f" --scenario {name}" for name in arguments.scenario or ()
    )
    again += f" --unity {arguments.unity}" if arguments.unity else ""
    print(f"to repeat the schedule: {again}", flush=True)
    plans = schedule.rounds(seed, arguments.minutes, scenarios)
    if arguments.plan:
        for plan in plans:
            print(f"\n{plan}")
            for act in schedule.acts(plan.seed, plan.seconds, SCENARIOS[plan.scenario].lanes):
                print(act)
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends in order, as Ctrl-C does
    logging.getLogger("lakelog").setLevel(logging.ERROR)  # gaps are in the report
    folder = Path(arguments.keep or tempfile.mkdtemp(prefix="lakelog-chaos-")).absolute()
    results = []
    began_s = time.monotonic()
    try:
        for plan in plans:
            print(
                f"\nround {plan.number}: {plan.scenario}, {plan.seconds:.0f} s, seed {plan.seed}",
                flush=True,
            )
            own = folder / f"round-{plan.number}-{plan.scenario}"
            results.append(
                run_round(
                    plan,
                    own,
                    _say,
                    run_began_s=began_s,
                    archivers_outlive=not arguments.archivers_may_end,
                    unity=arguments.unity,
                )
            )
            if not results[-1].anomalies and not arguments.keep:
                shutil.rmtree(own)
    except KeyboardInterrupt:
        print("\ninterrupted; all that was started has ended")
        return 130
    finally:
        failed = any(result.anomalies for result in results)
        if results:
            print(f"\n{report(results)}", flush=True)
        if not arguments.keep and not failed:
            shutil.rmtree(folder, ignore_errors=True)
    if failed:
        print(f"\njournals, logs and data are in {folder}; to repeat: {again}")
    else:
        print("\nno anomaly")
    return 1 if failed else 0


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description="Hurts a log of real processes and servers, and says what it did wrong.",
    )
    parser.add_argument("--minutes", type=float, default=2.0, help="about so long (default: 2)")
    parser.add_argument("--seed", type=int, help="of the schedule; default: a new one, printed")
    parser.add_argument(
        "--scenario",
        action="append",
        choices=list(SCENARIOS),
        help="default: each in turn of those whose tables are at a path",
    )
    parser.add_argument(
        "--unity",
        metavar="PATH",
        type=lambda text: Path(text).absolute(),
        help="a folder with `up` and `down` that start a Unity Catalog server, for scenarios on it",
    )
    parser.add_argument("--keep", metavar="DIR", help="leave all data there, whatever comes out")
    parser.add_argument("--plan", action="store_true", help="print what would be done")
    parser.add_argument(
        "--archivers-may-end",
        action="store_true",
        help="an archiver that ends by itself is started again and no anomaly",
    )
    arguments = parser.parse_args()
    if arguments.unity is None and any("unity" in name for name in arguments.scenario or ()):
        parser.error("scenarios on a Unity Catalog server need --unity")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
