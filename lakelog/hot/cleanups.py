"""What cleanups have counted, in whatever process they ran, for whoever watches the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from .connection import Servers
from .keys import Keys


class Cleanups:
    """The hash ``{keyspace}:cleanups``: ``{topic id} {name of a count}`` → a number.

    Foreign fields are ignored.
    """

    def __init__(self, servers: Servers, keys: Keys) -> None:
        self._servers = servers
        self._key = keys.cleanups

    def tell(self, topic_id: UUID, more: Mapping[str, int], now: Mapping[str, float]) -> None:
        """Counts so much more of a topic, and takes note of how the rest is now.

        Raises:
            LakelogError: Redis does not answer, refuses, or is full.
        """
        self._servers.for_key(self._key).call(
            *(("HINCRBY", self._key, f"{topic_id} {name}", by) for name, by in more.items()),
            *(("HSET", self._key, f"{topic_id} {name}", value) for name, value in now.items()),
        )

    def retain(self, topic_ids: Iterable[UUID]) -> None:
        """Forgets all other topics.

        Raises:
            LakelogError: as `tell`.
        """
        kept = set(map(str, topic_ids))
        server = self._servers.for_key(self._key)
        fields = server.call(("HKEYS", self._key))[0]
        gone = [name for name in fields if name.decode("latin-1").partition(" ")[0] not in kept]
        if gone:
            server.call(("HDEL", self._key, *gone))

    def read(self) -> dict[str, dict[str, float]]:
        """What was told of each topic, by its id.

        Raises:
            LakelogError: Redis does not answer, or refuses.
        """
        reply = self._servers.for_key(self._key).call(("HGETALL", self._key))[0]
        if not isinstance(reply, dict):  # a flat list, in the older of redis-py's protocols
            reply = dict(zip(reply[::2], reply[1::2], strict=True))
        found: dict[str, dict[str, float]] = {}
        for field, value in reply.items():
            topic_id, space, name = field.decode("latin-1").partition(" ")
            try:
                number = float(value)
            except ValueError:
                continue
            if space:
                found.setdefault(topic_id, {})[name] = number
        return found
