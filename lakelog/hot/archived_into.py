"""Which table a topic is archived into, as Redis remembers it for whoever archives next."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from ..json_text import parse_json
from ..topic import Topic
from .connection import Servers, call_script
from .fetch import check_topic_id
from .foreign import foreign_if_illegible
from .keys import Keys


class ArchivedInto(Struct, frozen=True):
    """One Delta table."""

    table_id: str  # Delta's, the same from wherever it is opened
    where: str  # path, URL or name by which it was opened


class ArchivedIntoRegister:
    """One field of the state of a topic's first partition: it goes with the topic."""

    def __init__(self, servers: Servers, keys: Keys) -> None:
        self._servers = servers
        self._keys = keys

    def get(self, topic: Topic) -> ArchivedInto | None:
        """None: nobody has archived it, or not since it is remembered.

        Raises:
            UnknownTopicIdError: the topic was dropped.
        """
        return self._call(topic, "", over=False)

    def say(self, topic: Topic, into: ArchivedInto, *, over: bool = False) -> ArchivedInto:
        """Remember it, unless something is remembered; what is then.

        Args:
            over: whatever was remembered.

        Raises:
            UnknownTopicIdError: the topic was dropped.
        """
        text = json.dumps({"table_id": into.table_id, "where": into.where}, separators=(",", ":"))
        return self._call(topic, text, over=over) or into

    def forget(self, topic: Topic) -> None:
        """Whoever archives next says it anew.

        Raises:
            UnknownTopicIdError: the topic was dropped.
        """
        self._call(topic, "FORGET", over=False)

    def _call(self, topic: Topic, say: str, *, over: bool) -> ArchivedInto | None:
        first = topic.partition(0)
        arguments: list[Any] = [str(topic.topic_id), say, int(over)]
        keys = self._keys.partition(first).all()
        code, found = call_script(self._servers, "archived_into", keys, arguments)
        if code == b"UNKNOWN_TOPIC_ID":
            check_topic_id(first, found, topic.topic_id)
        if not found:
            return None
        with foreign_if_illegible(found, "the table that a topic is archived into"):
            said = parse_json(found)
            return ArchivedInto(str(said["table_id"]), str(said["where"]))
