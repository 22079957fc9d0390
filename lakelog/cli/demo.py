"""``lakelog demo``: the main job on real data, checked."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from .options import Offer
from .output import Failed, Message, Page, Table
from .progress import ConsoleProgress, engine_names, engines_told

if TYPE_CHECKING:
    from .flights import DemoResult

_EPILOG = """\
Reads the flights that left New York in 2013, appends, archives and compacts them, seeks across both
tiers, reads everything back and compares it with what was sent. Exit code 1 when a check fails.

examples:
  lakelog demo --engine inline       the quick look, without Spark and its start
  lakelog demo --rows 20000          fewer flights
  lakelog demo --dir ./flights       keep the data to play with
  lakelog demo --lose-redis          empty Redis in between, and go on from the table
"""


def add_demo(offer: Offer) -> None:
    added = offer.command(_run, "The main job on real data, checked.", _EPILOG)
    added.add_argument("--rows", type=int, metavar="N", help="only the last N flights")
    added.add_argument(
        "--lose-redis", action="store_true", help="empty Redis once it is archived, and restore"
    )


def _run(arguments: argparse.Namespace) -> Page:
    import tempfile
    from pathlib import Path

    from ..base.local_path import local_path
    from ..errors import InvalidArgumentError

    if arguments.redis or arguments.cold:
        raise InvalidArgumentError("the demo brings its own Redis; give --dir to keep its data")
    if arguments.rows is not None and arguments.rows < 1:
        raise InvalidArgumentError(f"--rows {arguments.rows} is not a number of flights ≥ 1")
    if arguments.dir:
        result = _job(arguments, local_path(arguments.dir, "log's directory"))
        page = _page(result, kept=True)
    else:
        with tempfile.TemporaryDirectory(prefix="lakelog-demo-") as directory:
            result = _job(arguments, Path(directory))
        page = _page(result, kept=False)
    if not result.holds:
        raise Failed(page)
    return page


def _job(arguments: argparse.Namespace, directory: Any) -> DemoResult:
    from ..engines.engine import SPARK
    from ..lakelog import Lakelog
    from ..spark.open_session import session_there
    from ..spark.session import session
    from .flights import PLANES, TOPIC, run_demo

    progress = ConsoleProgress()
    with progress.step("start Redis"):
        log = Lakelog.embedded(directory, engine=arguments.engine or SPARK)
    with log:
        if (arguments.engine or SPARK) == SPARK and session_there() is None:
            name = "start Spark"
            print(f"  {name}: 5 to 30 s; --engine inline is the quick look", file=sys.stderr)
            with progress.step(name):
                session()
        result = run_demo(log, directory, progress, arguments.rows, lose_redis=arguments.lose_redis)
    print(engines_told({TOPIC: result.engines, PLANES: result.compacted_by}).text, file=sys.stderr)
    return result


def _page(result: DemoResult, *, kept: bool) -> Page:
    offsets = [
        {
            "partition": number,
            "cold": f"[{seen.log_start:,}, {seen.archived_end:,})",
            "hot": f"[{seen.local_log_start:,}, {seen.log_end:,})",
            "records": seen.log_end
            - seen.log_start
            - sum(gap.end - gap.start for gap in seen.gaps),
        }
        for number, seen in result.offsets.items()
    ]
    sizes = [
        {"form": form, "bytes_per_record": round(size, 1)}
        for form, size in result.bytes_per_record.items()
    ]
    verdict = "all checks hold" if result.holds else "A CHECK FAILED"
    return Page(
        {
            "records": Message(
                f"{result.records:,} flights in topic flights",
                {"records": result.records, "engine": engine_names(result.engines)},
            ),
            "partitions": Table(offsets),
            "bytes_per_record": Table(sizes),
            "steps": Table(result.steps),
            "look_ups": Table(result.found),
            "checks": Table(result.checks, title=verdict),
            "next": _next(result, kept=kept),
        }
    )


def _next(result: DemoResult, *, kept: bool) -> Message:
    name = "lakelog" if sys.argv[0].endswith("lakelog") else "python -m lakelog"
    if not kept:
        text = f"Nothing was kept. To play with the data: {name} demo --dir ./flights"
        return Message(text, {"directory": None})
    where = f"--dir {result.directory}"
    lines = [
        f"The log lies in {result.directory} (Delta tables below cold/). Next:",
        f"  {name} {where} consume flights --from 2013-12-31T12:00:00Z --max 5",
        f"  {name} {where} offsets flights --time max-timestamp",
        f"  {name} {where} status",
    ]
    return Message("\n".join(lines), {"directory": str(result.directory)})
