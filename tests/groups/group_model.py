"""What a group does, in plain Python: no Redis, no scripts, one object.

It follows Kafka's coordinator for the classic protocol. Answers are tuples: a code, then what a
member can go by.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from lakelog.groups.group_values import GroupState, JoinRequest, Leaving
from lakelog.groups.settings import GroupSettings
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

Answer = tuple[Any, ...]

UNKNOWN = ("UnknownMemberIdError",)
FENCED = ("FencedInstanceIdError",)
ILLEGAL = ("IllegalGenerationError",)
REBALANCE = ("RebalanceInProgressError",)
INCONSISTENT = ("InconsistentGroupProtocolError",)


@dataclass
class ModelMember:
    request: JoinRequest
    ends_ms: int  # of its session


@dataclass
class ModelOffset:
    offset: OffsetAndMetadata
    committed_ms: int


@dataclass
class GroupModel:
    """One group that may or may not be there."""

    settings: GroupSettings
    now_ms: int
    exists: bool = False
    state: GroupState = GroupState.DEAD
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    since_ms: int = 0
    ends_ms: int = 0  # of the round
    waits_until_ms: int = 0  # the first round, for more members
    members: dict[str, ModelMember] = field(default_factory=dict)
    pending: dict[str, int] = field(default_factory=dict)  # id → until when
    came: list[str] = field(default_factory=list)
    assignments: dict[str, bytes] = field(default_factory=dict)
    offsets: dict[TopicPartition, ModelOffset] = field(default_factory=dict)

    # -- what members ask ----------------------------------------------------------------------

    def join(self, request: JoinRequest, new_id: str) -> Answer:
        """`new_id` is the one that the coordinator chose, if it chose one."""
        member_id, instance = request.member_id, request.instance_id
        if not self.exists and member_id:
            return UNKNOWN
        if not self.exists:
            self._make()
        self.settle()
        holder = self._instance(instance)
        known = member_id or holder
        others = {id_: m for id_, m in self.members.items() if id_ != known}
        if others and not self._fits(request, others):
            return INCONSISTENT
        if not member_id and holder:
            return self._replace(holder, new_id, request)
        if not member_id and not instance and request.requires_known_member_id:
            self.pending[new_id] = self.now_ms + request.session_timeout_ms
            return "MemberIdRequiredError", new_id
        if not member_id:
            return self._add(new_id, request)
        if member_id in self.pending:
            del self.pending[member_id]
            return self._add(member_id, request)
        why = self._refusal(member_id, instance)
        if why:
            return why
        changed = self.members[member_id].request.protocols != request.protocols
        self._put(member_id, request)
        leads_a_stable_group = self.state is GroupState.STABLE and self.leader == member_id
        if self.state is GroupState.PREPARING_REBALANCE or changed or leads_a_stable_group:
            return self._come(member_id)
        return self._joined(member_id)

    def await_join(self, member_id: str, instance: str | None) -> Answer:
        if not self.exists:
            return UNKNOWN
        self.settle()
        why = self._refusal(member_id, instance)
        if why:
            return why
        self._renew(member_id)
        if self.state is GroupState.PREPARING_REBALANCE and member_id not in self.came:
            return REBALANCE
        return self._standing(member_id)

    def sync(
        self,
        member_id: str,
        instance: str | None,
        generation: int,
        protocol: str,
        given: dict[str, bytes],
    ) -> Answer:
        if not self.exists:
            return UNKNOWN
        self.settle()
        why = self._refusal(member_id, instance, generation)
        if why:
            return why
        self._renew(member_id)
        if protocol and protocol != self.protocol:
            return INCONSISTENT
        if self.state is GroupState.PREPARING_REBALANCE:
            return REBALANCE
        if self.state is GroupState.COMPLETING_REBALANCE:
            if member_id not in self.came:
                self.came.append(member_id)
            if member_id != self.leader:
                return "PENDING", member_id
            self.assignments = {m: given[m] for m in self.members if m in given}
            self._enter(GroupState.STABLE)
        return "SYNCED", self.assignments.get(member_id, b"")

    def heartbeat(self, member_id: str, instance: str | None, generation: int) -> Answer:
        if not self.exists:
            return UNKNOWN
        self.settle()
        why = self._refusal(member_id, instance, generation)
        if why:
            return why
        self._renew(member_id)
        return REBALANCE if self.state is GroupState.PREPARING_REBALANCE else ("OK",)

    def leave(self, leaving: Leaving) -> Answer:
        if not self.exists:
            return UNKNOWN
        self.settle()
        member_id = leaving.member_id or self._instance(leaving.instance_id) or ""
        if member_id in self.pending:
            del self.pending[member_id]
            self._complete()
            return ("OK",)
        why = self._refusal(member_id, leaving.instance_id)
        if why:
            return why
        self._drop([member_id])
        return ("OK",)

    def commit(
        self,
        offsets: dict[TopicPartition, OffsetAndMetadata],
        member_id: str = "",
        instance: str | None = None,
        generation: int = -1,
    ) -> Answer:
        is_member = bool(member_id or instance or generation >= 0)
        if not self.exists:
            if is_member:
                return ILLEGAL
            self._make()
        self.settle()
        if is_member:
            why = self._refusal(member_id, instance, generation)
            if why:
                return why
            if self.state is GroupState.COMPLETING_REBALANCE:
                return REBALANCE
            self._renew(member_id)
        elif self.state is not GroupState.EMPTY:
            return UNKNOWN
        self.offsets.update({tp: ModelOffset(one, self.now_ms) for tp, one in offsets.items()})
        return ("OK",)

    # -- from outside --------------------------------------------------------------------------

    def committed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        if not self.exists:
            return {}
        self.settle()
        kept = {tp: one for tp, one in self.offsets.items() if not self._is_over(one)}
        return {tp: one.offset for tp, one in kept.items()}

    def expire(self, subscribed: frozenset[str] | None) -> int | None:
        """How many went; None: there is no group."""
        if not self.exists:
            return None
        self.settle()
        over = [
            tp
            for tp, one in self.offsets.items()
            if self._is_over(one)
            or (
                self.state is GroupState.STABLE
                and subscribed is not None
                and tp.topic not in subscribed
                and self.now_ms - one.committed_ms >= self.settings.offsets_retention_ms
            )
        ]
        for tp in over:
            del self.offsets[tp]
        if self.state is GroupState.EMPTY and not self.offsets and not self.pending:
            self._forget()
        return len(over)

    def delete(self) -> Answer:
        if not self.exists:
            return ("GroupIdNotFoundError",)
        self.settle()
        if self.members or self.pending:
            return ("NonEmptyGroupError",)
        self._forget()
        return ("OK",)

    # -- how ------------------------------------------------------------------------------------

    def settle(self) -> None:
        """What is due by now."""
        self.pending = {m: ends for m, ends in self.pending.items() if ends > self.now_ms}
        self._drop([m for m, one in self.members.items() if one.ends_ms <= self.now_ms])
        if self.state is GroupState.COMPLETING_REBALANCE and self.now_ms >= self.ends_ms:
            self._drop([m for m in self.members if m not in self.came], anew=True)
        self._complete()

    def server_changed(self) -> None:
        """It may have lost a few generations: none of them may come again."""
        if not self.exists:
            return
        self.generation += 10_000
        if self.members:
            for member_id in self.members:
                self._renew(member_id)
            self._prepare()

    def _make(self) -> None:
        self.exists, self.state, self.generation = True, GroupState.EMPTY, 0
        self.protocol_type = self.protocol = self.leader = ""
        self.since_ms = self.now_ms

    def _forget(self) -> None:
        self.exists, self.state = False, GroupState.DEAD
        self.offsets, self.assignments, self.came = {}, {}, []

    def _instance(self, instance: str | None) -> str | None:
        if instance is None:
            return None
        found = (m for m, one in self.members.items() if one.request.instance_id == instance)
        return next(found, None)

    def _refusal(
        self, member_id: str, instance: str | None, generation: int | None = None
    ) -> Answer | None:
        if instance is not None:
            holder = self._instance(instance)
            if holder is None:
                return UNKNOWN
            if holder != member_id:
                return FENCED
        if member_id not in self.members:
            return UNKNOWN
        if generation is not None and generation != self.generation:
            return ILLEGAL
        return None

    def _fits(self, request: JoinRequest, others: dict[str, ModelMember]) -> bool:
        shared = {name for name, _ in request.protocols}
        for one in others.values():
            shared &= {name for name, _ in one.request.protocols}
        return bool(shared) and request.protocol_type == self.protocol_type

    def _put(self, member_id: str, request: JoinRequest) -> None:
        self.protocol_type = request.protocol_type
        ends_ms = self.now_ms + request.session_timeout_ms
        self.members[member_id] = ModelMember(request, ends_ms)

    def _renew(self, member_id: str) -> None:
        one = self.members[member_id]
        one.ends_ms = self.now_ms + one.request.session_timeout_ms

    def _add(self, member_id: str, request: JoinRequest) -> Answer:
        was_empty = self.state is GroupState.EMPTY
        self._put(member_id, request)
        delay_ms = self.settings.initial_rebalance_delay_ms
        if was_empty:
            self.leader = member_id
            self._prepare()
            self.waits_until_ms = min(self.now_ms + delay_ms, self.ends_ms)
        elif self.waits_until_ms > self.now_ms and self.state is GroupState.PREPARING_REBALANCE:
            self.waits_until_ms = min(self.now_ms + delay_ms, self.ends_ms)
        return self._come(member_id)

    def _replace(self, old: str, new: str, request: JoinRequest) -> Answer:
        before = dict(self.members.pop(old).request.protocols)
        if old in self.came:
            place = self.came.index(old)
            self.came.remove(old)
            if self.state is GroupState.PREPARING_REBALANCE:
                self.came.insert(place, new)
        if old in self.assignments:
            self.assignments[new] = self.assignments.pop(old)
        if self.leader == old:
            self.leader = new
        self._put(new, request)
        same = before.get(self.protocol, b"") == dict(request.protocols).get(self.protocol)
        if self.state is GroupState.STABLE and same and self._elected() == self.protocol:
            return self._joined(new)
        return self._come(new)

    def _come(self, member_id: str) -> Answer:
        if self.state is not GroupState.PREPARING_REBALANCE:
            self._prepare()
        if member_id not in self.came:
            self.came.append(member_id)
        return self._standing(member_id)

    def _standing(self, member_id: str) -> Answer:
        self._complete()
        if self.state is GroupState.PREPARING_REBALANCE:
            return "PENDING", member_id
        return self._joined(member_id)

    def _joined(self, member_id: str) -> Answer:
        return "JOINED", member_id, self.generation, self.protocol, self.leader

    def _drop(self, gone: list[str], *, anew: bool = False) -> None:
        for member_id in gone:
            del self.members[member_id]
            self.assignments.pop(member_id, None)
            if member_id in self.came:
                self.came.remove(member_id)
            if self.leader == member_id:
                self.leader = ""
        settled = (GroupState.STABLE, GroupState.COMPLETING_REBALANCE)
        if anew or (gone and self.state in settled):
            self._prepare()
        self._complete()

    def _prepare(self) -> None:
        self.came, self.assignments = [], {}
        self.ends_ms = self.now_ms + self._longest()
        self.waits_until_ms = 0
        self._enter(GroupState.PREPARING_REBALANCE)

    def _longest(self) -> int:
        return max((m.request.rebalance_timeout_ms for m in self.members.values()), default=0)

    def _complete(self) -> None:
        if self.state is not GroupState.PREPARING_REBALANCE:
            return
        all_came = len(self.came) == len(self.members) and not self.pending
        if self.members and not (all_came and self.now_ms >= self.waits_until_ms):
            if self.now_ms < self.ends_ms:
                return
            self.pending = {}
            self.members = {
                m: one
                for m, one in self.members.items()
                if m in self.came or one.request.instance_id is not None
            }
        if not self.members:
            self.generation += 1
            self.protocol = self.leader = ""
            self._enter(GroupState.EMPTY)
        elif not self.came:
            self.ends_ms = self.now_ms + self._longest()
        else:
            if self.leader not in self.came:
                self.leader = self.came[0]
            self.generation += 1
            self.protocol = self._elected()
            self.came, self.assignments = [], {}
            self.ends_ms = self.now_ms + self._longest()
            self._enter(GroupState.COMPLETING_REBALANCE)

    def _elected(self) -> str:
        asked = [[name for name, _ in m.request.protocols] for m in self.members.values()]
        shared = set(asked[0]).intersection(*asked)
        votes = Counter(next(name for name in names if name in shared) for names in asked)
        names = [name for name, _ in self.members[self.leader].request.protocols]
        return max((name for name in names if name in votes), key=lambda name: votes[name])

    def _enter(self, state: GroupState) -> None:
        self.state, self.since_ms = state, self.now_ms

    def _is_over(self, one: ModelOffset) -> bool:
        """As long as there are members, the topics they read tell; see `expire`."""
        if self.state is not GroupState.EMPTY:
            return False
        since_ms = max(one.committed_ms, self.since_ms if self.protocol_type else 0)
        return self.now_ms - since_ms >= self.settings.offsets_retention_ms
