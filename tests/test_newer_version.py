"""What a newer lakelog wrote is not read, not taken for damage, and never deleted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from deltalake import DeltaTable

from lakelog import Lakelog
from lakelog.codec.crc import crc32c_of_parts
from lakelog.errors import (
    ArchiveFailedError,
    CleanupFailedError,
    LakelogError,
    NewerVersionError,
)
from lakelog.values.config import TopicConfig
from lakelog.values.format_version import FORMAT_VERSION, check_format
from lakelog.values.topic_partition import TopicPartition

NEXT = str(FORMAT_VERSION + 1)
FUTURE_FIELDS = [b"__ts", b"5", b"__trace", b"x", b"value", b"v"]
FUTURE_ENTRIES = {
    "a format of its own": {b"__v": NEXT.encode(), b"z": b"bytes of tomorrow"},
    "a way to join members": {
        b"__ts": b"5",
        b"__json": b"tight",
        b"__crc": crc32c_of_parts([b"__ts", b"5", b"__json", b"tight"]),
    },
    "a field among those known": {
        **dict(zip(FUTURE_FIELDS[::2], FUTURE_FIELDS[1::2], strict=True)),
        b"__crc": crc32c_of_parts(FUTURE_FIELDS),
    },
}


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Lakelog:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("orders", 2, {"retention.ms": 1, "local.retention.ms": 0})
        with lake.producer() as producer:
            for number in range(20):
                producer.send("orders", value=b"%d" % number, partition=number % 2, timestamp_ms=1)
        yield lake


def files_below(directory: Path) -> set[Path]:
    return {path for path in directory.rglob("*") if path.is_file()}


def future_table(lake: Lakelog, cold: Path, properties: dict[str, str]) -> Path:
    lake.archive("orders")
    (path,) = (cold / "orders").iterdir()
    DeltaTable(path).alter.set_table_properties(properties, raise_if_not_exists=False)
    return path


def append_future_entry(client: redis.Redis, fields: dict[bytes, bytes]) -> None:
    """As a newer lakelog's append would: one record after the ten of partition 0."""
    client.xadd("lakelog:stream:orders:0", fields, id="10-1")
    client.hset("{lakelog:stream:orders:0}:state", "log_end", 11)


@pytest.mark.parametrize("fields", FUTURE_ENTRIES.values(), ids=FUTURE_ENTRIES)
def test_an_entry_of_a_newer_lakelog_is_neither_read_nor_moved_aside(
    lake: Lakelog, redis_client: redis.Redis, fields: dict[bytes, bytes]
) -> None:
    append_future_entry(redis_client, fields)
    tp = TopicPartition("orders", 0)

    with pytest.raises(
        NewerVersionError, match=r"orders-0: a newer .* entry 10-1: .* upgrade"
    ) as caught:
        lake.log("orders").read(0).to_arrow()
    assert (caught.value.topic_partition, str(caught.value.entry_id)) == (tp, "10-1")
    assert "delete" not in caught.value.message
    with pytest.raises(NewerVersionError):
        lake.skips("orders", 0).skip_entry("10-1")
    with pytest.raises(ArchiveFailedError) as failed:
        lake.archive()
    (error,) = failed.value.errors["orders"]
    assert isinstance(error, NewerVersionError)
    # The other partition is archived, and the entry stays.
    (report,) = failed.value.reports
    assert {one.topic_partition.partition for one in report.partitions if one.records} == {1}
    assert redis_client.xlen("lakelog:stream:orders:0") > 0
    assert redis_client.xrange("lakelog:stream:orders:0", "10-1", "10-1")


FUTURE_TABLES = {
    "a format": {"lakelog.format": NEXT},
    "a format without a number": {"lakelog.format": "2a"},
}


@pytest.mark.parametrize("properties", FUTURE_TABLES.values(), ids=FUTURE_TABLES)
def test_a_table_of_a_newer_lakelog_is_left_as_it_is(
    lake: Lakelog, tmp_path: Path, properties: dict[str, str]
) -> None:
    cold = tmp_path / "cold"
    path = future_table(lake, cold, properties)
    there = files_below(cold)

    calls: list[Callable[[], object]] = [
        lambda: lake.log("orders").read(0).to_arrow(),
        lambda: lake.archive("orders"),
        lambda: lake.log("orders").raise_log_start(0, 3),
        lambda: lake.archived.log("orders"),
        lambda: lake.archived.cleanup(),
        lambda: lake.cleanup(),
    ]
    for call in calls:
        with pytest.raises(LakelogError, match=r"newer lakelog wrote the table.*upgrade") as caught:
            call()
        assert isinstance(caught.value, (NewerVersionError, CleanupFailedError))
    assert str(path) in str(caught.value)
    assert files_below(cold) == there
    seen = lake.archived.status()
    assert [type(one.error) for one in seen.failures] == [NewerVersionError]


