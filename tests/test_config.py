"""Topic settings: what is legal alone, what together, and which layer a value comes from."""

from __future__ import annotations

import pytest

from lakelog.errors import InvalidConfigError
from lakelog.values.config import DAY_MS, MIB, SETTINGS, TopicConfig

# -- alone ---------------------------------------------------------------------------------------


def test_defaults_are_kafkas_but_where_the_definition_says_so() -> None:
    """Kafka: LogConfig, TopicConfig and ServerLogConfigs."""
    kafka = {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "delete.retention.ms": "86400000",
        "file.delete.delay.ms": "60000",
        "index.interval.bytes": "4096",
        "local.retention.bytes": "-2",
        "local.retention.ms": "-2",
        "max.compaction.lag.ms": "9223372036854775807",
        "max.message.bytes": "1048588",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": "9223372036854775807",
        "message.timestamp.type": "CreateTime",
        "min.cleanable.dirty.ratio": "0.5",
        "min.compaction.lag.ms": "0",
        "producer.id.expiration.ms": "86400000",
        "remote.log.delete.on.disable": "false",
        "remote.storage.enable": "false",
        "retention.bytes": "-1",
        "retention.ms": "604800000",
        "segment.bytes": "1073741824",
        "segment.index.bytes": "10485760",
        "segment.jitter.ms": "0",
        "segment.ms": "604800000",
    }
    ours = {
        name: setting.kafka_default or setting.default
        for name, setting in SETTINGS.items()
        if not name.startswith(("lakelog.", "internal."))
    }
    assert ours == kafka
    differ = {name for name, setting in SETTINGS.items() if setting.kafka_default is not None}
    assert differ == {"file.delete.delay.ms", "remote.storage.enable"}
    assert TopicConfig()["file.delete.delay.ms"] == DAY_MS


@pytest.mark.parametrize("name", SETTINGS)
def test_no_setting_takes_what_kafka_refuses(name: str) -> None:
    """Kafka: LogConfigTest.testFromPropsInvalid."""
    illegal = {
        "cleanup.policy": ["true", "foobar"],
        "compression.type": ["-1", "brotli"],
        "lakelog.encryption.data.keys": ["not_a_number", "{}", '{"ring":"00"}'],
        "lakelog.entry.format": ["json"],
        "lakelog.fields.flatten": ["not_a_boolean"],
        "lakelog.retention.entries": ["not_a_number", "-2"],
        "lakelog.key.format": ["", "JSON", "-1", "a b"],
        "lakelog.schemas": ["not_a_number", "[]", '{"a": {}}', '{"1": 5}', '{"1": {}}'],
        "lakelog.value.format": ["", "JSON", "-1", "a b"],
        "lakelog.value.columns": ["not_a_number", "a itn", "offset int", "a int, A int"],
        "local.retention.bytes": ["not_a_number", "-3"],
        "local.retention.ms": ["not_a_number", "-3"],
        "max.compaction.lag.ms": ["not_a_number", "0"],
        "message.timestamp.type": ["createtime", "-1"],
        "min.cleanable.dirty.ratio": ["not_a_number", "-0.1", "1.2", "nan"],
        "remote.storage.enable": ["not_a_boolean", "1"],
        "retention.bytes": ["not_a_number", "-2"],
        "retention.ms": ["not_a_number", "-2"],
        "segment.bytes": ["not_a_number", "1048575", "2147483648"],
        "segment.ms": ["not_a_number", "0"],
    }
    if name == "lakelog.encryption.key":
        with pytest.raises(InvalidConfigError, match="takes env:NAME, file:/PATH") as caught:
            TopicConfig(((name, "a-key"),))
        assert (caught.value.name, caught.value.value) == (name, None)
        assert "a-key" not in str(caught.value)
        return
    for text in illegal.get(
        name, ["not_a_number", "-1", "", "1_000", "1.5", "9223372036854775808"]
    ):
        with pytest.raises(InvalidConfigError, match="is not legal: it takes") as caught:
            TopicConfig(((name, text),))
        assert (caught.value.name, caught.value.value) == (name, text)


def test_an_unknown_name_gets_near_ones() -> None:
    with pytest.raises(InvalidConfigError, match=r"did you mean .*retention\.ms"):
        TopicConfig.of({"retention.mss": 1})
    with pytest.raises(InvalidConfigError, match="no topic setting"):
        TopicConfig()["log.cleaner.enable"]


