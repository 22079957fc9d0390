"""``lakelog history``: the runs of jobs, notebooks and commands."""

from __future__ import annotations

import argparse
from typing import Any

from .connect import open_archived
from .output import Table, utc_text

_EPILOG = """\
Notebooks, their jobs and these commands leave what they did in the table _lakelog_status of the
cold root, for 30 days: archive, check, cleanup run, delete-records, erase, export, import,
register, restore, skip add, and what changes topics. (By name, a command that needs no Spark
starts none to be listed.)

result  running; done; failed, with its error; stopped (Ctrl-C); died: it left no word for three
        minutes and did not end
records what it archived, appended or dropped; – where it could not say so: it goes on, died, was
        stopped, or was cut off and done again. `lakelog status` shows what is archived

Of a command the options that say where the log is are left out, and so are keys of records.

examples:
  lakelog --dir ./log history
  lakelog --dir ./log history --past 30d --job archive
  lakelog --cold s3://bucket/log history --result died --output json
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "history",
        parents=[common],
        description="List the runs of jobs, notebooks and commands, the oldest first.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument("--past", metavar="TIME", default="7d", help="how far back (default: 7d)")
    added.add_argument("--job", help="only of this job, such as archive or 'topics delete'")
    added.add_argument(
        "--result", choices=["running", "done", "failed", "stopped", "died"], help="only these"
    )
    added.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Table:
    from datetime import timedelta

    from ..base.unit_text import duration_ms
    from ..errors import InvalidArgumentError
    from ..jobs.history import run_history
    from ..jobs.runs import lines

    past_ms = duration_ms(arguments.past)
    if past_ms is None:
        raise InvalidArgumentError(f"--past {arguments.past!r} should read 10m, 8h or 7d")
    with open_archived(arguments) as log:
        runs = run_history(log, past=timedelta(milliseconds=past_ms))
    rows = [
        row
        for row in lines(runs)
        if arguments.job in (None, row["job"]) and arguments.result in (None, row["result"])
    ]
    if arguments.output == "json":
        return Table([{**row, "began_at": row["began_at"].isoformat()} for row in rows])
    shown = [
        {
            "began_at": utc_text(round(row["began_at"].timestamp() * 1000)),
            "job": row["job"],
            "what": row["what"],
            "who": row["who"],
            "result": row["result"],
            "seconds": round(row["duration_ms"] / 1000, 1),
            "records": row["records"],
            "error": row["error"],
        }
        for row in rows
    ]
    return Table(shown, empty=f"no run in the past {arguments.past}")
