"""Which table a topic is archived into, as Redis remembers it, and whether a table is that one.

A topic has one table. In any other, whoever archives would trim what the first does not hold, and
offsets that are reserved would be given out twice. Where the first is away (a folder to which no
disk is mounted now), a new one in its place is another, too. So whoever writes to a table, reserves
offsets in it or makes it asks here before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Protocol

from msgspec import Struct

from ..base.json_text import parse_json
from ..errors import ArchivedElsewhereError
from ..values.topic import Topic
from .connection import Servers, call_script
from .declared import check_topic_id
from .foreign import foreign_if_illegible
from .keys import Keys


class OpenedTable(Protocol):
    """What a table says of itself; see `ColdTable`."""

    @property
    def where(self) -> str: ...
    @property
    def is_local(self) -> bool: ...
    def table_id(self) -> str | None: ...


class Standing(Enum):
    """What a table is to a topic."""

    OWN = "own"  # the topic is archived into it
    FREE = "free"  # it is there, and to be remembered: none was, or it was opened elsewhere
    UNMADE = "unmade"  # none is there, and none is remembered: it may be made
    OTHER = "other"  # another one is the topic's


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


def standing(said: ArchivedInto | None, table_id: str | None, where: str) -> Standing:
    """What a table is to a topic. Pure.

    Args:
        said: the table that Redis remembers as the topic's; None: none, or a new one is adopted.
        table_id: of the table that was opened; None: there is none.
        where: it was opened.
    """
    if said is None:
        return Standing.UNMADE if table_id is None else Standing.FREE
    if said.table_id != table_id:
        return Standing.OTHER
    return Standing.OWN if said.where == where else Standing.FREE


def check_own(topic: Topic, table: OpenedTable, text: str | None, gone: str = "") -> None:
    """Refuses a table that is not the topic's own. Changes nothing.

    Args:
        text: which table Redis remembers as the topic's, as `HotOffsets` have it; None: none.
        gone: what to do where it is gone for good; default: to adopt another.

    Raises:
        ArchivedElsewhereError: another one is.
        ColdTierError: from the table.
    """
    said = None if text is None else ArchivedInto.of_text(text)
    if said is None or _is_trusted(said, table):
        return
    table_id = table.table_id()
    if standing(said, table_id, table.where) is Standing.OTHER:
        is_there = table_id is not None
        raise archived_elsewhere(topic, said, table.where, is_there=is_there, gone=gone)


def _is_trusted(said: ArchivedInto, table: OpenedTable) -> bool:
    """A folder may be one to which nothing is mounted now, and its look costs no round trip. What a
    catalog or an object store has no more was dropped there, and is made again.
    """
    return said.where == table.where and not table.is_local


def archived_elsewhere(
    topic: Topic, said: ArchivedInto, where: str, *, is_there: bool, gone: str = ""
) -> ArchivedElsewhereError:
    """The error of who would use another table as the topic's.

    Args:
        where: the other was opened.
        is_there: whether it is there.
        gone: see `check_own`.
    """
    if said.where == where:
        now = "another one lies there now" if is_there else "it is not there now"
        what = f"{now}; nothing was changed. Is its disk mounted, or has its folder another name?"
        mend = "Bring it back. If it is gone for good, so that a new one is to be made"
    else:
        what = (
            f"here it would be another one, at {where}; nothing more is done there. Open the log "
            "with the first one's cold root, or give this one a keyspace of its own."
        )
        mend = "If the first table is gone for good"
    if gone:
        mend = mend.replace(", so that a new one is to be made", "")
    return ArchivedElsewhereError(
        f"topic {topic.name!r} is archived into the table at {said.where}, and {what} {mend}: "
        + (gone or f"lakelog archive {topic.name} --adopt, once"),
        topic=topic.name,
        where=said.where,
    )


class ArchivedIntoRegister:
    """One field of the state of a topic's first partition: it goes with the topic.

    `HotLog.segments` tells it with what else is known of that partition.
    """

    def __init__(self, servers: Servers, keys: Keys) -> None:
        self._servers = servers
        self._keys = keys

    def settle(self, topic: Topic, table: OpenedTable) -> Standing:
        """Makes sure that a topic is archived into a table and no other, and remembers it.

        Returns:
            ``OWN``, or ``UNMADE``: see `making`.

        Raises:
            ArchivedElsewhereError: another one is the topic's.
            UnknownTopicIdError: the topic was dropped.
            HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
            ColdTierError: from the table.
        """
        return self.settle_said(topic, table, self.said(topic))

    def settle_said(self, topic: Topic, table: OpenedTable, said: ArchivedInto | None) -> Standing:
        """As `settle`, if it is known what Redis remembers."""
        if said is not None and _is_trusted(said, table):
            return Standing.OWN
        table_id, where = table.table_id(), table.where
        found = standing(said, table_id, where)
        if table_id is not None and found is Standing.FREE:
            said = self.say(topic, ArchivedInto(table_id, where), over=said is not None)
            found = Standing.OWN if said.table_id == table_id else Standing.OTHER
        if said is not None and found is Standing.OTHER:
            raise archived_elsewhere(topic, said, where, is_there=table_id is not None)
        return found

    def adopt(self, topic: Topic, table: OpenedTable) -> None:
        """Has a topic archived into a table from now on, whatever other one Redis remembers.

        Raises: see `settle`.
        """
        table_id = table.table_id()
        if standing(None, table_id, table.where) is Standing.UNMADE:
            self.forget(topic)  # known once it is made
        elif table_id is not None:
            self.say(topic, ArchivedInto(table_id, table.where), over=True)

    @contextmanager
    def making(self, topic: Topic, table: OpenedTable) -> Iterator[None]:
        """To be held while a topic's table is made: none is while another one is the topic's.

        Raises: see `settle`. On leaving, too: somebody else was faster, elsewhere.
        """
        before = self.said(topic)
        self.settle_said(topic, table, before)
        yield
        table_id = table.table_id()
        if table_id is None:
            return
        mine = ArchivedInto(table_id, table.where)
        said = self.say(topic, mine, over=before is not None)
        if said.table_id != table_id:
            raise archived_elsewhere(topic, said, table.where, is_there=True)

    def said(self, topic: Topic) -> ArchivedInto | None:
        """Which table Redis remembers as the topic's; None: none.

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
