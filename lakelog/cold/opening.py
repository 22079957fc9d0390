"""Has many tables read their logs before they are asked one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

from ..engines.at_once import each_at_once
from ..errors import LakelogError
from ..topic import Topic
from .table import ColdTable

#: Tables looked at at a time: what an object store answers is waited for.
AT_ONCE = 8


def open_tables(topics: Sequence[Topic], table_of: Callable[[Topic], ColdTable | None]) -> None:
    """Looks at the topics' tables, several at a time where looking is mostly waiting.

    In a folder there is nothing to wait for, and threads that take turns would double what it
    takes: those are looked at when their turn comes, as those that fail are, which say so then.

    Args:
        table_of: gives a topic's cold tier; None if it is untiered.
    """
    folders: set[UUID] = set()

    def look(topic: Topic) -> None:
        with suppress(LakelogError):
            table = table_of(topic)
            if table is not None:
                table.snapshot()
                if table.is_local:
                    folders.add(topic.topic_id)

    tiered = [topic for topic in topics if topic.config.tiered]
    for topic in tiered[:1]:
        look(topic)
    if not folders:
        each_at_once(tiered[1:], look, AT_ONCE)
