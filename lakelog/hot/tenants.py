"""Which tenants a keyspace has. What each of them holds is in a keyspace of its own."""

from __future__ import annotations

import json

from msgspec import Struct

from ..base.json_text import parse_json
from ..errors import TopicExistsError
from ..values.format_version import USUAL_FORMAT, check_format
from .connection import Servers, by_name, call_script
from .foreign import foreign_if_illegible
from .keys import TENANT_FIELD, TENANT_FIELDS, Keys


class TenantRegister(Struct, frozen=True):
    """The names of a keyspace's tenants, and since when there are."""

    servers: Servers
    keys: Keys

    def create(self, name: str, created_ms: int) -> bool:
        """Notes a tenant; False if there is one of that name.

        Raises:
            TopicExistsError: a topic has the name.
        """
        arguments = ["create", name, _definition(created_ms)]
        answer = call_script(self.servers, "tenant", [self.keys.topics], arguments)
        if answer[0] == b"TOPIC":
            raise _has_topic(self.keys, name)
        return bool(answer[0] == b"OK")

    def check_free(self, name: str) -> None:
        """Refuses a name that a topic has.

        Raises:
            TopicExistsError: see `create`.
        """
        command = ("HEXISTS", self.keys.topics, name)
        if self.servers.for_key(self.keys.topics).call(command)[0]:
            raise _has_topic(self.keys, name)

    def mark(self, own: Keys, created_ms: int) -> None:
        """Notes in a tenant's own keyspace that it is one, for who may read no other.

        Args:
            own: the tenant's keys.
        """
        call_script(self.servers, "tenant", [own.topics], ["mark", "", _definition(created_ms)])

    def marked(self, own: Keys) -> int | None:
        """When the tenant was created, as its own keyspace says; None: it does not."""
        command = ("HGET", own.topics, TENANT_FIELD)
        found = self.servers.for_key(own.topics).call(command)[0]
        return None if found is None else _created_ms(found, own.keyspace)

    def get(self, name: str) -> int | None:
        """When a tenant was created, in ms since the epoch; None: there is none of that name."""
        command = ("HGET", self.keys.topics, f"{TENANT_FIELDS}{name}")
        found = self.servers.for_key(self.keys.topics).call(command)[0]
        return None if found is None else _created_ms(found, name)

    def list(self) -> dict[str, int]:
        """All tenants by name, with when each was created."""
        server = self.servers.for_key(self.keys.topics)
        reply = server.call(("HGETALL", self.keys.topics))[0]
        reply = by_name(reply)
        prefix = TENANT_FIELDS.encode()
        found = {}
        for field, text in sorted(reply.items()):
            if field.startswith(prefix):
                with foreign_if_illegible(field, "name of a tenant"):
                    name = field.removeprefix(prefix).decode()
                found[name] = _created_ms(text, name)
        return found

    def delete(self, name: str) -> None:
        """Forgets a tenant, if there is one."""
        call_script(self.servers, "tenant", [self.keys.topics], ["delete", name, ""])


def forget_keyspace(servers: Servers, keys: Keys) -> None:
    """Frees what a keyspace without topics and groups still has."""
    for key in (
        *(keys.quotas, keys.archivers, keys.gateway_users),
        *(keys.share_groups, keys.groups, keys.groups_recorded),
    ):
        servers.for_key(key).call(("UNLINK", key))
    servers.for_key(keys.topics).call(("UNLINK", keys.topics))


def _has_topic(keys: Keys, name: str) -> TopicExistsError:
    return TopicExistsError(
        f"tenant {name!r} cannot be created: a topic of keyspace {keys.keyspace!r} has the name, "
        "and their tables would lie in one folder. Choose another name",
        topic=name,
    )


def _definition(created_ms: int) -> str:
    return json.dumps({"format": USUAL_FORMAT, "created_ms": created_ms})


def _created_ms(text: bytes, name: str) -> int:
    with foreign_if_illegible(text, "definition of a tenant"):
        fields = parse_json(text)
        check_format(fields.get("format"), f"tenant {name!r}")
        return int(fields["created_ms"])
