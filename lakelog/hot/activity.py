"""What archivers, gateways and cleanups leave in Redis of how they are doing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from ..base.json_text import parse_json
from .connection import Servers, by_name
from .foreign import ILLEGIBLE
from .keys import Keys

logger = logging.getLogger(__name__)

#: Nobody writes a time above this, so such a time is foreign.
_MOST_MS = 1 << 52


class Beats:
    """Who is alive: a hash of names → JSON with ``until_ms`` and what that one says.

    A field counts until its ``until_ms``; the key goes when the last field is over. Foreign fields
    are ignored.
    """

    def __init__(self, servers: Servers, key: str) -> None:
        self._servers = servers
        self._key = key

    def leave(self, name: str, said: Mapping[str, Any], lasting_ms: int) -> None:
        """Replace what that one said before; the new word counts for `lasting_ms`.

        Raises:
            LakelogError: Redis does not answer, refuses, or is full.
        """
        now_ms, there = self._now_ms(), self._read()
        until_ms = now_ms + lasting_ms
        text = json.dumps({**said, "until_ms": until_ms}, separators=(",", ":"))
        over = [other for other, beat in there.items() if beat["until_ms"] < now_ms]
        last_ms = max([until_ms, *(beat["until_ms"] for beat in there.values())])
        self._servers.for_key(self._key).call(
            ("HSET", self._key, name, text),
            ("PEXPIREAT", self._key, last_ms),
            *([("HDEL", self._key, *over)] if over else []),
        )

    def end(self, name: str) -> None:
        """Say that it ended in order."""
        self._servers.for_key(self._key).call(("HDEL", self._key, name))

    def alive(self) -> dict[str, dict[str, Any]]:
        """The last word of each that is alive, by its name."""
        now_ms = self._now_ms()
        return {name: beat for name, beat in self._read().items() if beat["until_ms"] >= now_ms}

    def _read(self) -> dict[str, dict[str, Any]]:
        reply = self._servers.for_key(self._key).call(("HGETALL", self._key))[0]
        reply = by_name(reply)
        beats = {name.decode("utf-8", "replace"): _beat(text) for name, text in reply.items()}
        return {name: beat for name, beat in beats.items() if beat is not None}

    def _now_ms(self) -> int:
        seconds, microseconds = self._servers.for_key(self._key).call(("TIME",))[0]
        return int(seconds) * 1000 + int(microseconds) // 1000


def _beat(text: bytes) -> dict[str, Any] | None:
    """What one said; None if it is foreign, which must not hide the others."""
    try:
        beat: dict[str, Any] = parse_json(text)
        if isinstance(beat["until_ms"], int) and beat["until_ms"] < _MOST_MS:
            return beat
    except ILLEGIBLE as error:
        logger.debug("%r is no sign of life: %r", text[:80], error)
    return None


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
        reply = by_name(reply)
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
