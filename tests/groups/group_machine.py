"""Clients that do anything with a group, beside the model.

Each may stop calling for as long as it likes, and go on with what it knew: an old id, an old
generation. What the coordinator answers is compared with `GroupModel`. Besides, whatever both say:
of one generation nobody commits for a partition but its one owner, generations only grow, and an
offset that was committed is there until it expires.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from group_model import GroupModel
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from lakelog.base.clock import ManualClock
from lakelog.errors import GroupError, MemberIdRequiredError
from lakelog.groups.admin import GroupAdmin
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.group_values import Joined, JoinRequest, Leaving, Pending, Synced
from lakelog.groups.protocol import Assignment, Subscription
from lakelog.groups.settings import GroupSettings
from lakelog.hot.connection import Servers
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition
from tests.support.servers import RedisServer

GROUP = "readers"
PARTITIONS = [TopicPartition("orders", n) for n in range(4)] + [TopicPartition("old", 0)]
SESSION_MS = 10_000
RETENTION_MS = 8_000  # passes within a session
CLIENTS = st.integers(0, 3)
STEPS_MS = st.sampled_from([0, 1, 400, 600, 3_000, RETENTION_MS, SESSION_MS, 40_000])
THEN = ["sync", "sync", "commit", "nothing"]
TOPICS = st.sampled_from([("orders",), ("orders", "old")])


class Differs(AssertionError):
    """The coordinator did what it must not do."""


class Client:
    """What one consumer knows of its membership, which may be out of date."""

    def __init__(self, number: int, instance_id: str | None) -> None:
        self.request = JoinRequest(
            (("range", Subscription(("orders",)).encode()), ("sticky", b"s%d" % number)),
            session_timeout_ms=SESSION_MS + 1_000 * number,
            rebalance_timeout_ms=20_000,
            instance_id=instance_id,
            client_id=f"c{number}",
        )
        self.joined: Joined | None = None
        self.id_before = ""  # if it has joined anew since
        self.owned: tuple[TopicPartition, ...] = ()
        self.owned_in = -1  # the generation

    @property
    def generation(self) -> int:
        return self.joined.generation_id if self.joined else 0


class GroupMachine(RuleBasedStateMachine):
    """Subclass with `server` and `servers`."""

    server: ClassVar[RedisServer]
    servers: ClassVar[Servers]
    settings_: ClassVar[GroupSettings] = GroupSettings(offsets_retention_ms=RETENTION_MS)

    def __init__(self) -> None:
        super().__init__()
        with self.server.client() as client:
            client.flushall()
        self.clock = ManualClock()
        made: dict[str, Any] = {"settings": self.settings_, "clock": self.clock}
        self.coordinator = GroupCoordinator(self.servers, **made)
        self.admin = GroupAdmin(self.servers, **made)
        self.model = GroupModel(self.settings_, self.clock.now_ms())
        self.clients: list[Client] = []
        #: Who owns what by the assignments that were handed out.
        self.owners: dict[tuple[int, TopicPartition], str] = {}
        self.seen_generation = 0

    @initialize(static=st.lists(st.booleans(), min_size=4, max_size=4))
    def start(self, static: list[bool]) -> None:
        self.clients = [Client(n, f"i{n}" if it else None) for n, it in enumerate(static)]

    # -- joining -------------------------------------------------------------------------------

    @rule(number=CLIENTS, topics=TOPICS, keep_id=st.booleans(), known=st.booleans())
    def join(self, number: int, topics: tuple[str, ...], keep_id: bool, known: bool) -> None:
        client = self.clients[number]
        subscription = Subscription(topics).encode()
        client.request = replace(
            client.request,
            protocols=(("range", subscription), ("sticky", b"s%d" % number)),
            member_id=client.request.member_id if keep_id else "",
            requires_known_member_id=known,
        )
        self._join(client)

    @rule(number=CLIENTS)
    def prefer_another(self, number: int) -> None:
        """It joins with its assignors the other way around."""
        client = self.clients[number]
        client.request = replace(client.request, protocols=client.request.protocols[::-1])
        self._join(client)

    @rule(number=CLIENTS)
    def await_join(self, number: int) -> None:
        client = self.clients[number]
        found = self.asked(lambda: self.coordinator.await_join(GROUP, client.request))
        request = client.request
        self.compare(found, self.model.await_join(request.member_id, request.instance_id))
        self._learn(client, found)

    def _join(self, client: Client) -> None:
        found = self.asked(lambda: self.coordinator.try_join(GROUP, client.request))
        new_id = found[1] if len(found) > 1 else ""
        self.compare(found, self.model.join(client.request, new_id))
        self._learn(client, found)

    def _learn(self, client: Client, found: tuple[Any, ...]) -> None:
        if found[0] in ("JOINED", "PENDING", "MemberIdRequiredError"):
            if found[1] != client.request.member_id:  # a new member, which had nothing
                client.id_before = client.request.member_id or client.id_before
                client.joined, client.owned = None, ()
            client.request = replace(client.request, member_id=found[1])
        if found[0] == "JOINED":
            client.joined = self.last_joined
            if found[2] < self.seen_generation and self.model.generation != found[2]:
                raise Differs(f"generation {found[2]} after {self.seen_generation}")
            self.seen_generation = found[2]

    @rule(numbers=st.lists(CLIENTS, unique=True, min_size=1), then=st.sampled_from(THEN))
    def come_together(self, numbers: list[int], then: str) -> None:
        """Some join as consumers do, until they share the partitions or somebody is in the way."""
        for _ in range(2):
            for number in numbers:
                self._join(self.clients[number])
        self.time_passes(600)
        for number in numbers:
            self.await_join(number)
        for number in sorted(numbers, key=lambda n: not self._leads(self.clients[n])):
            if then == "sync":
                self.sync(number)
                self.heartbeat(number, as_before=False)
            elif then == "commit":
                self.commit(number, 7, 0)

    @staticmethod
    def _leads(client: Client) -> bool:
        return client.joined is not None and client.joined.is_leader

    # -- taking part ---------------------------------------------------------------------------

    @rule(number=CLIENTS)
    def sync(self, number: int) -> None:
        client = self.clients[number]
        joined = client.joined
        if joined is None:
            return
        given = self._assignments(joined)
        instance_id = client.request.instance_id
        found = self.asked(
            lambda: self.coordinator.try_sync(GROUP, joined, given, instance_id=instance_id)
        )
        expected = self.model.sync(
            joined.member_id, instance_id, joined.generation_id, joined.protocol_name, given
        )
        self.compare(found, expected)
        if found[0] == "SYNCED":
            client.owned = Assignment.decode(found[1]).partitions
            client.owned_in = joined.generation_id
            for partition in client.owned:
                place = (joined.generation_id, partition)
                owner = self.owners.setdefault(place, joined.member_id)
                if owner != joined.member_id and instance_id is None:
                    raise Differs(f"{partition} is {owner}'s and {joined.member_id}'s")
                self.owners[place] = joined.member_id

    def _assignments(self, joined: Joined) -> dict[str, bytes]:
        shares: dict[str, list[TopicPartition]] = {m.member_id: [] for m in joined.members}
        for n, partition in enumerate(PARTITIONS):
            if shares:
                shares[sorted(shares)[n % len(shares)]].append(partition)
        return {m: Assignment(tuple(found)).encode() for m, found in shares.items()}

    @rule(number=CLIENTS, as_before=st.booleans())
    def heartbeat(self, number: int, as_before: bool) -> None:
        """Its own, or that of a process that ran before it and still does."""
        client = self.clients[number]
        instance_id, generation = client.request.instance_id, client.generation
        member_id = client.id_before if as_before else client.request.member_id
        found = self.asked(
            lambda: self.coordinator.heartbeat(GROUP, member_id, generation, instance_id)
        )
        # With the version of the group, which the model has not.
        self.compare(found[:1], self.model.heartbeat(member_id, instance_id, generation))

    @rule(number=CLIENTS, offset=st.integers(0, 50), back=st.integers(0, 1))
    def commit(self, number: int, offset: int, back: int) -> None:
        """For what it owns, as far as it knows; perhaps of the generation before."""
        client = self.clients[number]
        partitions = client.owned or tuple(PARTITIONS[:1])
        values = {tp: OffsetAndMetadata(offset, f"by {number}") for tp in partitions}
        member_id, instance_id = client.request.member_id, client.request.instance_id
        generation = max(0, client.generation - back)
        found = self.asked(
            lambda: self.coordinator.commit(
                GROUP,
                values,
                member_id=member_id,
                generation_id=generation,
                instance_id=instance_id,
            )
        )
        self.compare(found, self.model.commit(values, member_id, instance_id, generation))
        if found == ("OK",) and client.owned_in == generation:
            for partition in client.owned:
                owner = self.owners.get((generation, partition), member_id)
                if owner != member_id:
                    raise Differs(f"{member_id} committed for {partition}, which is {owner}'s")

    @rule(number=CLIENTS, by_instance=st.booleans())
    def leave(self, number: int, by_instance: bool) -> None:
        request = self.clients[number].request
        leaving = Leaving("" if by_instance else request.member_id, request.instance_id)
        (why,) = self.coordinator.leave(GROUP, [leaving]).values()
        found = ("OK",) if why is None else (type(why).__name__,)
        self.compare(found, self.model.leave(leaving))

    # -- around them ---------------------------------------------------------------------------

    @rule(offset=st.integers(0, 50), partition=st.sampled_from(PARTITIONS))
    def commit_by_hand(self, offset: int, partition: TopicPartition) -> None:
        values = {partition: OffsetAndMetadata(offset, "by hand")}
        found = self.asked(lambda: self.coordinator.commit(GROUP, values))
        self.compare(found, self.model.commit(values))

    @rule(milliseconds=STEPS_MS)
    def time_passes(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.model.now_ms += milliseconds

    @rule()
    def the_server_changes(self) -> None:
        """Another one took over, or it started again; the scripts see it by the run."""
        with self.server.client() as client:
            if client.exists(f"lakelog:group:{GROUP}"):
                client.hset(f"lakelog:group:{GROUP}", "run", "an earlier one")
        self.model.server_changed()

    @rule()
    def expire(self) -> None:
        topics = self.admin.describe(GROUP).subscribed_topics
        found = self.asked(lambda: self.admin.expire_offsets(GROUP))
        expected = self.model.expire(topics)
        self.compare(found, ("GroupIdNotFoundError",) if expected is None else ("OK", expected))
        self._forget_generations()

    @rule()
    def delete(self) -> None:
        self.compare(self.asked(lambda: self.admin.delete(GROUP)), self.model.delete())
        self._forget_generations()

    def _forget_generations(self) -> None:
        if not self.model.exists:
            self.seen_generation = 0
            self.owners.clear()  # member ids are never used twice

    @invariant()
    def it_looks_as_the_model(self) -> None:
        found = self.admin.describe(GROUP)
        self.model.settle() if self.model.exists else None
        model = self.model
        self.compare(
            (found.state, {m.member_id for m in found.members}),
            (model.state, set(model.members)),
        )
        if model.exists:
            facts = (found.generation_id, found.protocol_name, found.leader_id)
            self.compare(facts, (model.generation, model.protocol, model.leader))
        self.compare([g.group_id for g in self.admin.list()], [GROUP] if model.exists else [])

    @invariant()
    def no_commit_is_lost(self) -> None:
        found = {tp: one.committed for tp, one in self.coordinator.committed(GROUP).items()}
        self.compare(found, self.model.committed())

    # -- how -----------------------------------------------------------------------------------

    def asked(self, ask: Callable[[], Any]) -> tuple[Any, ...]:
        try:
            answer = ask()
        except MemberIdRequiredError as required:
            return "MemberIdRequiredError", required.member_id
        except GroupError as error:
            return (type(error).__name__,)
        if isinstance(answer, Joined):
            self.last_joined = answer
            return (
                *("JOINED", answer.member_id, answer.generation_id),
                *(answer.protocol_name, answer.leader_id),
            )
        if isinstance(answer, Pending):
            return "PENDING", answer.member_id
        if isinstance(answer, Synced):
            return "SYNCED", answer.assignment
        return ("OK",) if answer is None else ("OK", answer)

    def compare(self, found: object, expected: object) -> None:
        if found != expected:
            raise Differs(f"{found} is not {expected}")
