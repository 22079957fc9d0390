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

    @classmethod
    def of_text(cls, text: str | bytes) -> ArchivedInto:
        """As Redis keeps it.

        Raises:
            ForeignEntryError: it is none of lakelog's.
        """
        with foreign_if_illegible(text, "the table that a topic is archived into"):
            said = parse_json(text)
            return cls(str(said["table_id"]), str(said["where"]))

    def to_text(self) -> str:
        """See `of_text`."""
        said = {"table_id": self.table_id, "where": self.where}
        return json.dumps(said, separators=(",", ":"))


class ArchivedIntoRegister:
    """One field of the state of a topic's first partition: it goes with the topic.

    `HotLog.segments` tells it with what else is known of that partition.
    """

    def __init__(self, servers: Servers, keys: Keys) -> None:
        self._servers = servers
        self._keys = keys

    def say(self, topic: Topic, into: ArchivedInto, *, over: bool = False) -> ArchivedInto:
        """Remember it, unless something is remembered; what is then.

        Args:
            over: whatever was remembered.

        Raises:
            UnknownTopicIdError: the topic was dropped.
        """
        return self._call(topic, into.to_text(), over=over) or into

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
        return ArchivedInto.of_text(found) if found else None
