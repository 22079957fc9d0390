"""Cleanup of a cold root by itself: no Redis is asked, the tables say what their topics want.

For jobs that cannot or need not reach the hot tier. Redis forgets what lies below the new log
starts when the next archive run looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from ..clock import Clock
from ..cold.catalogue import Catalogue, tables
from ..cold.change import HotRange
from ..cold.path_table import PathTable
from ..cold.storage import Storage
from ..engine import Engine
from ..errors import InvalidArgumentError, UnknownTopicOrPartitionError
from ..topic import Topic
from .cleanup import STEPS, Cleanup, clean_all
from .plan import CleanupPlan
from .report import CleanupReport


def clean_cold(
    root: str,
    topics: str | Iterable[str] | None = None,
    *,
    engine: Engine,
    steps: Sequence[str] = STEPS,
    clock: Clock | None = None,
) -> list[CleanupReport]:
    """Does `Lakelog.cleanup` for the tables under a cold root, without Redis; a report a topic.

    The settings are those that the tables carry: archiving puts them there. The newest segment of a
    partition never expires here, since only Redis knows whether all of it is archived.

    Args:
        root: a folder or an object store's URL.
        topics: names; None for all.
        engine: where files are read and written.

    Raises:
        UnknownTopicOrPartitionError: no table of that name lies there.
        CleanupFailedError: see `Lakelog.cleanup`.
    """
    storage = Storage(root)
    found = tables(storage)
    broken = () if topics is not None else found.broken
    return clean_all(_cleanups(storage, found, topics, engine, clock), steps, broken=broken)


def plan_cold(
    root: str,
    topics: str | Iterable[str] | None = None,
    settings: Mapping[str, object | None] | None = None,
    *,
    engine: Engine,
    clock: Clock | None = None,
) -> list[CleanupPlan]:
    """Says what `clean_cold` would do; see `Lakelog.cleanup_plan`."""
    storage = Storage(root)
    chosen = _cleanups(storage, tables(storage), topics, engine, clock)
    return [cleanup.plan(settings) for cleanup in chosen]


def _cleanups(
    storage: Storage,
    found: Catalogue,
    topics: str | Iterable[str] | None,
    engine: Engine,
    clock: Clock | None,
) -> list[Cleanup]:
    return [
        Cleanup(topic, PathTable(topic, storage, engine, _nothing_hot), clock)
        for topic in _chosen(storage, found, topics)
    ]


def _chosen(
    storage: Storage, catalogue: Catalogue, names: str | Iterable[str] | None
) -> list[Topic]:
    found = {topic.name: topic for topic in catalogue.topics}
    if names is None:
        return list(found.values())
    wanted = [names] if isinstance(names, str) else list(names)
    for name in wanted:
        if name not in found:
            raise UnknownTopicOrPartitionError(
                f"no table of a topic {name!r} lies under {storage.root}; there are "
                f"{', '.join(sorted(found)) or 'none at all'}",
                topic=name,
            )
    return [found[name] for name in wanted]


def _nothing_hot(hot_range: HotRange) -> Iterator[pa.RecordBatch]:
    raise InvalidArgumentError(f"cleanup archives nothing, so it cannot copy {hot_range}")
