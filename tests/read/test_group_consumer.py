"""Consumers in a group: they share partitions, commit, and go on where the group has come."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import kafka
import pytest
import redis
from kafka.coordinator.assignors.range import RangePartitionAssignor
from shared_topics import GROUP, SharedTopics, of, read, settled, together

from lakelog import Lakelog, TopicPartition
from lakelog.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    InvalidArgumentError,
    NoOffsetForPartitionError,
    OffsetMetadataTooLargeError,
    UnknownTopicOrPartitionError,
)
from lakelog.groups.group_values import Leaving
from lakelog.groups.membership import MemberState
from lakelog.read.consumer import Consumer
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.read.group_offsets import GroupOffsets
from lakelog.read.subscription import ConsumerRebalanceListener
from lakelog.testing.eventually import eventually
from lakelog.values.record import OffsetAndMetadata

TP = TopicPartition("orders", 0)
ALL = of("orders", 0, 1, 2, 3)
COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}
BOTH = pytest.mark.parametrize("way", [{}, COOPERATIVE], ids=["eager", "cooperative"])


@pytest.fixture
def make_shared(tmp_path: Path) -> Iterator[Callable[..., SharedTopics]]:
    made: list[SharedTopics] = []

    def make(url: str, **settings: int) -> SharedTopics:
        made.append(SharedTopics(Lakelog.connect(url), **settings))
        return made[-1]

    yield make
    for shared in made:
        shared.close()
        shared.lake.close()


@pytest.fixture
def shared(redis_url: str, make_shared: Callable[..., SharedTopics]) -> SharedTopics:
    found = make_shared(redis_url)
    found.topic()
    return found


class Told(ConsumerRebalanceListener):
    """What a listener was told, and what it does then."""

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []
        self.act = act

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.calls.append(("revoked", revoked))
        self.act()

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.calls.append(("assigned", assigned))

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self.calls.append(("lost", lost))


# -- sharing -----------------------------------------------------------------------------------


@BOTH
def test_nothing_is_read_twice_when_a_member_comes_or_goes(
    shared: SharedTopics, way: dict[str, Any]
) -> None:
    """What was handed out is committed before its partition is another's."""
    shared.send(*[f"{n}" for n in range(40)])
    one = shared.consumer("orders", max_poll_records=3, **way)
    got = [together(one, until=lambda: one.assignment() == ALL)]
    other = shared.consumer("orders", max_poll_records=3, **way)
    got.append(together(one, other, until=settled(one, other)))
    one.close()
    got.append(together(other, until=lambda: shared_position(other) == 40))
    values = [
        record.value
        for part in got
        for by_partition in part.values()
        for records in by_partition.values()
        for record in records
    ]
    assert sorted(values, key=int) == [b"%d" % n for n in range(40)]


def shared_position(consumer: Consumer) -> int:
    return sum(consumer.position(tp) or 0 for tp in consumer.assignment())


def test_a_member_of_another_group_reads_all_again(shared: SharedTopics) -> None:
    shared.send("a", "b")
    one, other = shared.consumer("orders"), shared.consumer("orders", group_id="other")
    assert sorted(map(str, read(one, 2))) == sorted(map(str, read(other, 2)))
    assert one.assignment() == other.assignment() == ALL


def test_more_members_than_partitions(shared: SharedTopics) -> None:
    members = [shared.consumer("orders") for _ in range(5)]
    together(*members, until=lambda: sum(bool(one.assignment()) for one in members) == 4)
    (idle,) = [one for one in members if not one.assignment()]
    assert idle.poll(10) == {}
    next(one for one in members if one is not idle).close()
    rest = [one for one in members if one.group_metadata().state is MemberState.STABLE]
    together(*rest, until=lambda: idle.assignment())


def test_a_pattern_and_topics_that_come_grow_and_go(shared: SharedTopics) -> None:
    one, other = shared.consumer(), shared.consumer()
    for consumer in (one, other):
        consumer.subscribe(pattern="web-.*")
    together(one, other, until=lambda: one.group_metadata().state is MemberState.STABLE)
    shared.topic("web-a", 1)
    shared.topic("web-b", 3)
    together(one, other, until=settled(one, other, partitions=4))
    shared.lake.topics.add_partitions("web-a", 4)
    together(one, other, until=settled(one, other, partitions=7))
    shared.lake.topics.delete("web-b")
    together(one, other, until=settled(one, other, partitions=4))
    assert {tp.topic for tp in one.assignment() | other.assignment()} == {"web-a"}
    assert one.subscription() == {"web-a"}


