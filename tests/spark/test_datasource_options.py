"""The options a reader takes, by the Kafka source's names, and what it refuses."""

from __future__ import annotations

import json

import pytest

from lakelog.errors import InvalidArgumentError
from lakelog.hot.hot_log import HotSource
from lakelog.place import LogPlace
from lakelog.spark.options import check, parse, parse_write
from lakelog.spark.trigger_limits import TriggerLimits
from lakelog.values.offsets import Ago, AtOffset, AtTimestamp, Earliest, Latest
from lakelog.values.topic_partition import TopicPartition

WHERE = {"redis": "redis://localhost:6379", "subscribe": "orders"}
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def batch(**options: str):
    return parse({**WHERE, **options}, streaming=False)


def stream(**options: str):
    return parse({**WHERE, **options}, streaming=True)


def test_what_is_not_said_is_as_in_the_kafka_source() -> None:
    read = batch()
    assert (read.starting.everywhere, read.ending.everywhere) == (Earliest(), Latest())
    assert stream().starting.everywhere == Latest()
    assert (read.fail_on_data_loss, read.include_headers, read.min_partitions) == (True, False, 1)
    assert read.place == LogPlace(HotSource("redis://localhost:6379"))
    assert read.back_off.within_s == stream().back_off.within_s == 120
    assert batch(**{"kafkaConsumer.pollTimeoutMs": "512"}).back_off.within_s == 0.512


@pytest.mark.parametrize("name", ["provider", "path", "location", "owner", "comment", "external"])
def test_what_spark_adds_to_the_options_of_a_view_says_nothing(name: str) -> None:
    for spelt in (name, name.upper(), f"option.{name}"):
        assert batch(**{spelt: "lakelog"}) == batch()
        assert stream(**{spelt: "lakelog"}) == stream()
        check({**WHERE, spelt: "lakelog"})
        written = {"redis": WHERE["redis"], "topic": "orders"}
        assert parse_write({**written, spelt: "lakelog"}) == parse_write(written)


def test_names_are_told_apart_without_their_case() -> None:
    assert batch(INCLUDEHEADERS="True", minpartitions="7").min_partitions == 7


def test_offsets_are_json_positions_or_names() -> None:
    starts = batch(startingOffsets='{"orders": {"0": 23, "1": -2}}').starting
    assert starts.of([ORDERS_0, ORDERS_1]) == {ORDERS_0: AtOffset(23), ORDERS_1: Earliest()}
    assert stream(startingOffsets='{"orders": {"0": -1}}').starting.each == {ORDERS_0: Latest()}
    assert stream(startingOffsets="EARLIEST").starting.everywhere == Earliest()
    assert isinstance(batch(startingOffsets="10 minutes ago").starting.everywhere, Ago)
    assert batch(startingOffsets="250").starting.everywhere == AtOffset(250)


