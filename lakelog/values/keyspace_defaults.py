"""What a keyspace sets for all its topics, under the names Kafka's brokers have for it.

A default is set by its broker name (``log.retention.hours``) and reaches a topic under the topic's
(``retention.ms``), where a setting of the topic itself goes first. Some settings have several
broker names; the one of the finest unit that is set counts, as in Kafka.

| broker names, the first that is set counts | the topic's setting |
|---|---|
| ``log.retention.ms``, ``log.retention.minutes``, ``log.retention.hours`` | ``retention.ms`` |
| ``log.roll.ms``, ``log.roll.hours`` | ``segment.ms`` |
| ``log.roll.jitter.ms``, ``log.roll.jitter.hours`` | ``segment.jitter.ms`` |
| ``log.{name}`` | ``segment.bytes``, ``retention.bytes``, ``cleanup.policy``, … |
| ``log.cleaner.{name}`` | what compaction goes by |
| ``log.cleaner.enable``, ``log.cleaner.dedupe.buffer.size`` | no topic sets these for itself |
| ``log.retention.check.interval.ms`` | nor this |
| ``lakelog.log.encryption.key`` (Kafka has none) | ``lakelog.encryption.key`` |
| ``lakelog.quota.…`` | none: all topics together keep to them |
| ``offsets.…``, ``group.…``, ``offset.metadata.max.bytes`` | none: groups of consumers go by them |

Source: Kafka ``ServerTopicConfigSynonyms``, ``CleanerConfig``, ``LogConfig.SERVER_CONFIG_DEF``,
``ServerLogConfigs``, ``DynamicBrokerConfig`` and ``GroupCoordinatorConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from ..base.unit_text import plain_number
from ..errors import InvalidConfigError
from .config import (
    DAY_MS,
    ENCRYPTION_KEY,
    HOUR_MS,
    INT32_MAX,
    INT64_MAX,
    KEYSPACE_SETTINGS,
    KIB,
    MIB,
    MINUTE_MS,
    QUOTA_BYTE_RATE,
    QUOTA_COLD_BYTES,
    QUOTA_HOT_BYTES,
    QUOTA_TOPICS,
    SECOND_MS,
    SETTINGS,
    Setting,
    TopicConfig,
    check_settings,
    number,
    one_of,
    parse,
    text_of,
    whole_number,
)

#: topic setting → its broker names and what one of their unit is in the topic's, first one first
SYNONYMS: Mapping[str, Mapping[str, int]] = {
    "retention.ms": {
        "log.retention.ms": 1,
        "log.retention.minutes": MINUTE_MS,
        "log.retention.hours": HOUR_MS,
    },
    "segment.ms": {"log.roll.ms": 1, "log.roll.hours": HOUR_MS},
    "segment.jitter.ms": {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": HOUR_MS},
    "retention.bytes": {"log.retention.bytes": 1},
    "local.retention.ms": {"log.local.retention.ms": 1},
    "local.retention.bytes": {"log.local.retention.bytes": 1},
    "segment.bytes": {"log.segment.bytes": 1},
    "cleanup.policy": {"log.cleanup.policy": 1},
    "file.delete.delay.ms": {"log.segment.delete.delay.ms": 1},
    "index.interval.bytes": {"log.index.interval.bytes": 1},
    "message.timestamp.type": {"log.message.timestamp.type": 1},
    "message.timestamp.before.max.ms": {"log.message.timestamp.before.max.ms": 1},
    "message.timestamp.after.max.ms": {"log.message.timestamp.after.max.ms": 1},
    "max.message.bytes": {"message.max.bytes": 1},
    "compression.type": {"compression.type": 1},
    "producer.id.expiration.ms": {"producer.id.expiration.ms": 1},
    "delete.retention.ms": {"log.cleaner.delete.retention.ms": 1},
    "min.compaction.lag.ms": {"log.cleaner.min.compaction.lag.ms": 1},
    "max.compaction.lag.ms": {"log.cleaner.max.compaction.lag.ms": 1},
    "min.cleanable.dirty.ratio": {"log.cleaner.min.cleanable.ratio": 1},
    ENCRYPTION_KEY: {"lakelog.log.encryption.key": 1},
}


def _decimal(name: str, default: str, doc: str) -> Setting:
    return Setting(name, default, float, "a number", doc)


#: Checked and kept, so that a broker's settings can be taken over as they are: name → why it
#: changes nothing.
_WITHOUT_EFFECT = {
    "log.cleaner.threads": "Spark's cores decide how much is compacted at once",
    "log.cleaner.io.max.bytes.per.second": "Spark's cores decide how fast it reads and writes",
    "log.cleaner.io.buffer.size": "Spark's memory decides",
    "log.cleaner.io.buffer.load.factor": "keys are compared themselves, there is no table to fill",
    "log.cleaner.backoff.ms": "cleanup runs when it is started, it does not wait for work",
    "log.index.size.max.bytes": "an index is a sorted set of Redis's, which grows as it is filled",
}

#: What groups of consumers go by.
GROUP_SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        number(
            "offsets.retention.minutes",
            7 * DAY_MS // MINUTE_MS,
            1,
            "how long a group's offset is kept after its commit, once the group has no members",
            INT32_MAX,
        ),
        number(
            "offsets.retention.check.interval.ms",
            10 * MINUTE_MS,
            1,
            "how often archivers look for offsets that are over",
        ),
        number(
            "group.min.session.timeout.ms",
            6 * SECOND_MS,
            0,
            "the shortest session_timeout_ms that a member may ask for",
            INT32_MAX,
        ),
        number(
            "group.max.session.timeout.ms",
            30 * MINUTE_MS,
            0,
            "the longest session_timeout_ms that a member may ask for",
            INT32_MAX,
        ),
        number(
            "group.initial.rebalance.delay.ms",
            SECOND_MS // 2,  # Kafka: 3 s, for brokers that start with hundreds of clients
            0,
            "how long the first round of a group waits for more members",
            INT32_MAX,
        ),
        number("group.max.size", INT32_MAX, 1, "how many members a group takes", INT32_MAX),
        number(
            "group.consumer.session.timeout.ms",
            45 * SECOND_MS,
            1,
            "how long a member by KIP-848's protocol may be silent",
            INT32_MAX,
        ),
        number(
            "group.consumer.heartbeat.interval.ms",
            5 * SECOND_MS,
            1,
            "how often a member by KIP-848's protocol is told to speak",
            INT32_MAX,
        ),
        number(
            "group.share.record.lock.duration.ms",
            30 * SECOND_MS,
            1,
            "how long a member of a share group that is a client of Kafka holds what it got",
            INT32_MAX,
        ),
        number(
            "group.share.delivery.count.limit",
            5,
            1,
            "how often members of share groups that are clients of Kafka get a record at most",
            INT32_MAX,
        ),
        Setting(
            "lakelog.share.auto.offset.reset",  # Kafka: share.auto.offset.reset of a group
            "latest",
            one_of("earliest", "latest"),
            "earliest or latest",
            "where a share group begins whose first member is a client of Kafka",
        ),
        number(
            "offset.metadata.max.bytes",
            4 * KIB,
            0,
            "the longest text beside a committed offset",
            INT32_MAX,
        ),
    )
}

#: What `KEYSPACE_SETTINGS` change, in a few words; all others are compaction's.
_EFFECTS = {
    "log.retention.check.interval.ms": "retention.ms of untiered topics, and continuous cleanups",
    QUOTA_HOT_BYTES: "appends to all topics",
    QUOTA_COLD_BYTES: "archiving of all topics",
    QUOTA_TOPICS: "topics that are created",
    QUOTA_BYTE_RATE: "appends to all topics",
}


def _retention_time(name: str, unit_ms: int, high: int) -> Setting:
    """Below zero is no limit, whatever the unit; zero, legal on a topic, is not on a broker."""

    def parse_limit(text: str) -> int:
        value = whole_number(-high - 1, high)(text)
        if value == 0:
            raise ValueError
        return max(value, -1)

    legal = f"a whole number in 1..{high}, or -1 for no limit"
    default, doc = 7 * DAY_MS // unit_ms, SETTINGS["retention.ms"].doc
    return Setting(name, str(default), parse_limit, legal, doc)


def _definitions() -> dict[str, Setting]:
    named = {
        broker_name: replace(SETTINGS[topic_name], name=broker_name)
        for topic_name, broker_names in SYNONYMS.items()
        for broker_name in broker_names
    }
    differing = (
        _retention_time("log.retention.ms", 1, INT64_MAX),
        _retention_time("log.retention.minutes", MINUTE_MS, INT32_MAX),
        _retention_time("log.retention.hours", HOUR_MS, INT32_MAX),
        number("log.roll.hours", 7 * 24, 1, SETTINGS["segment.ms"].doc, INT32_MAX),
        number("log.roll.jitter.hours", 0, 0, SETTINGS["segment.jitter.ms"].doc, INT32_MAX),
        number("log.cleaner.threads", 1, 0, "cleaner threads", INT32_MAX),
        number("log.cleaner.io.buffer.size", 512 * KIB, 0, "bytes of I/O buffers", INT32_MAX),
        number("log.cleaner.backoff.ms", 15 * SECOND_MS, 0, "pause when nothing is to be cleaned"),
        number("log.index.size.max.bytes", 10 * MIB, 4, "the largest offset index", INT32_MAX),
        _decimal("log.cleaner.io.max.bytes.per.second", "1.7976931348623157E308", "a throttle"),
        _decimal("log.cleaner.io.buffer.load.factor", "0.9", "how full the key table may be"),
    )
    return {
        **named,
        **KEYSPACE_SETTINGS,
        **GROUP_SETTINGS,
        **{setting.name: setting for setting in differing},
    }


BROKER_SETTINGS: Mapping[str, Setting] = dict(sorted(_definitions().items()))
_TOPIC_NAMES = {broker: topic for topic, names in SYNONYMS.items() for broker in names}


class KeyspaceDefaults(Struct, frozen=True):
    """The defaults of one keyspace. Checked when made.

    Args:
        settings: text by broker name.
        version: grows by one at each change.

    Raises:
        InvalidConfigError: an unknown name, a value out of bounds, or two that contradict.
    """

    settings: tuple[tuple[str, str], ...] = ()
    version: int = 0

    def __post_init__(self) -> None:
        given = dict(self.settings).items()
        plain = sorted((name, plain_number(name, text)) for name, text in given)
        force_setattr(self, "settings", tuple(plain))
        for name, text in self.settings:
            parse(broker_setting(name), text)
        TopicConfig().with_defaults(self.for_topics)
        least, most = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
        if self.for_groups[least] > self.for_groups[most]:
            raise InvalidConfigError(
                f"{least}={self.for_groups[least]} is above {most}={self.for_groups[most]}: no "
                "member could join. Change one of them",
                name=least,
                value=str(self.for_groups[least]),
            )

        session, heartbeat = (
            "group.consumer.session.timeout.ms",
            "group.consumer.heartbeat.interval.ms",
        )
        if self.for_groups[heartbeat] >= self.for_groups[session]:
            raise InvalidConfigError(
                f"{heartbeat}={self.for_groups[heartbeat]} is not below "
                f"{session}={self.for_groups[session]}: members would be out before they speak. "
                "Change one of them",
                name=heartbeat,
                value=str(self.for_groups[heartbeat]),
            )

    def replace(self, changes: Mapping[str, object | None]) -> KeyspaceDefaults:
        """The next version, with settings changed; None takes one back."""
        check_settings(changes)
        for name in changes:
            broker_setting(name)
        merged: dict[str, object | None] = {**dict(self.settings), **changes}
        given = {name: text_of(value) for name, value in merged.items() if value is not None}
        return KeyspaceDefaults(tuple(given.items()), self.version + 1)

    @property
    def for_topics(self) -> tuple[tuple[str, str], ...]:
        """What `TopicConfig` takes as its defaults: text by topic setting name."""
        return _for_topics(self.settings)

    @property
    def for_groups(self) -> Mapping[str, Any]:
        """What groups go by, whether it is set or built in, by broker name."""
        given = dict(self.settings)
        return {
            name: setting.parse(given.get(name, setting.default))
            for name, setting in GROUP_SETTINGS.items()
        }

    def effect(self, name: str) -> str:
        """What a setting does or would do here, in a few words, or why it does nothing."""
        broker_setting(name)
        if name in _WITHOUT_EFFECT:
            return f"no effect here: {_WITHOUT_EFFECT[name]}"
        if name in KEYSPACE_SETTINGS:
            return _EFFECTS.get(name, "compaction of all topics")
        if name in GROUP_SETTINGS:
            return "groups of consumers"
        topic_name, given = _TOPIC_NAMES[name], dict(self.settings)
        first = next((other for other in SYNONYMS[topic_name] if other in given), name)
        if first != name and name in given:
            return f"no effect: {first} goes first"
        return f"{topic_name}={dict(self.for_topics)[topic_name]}" if name in given else topic_name


def broker_setting(name: str) -> Setting:
    """The definition of a keyspace-wide setting.

    Raises:
        InvalidConfigError: there is none of that name; a topic's own name gets the broker's, any
            other one near ones.
    """
    found = BROKER_SETTINGS.get(name)
    if found is not None:
        return found
    if name in SYNONYMS:
        hint = f"{name!r} is a topic's setting; for all topics set {' or '.join(SYNONYMS[name])}"
    elif name in SETTINGS:
        hint = f"{name!r} is a topic's setting, and has no default to set for all topics"
    else:
        import difflib

        near = difflib.get_close_matches(name, BROKER_SETTINGS, n=3, cutoff=0.5)
        known = (
            f"did you mean {' or '.join(near)}?" if near else "legal: " + ", ".join(BROKER_SETTINGS)
        )
        hint = f"there is no keyspace-wide setting {name!r}; {known}"
    raise InvalidConfigError(hint, name=name)


def _in_units_of_topic(name: str, text: str, unit: int) -> str:
    value: Any = BROKER_SETTINGS[name].parse(text)
    if type(value) is int:  # not a boolean, not an Enum
        return str(value if value < 0 else value * unit)
    return text


@lru_cache(maxsize=64)  # asked for with each topic that is looked up
def _for_topics(settings: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    given = dict(settings)
    found = {name: given[name] for name in KEYSPACE_SETTINGS if name in given}
    for topic_name, broker_names in SYNONYMS.items():
        first = next((name for name in broker_names if name in given), None)
        if first is not None:
            found[topic_name] = _in_units_of_topic(first, given[first], broker_names[first])
    return tuple(sorted(found.items()))
