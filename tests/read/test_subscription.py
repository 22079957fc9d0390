"""A consumer that is subscribed: it follows topics as they are made, grow and go."""

from __future__ import annotations

import json
from functools import partial
from itertools import islice

import pytest

from lakelog import Lakelog
from lakelog.codec import ProducedBatch, encode
from lakelog.errors import (
    InvalidArgumentError,
    InvalidTopicError,
    RecordDeserializationError,
)
from lakelog.hot.append import AppendCall
from lakelog.read.subscription import ConsumerRebalanceListener
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch
from lakelog.values.topic_partition import TopicPartition

SOON = {"metadata_max_age_ms": 1, "auto_offset_reset": "earliest"}
UNTIERED = {"remote.storage.enable": False, "retention.ms": -1}


class Told(ConsumerRebalanceListener):
    """What a listener was told, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []

    def on_partitions_revoked(self, revoked):
        self.calls.append(("revoked", set(revoked)))

    def on_partitions_assigned(self, assigned):
        self.calls.append(("assigned", set(assigned)))


@pytest.fixture
def make_topic(bench):
    """``make_topic(name, partitions=1)``: another topic of the bench's Redis."""
    return lambda name, partitions=1: bench.hot.topics().create(name, partitions, UNTIERED)


def append(bench, topic, values, partition=0):
    rows = [(1_700_000_000_000, b"k", value, ()) for value in values]
    entries = encode(produced_batch(rows), EntryFormat.ARROW, Compression.NONE)
    batch = ProducedBatch(entries, next(bench._producer_ids), 0, 0, len(rows) - 1)
    bench.hot.append_all([AppendCall(topic.partition(partition), topic.topic_id, batch)])


def values(consumer, at_least=1):
    """What comes until there are so many, by topic and partition."""
    found = {}
    while sum(map(len, found.values())) < at_least:
        for tp, records in consumer.poll(60_000).items():
            found.setdefault(tp, []).extend(record.value for record in records)
    return found


def numbers(topic, *partitions):
    return {TopicPartition(topic, partition) for partition in partitions}


# -- by name -------------------------------------------------------------------------------------


def test_all_partitions_of_the_topics_are_read(bench, make_topic):
    one, two = make_topic("one", 2), make_topic("two")
    append(bench, one, [b"a"], 0)
    append(bench, one, [b"b"], 1)
    append(bench, two, [b"c"])
    make_topic("three")
    consumer = bench.consumer(**SOON)
    consumer.subscribe(["one", "two"])
    assert consumer.assignment() == set()  # until it is polled
    assert values(consumer, 3) == {("one", 0): [b"a"], ("one", 1): [b"b"], ("two", 0): [b"c"]}
    assert consumer.assignment() == numbers("one", 0, 1) | numbers("two", 0)
    assert consumer.subscription() == {"one", "two"}


def test_a_topic_that_is_not_there_yet_is_waited_for(bench, make_topic):
    consumer = bench.consumer(**SOON)
    consumer.subscribe(["later"])
    assert consumer.poll() == {}
    append(bench, make_topic("later"), [b"a"])
    assert values(consumer) == {("later", 0): [b"a"]}


def test_partitions_that_are_added_are_read_and_the_others_go_on(bench, make_topic):
    topic = make_topic("growing")
    append(bench, topic, [b"a", b"b"])
    consumer = bench.consumer(**SOON)
    consumer.subscribe(["growing"])
    assert values(consumer, 2) == {("growing", 0): [b"a", b"b"]}
    topic = bench.hot.topics().add_partitions("growing", 3)
    append(bench, topic, [b"c"], 2)
    append(bench, topic, [b"d"], 0)
    assert values(consumer, 2) == {("growing", 0): [b"d"], ("growing", 2): [b"c"]}


def test_a_deleted_topic_leaves_and_the_others_are_read_on(bench, make_topic):
    gone, stays = make_topic("gone"), make_topic("stays")
    told = Told()
    consumer = bench.consumer(**SOON)
    consumer.subscribe(["gone", "stays"], listener=told)
    append(bench, gone, [b"a"])
    assert values(consumer) == {("gone", 0): [b"a"]}
    bench.hot.topics().delete("gone")
    append(bench, stays, [b"b"])
    assert values(consumer) == {("stays", 0): [b"b"]}
    while consumer.assignment() != numbers("stays", 0):
        consumer.poll(1)
    assert told.calls == [
        ("assigned", numbers("gone", 0) | numbers("stays", 0)),
        ("revoked", numbers("gone", 0)),
    ]


def test_a_topic_that_is_made_again_begins_anew(bench, make_topic):
    append(bench, make_topic("again"), [b"old"] * 3)
    told = Told()
    consumer = bench.consumer(**SOON)
    consumer.subscribe(["again"], listener=told)
    assert values(consumer, 3) == {("again", 0): [b"old"] * 3}
    bench.hot.topics().delete("again")
    append(bench, make_topic("again"), [b"new"])
    assert values(consumer) == {("again", 0): [b"new"]}
    both = [("revoked", numbers("again", 0)), ("assigned", numbers("again", 0))]
    assert told.calls == [both[1], *both]


# -- by pattern ----------------------------------------------------------------------------------


