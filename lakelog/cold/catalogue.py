"""The topics that a cold root's tables name. For use without a Redis to ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from msgspec import Struct

from ..errors import (
    AmbiguousTopicError,
    ColdTierError,
    ColdTierRefusedError,
    NewerVersionError,
    UnknownTopicOrPartitionError,
)
from ..values.topic import Topic, near_names
from .properties import mirrored_topic

#: What makes a table or a name useless to those who read tables alone; fields: path, topic.
Untold = ColdTierError | NewerVersionError | AmbiguousTopicError


class Catalogue(Struct, frozen=True):
    """What lies under a cold root.

    Several keyspaces may share it, with topics of the same names. Which of them a name means is
    never guessed.

    Args:
        tables: one for each creation of each topic, in any order.
        broken: tables whose topic cannot be told; fields: path, and topic, as where they lie says.
        keyspace: whose topics are meant; None for those of all.
        purged: by name and id alone, the places of tables that were removed, or are half removed.
    """

    tables: tuple[Topic, ...] = ()
    broken: tuple[Untold, ...] = ()
    keyspace: str | None = None
    purged: tuple[Topic, ...] = ()

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The newest creation of each name that one keyspace alone has, by name; none of topics
        that were deleted, or are archived no more.
        """
        return tuple(found[0] for found in self._meant().values() if len(found) == 1)

    @property
    def newest(self) -> tuple[Topic, ...]:
        """The newest creation of each name in each keyspace that was not deleted, as one may have
        come back while a newer one is deleted; if all were, the newest of them.
        """
        return tuple(
            _newest(creations)
            for tables in self._by_name().values()
            for creations in _by_keyspace(tables)
        )

    def lost(self, keyspace_id: UUID | None, known: Iterable[Topic] = ()) -> tuple[Topic, ...]:
        """The topics of the keyspace that only their tables tell of, and that were not deleted.

        Args:
            keyspace_id: the keyspace's; None if it has no topics, so that it may become any.
            known: the topics it has.
        """
        names = {topic.name for topic in known}
        return tuple(
            topic
            for topic in self.newest
            if topic.deleted_ms is None
            and topic.config.tiered
            and topic.name not in names
            # What an older lakelog did not say is nobody's, and other ids are other Redises'.
            and (
                keyspace_id is None
                or (topic.keyspace is not None and topic.keyspace_id in (keyspace_id, None))
            )
        )

    @property
    def abandoned(self) -> tuple[Topic, ...]:
        """The other creations of topics of the same keyspace; `Storage.table_path` says where."""
        others = [
            topic
            for tables in self._by_name().values()
            for creations in _by_keyspace(tables)
            for topic in creations
            if topic is not _newest(creations)
        ]
        return tuple(others)

    @property
    def deleted(self) -> tuple[Topic, ...]:
        """The deleted topics whose tables are still there, in the order of their deletions."""
        found = [
            t for tables in self._by_name().values() for t in tables if t.deleted_ms is not None
        ]
        return tuple(sorted(found, key=lambda topic: topic.deleted_ms or 0))

    @property
    def untiered(self) -> tuple[Topic, ...]:
        """The topics that are archived no more, whose tables hold nothing."""
        return tuple(
            topic for topic in self.newest if topic.deleted_ms is None and not topic.config.tiered
        )

    def untold(self, root: object) -> tuple[Untold, ...]:
        """The tables that cannot be told, and the names that several keyspaces have.

        Args:
            root: as for `topic`.
        """
        several = [
            _ambiguous(name, found, root) for name, found in self._meant().items() if len(found) > 1
        ]
        return (*self.broken, *several)

    def topic(self, name: str, root: object) -> Topic:
        """The topic of a name.

        Args:
            root: the catalogue's cold root, for the message.

        Raises:
            UnknownTopicOrPartitionError: no table of that name lies there.
            AmbiguousTopicError: several keyspaces have one.
            ColdTierError, NewerVersionError: the one that does cannot be told.
        """
        meant = self._meant()
        found = meant.get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            raise _ambiguous(name, found, root)
        for error in self.broken:
            if error.topic == name:
                raise error
        if any(topic.name == name for topic in self.untiered):
            raise UnknownTopicOrPartitionError(
                f"topic {name!r} is archived no more (remote.storage.enable=false): its records "
                f"are in Redis alone, and its table under {root} holds none",
                topic=name,
            )
        whose = "" if self.keyspace is None else f" of keyspace {self.keyspace!r}"
        there_are = f"there are {', '.join(sorted(meant)) or 'none at all'}"
        kept = [topic for topic in self.deleted if topic.name == name and topic.purged_ms is None]
        was = (
            f": it was deleted, and `lakelog topics undelete {name}` brings it back"
            if kept
            else f"; {near_names(name, meant) or there_are}"
        )
        raise UnknownTopicOrPartitionError(
            f"no table of a topic {name!r}{whose} lies under {root}{was}", topic=name
        )

    def _meant(self) -> dict[str, list[Topic]]:
        """By name, the newest creation in each keyspace that may be meant and has the topic."""
        found: dict[str, list[Topic]] = {}
        for topic in self.newest:
            if topic.deleted_ms is None and topic.config.tiered:
                found.setdefault(topic.name, []).append(topic)
        return found

    def _by_name(self) -> dict[str, list[Topic]]:
        """The tables of the keyspaces that may be meant, by name and age."""
        found: dict[str, list[Topic]] = {}
        for topic in sorted(self.tables, key=lambda topic: (topic.name, topic.generation)):
            found.setdefault(topic.name, []).append(topic)
        if self.keyspace is None:
            return found
        own = {name: _of_keyspace(self.keyspace, tables) for name, tables in found.items()}
        return {name: tables for name, tables in own.items() if tables}