def test_a_timestamp_comes_before_timestamps_and_those_before_offsets() -> None:
    offsets = {"startingOffsets": "latest", "endingOffsets": "5"}
    each = {"startingOffsetsByTimestamp": '{"orders": {"0": 1000}}'}
    every = {"startingTimestamp": "2000", "endingTimestamp": "1970-01-01T00:00:03Z"}
    assert batch(**offsets, **each).starting.each == {ORDERS_0: AtTimestamp(1000)}
    read = batch(**offsets, **each, **every)
    assert read.starting.everywhere == AtTimestamp(2000)
    assert read.ending.everywhere == AtTimestamp(3000)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"subscribTo": "x"}, "no option 'subscribTo'; did you mean subscribe"),
        ({"frobnicate": "x"}, "no option 'frobnicate'; legal: redis, passwordRef"),
        ({"kafka.bootstrap.servers": "x"}, "say where the log is with 'redis' and 'cold'"),
        ({"assign": '{"orders": [0]}'}, "assign and subscribe contradict each other"),
        ({"subscribe": " , "}, "names no topic"),
        ({"subscribe": "a b"}, "'a b' is not a legal topic name"),
        ({"redis": "redis://:secret@localhost"}, "passwordRef=env:NAME"),
        ({"redis": "redis://localhost?password=secret"}, "passwordRef=env:NAME"),
        ({"startingOffsets": "{"}, "is no JSON"),
        ({"startingOffsets": '{"orders": [1]}'}, "should be JSON such as"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "-3 is no offset"),
        ({"startingOffsets": '{"orders": {"x": 3}}'}, "'x' is no partition"),
        ({"startingOffsets": "latest"}, "cannot be latest"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "cannot be latest"),
        ({"startingOffsets": "soon"}, "'soon' is not a position"),
        ({"startingTimestamp": "2013-01-01T00:00:00"}, "has no time zone"),
        ({"startingOffsetsByTimestamp": '{"orders": {"0": -2}}'}, "has a negative time"),
        ({"startingOffsetsByTimestampStrategy": "none"}, "is not 'error' or 'latest'"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "cannot be earliest"),
        ({"maxOffsetsPerTrigger": "5"}, "is for streams"),
        ({"maxBytesPerTrigger": "5"}, "is for streams"),
        ({"minOffsetsPerTrigger": "5"}, "is for streams"),
        ({"maxTriggerDelay": "5s"}, "is for streams"),
        ({"minPartitions": "0"}, "minPartitions='0' is not a whole number from 1 on"),
        ({"minPartitions": "1e3"}, "is not a whole number"),
        ({"failOnDataLoss": "no"}, "is not true or false"),
        ({"kafkaConsumer.pollTimeoutMs": "5s"}, "is not a whole number from 1 on"),
        ({"readAsOfVersion": "x"}, "is not a whole number"),
    ],
)
def test_what_is_wrong_is_refused_by_name(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        batch(**options)
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)


def test_what_only_frames_set_is_not_proposed() -> None:
    for unknown in ("frobnicate", "readAsOfVersions"):
        with pytest.raises(InvalidArgumentError, match=f"no option '{unknown}'; ") as caught:
            batch(**{unknown: "1"})
        assert "readAsOfVersion" not in str(caught.value).replace(unknown, "")
    with pytest.raises(InvalidArgumentError, match="no option 'readAsOfVersion'"):
        parse_write({"redis": "redis://h", "readAsOfVersion": "1"})


def test_a_password_given_as_its_reference_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidArgumentError, match="write env:NAME") as caught:
        batch(passwordRef="hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_reference_that_executors_cannot_resolve_is_refused_with_what_they_can() -> None:
    refused = r"'databricks:prod/redis' would be .*NAME=\{\{secrets/SCOPE/KEY\}\}.*env:NAME"
    with pytest.raises(InvalidArgumentError, match=f"passwordRef={refused}"):
        batch(passwordRef="databricks:prod/redis")
    with pytest.raises(InvalidArgumentError, match=f"passwordRef={refused}"):
        parse_write({"redis": "redis://h", "passwordRef": "databricks:prod/redis"})
    store = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "databricks:prod/redis"}
    with pytest.raises(InvalidArgumentError, match=f"AWS_SECRET_ACCESS_KEY={refused}"):
        batch(cold="s3://bucket/log", storageOptions=json.dumps(store))
    of_a_driver = LogPlace(HotSource("redis://h", password_ref="databricks:prod/redis"))
    with pytest.raises(InvalidArgumentError, match=f"password_ref={refused}"):
        of_a_driver.options()


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} cannot be used with a stream"):
        stream(**{name: "5"})


