"""Members by Kafka's consumer protocol that come, hear late, lose answers, leave and die.

Whatever happens:

- no partition is one that two members both think they may read, while the group knows both,
- once nothing more happens, every partition that somebody asks for has one owner.

Time is the group's, and passes only when a rule says so.
"""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

from consumer_bench import GROUP, Client, settle
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lakelog import Lakelog
from lakelog.base.clock import ManualClock
from lakelog.errors import FencedMemberEpochError, UnknownMemberIdError, UnreleasedInstanceIdError
from lakelog.groups.admin import GroupAdmin
from lakelog.groups.consumer_groups import ConsumerGroups
from lakelog.groups.consumer_values import LEAVES, LEAVES_FOR_A_WHILE
from lakelog.groups.group_values import GroupState
from lakelog.groups.settings import GroupSettings
from tests.support.servers import RedisServer

SESSION_MS = 10_000
REBALANCE_MS = 25_000
NUMBERS = st.integers(0, 2)
TOPICS = st.sampled_from([("a",), ("a", "b"), ("b",)])


class ConsumerMachine(RuleBasedStateMachine):
    """Subclass with `server` and `lake`."""

    server: ClassVar[RedisServer]
    lake: ClassVar[Lakelog]

    def __init__(self) -> None:
        super().__init__()
        with self.server.client() as client:
            client.flushall()
        for name in ("a", "b"):
            self.lake.topics.create(name, 2, {"remote.storage.enable": False, "retention.ms": -1})
        self.clock = ManualClock()
        settings = GroupSettings(consumer_session_timeout_ms=SESSION_MS)
        servers = self.lake.hot.connections
        self.groups = ConsumerGroups(servers, settings=settings, clock=self.clock)
        self.admin = GroupAdmin(servers, settings=settings, clock=self.clock)
        self.clients: dict[int, Client] = {}
        self.asked: dict[int, tuple[tuple[str, ...], str]] = {}
        self.made = 0
        self.away: set[str] = set()  # whom the group waits for: members that died, instances
        self.back: dict[int, tuple[tuple[str, ...], str]] = {}  # who left for a while asked for

    @rule(
        number=NUMBERS,
        topics=TOPICS,
        is_static=st.booleans(),
        by=st.sampled_from(["", "range"]),
        kills=st.integers(0, 3),
    )
    def start(
        self, number: int, topics: tuple[str, ...], is_static: bool, by: str, kills: int
    ) -> None:
        """A client, perhaps in the place of one that is gone without a word."""
        if number not in self.clients or not kills:
            self.begin(number, topics, is_static=is_static, by=by)

    @precondition(lambda self: self.back)
    @rule(data=st.data())
    def come_back(self, data: st.DataObject) -> None:
        """Who left for a while asks for the same."""
        number = data.draw(st.sampled_from(sorted(self.back)))
        topics, by = self.back[number]
        if number not in self.clients:
            self.begin(number, topics, is_static=True, by=by)
            if not self.away:
                self.check_all_is_read()

    def begin(self, number: int, topics: tuple[str, ...], *, is_static: bool, by: str) -> None:
        self.made += 1
        self.back.pop(number, None)
        self.asked[number] = topics, by
        if number in self.clients:
            self.away.add(self.clients[number].member_id)
        instance = f"instance-{number}" if is_static else None
        self.away.discard(instance or "")  # it comes back
        self.clients[number] = Client(
            self.groups,
            self.lake,
            f"member-{self.made}",
            topics=topics,
            assignor=by or None,
            instance_id=instance,
            rebalance_timeout_ms=REBALANCE_MS,
        )
        self.say(number, is_lost=False)

    @precondition(lambda self: self.clients)
    @rule(number=NUMBERS, is_lost=st.booleans())
    def say(self, number: int, is_lost: bool) -> None:
        if (client := self.clients.get(number)) is None:
            return
        try:
            client.say(is_lost=is_lost)
        except (FencedMemberEpochError, UnknownMemberIdError):
            client.forget()
        except UnreleasedInstanceIdError:
            pass

    @precondition(lambda self: self.clients)
    @rule(number=NUMBERS)
    def obey_what_is_told_now(self, number: int) -> None:
        self.say(number, is_lost=False)
        self.obey(number)

    @precondition(lambda self: self.clients)
    @rule()
    def all_say(self) -> None:
        for number in self.clients:
            self.say(number, is_lost=False)

    @precondition(lambda self: self.clients)
    @rule(number=NUMBERS)
    def obey(self, number: int) -> None:
        if client := self.clients.get(number):
            client.obey()

    @rule(number=NUMBERS, topics=TOPICS)
    def subscribe(self, number: int, topics: tuple[str, ...]) -> None:
        client = self.clients.get(number)
        if client is not None and client.epoch > 0:
            client.subscribe(topics)

    @rule(number=NUMBERS, for_a_while=st.booleans())
    def leave(self, number: int, for_a_while: bool) -> None:
        client = self.clients.pop(number, None)
        if client is None or client.epoch == 0:
            return
        comes_back = for_a_while and client.instance_id is not None
        if comes_back and client.instance_id is not None:
            self.away.add(client.instance_id)
            self.back[number] = client.topics, self.asked[number][1]
        with suppress(UnknownMemberIdError):
            client.leave(LEAVES_FOR_A_WHILE if comes_back else LEAVES)

    @rule(ms=st.sampled_from([1, SESSION_MS // 2, SESSION_MS, REBALANCE_MS]))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)
        if ms >= SESSION_MS:
            self.away.clear()  # the group waits for them no longer

    @rule(name=st.sampled_from(["a", "b"]))
    def grow(self, name: str) -> None:
        topic = self.lake.topics.get(name)
        if topic.partitions < 5:
            self.lake.topics.add_partitions(name, topic.partitions + 1)

    @invariant()
    def nothing_has_two_readers(self) -> None:
        known = {
            one.member_id: one.consumer
            for one in self.admin.describe(GROUP).members
            if one.consumer
        }
        seen: set[object] = set()
        for client in self.clients.values():
            if client.member_id in known and client.epoch > 0:
                assert not seen & client.owned, "two may read it"
                seen |= client.owned
        given = [one for member in known.values() for one in member.assigned]
        assert len(given) == len(set(given)), "it is given to two"

    def teardown(self) -> None:
        """Whoever is left says and does what is due, until all is settled."""
        if self.away:
            self.clock.advance(SESSION_MS)
        self.check_all_is_read()

    def check_all_is_read(self) -> None:
        for _ in range(3):
            for number in self.clients:
                self.say(number, is_lost=False)
        settle(*self.clients.values(), rounds=8)
        group = self.admin.describe(GROUP)
        if not self.clients:
            assert group.state in (GroupState.DEAD, GroupState.EMPTY)
            return
        assert group.state is GroupState.STABLE
        asked = {topic for client in self.clients.values() for topic in client.topics}
        found = sorted(one for client in self.clients.values() for one in client.partitions)
        assert found == sorted(
            str(tp) for topic in asked for tp in self.lake.topics.get(topic).topic_partitions()
        )
