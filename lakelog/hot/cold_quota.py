"""How large the tables of a keyspace are together, for the quota of cold bytes.

Only a table tells how large it is, and an archiver knows but its own. So each tells here what it
finds, before it archives and after, and learns what all have told.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from ..errors import QuotaExceededError
from ..values.config import QUOTA_COLD_BYTES
from ..values.topic import Topic
from .connection import Servers, call_script
from .keys import Keys


class ColdQuota(Struct, frozen=True):
    """What the tables of a keyspace take, and may take."""

    servers: Servers
    keys: Keys

    def told(self, topic: Topic, size_bytes: int) -> int:
        """Notes how large a topic's table is; the bytes of all tables.

        Raises:
            HotTierUnavailableError: Redis does not answer.
        """
        return self._call("tell", str(topic.topic_id), size_bytes)

    def retain(self, topic_ids: Iterable[UUID]) -> int:
        """Forgets the tables of all other topics; the bytes of those that are left."""
        return self._call("retain", *map(str, topic_ids))

    def check(self, topic: Topic, size_bytes: int) -> None:
        """Notes how large a topic's table is, and that it may grow.

        Nothing is asked where there is no quota.

        Raises:
            QuotaExceededError: all tables together are as large as they may be.
            HotTierUnavailableError: Redis does not answer.
        """
        limit = topic.config.quota(QUOTA_COLD_BYTES)
        if limit is None:
            return
        used = self.told(topic, size_bytes)
        if used >= limit:
            raise QuotaExceededError(
                f"the tables of keyspace {self.keys.keyspace!r} take {used} bytes, and "
                f"{QUOTA_COLD_BYTES}={limit}: no more of topic {topic.name!r} is archived, and "
                "Redis keeps it. Shorten retention.ms and run a cleanup, delete and purge topics, "
                "or have the quota raised",
                quota=QUOTA_COLD_BYTES,
                used=used,
                limit=limit,
                topic=topic.name,
            )

    def _call(self, *arguments: object) -> int:
        answer = call_script(self.servers, "cold_bytes", [self.keys.quotas], arguments)
        return int(answer)
