"""Whether those who keep a copy of a topic's settings have the right one. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ...hot.inspection import HotLook
from ...hot.mending import Mend
from ...hot.registry import settings_text
from ...values.topic import Topic


def partition_flaw(topic: Topic, look: HotLook) -> str | None:
    """How a partition's settings in Redis differ from the topic's; None: they do not."""
    version = look.number("config_version")
    if version != topic.config_version:
        return (
            f"has the settings of config version {version}, but the topic is at "
            f"{topic.config_version}: a change was cut short"
        )
    if settings_mend(topic, look) is not None:
        return f"has other settings than the topic's config version {version} says"
    return None


def settings_mend(topic: Topic, look: HotLook) -> Mend | None:
    """What rights settings that are not those of their version; None: they are."""
    said, held = look.state.get("settings", b"").decode("latin-1"), settings_text(topic.config)
    # An older lakelog knew fewer of them; what it left out has a meaning of its own.
    if said and (held == said or held.startswith(f"{said} ")):
        return None
    return Mend("settings", said, f"{topic.config_version} {held}")


def table_flaws(topic: Topic, mirrored: Topic) -> Iterator[str]:
    """How a table's description of its topic differs from the topic."""
    if mirrored.deleted_ms is not None:
        yield "say that the topic was deleted"
    for name, said, holds in (
        ("config version", mirrored.config_version, topic.config_version),
        ("partitions", mirrored.partitions, topic.partitions),
        ("keyspace", mirrored.keyspace, topic.keyspace),
        ("keyspace id", mirrored.keyspace_id, topic.keyspace_id),
        ("settings", mirrored.config.to_json(), topic.config.to_json()),
    ):
        if said != holds:
            yield f"say {name} {said}, but the topic has {name} {holds}"
