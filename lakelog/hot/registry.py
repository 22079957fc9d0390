"""The topics of a keyspace: definitions in one hash, settings copied to where append reads them.

A topic is created or altered in the definitions first, with a version, then in the ``:state`` of
each partition. A process that dies in between leaves partitions behind; `TopicRegistry.repair`
(which create, alter and ``lakelog topics apply`` all end with) brings them up to date.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..clock import Clock
from ..config import TopicConfig
from ..errors import (
    ConcurrentConfigChangeError,
    ForeignEntryError,
    InvalidConfigError,
    InvalidTopicError,
    TopicExistsError,
    UnknownTopicIdError,
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
        fresh = self._fresh(topic, 0)
        answer = self._compare_and_set(name, 0, _to_json(topic, None, fresh), topic)
        if answer[0] != b"OK":
            raise TopicExistsError(
                f"topic {name!r} exists; use it, alter it, or delete it first", topic=name
            )
        topic = replace(topic, generation=int(answer[1]))
        self.repair(topic)
        return topic

    def get(self, name: str) -> Topic:
        """The topic of that name.

        Raises:
            UnknownTopicOrPartitionError: there is none.
        """
        check_topic_name(name)
        found = self._definition(name)
        if found is None:
            raise UnknownTopicOrPartitionError(
                f"there is no topic {name!r} in keyspace {self._keys.keyspace!r}; create it with "
                f"topics.create({name!r}) or `lakelog topics create {name}`",
                topic=name,
            )
        return found[0]

    def list(self) -> list[Topic]:
        """All topics, by name."""
        values = self._server().call(("HVALS", self._keys.topics))[0]
        topics = [_from_json(value)[0] for value in values if value[:1] == b"{"]
        return sorted(topics, key=lambda topic: topic.name)

    def alter(self, name: str, changes: Mapping[str, object | None]) -> Topic:
        """Changes settings (None: back to the default) and returns the topic as it is then.

        Raises:
            InvalidConfigError: not legal, or the tier of a topic with records would be switched;
                nothing was changed.
            ConcurrentConfigChangeError: somebody else altered it meanwhile.
        """
        topic = self._whole(name)
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
        return self._replace(topic, topic.partitions, config, None)

    def add_partitions(self, name: str, total: int) -> Topic:
        """Grows the topic to that many partitions.

        Raises:
            InvalidTopicError: fewer than it has (its records would be lost).
        """
        topic = self._whole(name)
        _check_partitions(total)
        if total < topic.partitions:
            raise InvalidTopicError(
                f"topic {name!r} has {topic.partitions} partitions and cannot shrink to {total}",
                topic=name,
            )
        if total == topic.partitions:
            self.repair(topic)
            return topic
        grown = replace(topic, partitions=total)
        return self._replace(topic, total, topic.config, self._fresh(grown, topic.partitions))

    def delete(self, name: str) -> Topic:
        """Deletes the topic with its hot records and returns what it was.

        The cold table stays where it is: it lies under the topic's id, which is never used again.
        """
        topic = self.get(name)
        # The definition first: from then on nobody looks the topic up, and each partition goes
        # only if it still belongs to this id.
        arguments = [name, str(topic.topic_id)]
        call_script(self._servers, "undefine", [self._keys.topics], arguments)
        self._delete_partitions(topic)
        return topic

    def repair(self, topic: Topic) -> None:
        """Writes the settings to every partition that does not have them yet.

        A partition that was there before and is lost is made anew, but takes appends only after
        `HotLog.recover` went past the offsets it may have given.

        Raises:
            UnknownTopicIdError: the topic was deleted (and perhaps created again) meanwhile.
        """
        fresh = self._check_is_there(topic)
        settings = settings_text(topic.config)
        for topic_partition in topic.topic_partitions():
            runs = fresh.runs if fresh and topic_partition.partition >= fresh.first else ()
            self._init(topic, topic_partition, settings, runs)
        try:
            self._check_is_there(topic)
        except UnknownTopicIdError:
            self._delete_partitions(topic)  # what was made after its deletion
            raise
        if fresh:
            # Every partition is there now; one that is missing from here on was lost.
            whole = _to_json(topic, topic.generation, None)
            self._compare_and_set(topic.name, topic.config_version, whole, topic)

    # -- how ---------------------------------------------------------------------------------

    def _server(self) -> Any:
        return self._servers.for_key(self._keys.topics)

    def _definition(self, name: str) -> tuple[Topic, _Fresh | None] | None:
        found = self._server().call(("HGET", self._keys.topics, name))[0]
        return None if found is None else _from_json(found)

    def _whole(self, name: str) -> Topic:
        """The topic, with the partitions that whoever made them did not come to."""
        topic = self.get(name)
        if self._check_is_there(topic):
            self.repair(topic)
        return topic

    def _check_is_there(self, topic: Topic) -> _Fresh | None:
        found = self._definition(topic.name)
        if found is None or found[0].topic_id != topic.topic_id:
            raise UnknownTopicIdError(
                f"topic {topic.name!r} was deleted{' and created again' if found else ''} since it "
                "was looked up; look it up again",
                topic=topic.name,
                topic_id=topic.topic_id,
            )
        return found[1]

    def _fresh(self, topic: Topic, first: int) -> _Fresh:
        """To be asked before anybody can know of the partitions."""
        streams = (self._keys.partition(tp).stream for tp in topic.topic_partitions()[first:])
        servers = {id(server): server for server in map(self._servers.for_key, streams)}
        return _Fresh(first, tuple(server.run_id() for server in servers.values()))

    def _delete_partitions(self, topic: Topic) -> None:
        for topic_partition in topic.topic_partitions():
            keys = self._keys.partition(topic_partition)
            call_script(self._servers, "delete", keys.all(), [str(topic.topic_id)])

    def _init(
        self, topic: Topic, topic_partition: TopicPartition, settings: str, runs: Sequence[str]
    ) -> None:
        keys = self._keys.partition(topic_partition)
        arguments = [
            str(topic.topic_id),
            topic.generation,
            topic.config_version,
            settings,
            "" if self._clock is None else self._clock.now_ms(),
            ",".join(runs),
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

    def _replace(
        self, topic: Topic, partitions: int, config: TopicConfig, fresh: _Fresh | None
    ) -> Topic:
        version = topic.config_version + 1
        changed = replace(topic, partitions=partitions, config=config, config_version=version)
        definition = _to_json(changed, topic.generation, fresh)
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


@dataclass(frozen=True, slots=True)
class _Fresh:
    """Partitions that are being made, part of a definition until they are; see ``init.lua``."""

    first: int  # and all above
    runs: tuple[str, ...]  # run ids of the servers that hold them


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


def _to_json(topic: Topic, created_us: int | None, fresh: _Fresh | None) -> str:
    fields = {
        "name": topic.name,
        "topic_id": str(topic.topic_id),
        "partitions": topic.partitions,
        "config": dict(topic.config.overrides),
        "config_version": topic.config_version,
        # the script puts the server's time where this stands
        "created_us": "@created_us@" if created_us is None else created_us,
    }
    return json.dumps(fields if fresh is None else {**fields, "fresh": asdict(fresh)})


def _from_json(text: bytes) -> tuple[Topic, _Fresh | None]:
    try:
        fields = json.loads(text)
        fresh = fields.get("fresh")
        topic = Topic(
            fields["name"],
            uuid.UUID(fields["topic_id"]),
            fields["partitions"],
            TopicConfig.of(fields["config"]),
            fields["config_version"],
            fields["created_us"],
        )
        return topic, fresh and _Fresh(fresh["first"], tuple(fresh["runs"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ForeignEntryError(
            f"{text[:80]!r} is no definition of a topic ({error!r}); somebody else writes to the "
            "keyspace, or a newer lakelog does"
        ) from error
