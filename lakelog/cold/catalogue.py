"""The topics that a cold root's tables name. For use without a Redis to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ColdTierError, ColdTierRefusedError, UnknownTopicOrPartitionError
from ..topic import Topic
from .schema import mirrored_topic


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What lies under a cold root."""

    topics: tuple[Topic, ...] = ()  # the newest creation of each name, by name
    abandoned: tuple[Topic, ...] = ()  # older creations; `Storage.table_path` says where they lie
    broken: tuple[ColdTierError, ...] = ()  # tables whose topic cannot be told; field: path

    def topic(self, name: str, root: object) -> Topic:
        """The topic of a name.

        Args:
            root: the catalogue's cold root, for the message.

        Raises:
            UnknownTopicOrPartitionError: no table of that name lies there.
        """
        found = {topic.name: topic for topic in self.topics}
        if name not in found:
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
    """
    try:
        return mirrored_topic(properties)
    except (ValueError, KeyError, TypeError) as error:
        raise ColdTierRefusedError(
            f"the properties of {table} do not say its topic ({error!r}): an older or newer "
            "lakelog made it, or none. Archive the topic once with this one, or update it",
            path=path,
        ) from error
