"""``lakelog acl``: what a user of Redis, and of the cold root's store, must be allowed."""

from __future__ import annotations

import argparse
import json
from typing import Any

from .options import Offer
from .output import Message, Page

ROLES = ("producer", "consumer", "reader", "archiver", "admin")

_EPILOG = """\
Prints the command that makes the user in Redis, or takes from it all that it does not need, and
with --cold s3://…, gs://… or abfss://… the same for the store: a policy document, custom roles and
bindings, a role and its assignment. Nothing is changed and nobody is asked. The user has no
password yet: ACL SETUSER NAME >PASSWORD gives it one. In a Redis Cluster, each server needs it.

A topic TOPIC* is every topic whose name begins so; without --topic it is all of the keyspace. An
admin has the whole keyspace in any case. Archivers and admins put lakelog's scripts on a Redis that
has started; the others wait for that, unless they may load scripts too.

examples:
  lakelog acl producer --topic orders
  lakelog acl consumer --topic orders --group nightly --keyspace sales
  lakelog acl producer --topic orders --tenant acme
  lakelog acl archiver --cold s3://bucket/log --output json
  lakelog acl reader --topic 'web.*' | redis-cli
"""


def add_acl(offer: Offer) -> None:
    added = offer.command(
        _run, "Print the least rights with which a role can do its work.", _EPILOG
    )
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


def _run(arguments: argparse.Namespace) -> Page:
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
    parts: dict[str, Any] = {
        "redis": Message(str(found), {"user": found.user, "rules": list(found.redis)})
    }
    for name, policy in (("s3", found.s3), ("gcs", found.gcs), ("azure", found.azure)):
        if policy is not None:
            parts[name] = Message(json.dumps(policy, indent=2), policy)
    return Page(parts)