def test_members_are_seen_from_outside(shared: SharedTopics) -> None:
    one = shared.consumer("orders", client_id="ada", group_instance_id="first")
    together(one, until=lambda: one.assignment() == ALL)
    (member,) = shared.lake.groups.describe(GROUP).members
    assert (member.client_id, member.instance_id) == ("ada", "first")
    assert member.client_host
    assert one.group_metadata() == (
        *(GROUP, 1, member.member_id, "first"),
        MemberState.STABLE,
    )


def test_by_kafka_pythons_assignor(shared: SharedTopics) -> None:
    one = shared.consumer("orders", partition_assignment_strategy=[RangePartitionAssignor])
    together(one, until=lambda: one.assignment() == ALL)
    assert shared.lake.groups.describe(GROUP).protocol_name == "range"


def test_a_member_that_waits_for_others_asks_seldom(
    shared: SharedTopics, redis_client: redis.Redis
) -> None:
    """It reads what it keeps meanwhile, and is woken when they have come."""
    calm = {**COOPERATIVE, "heartbeat_interval_ms": 1_000, "metadata_max_age_ms": 60_000}
    one, other = shared.consumer("orders", **calm), shared.consumer("orders", **calm)
    together(one, other, until=settled(one, other))
    third = shared.consumer("orders", **calm)
    together(one, third, until=lambda: one.group_metadata().state is MemberState.REBALANCING)
    one.poll(5)

    def asked() -> int:
        """What came over connections; a script's own commands are none of it."""
        stats = redis_client.info("commandstats")
        names = ("evalsha", "evalsha_ro", "xread")
        return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in names)

    before = asked()
    one.poll(1_000)  # the other one is not polled, and does not join again
    assert asked() - before < 40  # with the heartbeats of all three; every 20 ms were 100
    shared.send(*[f"{n}" for n in range(4)])
    assert one.poll(10_000)
    together(one, other, third, until=settled(one, other, third))


def test_a_consumer_that_waits_for_records_hears_of_the_others_at_once(
    shared: SharedTopics,
) -> None:
    one = shared.consumer("orders")
    together(one, until=lambda: one.assignment() == ALL)
    one.pause()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: [one.poll(100) for _ in range(100)] and one.assignment())
        other = shared.consumer("orders")
        eventually(lambda: other.poll(5) or other.assignment())
        assert len(waiting.result()) == len(other.assignment()) == 2


# -- where it goes on --------------------------------------------------------------------------


def test_the_next_consumer_goes_on_where_the_group_has_come(shared: SharedTopics) -> None:
    shared.send(*"abcd")
    with shared.consumer("orders") as first:
        assert sorted(map(bytes.decode, read(first, 4))) == list("abcd")  # type: ignore[arg-type]
    assert shared.committed() == {f"orders-{n}": 1 for n in range(4)}
    shared.send(*"efgh")
    second = shared.consumer("orders", auto_offset_reset="latest")
    assert sorted(map(bytes.decode, read(second, 4))) == list("efgh")  # type: ignore[arg-type]


