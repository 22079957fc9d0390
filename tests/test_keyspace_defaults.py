"""Broker names: what each means for a topic, which goes first, what is refused."""

from __future__ import annotations

import pytest

from lakelog.errors import InvalidConfigError
from lakelog.values.config import DAY_MS, HOUR_MS, KEYSPACE_SETTINGS, MIB, SETTINGS, TopicConfig
from lakelog.values.keyspace_defaults import BROKER_SETTINGS, SYNONYMS, KeyspaceDefaults


@pytest.mark.parametrize(
    ("settings", "topics"),
    [
        ({"log.retention.hours": 960}, {"retention.ms": "3456000000"}),
        ({"log.retention.minutes": 30}, {"retention.ms": "1800000"}),
        ({"log.retention.ms": 1}, {"retention.ms": "1"}),
        ({"log.retention.hours": -1}, {"retention.ms": "-1"}),
        ({"log.retention.minutes": -5}, {"retention.ms": "-1"}),
        ({"log.retention.ms": -2}, {"retention.ms": "-1"}),
        ({"log.retention.hours": 2**31 - 1}, {"retention.ms": str((2**31 - 1) * HOUR_MS)}),
        ({"log.retention.hours": 1, "log.retention.minutes": 2}, {"retention.ms": "120000"}),
        (
            {"log.retention.hours": 1, "log.retention.minutes": 2, "log.retention.ms": 3},
            {"retention.ms": "3"},
        ),
        ({"log.retention.minutes": -1, "log.retention.hours": 2}, {"retention.ms": "-1"}),
        ({"log.roll.hours": 2}, {"segment.ms": str(2 * HOUR_MS)}),
        ({"log.roll.hours": 2, "log.roll.ms": 9}, {"segment.ms": "9"}),
        ({"log.roll.jitter.hours": 2}, {"segment.jitter.ms": str(2 * HOUR_MS)}),
        ({"log.roll.jitter.hours": 2, "log.roll.jitter.ms": 0}, {"segment.jitter.ms": "0"}),
        ({"log.retention.bytes": 5}, {"retention.bytes": "5"}),
        ({"log.segment.bytes": MIB}, {"segment.bytes": str(MIB)}),
        ({"log.cleanup.policy": "compact,delete"}, {"cleanup.policy": "compact,delete"}),
        ({"log.cleanup.policy": ""}, {"cleanup.policy": ""}),
        ({"log.segment.delete.delay.ms": 60_000}, {"file.delete.delay.ms": "60000"}),
        ({"log.index.interval.bytes": 0}, {"index.interval.bytes": "0"}),
        (
            {"log.message.timestamp.type": "LogAppendTime"},
            {"message.timestamp.type": "LogAppendTime"},
        ),
        ({"log.message.timestamp.before.max.ms": 7}, {"message.timestamp.before.max.ms": "7"}),
        ({"log.message.timestamp.after.max.ms": 7}, {"message.timestamp.after.max.ms": "7"}),
        ({"message.max.bytes": 100}, {"max.message.bytes": "100"}),
        ({"compression.type": "gzip"}, {"compression.type": "gzip"}),
        (
            {"log.local.retention.ms": 30 * DAY_MS, "log.retention.hours": 960},
            {"local.retention.ms": "2592000000", "retention.ms": "3456000000"},
        ),
        ({"log.local.retention.bytes": 4 * 2**30}, {"local.retention.bytes": str(4 * 2**30)}),
        ({"producer.id.expiration.ms": 1}, {"producer.id.expiration.ms": "1"}),
        ({"log.cleaner.delete.retention.ms": 0}, {"delete.retention.ms": "0"}),
        ({"log.cleaner.min.compaction.lag.ms": 9}, {"min.compaction.lag.ms": "9"}),
        ({"log.cleaner.max.compaction.lag.ms": 9}, {"max.compaction.lag.ms": "9"}),
        ({"log.cleaner.min.cleanable.ratio": "0.25"}, {"min.cleanable.dirty.ratio": "0.25"}),
        ({"log.cleaner.enable": False}, {"log.cleaner.enable": "false"}),
        (
            {"log.cleaner.dedupe.buffer.size": 2 * MIB},
            {"log.cleaner.dedupe.buffer.size": str(2 * MIB)},
        ),
        (
            {"log.retention.check.interval.ms": 1},
            {"log.retention.check.interval.ms": "1"},
        ),
        ({"log.cleaner.threads": 4, "log.cleaner.backoff.ms": 0}, {}),
        ({"log.index.size.max.bytes": 4}, {}),
    ],
)
def test_what_a_broker_setting_is_for_a_topic(
    settings: dict[str, object], topics: dict[str, str]
) -> None:
    """Kafka: LogConfigTest.testKafkaConfigToProps, KafkaConfigTest.testLogRetention*."""
    defaults = KeyspaceDefaults().replace(settings)
    assert dict(defaults.for_topics) == topics
    config = TopicConfig().with_defaults(defaults.for_topics)
    assert {name: config.source(name) for name in topics if name in SETTINGS} == {
        name: "keyspace" for name in topics if name in SETTINGS
    }


