"""Cleanup of a cold root by itself: no Redis is asked, the tables say what their topics want.

For jobs that cannot or need not reach the hot tier. Redis forgets what lies below the new log
starts when the next archive run looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ..clock import Clock
from ..cold.catalogue import Catalogue
from ..cold.table import ColdTable
from ..errors import UnknownTopicOrPartitionError
from ..topic import Topic
from .cleanup import STEPS, Cleanup, clean_all
from .plan import CleanupPlan
from .report import CleanupReport


class Tables(Protocol):
    """Where tables of topics lie; as a string, how people call it."""

    def catalogue(self) -> Catalogue:
        """Which topics have theirs there.

        Raises:
            ColdTierError: the place cannot be listed.
        """
        ...

    def table(self, topic: Topic) -> ColdTable:
        """A topic's table, for those who archive nothing."""
        ...


def clean_cold(
    root: Tables,
    topics: str | Iterable[str] | None = None,
    *,
    steps: Sequence[str] = STEPS,
    clock: Clock | None = None,
) -> list[CleanupReport]:
    """Does `Lakelog.cleanup` for the tables under a cold root, without Redis; a report a topic.

    The settings are those that the tables carry: archiving puts them there. The newest segment of a
    partition never expires here, since only Redis knows whether all of it is archived.

    Args:
        topics: names; None for all.

    Raises:
        UnknownTopicOrPartitionError: no table of that name lies there.
        CleanupFailedError: see `Lakelog.cleanup`.
    """
    found = root.catalogue()
    broken = () if topics is not None else found.broken
    return clean_all(_cleanups(root, found, topics, clock), steps, broken=broken)


def plan_cold(
    root: Tables,
    topics: str | Iterable[str] | None = None,
    settings: Mapping[str, object | None] | None = None,
    *,
    clock: Clock | None = None,
) -> list[CleanupPlan]:
    """Says what `clean_cold` would do; see `Lakelog.cleanup_plan`."""
    chosen = _cleanups(root, root.catalogue(), topics, clock)
    return [cleanup.plan(settings) for cleanup in chosen]


def _cleanups(
    root: Tables, found: Catalogue, topics: str | Iterable[str] | None, clock: Clock | None
) -> list[Cleanup]:
    return [Cleanup(topic, root.table(topic), clock) for topic in _chosen(root, found, topics)]


def _chosen(root: Tables, catalogue: Catalogue, names: str | Iterable[str] | None) -> list[Topic]:
    found = {topic.name: topic for topic in catalogue.topics}
    if names is None:
        return list(found.values())
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in found:
            raise UnknownTopicOrPartitionError(
                f"no table of a topic {name!r} lies under {root}; there are "
                f"{', '.join(sorted(found)) or 'none at all'}",
                topic=name,
            )
    return [found[name] for name in wanted]
