"""A tenant, and what it uses of its quotas."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from ...base.json_text import parse_json
from ...cold.table import NO_TABLE, ColdTable
from ...errors import ForeignEntryError, LakelogError
from ...hot import HotLog, TopicRegistry
from ...values.config import (
    KEYSPACE_SETTINGS,
    QUOTA_BYTE_RATE,
    QUOTA_COLD_BYTES,
    QUOTA_HOT_BYTES,
    QUOTA_TOPICS,
    QUOTAS,
)
from ...values.format_version import USUAL_FORMAT, check_format
from ...values.topic import Topic


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


def quota_usage(
    hot: HotLog, topics: TopicRegistry, table_of: Callable[[Topic], ColdTable | None]
) -> list[QuotaUsage]:
    """What is used of each quota, by its name.

    Looks at every partition and, if there is a quota of them, notes the sizes of the tables anew.

    Args:
        table_of: gives a topic's table; None if it has none.

    Raises:
        HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
    """
    there, defaults = topics.list(), topics.defaults()
    hot_bytes = 0
    for topic in there:
        seen = hot.segments(topic.topic_partitions(), topic_id=topic.topic_id)
        hot_bytes += sum(one.held_bytes for one in seen.values())
    used = {
        QUOTA_HOT_BYTES: hot_bytes,
        QUOTA_COLD_BYTES: _cold_bytes(hot, [*there, *topics.deleted()], table_of),
        QUOTA_TOPICS: len(there),
        QUOTA_BYTE_RATE: None,
    }
    limits = {
        name: KEYSPACE_SETTINGS[name].parse(defaults.get(name, KEYSPACE_SETTINGS[name].default))
        for name in QUOTAS
    }
    return [
        QuotaUsage(name, used[name], None if limits[name] < 0 else limits[name]) for name in QUOTAS
    ]


def _cold_bytes(
    hot: HotLog, topics: Iterable[Topic], table_of: Callable[[Topic], ColdTable | None]
) -> int | None:
    """The bytes of all tables, those of deleted topics too; None: some cannot be looked at."""
    quota, sizes = hot.cold_quota(), {}
    for topic in topics:
        try:
            table = table_of(topic)
            if table is not None:
                cold = table.snapshot()
                if cold.version == NO_TABLE and topic.deleted_ms is None:
                    hot.check_own(topic, table)  # it may be away
                sizes[topic] = cold.files.size_bytes
        except LakelogError:
            return None
    quota.retain(topic.topic_id for topic in sizes)
    for topic, size_bytes in sizes.items():
        quota.told(topic, size_bytes)
    return sum(sizes.values())
