"""Members that do anything with a share group, beside the model.

Each may stop for as long as it likes and go on with what it knew, or die and come back as another.
What the scripts answer is compared with `ShareModel`. Besides, whatever both say: no two members
hold a record at a time, none is delivered more often than it may be, what was acknowledged never
comes again, none is lost, and where nothing failed they come in their order.
"""

from __future__ import annotations

import itertools
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from share_model import ShareModel

from lakelog.base.clock import ManualClock
from lakelog.codec import ProducedBatch, encode
from lakelog.errors import UnknownTopicIdError
from lakelog.groups.settings import ShareGroupSettings
from lakelog.groups.share.share_partitions import SharePartitions
from lakelog.groups.share.share_values import Acknowledgement, AcquiredRange, Outcome, RangeState
from lakelog.hot import HotLog
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch
from tests.support.servers import RedisServer

GROUP = "workers"
LOCK_MS = 1_000
LIMIT = 3
MEMBERS = st.integers(0, 2)
RARELY = st.sampled_from([False, False, True])
SAID = st.sampled_from(
    [
        *(Outcome.ACCEPT, Outcome.ACCEPT, Outcome.RELEASE, Outcome.RELEASE, Outcome.REJECT),
        *(Outcome.RENEW, Outcome.UNREAD),
    ]
)


class Differs(AssertionError):
    """The scripts did what they must not do."""


class Member:
    """What one consumer knows of what it holds, which may be out of date."""

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.held: list[AcquiredRange] = []
        self.dead: list[AcquiredRange] = []


