"""Which topics have their tables under a cold root, as the tables alone tell.

For use without a Redis to ask. Each creation of a topic has a table of its own,
``{root}/{topic}/{topic_id}``, which also says whose keyspace the topic is of.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator
from uuid import UUID

from ...errors import ColdTierError, ForeignTableError, LakelogError, NewerVersionError
from ...values.topic import Topic, check_topic_name
from ..catalogue import Catalogue, described_topic
from ..store.storage import Storage
from .delta_log import open_table, properties_of
from .purging import is_marked

logger = logging.getLogger(__name__)


def tables(
    storage: Storage,
    keyspace: str | None = None,
    only: str | None = None,
    known: Container[UUID] = (),
    *,
    paths: Iterable[str] | None = None,
) -> Catalogue:
    """Reads the properties of every table that lies where a topic's table would.

    A table names its topic from the first archive run on. Foreign folders are passed over, with a
    line in the log.

    Args:
        keyspace: see `Catalogue`.
        only: a topic's name; None for all.
        known: ids of topics whose tables need not be looked at.
        paths: of all tables there are, below the root and elsewhere; None: the root is listed.

    Raises:
        ColdTierError: the root cannot be listed.
    """
    found: list[Topic] = []
    broken: list[ColdTierError | NewerVersionError] = []
    purged: list[Topic] = []
    places = _places(storage, only) if paths is None else _places_of(storage, paths, only)
    for name, topic_id in places:
        if topic_id in known:
            continue
        place = Topic(name, topic_id, partitions=1)
        path = storage.table_path(place)
        mine = storage.keyed_for(path)
        try:
            topic = _read(mine, path)
        except (ColdTierError, NewerVersionError) as error:
            if is_marked(mine, path):
                purged.append(place)
            else:
                broken.append(error.changed(topic=name))
            continue
        if topic is None and is_marked(mine, path):
            purged.append(place)
        elif topic is None:
            logger.info("%s holds no Delta table and is passed over", path)
        elif (topic.name, topic.topic_id) != (name, topic_id):
            broken.append(
                ForeignTableError(
                    f"{path} holds the table of topic {topic.name!r} with id {topic.topic_id}: "
                    "somebody copied or moved it. Delete it, or put it back to where it was",
                    topic=name,
                    path=path,
                )
            )
        else:
            found.append(topic)
    return Catalogue(tuple(found), tuple(broken), keyspace, tuple(purged))


def _places(storage: Storage, only: str | None) -> Iterator[tuple[str, UUID]]:
    for folder in _folders(storage, storage.root) if only is None else [only]:
        try:
            name = check_topic_name(folder)
        except LakelogError:
            logger.info("%s/%s is not a topic's folder and is passed over", storage.root, folder)
            continue
        for inner in _folders(storage, f"{storage.root.rstrip('/')}/{name}"):
            try:
                topic_id = UUID(inner)
            except ValueError:
                topic_id = None
            if str(topic_id) == inner:
                yield name, UUID(inner)
            else:
                logger.info(
                    "%s/%s/%s is not a topic's table and is passed over", storage.root, name, inner
                )


def _places_of(
    storage: Storage, paths: Iterable[str], only: str | None
) -> Iterator[tuple[str, UUID]]:
    root = storage.root.rstrip("/")
    for path in paths:
        name, _, inner = path.rstrip("/").removeprefix(f"{root}/").partition("/")
        if only not in (None, name):
            continue
        try:
            place = Topic(check_topic_name(name), UUID(inner), partitions=1)
        except (LakelogError, ValueError):
            continue
        if storage.table_path(place) == path.rstrip("/"):
            yield place.name, place.topic_id


def _folders(storage: Storage, path: str) -> list[str]:
    listed = storage.list_files(path, recursive=False)
    return sorted(info.base_name for info in listed if not info.is_file)


def _read(storage: Storage, path: str) -> Topic | None:
    """None: there is no table.

    Raises:
        ColdTierError: it cannot be opened, or says nothing of its topic.
    """
    table = open_table(storage, path)
    if table is None:
        return None
    return described_topic(properties_of(table), f"the table at {path}", path)
