"""What a table of either kind lacks of its topic's settings. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from msgspec import Struct

from ..errors import ContradictionError, TopicPurgedError
from ..values.config import DATA_KEYS
from ..values.topic import Topic
from .schema import (
    FEED_PROPERTY,
    FORMAT_PROPERTY,
    changed_comments,
    had_feed,
    is_deleted,
    is_purged,
    mirrored_data_keys,
    mirrored_properties,
    mirrored_version,
    missing_columns,
)


class AddColumns(Struct, frozen=True):
    """Columns of values that the table does not have yet."""

    columns: pa.Schema


class SetComment(Struct, frozen=True):
    """A column's comment that differs."""

    column: str
    comment: str


class SetProperties(Struct, frozen=True):
    """Properties that differ."""

    properties: Mapping[str, str]


#: One commit.
Alteration = AddColumns | SetComment | SetProperties


def next_alteration(
    topic: Topic, held: Mapping[str, str], columns: Callable[[], pa.Schema]
) -> Alteration | None:
    """The next commit of a topic's settings to its table; None if it has them, or newer ones.

    The properties come last: they carry the config version.

    Args:
        held: the table's properties.
        columns: gives the columns it has.

    Raises:
        TopicPurgedError: the table is being removed; or is to be, but the topic is back.
        ContradictionError: it has keys of encrypted values that the topic does not have.
    """
    if is_purged(held):
        if topic.purged_ms is not None or topic.deleted_ms is not None:
            return None
        raise TopicPurgedError(
            f"topic {topic.name!r} with id {topic.topic_id} was deleted and is being removed for "
            "good: its table takes no commits any more",
            topic=topic.name,
            topic_id=topic.topic_id,
        )
    if topic.purged_ms is not None and not is_deleted(held):
        raise TopicPurgedError(
            f"topic {topic.name!r} with id {topic.topic_id} is not deleted: somebody brought it "
            "back, so nothing was removed. Delete it first",
            topic=topic.name,
            topic_id=topic.topic_id,
        )
    if mirrored_version(held) > topic.config_version:
        return None
    _check_keys_kept(topic, held)
    there = columns()
    missing = missing_columns(topic, there)
    if len(missing):
        return AddColumns(missing)
    comments = changed_comments(topic, there)
    if comments:
        return SetComment(*comments.popitem())
    wanted = mirrored_properties(topic)
    if int(held.get(FORMAT_PROPERTY, 0)) > int(wanted[FORMAT_PROPERTY]):
        del wanted[FORMAT_PROPERTY]  # it never goes back
    if FEED_PROPERTY not in wanted and had_feed(held):  # one that somebody else turned on stays
        wanted[FEED_PROPERTY] = "false"
    changes = {name: wanted[name] for name in wanted if held.get(name) != wanted[name]}
    return SetProperties(changes) if changes else None


def _check_keys_kept(topic: Topic, held: Mapping[str, str]) -> None:
    """Refuse settings after which values in the table could not be decrypted any more."""
    before, after = mirrored_data_keys(held), topic.config[DATA_KEYS]
    if before is None or (after is not None and after.keeps(before)):
        return
    raise ContradictionError(
        f"the table of topic {topic.name!r} has {before}, and Redis has {after or 'none'}: it has "
        f"lost a change of the topic's settings. `lakelog topics rotate-key {topic.name}` takes up "
        "again what the table has; until then nothing is archived"
    )
