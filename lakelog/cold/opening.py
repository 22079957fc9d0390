"""Looks at many tables at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from uuid import UUID

from ..engines.at_once import each_at_once
from ..errors import LakelogError
from ..values.topic import Topic
from .table import ColdSnapshot, ColdTable

#: Tables looked at at a time: what an object store answers is waited for.
AT_ONCE = 8


def snapshots(
    topics: Sequence[Topic], table_of: Callable[[Topic], ColdTable | None]
) -> Mapping[UUID, ColdSnapshot]:
    """What the tables of tiered topics say, by topic id, without those that fail.

    Several are looked at at a time where looking is mostly waiting. In a folder there is nothing to
    wait for, and threads that take turns would double what it takes.

    Args:
        table_of: gives a topic's cold tier; None if it is untiered.
    """
    found: dict[UUID, ColdSnapshot] = {}
    is_local = False

    def look(topic: Topic) -> None:
        nonlocal is_local
        with suppress(LakelogError):
            table = table_of(topic)
            if table is not None:
                found[topic.topic_id] = table.snapshot()
                is_local |= table.is_local

    tiered = [topic for topic in topics if topic.config.tiered]
    for topic in tiered[:1]:  # as this one is, so are the others of the root
        look(topic)
    each_at_once(tiered[1:], look, 1 if is_local else AT_ONCE)
    return found
