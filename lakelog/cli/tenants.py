"""``lakelog tenants``: keyspaces with a directory and quotas of their own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..base.text_table import counted
from .connect import open_log
from .options import Offer, add_config_option, parse_changes, parse_settings
from .output import Message, Page, Table, row, utc_text

if TYPE_CHECKING:
    from ..place.tenants.tenant import TenantUsage

_CREATE = """\
A tenant is a keyspace of its own, whose topics have their tables in a folder below the cold root
(by name: in a schema beside it). With --tenant NAME every command works with it alone. `shared` is
there without being created, for what is nobody's own.

examples:
  lakelog --dir ./log tenants create acme
  lakelog --dir ./log tenants create acme --quota hot.bytes=2GiB --quota topics=20
  lakelog --dir ./log tenants create acme --config log.retention.hours=48
  lakelog --dir ./log --tenant acme topics create orders
"""

_QUOTA = """\
Quotas bound what all topics of a tenant do together:

  hot.bytes           stored bytes that they hold in Redis: an append beyond is refused
  producer.byte.rate  stored bytes a second that are appended: a producer waits
  cold.bytes          bytes of their tables: archiving stops, and goes on when there is room
  topics              how many there are

Without --set and --unset nothing changes, and what is used is shown.

examples:
  lakelog --dir ./log tenants quota acme
  lakelog --dir ./log tenants quota acme --set hot.bytes=2GiB --set producer.byte.rate=10MiB
  lakelog --dir ./log tenants quota acme --unset topics
"""

_DELETE = """\
Refuses while there are topics, unless --topics says to delete them. Deleted topics are kept for
file.delete.delay.ms, and so is the tenant: they can be brought back, and `lakelog --tenant NAME
cleanup run` removes them when their time is over. --purge removes them now.

examples:
  lakelog --dir ./log tenants delete acme
  lakelog --dir ./log tenants delete acme --topics --purge
"""


#: What is known of a tenant.
_FIELDS = "tenant=name keyspace created_ms"


def add_tenants(offer: Offer) -> None:
    verb = offer.verbs("Create, list, describe, bound and delete tenants.")
    create = verb(
        "create", _create, "create a tenant", _CREATE, makes_log=True, recorded="tenants create"
    )
    create.add_argument(
        "--quota", action="append", default=[], metavar="NAME=VALUE", help="a quota; repeatable"
    )
    add_config_option(create, "a default of its topics, as of `topics defaults`; repeatable")
    verb("list", _list, "list the tenants")
    describe = verb("describe", _describe, "show a tenant's place, quotas and defaults")
    text = "show or change what a tenant may use"
    quota = verb("quota", _quota, text, _QUOTA, recorded="tenants quota")
    quota.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    quota.add_argument("--unset", action="append", default=[], metavar="NAME", help="no limit")
    delete = verb("delete", _delete, "delete a tenant", _DELETE, recorded="tenants delete")
    delete.add_argument("--topics", action="store_true", help="delete its topics, too")
    delete.add_argument(
        "--purge", action="store_true", help="remove deleted topics for good, without the delay"
    )
    for added in (create, describe, quota, delete):
        added.add_argument("name", metavar="NAME")


def _create(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        tenant = log.tenants.create(
            arguments.name,
            parse_settings("--quota", arguments.quota),
            parse_settings("--config", arguments.config),
        )
    return Message(
        f"created tenant {tenant.name}, of keyspace {tenant.keyspace}; --tenant {tenant.name} "
        "works with its topics",
        row(tenant, _FIELDS),
    )


def _list(arguments: argparse.Namespace) -> Table:
    with open_log(arguments) as log:
        found = log.tenants.list()
    rows = [row(tenant, _FIELDS) for tenant in found]
    return Table(rows, empty="no tenants yet")


def _describe(arguments: argparse.Namespace) -> Page:
    with open_log(arguments) as log:
        return _page(log.tenants.describe(arguments.name))


def _quota(arguments: argparse.Namespace) -> Page:
    changes = parse_changes(arguments.set, arguments.unset)
    with open_log(arguments) as log:
        if changes:
            return _page(log.tenants.set_quotas(arguments.name, changes))
        return _page(log.tenants.describe(arguments.name))


def _delete(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        done = log.tenants.delete(arguments.name, topics=arguments.topics, purge=arguments.purge)
    values = {
        "tenant": done.tenant.name,
        "gone": done.is_gone,
        "deleted": [topic.name for topic in done.deleted],
        "purged": [topic.name for topic in done.purged],
        "kept": [topic.name for topic in done.kept],
    }
    said = []
    if done.deleted:
        said.append(f"deleted {counted(len(done.deleted), 'topic')}")
    if done.purged:
        said.append(f"removed {counted(len(done.purged), 'deleted topic')} for good")
    if done.is_gone:
        said.append(f"deleted tenant {done.tenant.name}")
    else:
        until = max(topic.kept_until_ms or 0 for topic in done.kept)
        said.append(
            f"tenant {done.tenant.name} stays while {counted(len(done.kept), 'deleted topic')} can "
            f"be brought back, until {utc_text(until)}; delete it again then, or now with --purge"
        )
    return Message("; ".join(said), values)


def _page(usage: TenantUsage) -> Page:
    tenant = usage.tenant
    quotas = [
        {"quota": one.quota.removeprefix("lakelog.quota."), **row(one, "used limit")}
        for one in usage.quotas
    ]
    defaults = [{"setting": name, "value": text} for name, text in usage.defaults.items()]
    return Page(
        {
            "tenant": Message(
                f"tenant {tenant.name}, keyspace {tenant.keyspace}, at {usage.place}",
                row(tenant, _FIELDS, place=usage.place),
            ),
            "quotas": Table(quotas),
            "defaults": Table(defaults, empty="no defaults of its own"),
        }
    )