def test_a_pattern_finds_topics_as_they_come(bench, make_topic):
    make_topic("other")
    append(bench, make_topic("web-1"), [b"a"])
    consumer = bench.consumer(**SOON)
    consumer.subscribe(pattern="web-")
    assert values(consumer) == {("web-1", 0): [b"a"]}
    assert consumer.subscription() == {"web-1"}
    append(bench, make_topic("web-2"), [b"b"])
    assert values(consumer) == {("web-2", 0): [b"b"]}
    assert consumer.subscription() == {"web-1", "web-2"}


# -- one or the other ----------------------------------------------------------------------------


def test_another_subscription_keeps_what_both_name(bench, make_topic):
    kept = make_topic("kept")
    make_topic("left")
    append(bench, kept, [b"a", b"b", b"c"])
    told = Told()
    consumer = bench.consumer(**SOON)
    consumer.subscribe(["kept", "left"])
    assert [record.value for record in consumer.poll(max_records=2)["kept", 0]] == [b"a", b"b"]
    consumer.subscribe(["kept"], listener=told)
    assert values(consumer) == {("kept", 0): [b"c"]}
    assert told.calls == [("revoked", numbers("left", 0))]


def test_unsubscribe_and_close_tell_the_listener(bench, make_topic):
    make_topic("one")
    for end in ("unsubscribe", "close"):
        told = Told()
        consumer = bench.consumer(**SOON)
        consumer.subscribe(["one"], listener=told)
        consumer.poll()
        getattr(consumer, end)()
        assert told.calls == [("assigned", numbers("one", 0)), ("revoked", numbers("one", 0))]
        assert consumer.subscription() is None
        assert consumer.assignment() == set()
        with pytest.raises(InvalidArgumentError, match="nothing is to be read"):
            consumer.poll()


def test_what_is_assigned_is_not_subscribed_to(bench, make_topic):
    topic = make_topic("one")
    consumer = bench.consumer(**SOON)
    consumer.subscribe(["one"])
    with pytest.raises(InvalidArgumentError, match=r"subscribed to topics one.*unsubscribe"):
        consumer.assign([topic.partition(0)])
    consumer.unsubscribe()
    consumer.assign([topic.partition(0)])
    with pytest.raises(InvalidArgumentError, match=r"one-0.*unsubscribe"):
        consumer.subscribe(["one"])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InvalidArgumentError),
        ({"topics": [], "pattern": ""}, InvalidArgumentError),
        ({"topics": ["a"], "pattern": "a"}, InvalidArgumentError),
        ({"topics": "flights"}, InvalidArgumentError),
        ({"topics": ["a/b"]}, InvalidTopicError),
        ({"pattern": "("}, InvalidArgumentError),
        ({"pattern": b"a"}, InvalidArgumentError),
        ({"pattern": 5}, InvalidArgumentError),
        ({"topics": ["a"], "listener": object()}, InvalidArgumentError),
    ],
)
def test_a_subscription_that_is_none_is_refused(bench, arguments, error):
    consumer = bench.consumer(**SOON)
    with pytest.raises(error):
        consumer.subscribe(**arguments)
    assert consumer.subscription() is None


def test_the_topics_there_are(bench, make_topic):
    make_topic("one", 3)
    consumer = bench.consumer()
    assert {"one", bench.topic.name} <= consumer.topics()
    assert consumer.partitions_for_topic("one") == {0, 1, 2}
    assert consumer.partitions_for_topic("unknown") is None


# -- settings ------------------------------------------------------------------------------------


class ByTopic:
    """As kafka-python's deserializers."""

    def deserialize(self, topic, headers, data):
        return topic, headers, data


def test_keys_and_values_are_made_objects_of(bench, make_topic):
    topic = make_topic("one")
    append(bench, topic, [b'{"a": 1}', None, b"2"])
    settings = {**SOON, "value_deserializer": json.loads, "key_deserializer": ByTopic()}
    for take in (
        lambda consumer: consumer.poll()["one", 0],
        lambda consumer: list(islice(consumer, 3)),
    ):
        consumer = bench.consumer(**settings)
        consumer.subscribe(["one"])
        records = take(consumer)
        assert [record.value for record in records] == [{"a": 1}, None, 2]
        assert {record.key for record in records} == {("one", (), b"k")}


def test_what_cannot_be_read_comes_again_until_it_is_passed_over(bench, make_topic):
    topic = make_topic("one")
    append(bench, topic, [b"1", b"2", b"x", b"4"])
    tp = topic.partition(0)
    consumer = bench.consumer(**SOON, value_deserializer=json.loads)
    consumer.subscribe(["one"])
    assert [record.value for record in consumer.poll()[tp]] == [1, 2]
    for _ in range(2):
        with pytest.raises(RecordDeserializationError) as failed:
            consumer.poll()
        assert (failed.value.topic_partition, failed.value.offset) == (tp, 2)
        assert isinstance(failed.value.__cause__, json.JSONDecodeError)
        assert consumer.position(tp) == 2
    consumer.seek(tp, 3)
    assert [record.value for record in consumer.poll()[tp]] == [4]
    consumer.seek(tp, 1)
    records = iter(consumer)
    assert next(records).value == 2
    with pytest.raises(RecordDeserializationError):
        next(records)
    assert consumer.position(tp) == 2


def test_a_list_in_the_place_of_a_name_is_told(tmp_path, redis_url):
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1, {"retention.ms": -1})
        for consumer in (
            partial(lake.consumer, ["orders"]),
            partial(lake.share_consumer, ["orders"], group_id="workers"),
        ):
            with pytest.raises(InvalidArgumentError, match="give names one by one"):
                consumer()