class ShareMachine(RuleBasedStateMachine):
    """Subclass with `server` and `hot`."""

    server: ClassVar[RedisServer]
    hot: ClassVar[HotLog]

    def __init__(self) -> None:
        super().__init__()
        with self.server.client() as client:
            client.flushall()
        self.clock = ManualClock()
        self.numbers = itertools.count()
        self.producers = itertools.count(1)

    @initialize(
        dead_letters=st.booleans(), begin=st.sampled_from(["earliest", "earliest", "latest"])
    )
    def start(self, dead_letters: bool, begin: str) -> None:
        self.settings_of_group = ShareGroupSettings(
            record_lock_duration_ms=LOCK_MS,
            delivery_count_limit=LIMIT,
            partition_max_record_locks=6,
            dead_letter_topic="dead" if dead_letters else None,
        )
        self.shares = SharePartitions(
            self.hot.connections, GROUP, settings=self.settings_of_group, clock=self.clock
        )
        self.begin = begin
        self.members = [self._member() for _ in range(3)]
        self._create()
        self.append(8)

    def _member(self) -> Member:
        return Member(f"member-{next(self.numbers)}")

    def _create(self) -> None:
        self.topic = self.hot.topics().create("orders", 1, {"remote.storage.enable": "false"})
        self.tp = self.topic.partition(0)
        self.log_end = 0
        self.model: ShareModel | None = None
        self.deliveries: dict[int, int] = {}
        #: Who holds it, until when, as members were told.
        self.holders: dict[int, tuple[str, int]] = {}
        self.finished: set[int] = set()
        self.has_failed = False
        self.last_first = -1  # the highest offset that was delivered for the first time

    # -- what members do -----------------------------------------------------------------------

    @rule(records=st.integers(1, 6))
    def append(self, records: int) -> None:
        rows = [(1_700_000_000_000, b"k", b"v", ())] * records
        entries = encode(
            produced_batch(rows), EntryFormat.FIELDS, Compression.NONE, max_entry_bytes=1 << 20
        )
        batch = ProducedBatch(entries, next(self.producers), 0, 0, records - 1)
        self.hot.append(self.tp, self.topic.topic_id, batch)
        self.log_end += records

    @rule(number=MEMBERS, most=st.integers(1, 5))
    def acquire(self, number: int, most: int) -> None:
        member = self.members[number]
        asked = (self.tp, self.topic.topic_id, member.member_id, most)
        found = self.shares.acquire(*asked)
        if self.model is None:
            if found is not None:
                raise Differs("a group that was never here has a state")
            begin = 0 if self.begin == "earliest" else self.log_end
            self.model = ShareModel(self.settings_of_group, begin)
            self.finished = set(range(begin))
            self.last_first = begin - 1
            found = self.shares.acquire(*asked, begin=begin)
        if found is None:
            raise Differs("the group's state is lost")
        now_ms = self.clock.now_ms()
        given, dead = self.model.acquire(now_ms, member.member_id, most, self.log_end)
        self.compare((_counts(found.delivered), _counts(found.dead)), (given, dead))
        self.compare((found.end_offset, found.log_end), (self.model.end, self.log_end))
        for offset in itertools.chain(given, dead):
            self._is_given(offset, member.member_id, now_ms)
        for offset in given:
            if offset < self.model.log_start:
                raise Differs(f"offset {offset} came after it was deleted")
            self.deliveries[offset] = self.deliveries.get(offset, 0) + 1
            if self.deliveries[offset] > LIMIT:
                raise Differs(f"offset {offset} was delivered {self.deliveries[offset]} times")
            if self.deliveries[offset] == 1 and offset > self.last_first:
                if offset != self.last_first + 1 and not self.has_failed:
                    raise Differs(f"offset {offset} came after {self.last_first}")
                self.last_first = offset
        if list(given) != sorted(given):
            raise Differs(f"{list(given)} is out of order")
        member.held += found.delivered
        member.dead += found.dead

    def _is_given(self, offset: int, member_id: str, now_ms: int) -> None:
        if offset in self.finished:
            raise Differs(f"offset {offset} came again after it was acknowledged")
        holder, until_ms = self.holders.get(offset, (member_id, 0))
        if until_ms > now_ms:
            raise Differs(f"offset {offset} is {holder}'s and {member_id}'s")
        self.holders[offset] = (member_id, now_ms + LOCK_MS)

    @rule(number=MEMBERS, said=st.lists(SAID, min_size=1, max_size=4), data=st.data())
    def acknowledge(self, number: int, said: list[Outcome], data: st.DataObject) -> None:
        """Parts of what it holds, as far as it knows, perhaps with what it held before."""
        member = self.members[number]
        if not member.held or self.model is None:
            return
        chosen: list[Acknowledgement] = []
        for outcome in said:
            held = data.draw(st.sampled_from(member.held))
            start = data.draw(st.integers(held.start, held.end - 1))
            end = data.draw(st.integers(start + 1, held.end))
            chosen.append(Acknowledgement(start, end, held.epoch, outcome))
        self._say(member, _disjoint(chosen))

    @rule(number=MEMBERS, outcome=SAID)
    def acknowledge_all(self, number: int, outcome: Outcome) -> None:
        member = self.members[number]
        said = [Acknowledgement(one.start, one.end, one.epoch, outcome) for one in member.held]
        self._say(member, _disjoint(said))
        if outcome is not Outcome.RENEW:
            member.held = []

    @rule(number=MEMBERS, times=st.integers(1, LIMIT + 1), outcome=SAID)
    def fail_again_and_again(self, number: int, times: int, outcome: Outcome) -> None:
        """It takes the first and gives it back, or its time is over."""
        for _ in range(times):
            self.acquire(number, 2)
            if outcome is Outcome.REJECT:
                self.time_passes(LOCK_MS)
            else:
                self.acknowledge_all(number, outcome)

    @rule(number=MEMBERS, outcome=SAID)
    def say_at_once(self, number: int, outcome: Outcome) -> None:
        self.acquire(number, 3)
        self.acknowledge_all(number, outcome)
        self.acquire((number + 1) % 3, 3)

    @rule(number=MEMBERS, early_ms=st.integers(0, 1), outcome=SAID)
    def come_late(self, number: int, early_ms: int, outcome: Outcome) -> None:
        """It takes some, and others ask when its time is over, or just not; then it says so."""
        self.acquire(number, 3)
        held = [*self.members[number].held]
        self.time_passes(LOCK_MS - early_ms)
        self.acquire((number + early_ms) % 3, 3)
        said = [Acknowledgement(one.start, one.end, one.epoch, outcome) for one in held]
        self._say(self.members[number], _disjoint(said))

    @rule(number=MEMBERS, more=st.integers(1, 2))
    def say_too_much(self, number: int, more: int) -> None:
        """Of what it holds, and of what comes behind that."""
        self.acquire(number, 2)
        self.acquire((number + 1) % 3, 2)
        for one in self.members[number].held[-1:]:
            said = [Acknowledgement(one.start, one.end + more, one.epoch, Outcome.ACCEPT)]
            self._say(self.members[number], said)

    @rule(number=MEMBERS, written=st.booleans())
    def write_dead_letters(self, number: int, written: bool) -> None:
        member = self.members[number]
        outcome = Outcome.DEAD if written else Outcome.UNREAD
        said = [Acknowledgement(one.start, one.end, one.epoch, outcome) for one in member.dead]
        self._say(member, _disjoint(said))
        member.dead = []

    @rule(number=MEMBERS, another=MEMBERS)
    def acknowledge_what_another_holds(self, number: int, another: int) -> None:
        held = self.members[another].held
        said = [Acknowledgement(one.start, one.end, one.epoch, Outcome.ACCEPT) for one in held]
        if number != another:
            self._say(self.members[number], _disjoint(said))

    @rule(number=MEMBERS, skip=st.integers(0, 6), size=st.integers(1, 3), is_one=RARELY)
    def find_a_gap(self, number: int, skip: int, size: int, is_one: bool) -> None:
        """It reads that there is nothing; whoever holds some of it finds out by himself."""
        if self.model is None or not is_one:
            return
        start = self.model.start + skip
        end = min(start + size, self.log_end)
        if start < end:
            gap = Acknowledgement(start, end, 0, Outcome.GAP)
            self._say(self.members[number], [gap])
            self.has_failed = True  # what comes next need not follow

    def _say(self, member: Member, said: list[Acknowledgement]) -> None:
        if not said or self.model is None:
            return
        now_ms = self.clock.now_ms()
        before = dict(self.model.records)
        found = self.shares.acknowledge(self.tp, self.topic.topic_id, member.member_id, said)
        expected = self.model.acknowledge(now_ms, member.member_id, said, self.log_end)
        self.compare(found, expected)
        for one, taken in zip(said, found, strict=True):
            for offset in range(one.start, one.end) if taken else ():
                self._is_said(member, one, offset, now_ms, before)

    def _is_said(
        self, member: Member, one: Acknowledgement, offset: int, now_ms: int, before: object
    ) -> None:
        holder, until_ms = self.holders.get(offset, ("nobody", 0))
        if one.outcome is Outcome.GAP:
            if holder == member.member_id:  # another who holds it goes on
                del self.holders[offset]
            return
        if holder != member.member_id or until_ms <= now_ms:
            raise Differs(f"{member.member_id} acknowledged offset {offset}, which is {holder}'s")
        if one.outcome is Outcome.RENEW:
            self.holders[offset] = (holder, now_ms + LOCK_MS)
            return
        del self.holders[offset]
        if one.outcome in (Outcome.ACCEPT, Outcome.DEAD):
            self.finished.add(offset)
        elif one.outcome is Outcome.UNREAD and offset in _offsets(member.held):
            self.deliveries[offset] -= 1
            self.has_failed = True
        else:
            self.has_failed = True

    # -- around them ---------------------------------------------------------------------------

    @rule(milliseconds=st.sampled_from([0, 1, LOCK_MS // 2, LOCK_MS - 1, LOCK_MS, 5 * LOCK_MS]))
    def time_passes(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)

    @rule(records=st.integers(1, 4), delete=RARELY)
    def delete_records(self, records: int, delete: bool) -> None:
        """Whoever holds some of them may go on; nobody gets them any more."""
        if self.model is not None and delete:
            offset = min(self.model.start + records, self.log_end)
            if offset <= self.model.log_start:
                return
            self.hot.raise_log_start(self.tp, offset, topic_id=self.topic.topic_id)
            self.model.log_start = offset
            self.last_first = max(self.last_first, offset - 1)

    @rule(number=MEMBERS)
    def die(self, number: int) -> None:
        self.members[number] = self._member()

    @rule(delete=RARELY)
    def make_the_topic_again(self, delete: bool) -> None:
        """The group begins anew, and whoever speaks of the old one is refused."""
        if not delete:
            return
        old = self.topic
        self.hot.topics().delete("orders")
        self._refused(old.topic_id)
        self._create()
        self._refused(old.topic_id)
        self.append(8)
        for member in self.members:
            member.held, member.dead = [], []
        self.acquire(0, 3)

    def _refused(self, topic_id: object) -> None:
        try:
            self.shares.acquire(self.tp, topic_id, "somebody", 5, begin=0)  # type: ignore[arg-type]
        except UnknownTopicIdError:
            return
        raise Differs("the state of another topic was taken")

    @invariant()
    def it_looks_as_the_model(self) -> None:
        if not hasattr(self, "shares"):
            return
        found = self.shares.describe(self.tp, self.topic.topic_id)
        if self.model is None or found is None:
            self.compare(found, self.model)
            return
        ranges = [
            (one.start, one.end, one.state, one.delivery_count, one.member_id, one.locked_until_ms)
            for one in found.ranges
        ]
        expected = [
            (start, end, held.state, held.count, held.owner, held.deadline)
            for start, end, held in self.model.ranges()
        ]
        self.compare(ranges, expected)
        self.compare((found.start_offset, found.end_offset), (self.model.start, self.model.end))
        lost = [one for one in found.ranges if one.end <= one.start]
        self.compare(lost, [])
        self.compare(sum(one.end - one.start for one in found.ranges), len(self.model.records))

    def compare(self, found: object, expected: object) -> None:
        if found != expected:
            raise Differs(f"{found} is not {expected}")

    def teardown(self) -> None:
        """None is lost: somebody who takes all gets every record that is not finished."""
        if getattr(self, "model", None) is None:
            return
        self.clock.advance(10 * LOCK_MS)
        member = self._member()
        self.members[0] = member
        for _ in range(40):
            self.acquire(0, 5)
            self.write_dead_letters(0, written=True)
            self.acknowledge_all(0, Outcome.ACCEPT)
        assert self.model is not None
        self.compare((self.model.start, self.model.end), (self.log_end, self.log_end))


def _counts(ranges: tuple[AcquiredRange, ...]) -> dict[int, int]:
    return {offset: one.delivery_count for one in ranges for offset in range(one.start, one.end)}


def _offsets(ranges: list[AcquiredRange]) -> set[int]:
    return {offset for one in ranges for offset in range(one.start, one.end)}


def _disjoint(said: list[Acknowledgement]) -> list[Acknowledgement]:
    """In order of offsets, without what overlaps."""
    found: list[Acknowledgement] = []
    for one in sorted(said, key=lambda one: (one.start, -one.epoch)):
        if not found or one.start >= found[-1].end:
            found.append(one)
    return found


__all__ = ["Differs", "RangeState", "ShareMachine"]
