"""``lakelog doctor``: what is installed, reachable, missing or risky, and what mends it."""

from __future__ import annotations

import argparse
import os

from ..errors import InvalidArgumentError
from .connect import storage_options
from .options import Offer
from .output import Failed, Table

_EPILOG = """\
Without --dir or --redis only this machine is looked at. Exit code 1 when something is broken.

With --spark, the driver and the executors try the way to Redis hop by hop (name, TCP, TLS,
password, AUTH, PING; of a cluster, to each of its servers), write to and read from the cold root,
and tell their version of lakelog. The hop that fails is named, with what to do.

With --databricks, the workspace that the Databricks CLI is logged in to is asked, before a
deployment, whether it lets you have what the bundle deploys. --var gives the bundle's variables as
its own CLI takes them; BUNDLE_VAR_NAME in the environment does too. --cluster names a running
cluster, from which Redis is tried (name, TCP, TLS).

examples:
  lakelog doctor
  lakelog doctor --redis redis://host:6379 --cold s3://bucket/log
  lakelog doctor --spark --redis rediss://host:6379 --password-ref env:REDIS_PASSWORD --output json
  lakelog doctor --databricks --var catalog=main --var redis_url=rediss://host:6379
"""


def add_doctor(offer: Offer) -> None:
    added = offer.command(_run, "Check what lakelog needs.", _EPILOG)
    added.add_argument(
        "--spark",
        action="store_true",
        help="look from Spark's driver and executors, too: at --redis, --cold, or both",
    )
    workspace = added.add_argument_group("of a Databricks workspace")
    workspace.add_argument(
        "--databricks",
        action="store_true",
        help="whether a workspace lets you have what the bundle deploys",
    )
    workspace.add_argument(
        "--var",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable of the bundle, such as catalog=main; repeatable",
    )
    workspace.add_argument("--profile", help="of ~/.databrickscfg, if not the CLI's default one")
    workspace.add_argument(
        "--cluster", metavar="ID", help="a running cluster, from which Redis is tried"
    )


def _run(arguments: argparse.Namespace) -> Table:
    from ..hot.keys import DEFAULT_KEYSPACE
    from ..operate.diagnosis import diagnose

    if arguments.spark and arguments.dir:
        raise InvalidArgumentError(
            "--spark goes with --redis, --cold, or both: the log in --dir has its Redis on this "
            "machine alone, while it is used. Leave --spark out to look at it"
        )
    if not arguments.databricks and (arguments.var or arguments.profile or arguments.cluster):
        raise InvalidArgumentError("--var, --profile and --cluster go with --databricks")
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
    if arguments.databricks:
        from ..operate.workspace import Deployment, diagnose_workspace, log_in, not_looked_at

        deployment = Deployment.of(arguments.var, os.environ)
        client = log_in(arguments.profile)
        findings += diagnose_workspace(client, deployment, cluster_id=arguments.cluster)
        findings += not_looked_at(deployment, arguments.cluster)
    rows = [finding.row for finding in findings]
    table = Table(rows, columns=("state", "what", "found", "do"))
    if any(finding.state == "broken" for finding in findings):
        raise Failed(table)
    return table
