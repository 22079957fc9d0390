"""How every Redis key is spelled; no other file spells one.

| key | type | holds |
|---|---|---|
| ``{keyspace}:topics`` | hash | topic name → its definition as JSON, and the fields below |
| ``{<topics>}:quotas`` | hash | what partitions were allowed of quotas, see ``quota.lua`` |
| ``{keyspace}:stream:{topic}:{partition}`` | stream | the entries |
| ``{<stream>}:state`` | hash | see ``common.lua`` |
| ``{<stream>}:segments`` | sorted set | closed segments, scored by base offset |
| ``{<stream>}:times`` | sorted set | time index: offset, scored by the largest timestamp up to it |
| ``{<stream>}:producers`` | hash | producer id → epoch and its last five calls |
| ``{<stream>}:quarantine`` | hash | notes of what was skipped, see ``skip.lua`` |
| ``{<stream>}:shares`` | hash | group id → its ranges, see ``groups/share/share.lua`` |
| ``{<stream>}:rebuilt`` | stream | the stream, while it is made anew; see skip.lua |
| ``{<stream>}:deleted:{topic_id}:{kind}`` | as above | what is kept of a deleted topic |
| ``{keyspace}:groups`` | hash | group id → its creation, see ``groups/listing.lua`` |
| ``{<groups>}:recorded`` | hash | what is recorded of them in the cold root, see ``record.lua`` |
| ``{keyspace}:group:{group_id}`` | hash | a group of consumers, see ``groups/group.lua`` |
| ``{<group>}:{kind}`` | | what belongs to it, of each kind that has something |
| ``{keyspace}:share_groups`` | hash | [group id, topic, partition] of what lies in ``:shares`` |
| ``{keyspace}:archivers`` | hash | archiver id → how it is doing, see `beats` |
| ``{keyspace}:cleanups`` | hash | what cleanups have counted, see `cleanups` |
| ``{keyspace}:gateways`` | hash | process of a gateway → where it is, see `beats` |
| ``{keyspace}:gateway_users`` | hash | who may log in to a gateway, see `gateway.users` |
| ``{keyspace}:resume:{n}`` | string | a server's lock while a planned stop ends |
| ``{keyspace}:naming:{topic_id}`` | string | a lock while a topic gets its names in a catalog |
| ``{keyspace}:naming:_lakelog_status`` | string | the same for the table of job runs |

A topic's name begins with no ``#``, so ``:topics`` also has: ``#keyspace_id``, which tells this
keyspace from one of the same name in another Redis; ``#defaults``, the keyspace's defaults as JSON;
``#changes`` and ``#deletions``, when these changed last, see ``topics.lua``;
``#created_us``, see ``topics.lua``; and of each deleted topic ``#deleted:{topic_id}``, its
definition as it was, ``#deleted_ms:{topic_id}``, ``#deleted_into:{topic_id}``, its table, if that
was known, and once it is removed for good ``#purged_ms:{topic_id}``; while its partitions are taken
aside, ``#deleting:{topic}``, its id; and of each tenant ``#tenant:{name}``, since when there is
one, as JSON. Its own keyspace, ``{keyspace}.{name}``, says the same in ``#tenant``. They are
fields, not keys, so that a topic and its defaults are read and compared in one step.

The companions carry the whole key of the stream or group as their hash tag, so they share a cluster
slot. A group's id may be any text; its braces are written as ``%7B`` and ``%7D``, ``%`` as ``%25``.
"""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from msgspec import Struct
from msgspec.structs import astuple

from ..errors import InvalidArgumentError
from ..values.topic_partition import TopicPartition

DEFAULT_KEYSPACE = "lakelog"

_KINDS = ("stream", "state", "segments", "times", "producers", "quarantine", "shares")
_COMPANIONS = ("state", "segments", "times", "producers", "quarantine", "shares", "rebuilt")
_OF_GROUPS = ("members", "pending", "deadlines", "arrived", "assignments", "offsets", "news")

# Fields of {keyspace}:topics; the scripts spell them too.
DEFAULTS_FIELD = "#defaults"
CHANGES_FIELD = "#changes"
DELETIONS_FIELD = "#deletions"
KEYSPACE_ID_FIELD = "#keyspace_id"
DELETED_FIELDS = "#deleted:"
DELETED_MS_FIELDS = "#deleted_ms:"
DELETED_INTO_FIELDS = "#deleted_into:"
DELETING_FIELDS = "#deleting:"
PURGED_MS_FIELDS = "#purged_ms:"
TENANT_FIELDS = "#tenant:"
TENANT_FIELD = "#tenant"  # in a tenant's own


