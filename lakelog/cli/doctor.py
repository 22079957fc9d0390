"""``lakelog doctor``, ``acl``: what is missing or risky, and what a user must be allowed."""

from __future__ import annotations

import argparse
import json
import os

from ..errors import InvalidArgumentError
from .connect import storage_options
from .options import Offer
from .output import Failed, Message, Page, Table

_DOCTOR = """\
Without --dir or --redis only this machine is looked at. Exit code 1 when something is broken.

With --spark, the driver and the executors connect to Redis (to each server of a cluster), write to
and read from the cold root, and tell their version of lakelog.

With --databricks, the workspace that the Databricks CLI is logged in to is asked, before a
deployment, whether it lets you have what the bundle deploys. --var gives the bundle's variables as
its own CLI takes them; BUNDLE_VAR_NAME in the environment does too.

examples:
  lakelog doctor
  lakelog doctor --redis redis://host:6379 --cold s3://bucket/log
  lakelog doctor --spark --redis rediss://host:6379 --password-ref env:REDIS_PASSWORD --output json
  lakelog doctor --databricks --var catalog=main --var redis_url=rediss://host:6379
"""

_ACL = """\
Prints the command that makes the user in Redis, or takes from it all that it does not need, and
with --cold s3://… a policy document for the store. Nothing is changed and nobody is asked. The user
has no password yet: ACL SETUSER NAME >PASSWORD gives it one. In a Redis Cluster, each server needs
it.

A topic TOPIC* is every topic whose name begins so; without --topic it is all of the keyspace. An
admin has the whole keyspace in any case. More: `lakelog help acl`.

examples:
  lakelog acl producer --topic orders
  lakelog acl consumer --topic orders --group nightly --keyspace sales
  lakelog acl producer --topic orders --tenant acme
  lakelog acl archiver --cold s3://bucket/log --output json
  lakelog acl reader --topic 'web.*' | redis-cli
"""

ROLES = ("producer", "consumer", "reader", "archiver", "admin")


def add_doctor(offer: Offer) -> None:
    added = offer.command(_doctor, "Check what lakelog needs.", _DOCTOR)
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


def _doctor(arguments: argparse.Namespace) -> Table:
    from ..hot.keys import DEFAULT_KEYSPACE
    from ..operate.diagnosis import diagnose

    if arguments.spark and arguments.dir:
        raise InvalidArgumentError(
            "--spark goes with --redis, --cold, or both: the log in --dir has its Redis on this "
            "machine alone, while it is used. Leave --spark out to look at it"
        )
    if not arguments.databricks and (arguments.var or arguments.profile):
        raise InvalidArgumentError("--var and --profile go with --databricks")
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
        findings += diagnose_workspace(client, deployment)
        findings += not_looked_at(deployment)
    rows = [finding.row for finding in findings]
    table = Table(rows, columns=("state", "what", "found", "do"))
    if any(finding.state == "broken" for finding in findings):
        raise Failed(table)
    return table


def add_acl(offer: Offer) -> None:
    added = offer.command(_acl, "Print the least rights with which a role can do its work.", _ACL)
    added.add_argument("role", metavar="ROLE", type=str.lower, choices=ROLES, help=", ".join(ROLES))
    added.add_argument(
        "--topic", action="append", dest="topics", metavar="TOPIC", help="repeatable; default: all"
    )
    added.add_argument(
        "--group",
        action="append",
        dest="groups",
        metavar="GROUP",
        help="of a consumer, share groups too; repeatable; default: all",
    )
    added.add_argument("--user", metavar="NAME", help="default: the role, and the one topic")
    added.add_argument(
        "--load-scripts",
        action="store_true",
        help="allow SCRIPT LOAD, so that nobody need connect before it; any script may be run then",
    )


def _acl(arguments: argparse.Namespace) -> Page:
    from ..operate.acl.acl import acl
    from ..operate.acl.redis_rules import EVERY
    from ..values.tenant_name import check_tenant_name, tenant_keyspace

    keyspace, cold = arguments.keyspace or "lakelog", arguments.location or arguments.cold
    if arguments.tenant:
        keyspace = tenant_keyspace(keyspace, check_tenant_name(arguments.tenant))
        cold = cold and f"{cold.rstrip('/')}/{arguments.tenant}"
    found = acl(
        arguments.role,
        arguments.topics or EVERY,
        groups=arguments.groups or EVERY,
        keyspace=keyspace,
        cold=cold,
        user=arguments.user,
        load_scripts=arguments.load_scripts,
    )
    parts = {"redis": Message(str(found), {"user": found.user, "rules": list(found.redis)})}
    if found.s3 is not None:
        parts["s3"] = Message(json.dumps(found.s3, indent=2), found.s3)
    elif "://" in (cold or "") and not str(cold).startswith("file:"):
        parts["store"] = Message(
            f"a policy is made for s3:// alone: `lakelog help acl` tells which rights below {cold} "
            "are to be given by hand",
            is_aside=True,
        )
    return Page(parts)
