"""Consumers of one group that come, read, commit, pause, leave and crash, in any order.

Whatever happens, of what they are given and commit this holds:

- in one generation a partition is given to one of them,
- what is handed out next of a partition follows on what somebody was handed out before,
- nothing is committed that nobody was handed out, and a commit never goes back,
- once a generation has begun, nobody commits in an earlier one,
- once nothing more happens, every record has been handed out and every partition has an owner.

Time is the coordinator's, and passes only when a rule says so; heartbeats come so, too.
"""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lakelog import Lakelog, TopicPartition
from lakelog.base.clock import ManualClock
from lakelog.errors import CommitFailedError, FencedInstanceIdError, RebalanceInProgressError
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.membership import MemberState
from lakelog.groups.settings import GroupSettings
from lakelog.read.consumer import Consumer
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.read.subscription import SeenTopics
from tests.support.servers import RedisServer

GROUP = "readers"
SESSION_MS = 10_000
ROUND_MS = 8_000  # so that a static member may miss a round and still be one
NUMBERS = st.integers(0, 3)
WAYS = st.sampled_from(["range", "cooperative-sticky"])


class Broken(AssertionError):
    """Something does not hold that must."""


class MemberMachine(RuleBasedStateMachine):
    """Subclass with `server` and `lake`."""

    server: ClassVar[RedisServer]
    lake: ClassVar[Lakelog]

    def __init__(self) -> None:
        super().__init__()
        with self.server.client() as client:
            client.flushall()
        self.lake.topics.create("orders", 3, {"remote.storage.enable": False, "retention.ms": -1})
        self.producer = self.lake.producer(linger_ms=0)
        self.coordinator = GroupCoordinator(
            self.lake.hot.connections,
            settings=GroupSettings(initial_rebalance_delay_ms=0),
            clock=(clock := ManualClock()),
        )
        self.clock = clock
        self.consumers: dict[int, Consumer] = {}
        self.appended: dict[TopicPartition, int] = {}
        self.handed_out: dict[TopicPartition, int] = {}  # all below, to somebody
        self.committed: dict[TopicPartition, int] = {}
        self.owners: dict[tuple[int, TopicPartition], object] = {}
        self.newest = -1  # the generation that somebody got last

    @initialize(way=WAYS, static=st.booleans())
    def begin(self, way: str, static: bool) -> None:
        self.way, self.static = way, static

    def teardown(self) -> None:
        try:
            if self.consumers:
                self._come_to_rest()
        finally:
            for consumer in self.consumers.values():
                consumer.close(autocommit=False)
            self.producer.close()

    # -- what may happen -----------------------------------------------------------------------

    @rule(partition=st.integers(0, 2), count=st.integers(1, 5))
    def produce(self, partition: int, count: int) -> None:
        for _ in range(count):
            sent = self.producer.send("orders", "x", partition=partition)
        tp = TopicPartition("orders", partition)
        self.appended[tp] = sent.result().offset + 1

    @rule(number=NUMBERS, auto=st.booleans())
    def come(self, number: int, auto: bool) -> None:
        if number not in self.consumers:
            config = ConsumerConfig(
                group_id=GROUP,
                group_instance_id=f"i{number}" if self.static and number % 2 else None,
                auto_offset_reset="earliest",
                enable_auto_commit=auto,
                auto_commit_interval_ms=10**9,  # only before something goes, and at the end
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=SESSION_MS - 1,
                max_poll_interval_ms=ROUND_MS,
                metadata_max_age_ms=1,
                max_poll_records=3,
                partition_assignment_strategy=self.way,
            )
            seen = SeenTopics(self.lake.topics.list, self.lake.topics.version)
            made = Consumer(self.lake.log, config, seen, self.coordinator)
            made.subscribe(["orders"])
            self.consumers[number] = made
        self._poll(number)

    @precondition(lambda self: self.consumers)
    @rule(numbers=st.lists(NUMBERS, min_size=1, max_size=12))
    def poll(self, numbers: list[int]) -> None:
        """Those that are not named are at work meanwhile."""
        for number in numbers:
            if number in self.consumers:
                self._poll(number)

    @precondition(lambda self: self.consumers)
    @rule(turns=st.integers(2, 6))
    def all_poll(self, turns: int) -> None:
        for _ in range(turns):
            for number, consumer in self.consumers.items():
                self._beat(consumer)
                self._poll(number)

    @precondition(lambda self: self.consumers)
    @rule(number=NUMBERS)
    def commit(self, number: int) -> None:
        consumer = self.consumers.get(number)
        if consumer is None:
            return
        generation = consumer.group_metadata().generation_id
        held = {tp: consumer.position(tp) for tp in consumer.assignment()}
        try:
            consumer.commit()
        except (CommitFailedError, RebalanceInProgressError, FencedInstanceIdError):
            self._look_at_commits()
            return
        if generation < self.newest:
            raise Broken(f"generation {generation} committed after {self.newest} began")
        self._look_at_commits()
        if {tp: self.committed.get(tp) for tp in held} != held:
            raise Broken(f"{held} was committed, {self.committed} is there")

    @precondition(lambda self: len(self.consumers) > 1)
    @rule(number=NUMBERS)
    def miss_a_round(self, number: int) -> None:
        """It is at work, and says that it lives, while the others share out anew without it."""
        if number not in self.consumers:
            return
        for step in range(6):
            for other, consumer in self.consumers.items():
                self._beat(consumer)
                if other != number:
                    self._poll(other)
            if step == 2:
                self.clock.advance(ROUND_MS)
        self.commit(number)

    @precondition(lambda self: self.consumers)
    @rule(number=NUMBERS)
    def heartbeat(self, number: int) -> None:
        if number in self.consumers:
            self._beat(self.consumers[number])

    @precondition(lambda self: self.consumers)
    @rule(number=NUMBERS)
    def leave(self, number: int) -> None:
        if number in self.consumers:
            self.consumers.pop(number).close()
            self._look_at_commits()

    @precondition(lambda self: self.consumers)
    @rule(number=NUMBERS)
    def crash(self, number: int) -> None:
        self.consumers.pop(number, None)

    @rule(milliseconds=st.sampled_from([1, ROUND_MS // 2, ROUND_MS, SESSION_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    # -- what has to hold ----------------------------------------------------------------------

    def _poll(self, number: int) -> None:
        consumer = self.consumers[number]
        try:
            found = consumer.poll(0)
        except FencedInstanceIdError as error:
            raise Broken("an instance id is used once at a time") from error
        generation = consumer.group_metadata().generation_id
        self.newest = max(self.newest, generation)
        name = consumer.config.group_instance_id or consumer
        for tp in consumer.assignment():
            if self.owners.setdefault((generation, tp), name) != name:
                raise Broken(f"{tp} has two owners in generation {generation}")
        for tp, records in found.items():
            for record in records:
                next_one = self.handed_out.get(tp, 0)
                if record.offset > next_one:
                    raise Broken(f"{tp}: {record.offset} came after {next_one - 1}")
                self.handed_out[tp] = max(next_one, record.offset + 1)
        self._look_at_commits()

    def _look_at_commits(self) -> None:
        for tp, one in self.coordinator.committed(GROUP).items():
            offset = one.committed.offset
            if offset > self.handed_out.get(tp, 0):
                raise Broken(f"{tp}: {offset} is committed, {self.handed_out.get(tp, 0)} came")
            if offset < self.committed.get(tp, 0):
                raise Broken(f"{tp}: {offset} is committed after {self.committed[tp]}")
            self.committed[tp] = offset

    @staticmethod
    def _beat(consumer: Consumer) -> None:
        """What its other thread does now and then; the next poll acts on what that hears."""
        membership = consumer._offsets and consumer._offsets.membership
        if membership is not None:
            membership.beat()

    def _come_to_rest(self) -> None:
        self.clock.advance(SESSION_MS + 1)  # whoever crashed is out
        for _ in range(60):
            for number, consumer in self.consumers.items():
                self._beat(consumer)
                self._poll(number)
            held = [tp for one in self.consumers.values() for tp in one.assignment()]
            are_stable = all(
                one.group_metadata().state is MemberState.STABLE for one in self.consumers.values()
            )
            if (
                are_stable
                and sorted(held) == [TopicPartition("orders", n) for n in range(3)]
                and all(self.handed_out.get(tp, 0) >= end for tp, end in self.appended.items())
            ):
                return
        raise Broken(f"they do not come to rest: {self._told()}")

    def _told(self) -> dict[str, Any]:
        return {
            "handed out": self.handed_out,
            "appended": self.appended,
            "held": [one.assignment() for one in self.consumers.values()],
        }