def test_limits_of_micro_batches_are_written_as_for_kafka_s_source_and_delta_s() -> None:
    assert stream().limits == TriggerLimits()
    assert not stream(maxTriggerDelay="1m").limits  # says nothing by itself
    given = stream(
        maxOffsetsPerTrigger="20",
        maxBytesPerTrigger="64m",
        minOffsetsPerTrigger="20",
        maxTriggerDelay="90s",
    )
    assert given.limits == TriggerLimits(20, 64 * 1024**2, 20, 90_000)
    for text, size_bytes in (("1", 1), ("2kb", 2048), ("1G", 1024**3), (" 3 b ", 3)):
        assert stream(maxBytesPerTrigger=text).limits.max_bytes == size_bytes
    for text, delay_ms in (("1", 1), ("5ms", 5), ("2h", 7_200_000), ("1D", 86_400_000)):
        assert stream(maxTriggerDelay=text).limits.max_delay_ms == delay_ms


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"maxBytesPerTrigger": "64 boxes"}, "'64 boxes' is not bytes, such as 1000, 64m or 1g"),
        ({"maxBytesPerTrigger": "0"}, "'0' is not bytes"),
        ({"maxTriggerDelay": "-1s"}, "'-1s' is not a time, such as 500ms or 15m"),
        (
            {"minOffsetsPerTrigger": "6", "maxOffsetsPerTrigger": "5"},
            "minOffsetsPerTrigger=6 is more than maxOffsetsPerTrigger=5",
        ),
    ],
)
def test_limits_that_make_no_sense_are_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        stream(**options)
    assert sentence in str(caught.value)


def test_a_stream_is_not_read_as_of_a_version() -> None:
    with pytest.raises(InvalidArgumentError, match="readAsOfVersion is for batches"):
        stream(readAsOfVersion="3")


def test_no_topics_and_no_redis_are_refused_at_once() -> None:
    with pytest.raises(InvalidArgumentError, match="none is given"):
        check({"redis": "redis://localhost"})
    with pytest.raises(InvalidArgumentError, match="the option 'redis' is missing"):
        check({"subscribe": "orders"})
    with pytest.raises(InvalidArgumentError, match="is no regular expression"):
        check({"redis": "redis://localhost", "subscribePattern": "("})
    for assign in ("[]", "{}", '{"orders": []}', '{"orders": ["0"]}', '{"orders": [-1]}', "x"):
        with pytest.raises(InvalidArgumentError, match="should be JSON such as"):
            check({"redis": "redis://localhost", "assign": assign})


def test_offsets_one_by_one_name_each_partition_that_is_read() -> None:
    starts = batch(startingOffsets='{"orders": {"0": 23, "7": 1}}').starting
    with pytest.raises(InvalidArgumentError, match=r"lacks orders-1 and names orders-7"):
        starts.of([ORDERS_0, ORDERS_1])


def test_a_place_and_its_options_say_the_same(tmp_path) -> None:
    source = HotSource("redis://ada@localhost", "shop", "env:PASSWORD")
    for cold in ({}, {"cold": str(tmp_path)}):
        read = parse(
            {
                "redis": source.url,
                "keyspace": "shop",
                "passwordRef": "env:PASSWORD",
                "subscribe": "orders",
                **cold,
            },
            streaming=True,
        )
        again = parse({**read.place.options(), "subscribe": "orders"}, streaming=True)
        assert again.place == read.place
        assert read.place.hot == source


def test_a_tenant_has_a_keyspace_and_a_root_of_its_own(tmp_path) -> None:
    place = batch(tenant="acme", cold=str(tmp_path), keyspace="shop").place
    assert place == LogPlace.of("redis://localhost:6379", str(tmp_path), keyspace="shop").of_tenant(
        "acme"
    )
    assert place.options() == {
        "redis": "redis://localhost:6379",
        "keyspace": "shop.acme",
        "cold": str(tmp_path / "acme"),
    }
    written = {"redis": WHERE["redis"], "cold": str(tmp_path), "keyspace": "shop", "tenant": "acme"}
    assert parse_write({**written, "topic": "orders"}).place == place
    with pytest.raises(InvalidArgumentError, match="not a legal name of a tenant"):
        batch(tenant="Acme")
    with pytest.raises(InvalidArgumentError, match="a tenant has another"):
        batch(tenant="acme", cold="main.logs", tablesAt="/tables")