def test_a_table_with_a_setting_that_is_not_known_is_left_as_it_is(
    lake: Lakelog, tmp_path: Path
) -> None:
    topic = lake.topics.get("orders")
    layers = json.loads(topic.config.to_json())
    layers["overrides"]["tomorrow.ms"] = "5"
    future_table(lake, tmp_path / "cold", {"lakelog.topic.config": json.dumps(layers)})
    there = files_below(tmp_path / "cold")

    with pytest.raises(CleanupFailedError, match=r"a setting tomorrow\.ms.*upgrade"):
        lake.archived.cleanup()
    with pytest.raises(NewerVersionError, match=r"a setting tomorrow\.ms"):
        TopicConfig.from_json(json.dumps(layers))
    assert files_below(tmp_path / "cold") == there


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("orders", {"format": FORMAT_VERSION + 1}),
        ("orders", {"config": {"tomorrow.ms": "5"}}),
        ("#defaults", {"format": FORMAT_VERSION + 1, "settings": {}, "version": 1}),
        ("#defaults", {"settings": {"log.tomorrow.ms": "5"}, "version": 1}),
    ],
)
def test_a_definition_of_a_newer_lakelog_is_left_as_it_is(
    lake: Lakelog, redis_client: redis.Redis, field: str, change: dict[str, object]
) -> None:
    definition = json.loads(redis_client.hget("lakelog:topics", field) or b"{}")
    text = json.dumps({**definition, **change}).encode()
    redis_client.hset("lakelog:topics", field, text)
    calls: list[Callable[[], object]] = [
        lambda: lake.topics.get("orders"),
        lambda: lake.topics.list(),
        lambda: lake.topics.alter("orders", {"retention.ms": 2}),
        lambda: lake.topics.delete("orders"),
        lambda: lake.topics.set_defaults({"log.retention.hours": 5}),
        lambda: lake.archive(),
        lambda: lake.cleanup(),
    ]
    for call in calls:
        with pytest.raises(NewerVersionError, match="upgrade"):
            call()
    assert redis_client.hget("lakelog:topics", field) == text
    assert redis_client.xlen("lakelog:stream:orders:0") > 0


def test_what_this_lakelog_writes_says_its_format(
    lake: Lakelog, redis_client: redis.Redis, tmp_path: Path
) -> None:
    lake.topics.set_defaults({"log.retention.hours": 5})
    path = future_table(lake, tmp_path / "cold", {})
    assert DeltaTable(path).metadata().configuration["lakelog.format"] == "1"
    for field in ("orders", "#defaults"):
        assert json.loads(redis_client.hget("lakelog:topics", field) or b"")["format"] == 1


def test_a_topic_with_entries_that_older_ones_cannot_read_says_so_as_long_as_it_has_them(
    lake: Lakelog, redis_client: redis.Redis
) -> None:
    for entry_format, expected in (("kafka", 3), ("arrow", 1)):
        lake.topics.alter("orders", {"lakelog.entry.format": entry_format})
        definition = json.loads(redis_client.hget("lakelog:topics", "orders") or b"")
        assert definition["format"] == expected
    with lake.producer() as producer:
        lake.topics.alter("orders", {"lakelog.entry.format": "kafka"})
        producer.send("orders", b"v", partition=0).result()
    (((_, fields),)) = redis_client.xrevrange("lakelog:stream:orders:0", count=1)
    assert [*fields][:2] == [b"__v", b"k"]
    assert fields[b"__v"] == b"3"


@pytest.mark.parametrize("found", [None, 1, "1", "0", 2, "2", 3, "3"])
def test_formats_that_are_known(found: object) -> None:
    check_format(found, "it")


@pytest.mark.parametrize("found", [4, "4", "", "one", "-1", "1.5", "١٠"])
def test_formats_that_are_not(found: object) -> None:
    with pytest.raises(NewerVersionError, match="a newer lakelog wrote it: there is format"):
        check_format(found, "it")
