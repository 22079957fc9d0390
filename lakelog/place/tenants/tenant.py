"""A tenant, and what it uses of its quotas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ...base.json_text import parse_json
from ...errors import ForeignEntryError
from ...values.format_version import USUAL_FORMAT, check_format
from ...values.tenant_name import SHARED
from ...values.topic import Topic

__all__ = ["SHARED", "QuotaUsage", "Tenant", "TenantDefinition", "TenantDeleted", "TenantUsage"]


class Tenant(Struct, frozen=True):
    """A keyspace of topics with a place of its own."""

    name: str
    keyspace: str
    created_ms: int


class QuotaUsage(Struct, frozen=True):
    """What is used of one quota."""

    quota: str  # the setting
    used: int | None  # None: it is not known; of a rate, it is not measured
    limit: int | None  # None: there is none


class TenantUsage(Struct, frozen=True):
    """A tenant, where its tables lie, and what it uses of each quota."""

    tenant: Tenant
    place: str
    quotas: tuple[QuotaUsage, ...]
    defaults: Mapping[str, str]  # its own, by broker name, without the quotas


class TenantDeleted(Struct, frozen=True):
    """What became of a tenant that was to be deleted.

    It is gone once none of its topics is kept any more.
    """

    tenant: Tenant
    is_gone: bool
    deleted: Sequence[Topic] = ()  # topics that this call deleted
    purged: Sequence[Topic] = ()  # topics that this call removed for good
    kept: Sequence[Topic] = ()  # topics that can still be brought back, and keep the tenant


class TenantDefinition(Struct, frozen=True):
    """What the cold root keeps of a tenant, for a Redis that has lost it."""

    name: str
    created_ms: int
    defaults: Mapping[str, str]  # with the quotas, by broker name

    def to_json(self) -> bytes:
        fields = {
            "format": USUAL_FORMAT,
            "tenant": self.name,
            "created_ms": self.created_ms,
            "defaults": dict(self.defaults),
        }
        return json.dumps(fields, indent=2).encode()

    @classmethod
    def from_json(cls, text: bytes, where: str) -> TenantDefinition:
        """Reads what `to_json` gave.

        Raises:
            ForeignEntryError: it is something else.
            NewerVersionError: a newer lakelog wrote it.
        """
        try:
            fields = parse_json(text)
            check_format(fields.get("format"), f"the definition of a tenant in {where}")
            defaults = {str(name): str(value) for name, value in fields["defaults"].items()}
            return cls(str(fields["tenant"]), int(fields["created_ms"]), defaults)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ForeignEntryError(
                f"the definition of a tenant in {where} is not lakelog's ({error!r}); remove the "
                "file, and create the tenant again",
                key=where,
            ) from error