class Listed(Protocol):
    """A cold root that lists its tables; see `PathRoot.catalogue`."""

    def catalogue(self, keyspace: str | None = None, only: str | None = None) -> Catalogue: ...


def topic_by_name(
    root: Listed, keyspace: str | None, name: str, listed: Catalogue | None = None
) -> Topic:
    """The topic of a name, asked for by it where a list has none.

    Of a table at a location, a catalog's list may not say that it is a topic's.

    Args:
        listed: what the root has just listed; None: it is asked.

    Raises:
        UnknownTopicOrPartitionError, AmbiguousTopicError, ColdTierError, NewerVersionError: as
            `Catalogue.topic`.
    """
    listed = root.catalogue(keyspace) if listed is None else listed
    try:
        return listed.topic(name, root)
    except UnknownTopicOrPartitionError:
        asked = root.catalogue(keyspace, name)
        if not asked.tables and not asked.broken:
            raise
        return asked.topic(name, root)


def _of_keyspace(keyspace: str, tables: Sequence[Topic]) -> list[Topic]:
    """Its tables; if none says so, those of older lakelogs, which do not say whose they are."""
    said = [topic for topic in tables if topic.keyspace == keyspace]
    return said or [topic for topic in tables if topic.keyspace is None]


def _by_keyspace(tables: Iterable[Topic]) -> list[list[Topic]]:
    """The creations of one name in each keyspace, in their order."""
    found: dict[tuple[str | None, UUID | None], list[Topic]] = {}
    for topic in tables:
        found.setdefault((topic.keyspace, topic.keyspace_id), []).append(topic)
    # An id is younger than the keyspaces: a table without one is of the one keyspace of its name.
    for keyspace in [name for name, keyspace_id in found if keyspace_id is None]:
        with_id = [key for key in found if key[0] == keyspace and key[1] is not None]
        if keyspace is not None and len(with_id) == 1:
            merged = found.pop((keyspace, None)) + found[with_id[0]]
            found[with_id[0]] = sorted(merged, key=lambda topic: topic.generation)
    return list(found.values())


def _newest(creations: Sequence[Topic]) -> Topic:
    there = [topic for topic in creations if topic.deleted_ms is None]
    return (there or creations)[-1]


def _ambiguous(name: str, found: Sequence[Topic], root: object) -> AmbiguousTopicError:
    names = [topic.keyspace for topic in found]
    if len(set(names)) == len(names):
        said = [f"one of {_keyspace(topic)}" for topic in found]
        do = "Say which: keyspace=… (--keyspace)"
    else:
        said = [f"one of {_keyspace(topic)} with id {topic.keyspace_id}" for topic in found]
        do = (
            "Redises that share a root need keyspaces of different names; if one of these is no "
            "longer there, move the folder of its table away"
        )
    return AmbiguousTopicError(
        f"{len(found)} topics under {root} are named {name!r}: {', '.join(said)}. {do}",
        topic=name,
        path=f"{root}: {name}",
    )


def _keyspace(topic: Topic) -> str:
    return "an unnamed keyspace" if topic.keyspace is None else f"keyspace {topic.keyspace!r}"


def described_topic(properties: Mapping[str, str], table: str, path: str) -> Topic:
    """The topic that a table's properties name.

    Args:
        table: its name in the error's message.
        path: the error's field.

    Raises:
        ColdTierRefusedError: they name none.
        NewerVersionError: a newer lakelog wrote them.
    """
    try:
        return mirrored_topic(properties)
    except NewerVersionError as error:
        message = f"{table}: {error.message}"
        raise error.changed(message=message, path=path) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ColdTierRefusedError(
            f"the properties of {table} do not say its topic ({error!r}): an older lakelog made "
            "it, or none. Archive the topic once with this one",
            path=path,
        ) from error
