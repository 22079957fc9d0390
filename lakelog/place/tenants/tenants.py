"""`Tenants`: creating, listing, bounding and deleting the tenants of a log."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any

from ...base.text_table import counted
from ...errors import (
    InvalidConfigError,
    TenantError,
)
from ...hot.connection import Servers
from ...hot.keys import Keys
from ...hot.tenants import TenantRegister, forget_keyspace
from ...values.config import QUOTAS, check_settings
from ...values.tenant_name import SHARED, check_tenant_name, tenant_keyspace
from .. import LogPlace
from .tenant import Tenant, TenantDefinition, TenantDeleted, TenantUsage


class Tenants:
    """The tenants of one log.

    A tenant is a keyspace with a place of its own: its topics, groups, archivers and runs are
    apart from those of all others, and so are its defaults (`Lakelog.topics`) and its quotas. To
    work with its topics, connect with its name: ``Lakelog.connect(…, tenant="acme")``.

    Args:
        servers: of the log.
        place: of the log itself.
        now_ms: the time by Redis's clock.
        opened: opens a tenant's `Lakelog`, whether there is such a tenant or not.
    """

    def __init__(
        self,
        servers: Servers,
        place: LogPlace,
        now_ms: Callable[[], int],
        opened: Callable[[str], Any],
    ) -> None:
        self._place = place
        self._now_ms = now_ms
        self._opened = opened
        self._servers = servers
        self._keyspace = place.source.keyspace
        self._register = TenantRegister(servers, Keys(self._keyspace))

    def __repr__(self) -> str:
        return f"Tenants({self._place}, keyspace={self._keyspace!r})"

    def create(
        self,
        name: str,
        quotas: Mapping[str, object] | None = None,
        defaults: Mapping[str, object] | None = None,
    ) -> Tenant:
        """Creates a tenant and returns it.

        Args:
            name: lower-case letters, digits and hyphens.
            quotas: by name: see `set_quotas`.
            defaults: what its topics go by, by broker name: see `TopicRegistry.set_defaults`.

        Raises:
            TenantError: there is one of that name.
            TopicExistsError: a topic of the log has the name.
            InvalidArgumentError: not a name that a tenant can have.
            InvalidConfigError: not a quota or a default, or not legal; nothing was created.
            ArchivedElsewhereError: the folder of the cold root is away; nothing was created.
            ColdTierError, SparkUnavailableError: its place cannot be made; nothing was created.
        """
        check_tenant_name(name)
        check_settings(defaults or {})
        settings = {**_quotas(quotas or {}), **(defaults or {})}
        if self._found(name) is not None:
            raise TenantError(
                f"there is a tenant {name!r} already; use it, change its quotas, or delete it",
                tenant=name,
            )
        self._place.check_is_there()
        return self._created(name, settings)

    def get(self, name: str) -> Tenant:
        """The tenant of a name.

        One whose definition the cold root has and Redis has lost is there again, and ``shared`` is
        there when it is asked for.

        Raises:
            TenantError: there is none.
            InvalidArgumentError: not a name that a tenant can have.
        """
        check_tenant_name(name)
        # Its own keyspace first: a tenant may have no right to the log's.
        created_ms = self._register.marked(self._own_keys(name))
        found = self._found(name) if created_ms is None else self._tenant(name, created_ms)
        if found is not None:
            return found
        if name == SHARED:
            return self._created(name, {})
        names = ", ".join(self._register.list()) or "none"
        raise TenantError(
            f"there is no tenant {name!r} in keyspace {self._keyspace!r} (there are: {names}); "
            f"create it with tenants.create({name!r}) or `lakelog tenants create {name}`",
            tenant=name,
        )

    def list(self) -> builtins.list[Tenant]:
        """All tenants, by name."""
        return [self._tenant(*one) for one in self._register.list().items()]

    def describe(self, name: str) -> TenantUsage:
        """A tenant with its quotas, and what it uses of each.

        Raises:
            TenantError: there is none.
            HotTierUnavailableError: Redis does not answer. What a cold root does not tell now is
                not known, and no error.
        """
        tenant = self.get(name)
        place = self._place.of_tenant(name)
        with self._opened(name) as lake:
            usage = lake.quotas()
            defaults = lake.topics.defaults()
        others = {name: text for name, text in defaults.items() if name not in QUOTAS}
        return TenantUsage(tenant, str(place), tuple(usage), others)

    def set_quotas(self, name: str, changes: Mapping[str, object | None]) -> TenantUsage:
        """Changes quotas (None: no limit) and returns what is used of them.

        Args:
            changes: by name, or by the part behind ``lakelog.quota.``: ``hot.bytes``,
                ``cold.bytes``, ``topics``, ``producer.byte.rate``.

        Raises:
            TenantError: there is none.
            InvalidConfigError: not a quota, or not legal; nothing was changed.
            ConcurrentChangeError: somebody else changed its quotas, defaults or topics.
            PartlyFailedError: they are set, but did not reach every topic yet.
        """
        settings = _quotas(changes)
        self.get(name)
        with self._opened(name) as lake:
            lake.topics.set_defaults(settings)
        return self.describe(name)

    def delete(self, name: str, *, topics: bool = False, purge: bool = False) -> TenantDeleted:
        """Deletes a tenant, once nothing of its topics is kept.

        Deleted topics are kept for ``file.delete.delay.ms``, and so long there is the tenant, so
        that they can be brought back, and that cleanup removes them. Doing it again goes on.

        Args:
            topics: delete its topics, too.
            purge: remove deleted topics for good, now.

        Raises:
            TenantError: there is none; or it has topics, and `topics` was not said.
            ColdTierError: some of it could not be removed; doing it again goes on.
        """
        tenant = self.get(name)
        with self._opened(name) as lake:
            there = [topic.name for topic in lake.topics.list()]
            if there and not topics:
                some = ", ".join(there[:5]) + (", …" if len(there) > 5 else "")
                raise TenantError(
                    f"tenant {name!r} has {counted(len(there), 'topic')} ({some}), and nothing was "
                    "deleted. Delete them first, or with it: topics=True (--topics)",
                    tenant=name,
                    topics=there,
                )
            deleted = [lake.topics.delete(one) for one in there]
            kept = lake.deleted()
            purged = []
            for topic in kept if purge else ():
                lake.purge(topic.name, topic.topic_id)
                purged.append(topic)
            kept = lake.deleted()
            if kept:
                return TenantDeleted(tenant, False, deleted, purged, kept)
            for group in lake.groups.list():
                lake.groups.delete(group.group_id)
            for share_group in lake.share_groups.list():
                lake.share_groups.delete(share_group.group_id)
            # The name goes last: until then, doing it again finds the tenant.
            if lake.place.cold is not None:
                lake.place.cold.remove_definition()
            forget_keyspace(self._servers, self._own_keys(name))
        self._register.delete(name)
        return TenantDeleted(tenant, True, deleted, purged)

    # -- how -----------------------------------------------------------------------------------

    def _tenant(self, name: str, created_ms: int) -> Tenant:
        return Tenant(name, tenant_keyspace(self._keyspace, name), created_ms)

    def _found(self, name: str) -> Tenant | None:
        created_ms = self._register.get(name)
        if created_ms is not None:
            return self._tenant(name, created_ms)
        cold = self._place.of_tenant(name).cold
        text = None if cold is None else cold.read_definition()
        if text is None:
            return None
        held = TenantDefinition.from_json(text, str(cold))
        with self._opened(name) as lake:  # its quotas first: nobody is to be there without them
            if not lake.topics.defaults() and held.defaults:
                lake.topics.set_defaults(held.defaults)
        return self._noted(name, held.created_ms)

    def _created(self, name: str, settings: Mapping[str, object]) -> Tenant:
        created_ms = self._now_ms()
        self._register.check_free(name)
        with self._opened(name) as lake:
            given = lake.topics.set_defaults(settings) if settings else lake.topics.defaults()
            if lake.place.cold is not None:
                definition = TenantDefinition(name, created_ms, given)
                lake.place.cold.write_definition(definition.to_json())
        return self._noted(name, created_ms)

    def _noted(self, name: str, created_ms: int) -> Tenant:
        self._register.create(name, created_ms)
        created_ms = self._register.get(name) or created_ms  # somebody may have been faster
        self._register.mark(self._own_keys(name), created_ms)
        return self._tenant(name, created_ms)

    def _own_keys(self, name: str) -> Keys:
        return Keys(tenant_keyspace(self._keyspace, name))


def _quotas(given: Mapping[str, object | None]) -> dict[str, object | None]:
    """The settings of quotas, which may be named without what all have in front.

    Raises:
        InvalidConfigError: not a quota.
    """
    check_settings(given)
    short = {name.removeprefix("lakelog.quota."): name for name in QUOTAS}
    found = {}
    for name, value in given.items():
        full = short.get(name, name)
        if full not in QUOTAS:
            raise InvalidConfigError(
                f"{name!r} is no quota; there are {', '.join(short)}", name=name
            )
        found[full] = value
    return found