def check_keyspace(keyspace: str) -> str:
    """The keyspace, if keys can be built from it.

    Raises:
        InvalidArgumentError: empty, or holds a brace, white space or a control character.
    """
    if (
        not isinstance(keyspace, str)
        or not keyspace
        or any(c in "{}" or c.isspace() or not c.isprintable() for c in keyspace)
    ):
        raise InvalidArgumentError(
            f"{keyspace!r} is not a legal keyspace: it must not be empty nor hold '{{', '}}' or "
            "white space (braces would move a key to another cluster slot)",
            name="keyspace",
            value=keyspace,
        )
    return keyspace


class PartitionKeys(Struct, frozen=True, gc=False):
    """The keys of one topic-partition; the first five in the order the scripts take them."""

    stream: str
    state: str
    segments: str
    times: str
    producers: str
    quarantine: str
    shares: str
    rebuilt: str

    def all(self) -> tuple[str, ...]:
        """The keys that every partition has."""
        return (self.stream, self.state, self.segments, self.times, self.producers)

    def lasting(self) -> tuple[str, ...]:
        """The keys that live as long as the partition."""
        return (*self.all(), self.quarantine, self.shares)

    def kept(self, topic_id: UUID) -> tuple[str, ...]:
        """Under what `lasting` is kept when that creation of the topic was deleted."""
        return tuple(f"{{{self.stream}}}:deleted:{topic_id}:{kind}" for kind in _KINDS)


class GroupKeys(Struct, frozen=True):
    """The keys of one group, in the order the scripts take them."""

    group: str
    members: str
    pending: str
    deadlines: str
    arrived: str
    assignments: str
    offsets: str
    news: str

    def all(self) -> tuple[str, ...]:
        return astuple(self)


class Keys(Struct, frozen=True):
    """The keys of one keyspace."""

    keyspace: str = DEFAULT_KEYSPACE

    def __post_init__(self) -> None:
        check_keyspace(self.keyspace)

    @property
    def topics(self) -> str:
        return f"{self.keyspace}:topics"

    @property
    def quotas(self) -> str:
        return f"{{{self.topics}}}:quotas"

    @property
    def archivers(self) -> str:
        return f"{self.keyspace}:archivers"

    @property
    def cleanups(self) -> str:
        return f"{self.keyspace}:cleanups"

    @property
    def gateways(self) -> str:
        return f"{self.keyspace}:gateways"

    @property
    def gateway_users(self) -> str:
        return f"{self.keyspace}:gateway_users"

    @property
    def share_groups(self) -> str:
        return f"{self.keyspace}:share_groups"

    @property
    def groups(self) -> str:
        return f"{self.keyspace}:groups"

    @property
    def groups_recorded(self) -> str:
        return f"{{{self.groups}}}:recorded"

    def group(self, group_id: str) -> GroupKeys:
        spelled = group_id.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
        key = f"{self.keyspace}:group:{spelled}"
        return GroupKeys(key, *(f"{{{key}}}:{kind}" for kind in _OF_GROUPS))

    def resume_lock(self, number: int) -> str:
        """The lock for switching a server's fsync policy; in a cluster, each server needs a number
        whose key it holds.
        """
        return f"{self.keyspace}:resume:{number}"

    def naming_lock(self, named: UUID | str) -> str:
        return f"{self.keyspace}:naming:{named}"

    def stream(self, topic_partition: TopicPartition) -> str:
        """The key of a partition's entries, by whose slot all its keys lie on one server."""
        return self.partition(topic_partition).stream

    @lru_cache(maxsize=32_768)  # noqa: B019, Keys are few and compare by their keyspace
    def partition(self, topic_partition: TopicPartition) -> PartitionKeys:
        stream = f"{self.keyspace}:stream:{topic_partition.topic}:{topic_partition.partition}"
        tag = f"{{{stream}}}:"
        return PartitionKeys(stream, *[tag + kind for kind in _COMPANIONS])


class KeptKeys(Keys, frozen=True, kw_only=True):
    """The keys of a keyspace's partitions where they are kept of a deleted topic."""

    topic_id: UUID

    @lru_cache(maxsize=256)  # noqa: B019, as of `Keys`
    def partition(self, topic_partition: TopicPartition) -> PartitionKeys:
        lasting = Keys.partition(self, topic_partition)
        return PartitionKeys(*(*lasting.kept(self.topic_id), lasting.rebuilt))