@pytest.mark.parametrize(
    ("name", "texts"),
    {
        "log.retention.ms": ["0", "x", "1.5", str(2**63)],
        "log.retention.minutes": ["0", str(2**31)],
        "log.retention.hours": ["0", str(2**31), "-2147483649"],
        "log.roll.ms": ["0", "-1"],
        "log.roll.hours": ["0", "-1", str(2**31)],
        "log.roll.jitter.ms": ["-1"],
        "log.roll.jitter.hours": ["-1", str(2**31)],
        "log.segment.bytes": ["1048575", str(2**31)],
        "log.cleanup.policy": ["shred"],
        "log.segment.delete.delay.ms": ["-1"],
        "log.message.timestamp.type": ["createtime"],
        "log.local.retention.ms": ["-3"],
        "log.local.retention.bytes": ["-3"],
        "message.max.bytes": ["-1"],
        "compression.type": ["brotli"],
        "producer.id.expiration.ms": ["0"],
        "log.cleaner.enable": ["yes"],
        "log.cleaner.min.cleanable.ratio": ["1.1", "-0.1"],
        "log.cleaner.max.compaction.lag.ms": ["0"],
        "log.cleaner.delete.retention.ms": ["-1"],
        "log.cleaner.dedupe.buffer.size": [str(MIB), "-1"],
        "log.cleaner.threads": ["-1", "x"],
        "log.cleaner.io.max.bytes.per.second": ["fast"],
        "log.cleaner.io.buffer.size": ["-1", str(2**31)],
        "log.cleaner.io.buffer.load.factor": ["full"],
        "log.cleaner.backoff.ms": ["-1"],
        "log.retention.check.interval.ms": ["0", "-1", str(2**63)],
        "log.index.size.max.bytes": ["3", str(2**31)],
    }.items(),
)
def test_values_out_of_a_brokers_bounds_are_refused(name: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(InvalidConfigError, match="is not legal: it takes") as caught:
            KeyspaceDefaults(((name, text),))
        assert (caught.value.name, caught.value.value) == (name, text)


def test_every_name_has_a_meaning_and_the_default_that_is_built_in() -> None:
    for name, setting in BROKER_SETTINGS.items():
        assert name == setting.name
        assert KeyspaceDefaults().effect(name)
        spelt_out = dict(KeyspaceDefaults(((name, setting.default),)).for_topics)
        for topic_name, text in spelt_out.items():
            built_in = (KEYSPACE_SETTINGS.get(topic_name) or SETTINGS[topic_name]).default
            assert text == built_in
    assert set(SYNONYMS) <= set(SETTINGS)
    assert set(KEYSPACE_SETTINGS) <= set(BROKER_SETTINGS)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("retention.ms", "for all topics set log.retention.ms or log.retention.minutes or"),
        ("max.message.bytes", "for all topics set message.max.bytes"),
        ("remote.storage.enable", "has no default to set for all topics"),
        ("lakelog.flush.rows", "has no default to set for all topics"),
        ("log.retention.hour", "did you mean log.retention.hours"),
        ("log.cleaner.thread", "did you mean log.cleaner.threads"),
        ("qqq", "legal: compression.type, group.consumer.heartbeat.interval.ms"),
    ],
)
def test_names_that_are_not_a_brokers_are_refused_with_those_that_are(name: str, says: str) -> None:
    for value in ("1", None):  # to unset what cannot be set is a slip, too
        with pytest.raises(InvalidConfigError) as caught:
            KeyspaceDefaults().replace({name: value})
        assert says in caught.value.message


@pytest.mark.parametrize(
    "settings",
    [
        {"log.cleaner.min.compaction.lag.ms": 200, "log.cleaner.max.compaction.lag.ms": 100},
        {"log.local.retention.ms": -1},
        {"log.local.retention.ms": HOUR_MS + 1, "log.retention.hours": 1},
        {"log.local.retention.bytes": 200, "log.retention.bytes": 100},
    ],
)
def test_defaults_that_contradict_each_other_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidConfigError, match=r"must be at most"):
        KeyspaceDefaults().replace(settings)


def test_effects_say_what_counts() -> None:
    defaults = KeyspaceDefaults().replace(
        {"log.retention.hours": 48, "log.retention.minutes": -1, "log.cleaner.threads": 4}
    )
    assert defaults.effect("log.retention.minutes") == "retention.ms=-1"
    assert defaults.effect("log.retention.hours") == "no effect: log.retention.minutes goes first"
    assert defaults.effect("log.retention.ms") == "retention.ms"
    assert defaults.effect("log.cleaner.threads").startswith("no effect here: Spark's cores")
    assert defaults.effect("log.index.size.max.bytes").startswith("no effect here: an index is")
    assert defaults.effect("log.cleaner.enable") == "compaction of all topics"
    told = "retention.ms of untiered topics, and continuous cleanups"
    assert defaults.effect("log.retention.check.interval.ms") == told


def test_a_change_keeps_the_rest_and_counts() -> None:
    one = KeyspaceDefaults().replace({"log.retention.hours": 1, "log.cleaner.threads": 2})
    two = one.replace({"log.retention.hours": None, "log.roll.ms": 5})
    assert (one.version, two.version) == (1, 2)
    assert dict(two.settings) == {"log.cleaner.threads": "2", "log.roll.ms": "5"}
