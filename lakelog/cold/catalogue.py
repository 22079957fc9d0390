"""The topics that a cold root's tables name. For use without a Redis to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import (
    ColdTierError,
    ColdTierRefusedError,
    NewerVersionError,
    UnknownTopicOrPartitionError,
)
from ..topic import Topic
from .schema import mirrored_topic


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What lies under a cold root."""

    topics: tuple[Topic, ...] = ()  # the newest creation of each name, by name
    abandoned: tuple[Topic, ...] = ()  # older creations; `Storage.table_path` says where they lie
    #: Tables whose topic cannot be told; fields: path, and topic, as where they lie says.
    broken: tuple[ColdTierError | NewerVersionError, ...] = ()

    def topic(self, name: str, root: object) -> Topic:
        """The topic of a name.

        Args:
            root: the catalogue's cold root, for the message.

        Raises:
            UnknownTopicOrPartitionError: no table of that name lies there.
            ColdTierError, NewerVersionError: the one that does cannot be told.
        """
        found = {topic.name: topic for topic in self.topics}
        if name not in found:
            for error in self.broken:
                if error.topic == name:
                    raise error
            raise UnknownTopicOrPartitionError(
                f"no table of a topic {name!r} lies under {root}; there are "
                f"{', '.join(sorted(found)) or 'none at all'}",
                topic=name,
            )
        return found[name]


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
        raise replace(error, message=message, path=path) from None
    except (ValueError, KeyError, TypeError) as error:
        raise ColdTierRefusedError(
            f"the properties of {table} do not say its topic ({error!r}): an older lakelog made "
            "it, or none. Archive the topic once with this one",
            path=path,
        ) from error
