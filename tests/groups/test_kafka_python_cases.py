"""What kafka-python's own tests say of a consumer's behaviour, asked of lakelog's.

The facts are those of its tests of consumers, subscriptions and coordinators (``test/integration``
and ``test/consumer``, at 3.0); what those say of its internals and of brokers is left out. Where
lakelog answers otherwise, the case says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lakelog import Lakelog, TopicPartition
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.group_values import Leaving
from lakelog.read.consumer import Consumer
from lakelog.read.subscription import ConsumerRebalanceListener
from lakelog.testing.eventually import eventually

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}
BOTH = pytest.mark.parametrize("way", [{}, COOPERATIVE], ids=["eager", "cooperative"])
MEMBER = {"group_id": "nightly", "auto_offset_reset": "earliest", "heartbeat_interval_ms": 50}


@pytest.fixture
def lake(redis_url: str) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, engine="inline") as lake:
        lake.topics.set_defaults({"group.initial.rebalance.delay.ms": 0})
        lake.topics.create("orders", 4, {"remote.storage.enable": False, "retention.ms": -1})
        yield lake


@pytest.fixture
def consumer_of(lake: Lakelog) -> Iterator[Callable[..., Consumer]]:
    made: list[Consumer] = []

    def make(*topics: str, **settings: Any) -> Consumer:
        made.append(lake.consumer(*topics, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close(autocommit=False)


def send(lake: Lakelog, values: range, partition: int = 0) -> None:
    with lake.producer() as producer:
        for value in values:
            producer.send("orders", str(value), partition=partition)


class Told(ConsumerRebalanceListener):
    """What a listener was told, and what it raises of one of the calls."""

    def __init__(self, raises: str = "") -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []
        self._raises = raises

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._called("revoked", revoked)

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._called("assigned", assigned)

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        self._called("lost", lost)

    def _called(self, name: str, partitions: set[TopicPartition]) -> None:
        self.calls.append((name, set(partitions)))
        if name == self._raises:
            raise RuntimeError(f"the listener's own, of {name}")

    def of(self, name: str) -> list[set[TopicPartition]]:
        return [partitions for called, partitions in self.calls if called == name and partitions]


def joined(*consumers: Consumer) -> None:
    """Polls all in turn until they have shared out the four partitions."""

    def is_shared_out() -> bool:
        for one in consumers:
            one.poll(5)
        held = [tp for one in consumers for tp in one.assignment()]
        return all(one.assignment() for one in consumers) and len(held) == len(set(held)) == 4

    eventually(is_shared_out)


# -- a consumer by itself ------------------------------------------------------------------------


def test_a_subscription_is_a_copy(consumer_of: Callable[..., Consumer]) -> None:
    consumer = consumer_of("orders")
    seen = consumer.subscription()
    assert seen == {"orders"}
    seen.add("more")
    assert consumer.subscription() == {"orders"}


def test_who_it_is_in_its_group(consumer_of: Callable[..., Consumer]) -> None:
    alone = consumer_of().group_metadata()
    assert (alone.group_id, alone.generation_id, alone.member_id) == (None, -1, "")
    consumer = consumer_of("orders", **MEMBER)
    before = consumer.group_metadata()
    assert (before.group_id, before.generation_id, before.member_id) == ("nightly", -1, "")
    joined(consumer)
    now = consumer.group_metadata()
    assert now.generation_id > 0
    assert now.member_id


def test_next_gives_up_after_its_time_and_goes_on_afterwards(
    lake: Lakelog, consumer_of: Callable[..., Consumer]
) -> None:
    consumer = consumer_of(
        auto_offset_reset="earliest", enable_auto_commit=False, consumer_timeout_ms=50
    )
    consumer.assign([FIRST])
    with pytest.raises(StopIteration):
        next(consumer)
    send(lake, range(10))
    assert [next(consumer).value for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]
    assert [record.value for record in consumer] == [b"5", b"6", b"7", b"8", b"9"]
    with pytest.raises(StopIteration):
        next(consumer)


def test_a_small_fetch_max_bytes_starves_no_partition_and_holds_back_no_record(
    lake: Lakelog, consumer_of: Callable[..., Consumer]
) -> None:
    send(lake, range(100), 0)
    send(lake, range(100), 1)
    consumer = consumer_of("orders", auto_offset_reset="earliest", fetch_max_bytes=300)
    seen: set[TopicPartition] = set()

    def polled() -> bool:
        seen.update(consumer.poll(100))
        return seen >= {FIRST, SECOND}

    eventually(polled)
    one = consumer_of(
        "orders", **MEMBER, enable_auto_commit=False, consumer_timeout_ms=5000, fetch_max_bytes=1
    )
    assert len([next(one) for _ in range(10)]) == 10


# -- members -------------------------------------------------------------------------------------


@BOTH
def test_what_a_member_keeps_keeps_its_position_and_its_pause(
    way: dict[str, Any], lake: Lakelog, consumer_of: Callable[..., Consumer]
) -> None:
    """Of an eager one it does not here, as in Kafka's own client, which gives up all it had."""
    for partition in range(4):
        send(lake, range(10), partition)
    settings = MEMBER | way | {"enable_auto_commit": False}
    one = consumer_of("orders", **settings)
    joined(one)
    for partition in one.assignment():
        one.pause(partition)
        one.seek(partition, 7)
    other = consumer_of("orders", **settings)
    joined(one, other)
    kept = one.assignment()
    assert len(kept) == 2
    assert one.paused() == (kept if way else set())
    assert other.paused() == set()
    if way:
        assert {one.position(partition) for partition in kept} == {7}
    else:
        assert 7 not in {one.position(partition) for partition in kept}
    other.close()
    joined(one)  # what comes back begins anew
    assert one.paused() == (kept if way else set())


