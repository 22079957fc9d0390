"""``lakelog doctor``: what is installed, reachable, missing or risky, and what mends it."""

from __future__ import annotations

import argparse
from typing import Any

from .output import Failed, Table

_EPILOG = """\
Without --dir or --redis only this machine is looked at. Exit code 1 when something is broken.

examples:
  lakelog doctor
  lakelog doctor --redis redis://host:6379 --cold s3://bucket/log
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "doctor",
        parents=[common],
        help="what is missing or risky, and the command that mends it",
        description="Look at what lakelog stands on.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Table:
    from ..explore.diagnosis import diagnose

    findings = diagnose(
        directory=arguments.dir,
        redis_url=arguments.redis,
        cold=arguments.cold,
        keyspace=arguments.keyspace,
        password_ref=arguments.password_ref,
    )
    rows = [
        {
            "state": finding.state,
            "what": finding.what,
            "found": finding.found,
            "do": finding.mend or "",
        }
        for finding in findings
    ]
    table = Table(rows)
    if any(finding.state == "broken" for finding in findings):
        raise Failed(table)
    return table