# -- together ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"min.compaction.lag.ms": 200, "max.compaction.lag.ms": 100},
        {"local.retention.ms": -3, "retention.ms": 500},
        {"local.retention.bytes": -3, "retention.bytes": 1000},
        {"local.retention.ms": 2000, "retention.ms": 1000},
        {"local.retention.bytes": 200, "retention.bytes": 100},
        {"local.retention.ms": -1, "retention.ms": 1000},
        {"local.retention.bytes": -1, "retention.bytes": 100},
        {"local.retention.ms": -1},  # retention.ms has a finite default
        {"local.retention.ms": 8 * DAY_MS},
        {
            "remote.copy.lag.ms": 1001,
            "retention.ms": 1000,
        },  # no such lag here: refused all the same
        {"cleanup.policy": "compact", "remote.storage.enable": False},
        {"cleanup.policy": "delete,compact", "remote.storage.enable": False},
    ],
)
def test_contradictions_are_refused(settings: dict[str, object]) -> None:
    """Kafka: LogConfigTest testInvalidCompactionLagConfig, testInvalidLocalLogRetentionProps."""
    with pytest.raises(InvalidConfigError):
        TopicConfig.of(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"min.compaction.lag.ms": 100, "max.compaction.lag.ms": 100},
        {"local.retention.ms": 1000, "retention.ms": 1000},
        {"local.retention.ms": -1, "retention.ms": -1},
        {"local.retention.ms": 2 * DAY_MS, "retention.ms": -1},
        {"local.retention.bytes": -1},  # retention.bytes has no limit
        {"local.retention.ms": 2000, "retention.ms": 1000, "remote.storage.enable": False},
        {"cleanup.policy": "delete,delete,delete"},
        {"cleanup.policy": ""},
        # Kafka refuses these on tiered topics; here the cold tier is where compaction runs.
        {"cleanup.policy": "compact"},
        {"cleanup.policy": "delete,compact"},
    ],
)
def test_what_fits_together_is_taken(settings: dict[str, object]) -> None:
    """Kafka: LogConfigTest.testEnableRemoteLogStorageCleanupPolicy, and its bounds met exactly."""
    assert dict(TopicConfig.of(settings).overrides).keys() == settings.keys()


# -- layers --------------------------------------------------------------------------------------

KEYSPACE = (("retention.ms", "9000"), ("segment.ms", "50"), ("cleanup.policy", ""))


def test_the_topic_goes_before_the_keyspace_and_that_before_what_is_built_in() -> None:
    config = TopicConfig((("retention.ms", "5"),), KEYSPACE)
    names = ("retention.ms", "segment.ms", "cleanup.policy", "segment.jitter.ms")
    assert [config.source(name) for name in names] == ["topic", "keyspace", "keyspace", "default"]
    assert [config.text(name) for name in names] == ["5", "50", "", "0"]
    assert [config[name] for name in names] == [5, 50, frozenset(), 0]


def test_contradictions_are_between_values_in_effect_and_say_where_each_is_from() -> None:
    local = (("local.retention.ms", "2000"),)
    assert TopicConfig(local, (("retention.ms", "2000"),)).local_retention_ms == 2000
    with pytest.raises(
        InvalidConfigError,
        match=r"local\.retention\.ms=2000 must be at most retention\.ms=1999 \(the keyspace's\)",
    ):
        TopicConfig(local, (("retention.ms", "1999"),))
    with pytest.raises(InvalidConfigError, match=r"local.*\(the keyspace's\).*\(the default\)"):
        TopicConfig((), (("local.retention.ms", "-1"),))
    with pytest.raises(InvalidConfigError, match="cold tier"):
        TopicConfig((("remote.storage.enable", "false"),), (("cleanup.policy", "compact"),))


def test_the_cleaners_settings_are_the_keyspaces_alone() -> None:
    assert TopicConfig().cleaner_enabled
    assert TopicConfig().dedupe_buffer_bytes == 128 * MIB
    cleaner = (("log.cleaner.dedupe.buffer.size", "2000000"), ("log.cleaner.enable", "false"))
    config = TopicConfig().with_defaults(cleaner)
    assert not config.cleaner_enabled
    assert config.dedupe_buffer_bytes == 2_000_000
    with pytest.raises(InvalidConfigError, match="no topic setting"):
        TopicConfig(cleaner)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"overrides": {}}',
        '{"overrides": {"retention.ms": 5}, "defaults": {}}',
        '{"overrides": [], "defaults": {}}',
        '{"overrides": {}, "defaults": {"retention.ms": "-7"}}',
    ],
)
def test_json_that_is_no_config(text: str) -> None:
    with pytest.raises(InvalidConfigError):
        TopicConfig.from_json(text)


def test_value_columns_say_where_they_cannot_be_read_and_need_the_cold_tier() -> None:
    with pytest.raises(
        InvalidConfigError, match=r"at character 7 of the columns \('flout'\)"
    ) as no:
        TopicConfig.of(lakelog_value_columns="delay flout")
    assert (no.value.name, no.value.position) == ("lakelog.value.columns", 6)
    with pytest.raises(InvalidConfigError, match="needs the cold tier"):
        TopicConfig.of(lakelog_value_columns="delay float", remote_storage_enable=False)
    assert TopicConfig.of(lakelog_value_columns="delay float").value_columns == "delay float"