def test_another_subscription_keeps_the_assignment_until_the_next_round(
    lake: Lakelog, consumer_of: Callable[..., Consumer]
) -> None:
    lake.topics.create("clicks", 1, {"remote.storage.enable": False})
    consumer = consumer_of("orders", **MEMBER)
    joined(consumer)
    before = consumer.assignment()
    consumer.subscribe(["clicks"])
    assert consumer.subscription() == {"clicks"}
    assert consumer.assignment() == before

    def has_moved() -> bool:
        consumer.poll(5)
        return consumer.assignment() == {TopicPartition("clicks", 0)}

    eventually(has_moved)


def test_eager_members_give_up_all_and_cooperative_ones_what_moves(
    consumer_of: Callable[..., Consumer],
) -> None:
    for way, given_up in (({}, 4), (COOPERATIVE, 2)):
        told = Told()
        settings = MEMBER | way | {"group_id": f"group of {given_up}"}
        one = consumer_of(**settings)
        one.subscribe(["orders"], listener=told)
        joined(one)
        joined(one, consumer_of("orders", **settings))
        (revoked,) = told.of("revoked")
        assert len(revoked) == given_up
        assert told.of("lost") == []


def test_a_cooperative_round_that_moves_nothing_tells_no_listener(
    lake: Lakelog, consumer_of: Callable[..., Consumer]
) -> None:
    lake.topics.create("clicks", 1, {"remote.storage.enable": False})
    told = Told()
    one = consumer_of(**MEMBER | COOPERATIVE)
    one.subscribe(["orders"], listener=told)
    joined(one)
    before = len(told.calls)
    other = consumer_of("clicks", **MEMBER | COOPERATIVE)

    def is_over() -> bool:
        one.poll(5)
        other.poll(5)
        same = one.group_metadata().generation_id == other.group_metadata().generation_id
        return same and len(other.assignment()) == 1 and len(one.assignment()) == 4

    eventually(is_over)
    assert [call for call in told.calls[before:] if call[1]] == []


# -- listeners at the end ------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("autocommit", [True, False])
def test_closing_revokes_what_a_member_has(
    way: dict[str, Any], autocommit: bool, consumer_of: Callable[..., Consumer]
) -> None:
    told = Told()
    consumer = consumer_of(**MEMBER | way)
    consumer.subscribe(["orders"], listener=told)
    joined(consumer)
    had = consumer.assignment()
    consumer.close(autocommit=autocommit)
    assert told.of("revoked") == [had]
    assert told.of("lost") == []
    assert consumer.assignment() == set()


def test_closing_after_it_was_put_out_is_no_error(
    lake: Lakelog, consumer_of: Callable[..., Consumer]
) -> None:
    """The listener hears of a loss if the member knows of it by then, else of a revocation."""
    told = Told()
    consumer = consumer_of(**MEMBER)
    consumer.subscribe(["orders"], listener=told)
    joined(consumer)
    had = consumer.assignment()
    member = Leaving(consumer.group_metadata().member_id)
    GroupCoordinator(lake.hot.connections).leave("nightly", [member])
    consumer.close()
    assert told.of("lost") + told.of("revoked") == [had]


def test_closing_tells_nothing_of_what_was_assigned_by_hand_or_never_came(
    consumer_of: Callable[..., Consumer],
) -> None:
    told = Told()
    never = consumer_of(**MEMBER)
    never.subscribe(["orders"], listener=told)
    never.close()
    by_hand = consumer_of(**MEMBER)
    by_hand.assign([FIRST])
    by_hand.close()
    assert told.calls == []


def test_a_listener_that_fails_at_the_end_does_not_keep_a_member_in_its_group(
    lake: Lakelog, consumer_of: Callable[..., Consumer]
) -> None:
    consumer = lake.consumer(**MEMBER)
    consumer.subscribe(["orders"], listener=Told("revoked"))
    joined(consumer)
    with pytest.raises(RuntimeError, match="of revoked"):  # a KafkaError with that cause there
        consumer.close()
    assert consumer.assignment() == set()
    assert lake.groups.describe("nightly").members == ()


def test_of_a_listener_that_fails_at_a_loss_of_partitions_the_new_ones_are_told_too(
    lake: Lakelog,
    consumer_of: Callable[..., Consumer],
) -> None:
    told = Told("revoked")
    one = lake.consumer(**MEMBER | COOPERATIVE)
    one.subscribe(["orders"], listener=told)
    joined(one)
    other = consumer_of("orders", **MEMBER | COOPERATIVE)
    raised = []

    def is_shared_out() -> bool:
        other.poll(5)
        try:
            one.poll(5)
        except RuntimeError as error:
            raised.append(str(error))
        return len(one.assignment()) == len(other.assignment()) == 2

    eventually(is_shared_out)
    assert raised == ["the listener's own, of revoked"]
    assert told.calls[-1][0] == "assigned"
    with pytest.raises(RuntimeError, match="of revoked"):
        one.close()


def test_a_listener_without_a_word_on_losses_is_told_of_them_as_revoked() -> None:
    told: list[set[TopicPartition]] = []

    class Plain(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            told.append(revoked)

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            return None

    Plain().on_partitions_lost({FIRST})
    assert told == [{FIRST}]
