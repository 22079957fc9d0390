"""``lakelog tenants``: keyspaces with a directory and quotas of their own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
from .connect import open_log
from .output import Message, Page, Table, utc_text
from .settings import add_config_option, parse_changes, parse_settings
from .verbs import verbs_of

if TYPE_CHECKING:
    from ..place.tenants.tenant import Tenant, TenantUsage

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


def add_parser(commands: Any, common: argparse.ArgumentParser) -> None:
    add = verbs_of(
        commands,
        common,
        "tenants",
        description="Create, list, describe, bound and delete tenants.",
    )

    def verb(name: str, run: Any, text: str, epilog: str | None = None) -> Any:
        added = add(
            name,
            run,
            text,
            epilog,
            description=text,
            makes_log=run is _create,
            recorded=f"tenants {name}" if run in (_create, _quota, _delete) else None,
        )
        if run is not _list:
            added.add_argument("name", metavar="NAME")
        return added

    create = verb("create", _create, "create a tenant", _CREATE)
    create.add_argument(
        "--quota", action="append", default=[], metavar="NAME=VALUE", help="a quota; repeatable"
    )
    add_config_option(create, "a default of its topics, as of `topics defaults`; repeatable")
    verb("list", _list, "list the tenants")
    verb("describe", _describe, "show a tenant's place, quotas and defaults")
    quota = verb("quota", _quota, "show or change what a tenant may use", _QUOTA)
    quota.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    quota.add_argument("--unset", action="append", default=[], metavar="NAME", help="no limit")
    delete = verb("delete", _delete, "delete a tenant", _DELETE)
    delete.add_argument("--topics", action="store_true", help="delete its topics, too")
    delete.add_argument(
        "--purge", action="store_true", help="remove deleted topics for good, without the delay"
    )


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
        _row(tenant),
    )


def _list(arguments: argparse.Namespace) -> Table:
    with open_log(arguments) as log:
        found = log.tenants.list()
    if arguments.output == "json":
        return Table([_row(tenant) for tenant in found])
    rows = [
        {
            "tenant": tenant.name,
            "keyspace": tenant.keyspace,
            "created": utc_text(tenant.created_ms),
        }
        for tenant in found
    ]
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
    row = {
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
    return Message("; ".join(said), row)


def _page(usage: TenantUsage) -> Page:
    tenant = usage.tenant
    quotas = [
        {"quota": one.quota.removeprefix("lakelog.quota."), "used": one.used, "limit": one.limit}
        for one in usage.quotas
    ]
    defaults = [{"setting": name, "value": text} for name, text in usage.defaults.items()]
    return Page(
        {
            "tenant": Message(
                f"tenant {tenant.name}, keyspace {tenant.keyspace}, at {usage.place}",
                {**_row(tenant), "place": usage.place},
            ),
            "quotas": Table(quotas),
            "defaults": Table(defaults, empty="no defaults of its own"),
        }
    )


def _row(tenant: Tenant) -> dict[str, Any]:
    return {
        "tenant": tenant.name,
        "keyspace": tenant.keyspace,
        "created_ms": tenant.created_ms,
    }