def test_leaving_a_with_by_an_exception_commits_nothing(shared: SharedTopics) -> None:
    shared.send("a")
    consumer = shared.consumer("orders")

    def fails_after_one() -> None:
        with consumer:
            read(consumer, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails_after_one()
    assert shared.committed() == {}
    assert shared.lake.groups.describe(GROUP).members == ()


def test_without_auto_commit_only_commits_count(shared: SharedTopics) -> None:
    shared.send("a", "b", partition=0)
    with shared.consumer("orders", enable_auto_commit=False, max_poll_records=1) as consumer:
        read(consumer, 1)
        consumer.commit()
        read(consumer, 1)
    assert shared.committed()["orders-0"] == 1
    assert read(shared.consumer("orders"), 1) == [b"b"]


def test_positions_are_committed_while_it_is_polled(shared: SharedTopics) -> None:
    shared.send("a", partition=0)
    consumer = shared.consumer("orders", auto_commit_interval_ms=1)
    together(consumer, until=lambda: shared.committed().get("orders-0") == 1)


def test_iterating_commits_what_was_handed_out_and_no_more(shared: SharedTopics) -> None:
    shared.send(*"abc", partition=0)
    consumer = shared.consumer("orders", consumer_timeout_ms=60_000)
    for n, record in enumerate(consumer):
        assert record.offset == n
        if n == 1:
            break
    consumer.close()
    assert shared.committed()["orders-0"] == 2


def test_an_iteration_attends_between_its_records(shared: SharedTopics) -> None:
    """Another member gets its share while one works through what it has read ahead."""
    shared.send(*[f"{n}" for n in range(400)])
    one = shared.consumer("orders", consumer_timeout_ms=60_000, auto_commit_interval_ms=1)
    records = iter(one)
    next(records)
    other = shared.consumer("orders")

    def both_share() -> bool:
        next(records)
        other.poll()
        return bool(other.assignment())

    eventually(both_share)
    assert not one.assignment() & other.assignment()


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_a_commit_that_the_log_does_not_hold_goes_by_the_policy(
    shared: SharedTopics, policy: str
) -> None:
    shared.send(*"abc", partition=0)
    shared.coordinator.commit(GROUP, {TP: OffsetAndMetadata(99)})
    consumer = shared.consumer("orders", auto_offset_reset=policy)
    together(consumer, until=lambda: consumer.assignment() == ALL)
    assert consumer.position(TP) in (99, 0, 3)  # resolved by a poll
    expected = {"earliest": 3, "latest": 3}[policy]
    together(consumer, until=lambda: consumer.position(TP) == expected)


def test_without_a_policy_a_partition_needs_a_commit(shared: SharedTopics) -> None:
    shared.send(*"ab", partition=0)
    consumer = shared.consumer(auto_offset_reset="none")
    consumer.assign([TP])
    with pytest.raises(NoOffsetForPartitionError):
        consumer.poll()
    shared.coordinator.commit(GROUP, {TP: OffsetAndMetadata(1)})
    again = shared.consumer(auto_offset_reset="none")
    again.assign([TP])
    assert read(again, 1) == [b"b"]


def test_a_topic_that_is_made_again_does_not_take_the_old_commits(shared: SharedTopics) -> None:
    shared.send(*"abc", partition=0)
    with shared.consumer("orders") as consumer:
        read(consumer, 3)
    shared.lake.topics.delete("orders")
    shared.topic()
    shared.send("d", partition=0)
    again = shared.consumer("orders")
    together(again, until=lambda: again.assignment() == ALL)
    assert again.committed(TP) is None
    assert again.position(TP) in (0, 1)
    eventually(lambda: again.position(TP) == 1 or (again.poll() and False))


def test_a_topic_that_is_made_again_under_a_member_begins_anew(shared: SharedTopics) -> None:
    consumer = shared.consumer("orders", auto_commit_interval_ms=1)
    shared.send(*"abc", partition=0)
    assert read(consumer, 3) == [b"a", b"b", b"c"]
    shared.lake.topics.delete("orders")
    shared.topic()
    shared.send("d", partition=0)
    assert read(consumer, 1) == [b"d"]
    together(consumer, until=lambda: consumer.committed(TP) == 1)


def test_a_topic_that_was_lost_and_made_again_is_read_once(
    shared: SharedTopics, redis_client: redis.Redis
) -> None:
    consumer = shared.consumer("orders", enable_auto_commit=False)
    shared.send("a", partition=0)
    assert read(consumer, 1) == [b"a"]
    redis_client.flushall()
    shared.topic()

    def is_member_again() -> bool:
        groups = shared.lake.groups.list()
        return bool(groups and shared.lake.groups.describe(GROUP).members and consumer.assignment())

    # Its group is lost, too: before it has joined anew, it may read what it reads again after that.
    together(consumer, until=is_member_again)
    shared.send("b", "c", partition=0)
    assert read(consumer, 2) == [b"b", b"c"]
    looked = []
    together(consumer, until=lambda: looked.append(consumer.poll(5)) or len(looked) == 20)
    assert not any(looked)
    assert consumer.position(TP) == 2


# -- commits -----------------------------------------------------------------------------------


def test_offsets_are_committed_with_their_texts(shared: SharedTopics) -> None:
    consumer = shared.consumer()
    consumer.commit({TP: OffsetAndMetadata(2, "half")})
    assert consumer.committed(TP) == 2
    assert consumer.committed(TP, metadata=True) == OffsetAndMetadata(2, "half")
    consumer.commit({("orders", 0): kafka.OffsetAndMetadata(3, None, -1)})  # type: ignore[dict-item]
    assert consumer.committed(TP, metadata=True) == OffsetAndMetadata(3)
    assert consumer.committed(TopicPartition("orders", 1)) is None


@pytest.mark.parametrize("partition", [TopicPartition("none", 0), TopicPartition("orders", 99)])
def test_of_a_partition_that_there_is_not_nothing_is_committed(
    shared: SharedTopics, partition: TopicPartition
) -> None:
    consumer = shared.consumer()
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.commit({TP: OffsetAndMetadata(2), partition: OffsetAndMetadata(3)})
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.commit_async({partition: OffsetAndMetadata(3)})
    assert shared.committed() == {}


def test_what_is_assigned_by_hand_is_committed_without_a_member(shared: SharedTopics) -> None:
    shared.send(*"ab", partition=0)
    with shared.consumer() as consumer:
        consumer.assign([TP])
        assert read(consumer, 2) == [b"a", b"b"]
        assert shared.lake.groups.describe(GROUP).members == ()
    assert shared.committed() == {"orders-0": 2}


def test_assigning_anew_commits_what_was_read(shared: SharedTopics) -> None:
    shared.send("a", partition=0)
    consumer = shared.consumer()
    consumer.assign([TP])
    read(consumer, 1)
    consumer.assign([TopicPartition("orders", 1)])
    assert shared.committed() == {"orders-0": 1}


def test_commits_in_the_background_keep_their_order_and_tell(shared: SharedTopics) -> None:
    consumer = shared.consumer(enable_auto_commit=False)
    told: list[Any] = []
    for offset in range(1, 20):
        future = consumer.commit_async(
            {TP: OffsetAndMetadata(offset)}, lambda offsets, error: told.append((offsets, error))
        )
    assert future.result() is None
    consumer.commit({TP: OffsetAndMetadata(20)})
    assert told == [({TP: OffsetAndMetadata(offset)}, None) for offset in range(1, 20)]
    assert shared.committed() == {"orders-0": 20}


def test_a_commit_in_the_background_is_of_the_generation_in_which_it_was_asked_for(
    shared: SharedTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it could undo what a partition's next member has committed, or come too late for it."""
    one = shared.consumer("orders", enable_auto_commit=False, **COOPERATIVE)
    together(one, until=lambda: one.assignment() == ALL)
    gate, commit = threading.Event(), GroupOffsets._commit

    def late(self: GroupOffsets, *given: Any) -> None:
        gate.wait()
        commit(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(GroupOffsets, "_commit", late)
        future = one.commit_async({tp: OffsetAndMetadata(1) for tp in ALL})
    other = shared.consumer("orders", enable_auto_commit=False, **COOPERATIVE)
    together(one, other, until=settled(one, other))
    gate.set()
    assert isinstance(future.exception(), CommitFailedError)
    assert shared.committed() == {}
    assert len(one.assignment()) == 2  # it is a member as before
    one.commit({tp: OffsetAndMetadata(1) for tp in one.assignment()})


def test_a_commit_in_the_background_that_is_refused(shared: SharedTopics) -> None:
    member, stranger = shared.consumer("orders"), shared.consumer(enable_auto_commit=False)
    together(member, until=lambda: member.assignment() == ALL)
    told: list[Any] = []
    future = stranger.commit_async({TP: OffsetAndMetadata(2)}, lambda *call: told.append(call))
    assert isinstance(future.exception(), CommitFailedError)
    stranger.close()
    ((_, error),) = told
    assert error is future.exception()


def test_a_member_that_lost_its_partitions_commits_nothing(shared: SharedTopics) -> None:
    told = Told()
    consumer = shared.consumer(enable_auto_commit=False, heartbeat_interval_ms=59_999)
    consumer.subscribe(["orders"], listener=told)
    together(consumer, until=lambda: consumer.assignment() == ALL)
    shared.coordinator.leave(GROUP, [Leaving(consumer.group_metadata().member_id)])
    with pytest.raises(CommitFailedError, match="max_poll_interval_ms"):
        consumer.commit({TP: OffsetAndMetadata(2)})
    assert consumer.assignment() == ALL  # until the next poll
    together(consumer, until=lambda: len(told.calls) == 3)
    assert told.calls == [("assigned", ALL), ("lost", ALL), ("assigned", ALL)]
    consumer.commit({TP: OffsetAndMetadata(2)})


def test_a_failing_auto_commit_stops_nobody(
    shared: SharedTopics, caplog: pytest.LogCaptureFixture
) -> None:
    shared.send("a", partition=0)
    member = shared.consumer("orders")
    together(member, until=lambda: member.assignment() == ALL)
    stranger = shared.consumer(auto_commit_interval_ms=0)
    stranger.assign([TP])
    assert read(stranger, 1) == [b"a"]
    stranger.poll()
    assert "orders-0 at 1) was not committed" in caplog.text


@pytest.mark.parametrize(
    "offsets",
    [5, {TP: 5}, {TP: None}, {TP: OffsetAndMetadata(-1)}, {TP: ()}, [TP]],
    ids=str,
)
def test_what_are_no_offsets(shared: SharedTopics, offsets: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        shared.consumer().commit(offsets)
    assert shared.committed() == {}


def test_a_text_that_is_too_long(shared: SharedTopics) -> None:
    with pytest.raises(OffsetMetadataTooLargeError):
        shared.consumer().commit({TP: OffsetAndMetadata(1, "x" * 5_000)})


def test_without_a_group_there_is_nothing_to_commit(shared: SharedTopics) -> None:
    consumer = shared.consumer(group_id=None)
    consumer.assign([TP])
    calls: list[Callable[[], object]] = [
        consumer.commit,
        consumer.commit_async,
        lambda: consumer.committed(TP),
    ]
    for call in calls:
        with pytest.raises(InvalidArgumentError, match="group_id"):
            call()


# -- listeners ---------------------------------------------------------------------------------


def test_a_listener_may_commit_what_goes(shared: SharedTopics) -> None:
    shared.send("a", partition=0)
    consumer = shared.consumer(enable_auto_commit=False)
    told = Told(consumer.commit)
    consumer.subscribe(["orders"], listener=told)
    read(consumer, 1)
    consumer.close()
    assert told.calls == [("assigned", ALL), ("revoked", ALL)]
    assert shared.committed()["orders-0"] == 1


def test_a_listener_may_seek(shared: SharedTopics) -> None:
    shared.send(*"abc", partition=0)

    class Seeks(Told):
        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            consumer.seek(TP, 2)

    consumer = shared.consumer()
    consumer.subscribe(["orders"], listener=Seeks())
    assert read(consumer, 1) == [b"c"]


def test_a_listener_of_kafka_python_serves(shared: SharedTopics) -> None:
    calls: list[str] = []

    class Theirs(kafka.ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, revoked: Any) -> None:
            calls.append("revoked")

        def on_partitions_assigned(self, assigned: Any) -> None:
            calls.append("assigned")

    consumer = shared.consumer()
    consumer.subscribe(["orders"], listener=Theirs())
    together(consumer, until=lambda: consumer.assignment() == ALL)
    consumer.close()
    assert calls == ["assigned", "revoked"]


# -- members that go ---------------------------------------------------------------------------


def test_of_two_consumers_with_one_instance_id_the_first_ends(shared: SharedTopics) -> None:
    one = shared.consumer("orders", group_instance_id="one")
    together(one, until=lambda: one.assignment() == ALL)
    other = shared.consumer("orders", group_instance_id="one")
    together(other, until=lambda: other.assignment() == ALL)
    with pytest.raises(FencedInstanceIdError, match="one group_instance_id"):
        eventually(lambda: one.poll(5))
    assert one.assignment() == set()
    one.close()
    assert other.poll() == {}


def test_a_static_member_that_was_closed_comes_back_to_its_share(shared: SharedTopics) -> None:
    names = {"one": shared.consumer("orders", group_instance_id="one")}
    names["other"] = shared.consumer("orders", group_instance_id="other")
    together(*names.values(), until=settled(*names.values()))
    before, generation_id = names["one"].assignment(), names["one"].group_metadata()[1]
    names["one"].close()
    again = shared.consumer("orders", group_instance_id="one")
    together(again, until=lambda: again.assignment() == before)
    assert again.group_metadata().generation_id == generation_id


# -- settings and names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"auto_offset_reset": "newest"},
        {"auto_offset_reset": None},
        {"max_poll_records": 0},
        {"consumer_timeout_ms": -1},
        {"isolation_level": "read_committed"},
        {"metadata_max_age_ms": 0},
        {"value_deserializer": "json"},
        {"bootstrap_servers": "localhost"},
        {"fetch_max_bytes": -1},
        {"group_instance_id": "a b"},
        {"client_id": 5},
        {"enable_auto_commit": "yes"},
        {"auto_commit_interval_ms": -1},
        {"session_timeout_ms": 0},
        {"heartbeat_interval_ms": 60_000},
        {"max_poll_interval_ms": 0},
        {"partition_assignment_strategy": "best"},
        {"partition_assignment_strategy": []},
        {"group_id": 5},
    ],
    ids=str,
)
def test_a_setting_that_is_not_legal_is_named(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(InvalidArgumentError) as refused:  # those of settings are of this class, too
        ConsumerConfig.of(**settings)
    assert name in refused.value.message or name == "group_id"


def test_the_archive_alone_has_no_groups(redis_url: str, tmp_path: Path) -> None:
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1, {"retention.ms": -1})
        with lake.producer() as producer:
            producer.send("orders", "a")
        lake.archive()
        archived = Lakelog.connect(None, tmp_path, engine="inline")
        with pytest.raises(InvalidArgumentError, match="groups lie in Redis"):
            archived.consumer("orders", group_id=GROUP)


def test_settings_have_the_names_and_defaults_of_kafka_python() -> None:
    theirs = kafka.KafkaConsumer.DEFAULT_CONFIG
    ours = ConsumerConfig()
    other = {
        "client_id",
        "metadata_max_age_ms",
        "consumer_timeout_ms",
        "partition_assignment_strategy",  # Kafka's own
    }
    names = set(ConsumerConfig.__struct_fields__) - {"stored_values"}  # lakelog's own
    assert names <= theirs.keys()
    assert {name: getattr(ours, name) for name in names - other} == {
        name: theirs[name] for name in names - other
    }


def test_calls_have_the_names_and_arguments_of_kafka_python() -> None:
    """But for those that speak of brokers, and `timeout_ms` where Redis has one of its own."""
    brokers = {"bootstrap", "bootstrap_connected", "metrics", "DEFAULT_CONFIG"}
    theirs = {
        name: call
        for name, call in vars(kafka.KafkaConsumer).items()
        if not name.startswith("_") and callable(call) and name not in brokers
    }
    for name, call in theirs.items():
        ours = inspect.signature(getattr(Consumer, name)).parameters
        for argument in inspect.signature(call).parameters:
            if argument not in ("timeout_ms", "update_offsets", "raw"):
                assert argument in ours or (name, argument) == ("pause", "partitions"), name


def test_a_lag_is_told_of_the_position(shared: SharedTopics) -> None:
    shared.send(*"abc", partition=0)
    consumer = shared.consumer("orders", max_poll_records=1)
    together(consumer, until=lambda: consumer.position(TP) == 1 if consumer.assignment() else 0)
    assert consumer.lag(TP).records.records == 2
    assert consumer.highwater(TP) == 3
    with pytest.raises(InvalidArgumentError):
        consumer.lag(TopicPartition("old", 0))
