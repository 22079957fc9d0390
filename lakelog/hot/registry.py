"""The topics of a keyspace: definitions in one hash, settings copied to where append reads them.

A topic is created or altered in the definitions first, with a version, then in the ``:state`` of
each partition. A process that dies in between leaves partitions behind; `TopicRegistry.repair`
(which create, alter and ``lakelog topics apply`` all end with) brings them up to date.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from ..clock import Clock
from ..config import TopicConfig
from ..errors import (
    ConcurrentConfigChangeError,
    ForeignEntryError,
    InvalidConfigError,
    InvalidTopicError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from ..record import TimestampType, TopicPartition
from ..topic import Topic, check_topic_name
from .connection import Servers, call_script
from .keys import Keys

MAX_PARTITIONS = 10_000


class TopicRegistry:
    """Creates, looks up and changes topics. Every call asks Redis; nothing is cached."""

    def __init__(self, servers: Servers, keys: Keys, clock: Clock | None = None) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock

    def create(
        self,
        name: str,
        partitions: int = 1,
        config: TopicConfig | Mapping[str, object] | None = None,
    ) -> Topic:
        """Creates a topic and returns it.

        Args:
            name: by Kafka's rule.
            partitions: 1..10,000.
            config: settings by Kafka's names.

        Raises:
            TopicExistsError: there is one of that name.
            InvalidTopicError, InvalidConfigError: not legal; nothing was created.
        """
        check_topic_name(name)
        _check_partitions(partitions)
        settings = config if isinstance(config, TopicConfig) else TopicConfig.of(config)
        topic = Topic(name, uuid.uuid4(), partitions, settings)
        answer = self._compare_and_set(name, 0, _to_json(topic, created_us=None), topic)
        if answer[0] != b"OK":
            raise TopicExistsError(
                f"topic {name!r} exists; use it, alter it, or delete it first", topic=name
            )
        topic = self.get(name)
        self.repair(topic)
        return topic

    def get(self, name: str) -> Topic:
        """The topic of that name.

        Raises:
            UnknownTopicOrPartitionError: there is none.
        """
        check_topic_name(name)
        found = self._server().call(("HGET", self._keys.topics, name))[0]
        if found is None:
            raise UnknownTopicOrPartitionError(
                f"there is no topic {name!r} in keyspace {self._keys.keyspace!r}; create it with "
                f"topics.create({name!r}) or `lakelog topics create {name}`",
                topic=name,
            )
        return _from_json(found)

    def list(self) -> list[Topic]:
        """All topics, by name."""
        values = self._server().call(("HVALS", self._keys.topics))[0]
        topics = [_from_json(value) for value in values if value[:1] == b"{"]
        return sorted(topics, key=lambda topic: topic.name)

    def alter(self, name: str, changes: Mapping[str, object | None]) -> Topic:
        """Changes settings (None: back to the default) and returns the topic as it is then.

        Raises:
            InvalidConfigError: not legal, or the tier of a topic with records would be switched;
                nothing was changed.
            ConcurrentConfigChangeError: somebody else altered it meanwhile.
        """
        topic = self.get(name)
        config = topic.config.replace(changes)
        if config.tiered != topic.config.tiered:
            raise InvalidConfigError(
                f"remote.storage.enable of topic {name!r} cannot be changed from "
                f"{topic.config.text('remote.storage.enable')}: its records lie where it says. "
                "Create another topic and copy them",
                name="remote.storage.enable",
            )
        if config == topic.config:
            self.repair(topic)
            return topic
        return self._replace(topic, topic.partitions, config)

    def add_partitions(self, name: str, total: int) -> Topic:
        """Grows the topic to that many partitions.

        Raises:
            InvalidTopicError: fewer than it has (its records would be lost).
        """
        topic = self.get(name)
        _check_partitions(total)
        if total < topic.partitions:
            raise InvalidTopicError(
                f"topic {name!r} has {topic.partitions} partitions and cannot shrink to {total}",
                topic=name,
            )
        if total == topic.partitions:
            self.repair(topic)
            return topic
        return self._replace(topic, total, topic.config)

    def delete(self, name: str) -> Topic:
        """Deletes the topic with its hot records and returns what it was.

        The cold table stays where it is: it lies under the topic's id, which is never used again.
        """
        topic = self.get(name)
        # The definition first: from then on nobody looks the topic up, and each partition goes
        # only if it still belongs to this id.
        self._compare_and_set(name, -1, "", topic)
        for topic_partition in topic.topic_partitions():
            keys = self._keys.partition(topic_partition)
            call_script(self._servers, "delete", keys.all(), [str(topic.topic_id)])
        return topic

    def repair(self, topic: Topic) -> None:
        """Writes the settings to every partition that does not have them yet."""
        settings = settings_text(topic.config)
        for topic_partition in topic.topic_partitions():
            self._init(topic, topic_partition, settings)

    # -- how ---------------------------------------------------------------------------------

    def _server(self) -> Any:
        return self._servers.for_key(self._keys.topics)

    def _init(self, topic: Topic, topic_partition: TopicPartition, settings: str) -> None:
        keys = self._keys.partition(topic_partition)
        arguments = [
            str(topic.topic_id),
            topic.generation,
            topic.config_version,
            settings,
            "" if self._clock is None else self._clock.now_ms(),
        ]
        answer = call_script(self._servers, "init", keys.all(), arguments)
        if answer[0] == b"FOREIGN_KEY":
            raise ForeignEntryError(
                f"key {keys.stream} holds a {answer[1].decode()} that is not lakelog's; delete or "
                "rename it, or use another keyspace",
                topic_partition=topic_partition,
            )
        if answer[0] == b"STALE":
            raise ConcurrentConfigChangeError(
                f"topic {topic.name!r} was deleted and created again meanwhile; look it up again",
                topic=topic.name,
            )

    def _replace(self, topic: Topic, partitions: int, config: TopicConfig) -> Topic:
        changed = Topic(
            topic.name,
            topic.topic_id,
            partitions,
            config,
            topic.config_version + 1,
            topic.generation,
        )
        definition = _to_json(changed, created_us=topic.generation)
        answer = self._compare_and_set(topic.name, topic.config_version, definition, topic)
        if answer[0] != b"OK":
            raise ConcurrentConfigChangeError(
                f"topic {topic.name!r} was changed or deleted by somebody else meanwhile; look at "
                "it again and repeat the change",
                topic=topic.name,
            )
        self.repair(changed)
        return changed

    def _compare_and_set(self, name: str, version: int, definition: str, topic: Topic) -> Any:
        arguments = [name, version, definition, str(topic.topic_id)]
        return call_script(self._servers, "registry", [self._keys.topics], arguments)


def settings_text(config: TopicConfig) -> str:
    """The settings append reads, in the order of ``parse_settings`` in ``common.lua``."""
    forgets = "delete" in config["cleanup.policy"]
    numbers = (
        config.segment_bytes,
        config.effective_segment_ms,
        min(config["segment.jitter.ms"], config.effective_segment_ms),
        config["max.message.bytes"],
        int(config["message.timestamp.type"] is TimestampType.LOG_APPEND_TIME),
        config["message.timestamp.before.max.ms"],
        config["message.timestamp.after.max.ms"],
        config["index.interval.bytes"],
        int(config.compacted),
        int(config.tiered),
        config["retention.ms"] if forgets else -1,
        config["retention.bytes"] if forgets else -1,
        config["lakelog.retention.entries"],
        config["producer.id.expiration.ms"],
    )
    return " ".join(map(str, numbers))


def _check_partitions(partitions: int) -> None:
    if (
        isinstance(partitions, bool)
        or not isinstance(partitions, int)
        or not 1 <= partitions <= MAX_PARTITIONS
    ):
        raise InvalidTopicError(
            f"{partitions!r} is not a number of partitions: give 1..{MAX_PARTITIONS}",
            partitions=partitions,
        )


def _to_json(topic: Topic, created_us: int | None) -> str:
    return json.dumps(
        {
            "name": topic.name,
            "topic_id": str(topic.topic_id),
            "partitions": topic.partitions,
            "config": dict(topic.config.overrides),
            "config_version": topic.config_version,
            # the script puts the server's time where this stands
            "created_us": "@created_us@" if created_us is None else created_us,
        }
    )


def _from_json(text: bytes) -> Topic:
    fields = json.loads(text)
    return Topic(
        fields["name"],
        uuid.UUID(fields["topic_id"]),
        fields["partitions"],
        TopicConfig.of(fields["config"]),
        fields["config_version"],
        fields["created_us"],
    )
