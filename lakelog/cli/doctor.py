"""``lakelog doctor``: what is installed, reachable, missing or risky, and what mends it."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import InvalidArgumentError
from .connect import storage_options
from .output import Failed, Table

_EPILOG = """\
Without --dir or --redis only this machine is looked at. Exit code 1 when something is broken.

With --spark, the driver and the executors try the way to Redis hop by hop (name, TCP, TLS,
password, AUTH, PING; of a cluster, to each of its servers), write to and read from the cold root,
and tell their version of lakelog. The hop that fails is named, with what to do.

examples:
  lakelog doctor
  lakelog doctor --redis redis://host:6379 --cold s3://bucket/log
  lakelog doctor --spark --redis rediss://host:6379 --password-ref env:REDIS_PASSWORD --output json
"""


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    added = commands.add_parser(
        "doctor",
        parents=[common],
        help="what is missing or risky, and the command that mends it",
        description="Check what lakelog needs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    added.add_argument(
        "--spark",
        action="store_true",
        help="look from Spark's driver and executors, too: at --redis, --cold, or both",
    )
    added.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> Table:
    from ..hot.keys import DEFAULT_KEYSPACE
    from ..operate.diagnosis import diagnose

    if arguments.spark and arguments.dir:
        raise InvalidArgumentError(
            "--spark goes with --redis, --cold, or both: the log in --dir has its Redis on this "
            "machine alone, while it is used. Leave --spark out to look at it"
        )
    spark = None
    if arguments.spark:
        from ..spark.session import session

        spark = session("lakelog-doctor")
    findings = diagnose(
        directory=arguments.dir,
        redis_url=arguments.redis,
        cold=arguments.cold,
        location=arguments.location,
        keyspace=arguments.keyspace or DEFAULT_KEYSPACE,
        password_ref=arguments.password_ref,
        storage_options=storage_options(arguments),
        spark=spark,
    )
    rows = [
        {
            "state": finding.state,
            "what": finding.what,
            "found": finding.found,
            "do": finding.mend or "",
            "hop": finding.hop,
        }
        for finding in findings
    ]
    table = Table(rows, columns=("state", "what", "found", "do"))
    if any(finding.state == "broken" for finding in findings):
        raise Failed(table)
    return table
