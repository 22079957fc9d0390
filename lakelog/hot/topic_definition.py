"""A topic's definition, as the hash of a keyspace's topics has it; its settings, as append does."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import asdict, replace

from ..base.json_text import parse_json
from ..codec.encryption.keyring import new_data_keys
from ..codec.encryption.of_topic import key_encryption_key
from ..codec.formats.decoders import GROUP, is_installed
from ..errors import InvalidConfigError, InvalidTopicError, PolicyViolationError, TopicExistsError
from ..values.arguments import whole
from ..values.config import (
    DATA_KEYS,
    ENCRYPTION_KEY,
    KEY_FORMAT,
    QUOTA_BYTE_RATE,
    QUOTA_HOT_BYTES,
    VALUE_FORMAT,
    EntryFormat,
    TopicConfig,
    check_settings,
)
from ..values.data_keys import DataKeys
from ..values.format_version import (
    KAFKA_FORMAT,
    NAMED_BY_ID_FORMAT,
    USUAL_FORMAT,
    check_format,
    newer,
)
from ..values.keyspace_defaults import BROKER_SETTINGS, KeyspaceDefaults
from ..values.record import TimestampType
from ..values.topic import Topic
from ..values.value_format import FORMATS
from .foreign import ILLEGIBLE, foreign_if_illegible, illegible

MAX_PARTITIONS = 10_000

TIERED = "remote.storage.enable"


class Fresh(Struct, frozen=True):
    """Partitions being made, part of a definition until they are; see ``partition.lua``."""

    first: int  # and all above
    runs: tuple[str, ...]  # run ids of the servers that hold them


def new_settings(
    overrides: Mapping[str, object], defaults: KeyspaceDefaults, *, is_hot_alone: bool
) -> TopicConfig:
    """A new topic's settings.

    Args:
        is_hot_alone: it is untiered because no cold root was given, which nobody asked for.

    Raises:
        InvalidConfigError: not legal.
    """
    try:
        return TopicConfig((), defaults.for_topics).replace(overrides)
    except InvalidConfigError as error:
        if not is_hot_alone:
            raise
        message = f"no cold root was given (cold=…, --cold), so that {TIERED}=false: {error}"
        raise error.changed(message=message) from None


def check_not_ours(changes: Mapping[str, object | None]) -> None:
    """Refuse data keys that somebody wrote by hand, and formats that nothing reads here.

    Raises:
        InvalidConfigError: they are among the changes.
    """
    check_settings(changes)
    if DATA_KEYS in changes:
        raise InvalidConfigError(
            f"{DATA_KEYS} cannot be set: lakelog writes it, once {ENCRYPTION_KEY} says where a key "
            "is, and `lakelog topics rotate-key` adds to it",
            name=DATA_KEYS,
        )
    for name in (VALUE_FORMAT, KEY_FORMAT):
        form = changes.get(name)
        if form is not None and not is_installed(str(form)):
            raise InvalidConfigError(
                f"{name}={form} is none of {', '.join(FORMATS)}, and no package that is installed "
                f"here has an entry point of that name in the group {GROUP}",
                name=name,
                value=str(form),
            )


def with_data_keys(name: str, config: TopicConfig, *, clear: bool) -> TopicConfig:
    """The config with a first data key if values are to be encrypted and there is none.

    If values are not encrypted (any more) and there are keys, these say that some are in the clear.

    Args:
        clear: whether values may be there that are not encrypted.

    Raises:
        EncryptionKeyError: the key that would wrap it cannot be had here.
    """
    data_keys: DataKeys | None = config[DATA_KEYS]
    if config.encrypts and data_keys is None:
        reference = config.text(ENCRYPTION_KEY)
        made = new_data_keys(reference, key_encryption_key(reference, name), clear=clear)
        return config.replace({DATA_KEYS: made.to_text()})
    if not config.encrypts and data_keys is not None and not data_keys.clear:
        # From now on values come in the clear, and readers must not take them for forged ones.
        return config.replace({DATA_KEYS: replace(data_keys, clear=True).to_text()})
    return config


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
        config["lakelog.max.decoded.bytes"],
        config.retention_check_interval_ms,
    )
    quotas = (config.quota(QUOTA_HOT_BYTES), config.quota(QUOTA_BYTE_RATE))
    kinds = sum(kind for kind, limit in zip((1, 2), quotas, strict=True) if limit is not None)
    # Left out where it says nothing: a lakelog that knows no quotas can append then.
    return " ".join(map(str, (*numbers, kinds) if kinds else numbers))


def checked_partitions(partitions: int) -> int:
    number = whole(partitions)
    if number is None or not 1 <= number <= MAX_PARTITIONS:
        raise InvalidTopicError(
            f"{partitions!r} is not a number of partitions: give 1..{MAX_PARTITIONS}",
            partitions=partitions,
        )
    return number


def own_version(topic: Topic) -> int:
    """The definition's share of the config version; the rest is the defaults'."""
    return topic.config_version - topic.defaults_version


def under(topic: Topic, defaults: KeyspaceDefaults) -> Topic:
    """The topic under other defaults.

    Raises:
        InvalidConfigError: it would contradict itself.
    """
    try:
        config = topic.config.with_defaults(defaults.for_topics)
    except InvalidConfigError as error:
        message = f"with these defaults topic {topic.name!r} would contradict itself: {error}"
        raise error.changed(message=message, topic=topic.name) from None
    return replace(
        topic,
        config=config,
        config_version=own_version(topic) + defaults.version,
        defaults_version=defaults.version,
        keyspace_defaults=defaults.settings,
    )


def under_prefix(fields: Iterable[bytes], prefix: str) -> list[str]:
    """What follows the prefix in the names that have it."""
    found = [field for field in fields if field.startswith(prefix.encode())]
    with foreign_if_illegible(found, "set of topics' ids"):
        return [field.decode().removeprefix(prefix) for field in found]


def name_taken(topic: Topic) -> TopicExistsError:
    return TopicExistsError(
        f"there is another topic {topic.name!r} now: the deleted one with id {topic.topic_id} "
        "cannot come back beside it. Delete that one first",
        topic=topic.name,
    )


def purged(topic: Topic) -> PolicyViolationError:
    """The error of those who come too late for a deleted topic."""
    return PolicyViolationError(
        f"topic {topic.name!r} with id {topic.topic_id} cannot be brought back: it is being "
        "removed for good, or was, by a purge or by a cleanup after file.delete.delay.ms",
        topic=topic.name,
        topic_id=topic.topic_id,
    )


def parse_keyspace_id(text: bytes | None) -> uuid.UUID | None:
    try:
        return None if text is None else uuid.UUID(text.decode())
    except ILLEGIBLE as error:
        raise illegible(text, "id of a keyspace", error) from error


def to_json(topic: Topic, created_us: int | None, fresh: Fresh | None) -> str:
    fields = {
        "format": _format(topic),
        "name": topic.name,
        "topic_id": str(topic.topic_id),
        "partitions": topic.partitions,
        "config": dict(topic.config.overrides),
        "config_version": own_version(topic),
        # the script puts the server's time where this stands
        "created_us": "@created_us@" if created_us is None else created_us,
        **({"named_by_id": True} if topic.named_by_id else {}),
    }
    return json.dumps(fields if fresh is None else {**fields, "fresh": asdict(fresh)})


def _format(topic: Topic) -> int:
    if topic.config["lakelog.entry.format"] is EntryFormat.KAFKA:
        return KAFKA_FORMAT
    return NAMED_BY_ID_FORMAT if topic.named_by_id else USUAL_FORMAT


def from_json(text: bytes, defaults: KeyspaceDefaults) -> tuple[Topic, Fresh | None]:
    try:
        fields = parse_json(text)
        what = f"the definition of topic {fields['name']!r}"
        check_format(fields.get("format"), what, topic=fields["name"])
        fresh = fields.get("fresh")
        topic = Topic(
            fields["name"],
            uuid.UUID(fields["topic_id"]),
            fields["partitions"],
            TopicConfig.stored(fields["config"].items(), defaults.for_topics, what),
            fields["config_version"] + defaults.version,
            fields["created_us"],
            defaults.version,
            keyspace_defaults=defaults.settings,
            named_by_id=bool(fields.get("named_by_id", False)),
        )
        return topic, fresh and Fresh(fresh["first"], tuple(fresh["runs"]))
    except ILLEGIBLE as error:
        raise illegible(text, "definition of a topic", error) from error


def defaults_to_json(defaults: KeyspaceDefaults) -> str:
    fields = {"settings": dict(defaults.settings), "version": defaults.version}
    return json.dumps({"format": USUAL_FORMAT, **fields})


@lru_cache(maxsize=64)  # read with each topic that is looked up
def defaults_from_json(text: bytes | None) -> KeyspaceDefaults:
    if text is None:
        return KeyspaceDefaults()
    with foreign_if_illegible(text, "defaults of a keyspace"):
        fields = parse_json(text)
        what = "the defaults of the keyspace"
        check_format(fields.get("format"), what)
        for name in fields["settings"]:
            if name not in BROKER_SETTINGS:
                raise newer(what, f"a setting {name[:80]}")
        return KeyspaceDefaults(tuple(fields["settings"].items()), int(fields["version"]))
