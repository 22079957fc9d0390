"""A member's side of a group: joins, assigns if it leads, says that it lives, commits, leaves."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from math import inf
from typing import NamedTuple, Protocol
from uuid import UUID

from msgspec import Struct
from msgspec.structs import astuple, replace

from ..errors import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupError,
    IllegalGenerationError,
    LakelogError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .assignors import Assignor, RebalanceProtocol, Subscriber
from .coordinator import GroupCoordinator
from .group_values import (
    NO_MEMBER_ID,
    Joined,
    JoinRequest,
    Leaving,
    Pending,
    Synced,
    check_group_id,
)
from .heartbeats import Heartbeats
from .protocol import NO_GENERATION, Assignment, Subscription
from .settings import MemberConfig

logger = logging.getLogger(__name__)


class Owner(Protocol):
    """Who reads what a member is assigned. Called from within `Membership.attend` and `leave`."""

    def revoked(self, partitions: set[TopicPartition]) -> None:
        """Before these go: what was read of them can still be committed."""
        ...

    def lost(self, partitions: set[TopicPartition]) -> None:
        """These are gone and may be somebody else's: nothing can be committed of them."""
        ...

    def assigned(self, partitions: set[TopicPartition]) -> None:
        """After these have come. Called with none, too, when a rebalance brought none."""
        ...


class MemberState(str, Enum):
    """Where a member stands; kafka-python's values."""

    UNJOINED = "<unjoined>"
    REBALANCING = "<rebalancing>"  # it joins, or waits for the leader
    STABLE = "<stable>"


class ConsumerGroupMetadata(NamedTuple):
    """Who a consumer is in its group, as kafka-python has it."""

    group_id: str | None
    generation_id: int = NO_GENERATION
    member_id: str = NO_MEMBER_ID
    group_instance_id: str | None = None
    state: MemberState = MemberState.UNJOINED


class MemberGeneration(Struct, frozen=True):
    """A member at some moment, for a commit that was asked for then."""

    epoch: int  # of its rounds of joining
    member_id: str
    generation_id: int
    is_stable: bool


class Membership:
    """One member of one group.

    All but `commit` is for one thread, that of the consumer. Another one, of this object's own,
    says between two calls of `attend` that the member lives. It hears of rebalances, and acts on
    nothing: the next `attend` does.

    Args:
        owner: reads the partitions.
        partition_counts: topic → partitions, of the topics there are now. Asked by the leader in
            each `attend`, so it must be cheap.
        config: what else it goes by.
        on_news: called by the other thread when there is something for `attend` to do.
    """

    def __init__(
        self,
        coordinator: GroupCoordinator,
        group_id: str,
        owner: Owner,
        partition_counts: Callable[[], Mapping[str, int]],
        config: MemberConfig | None = None,
        on_news: Callable[[], None] = lambda: None,
    ) -> None:
        self.group_id = check_group_id(group_id)
        self._on_news = on_news
        self.config = config or MemberConfig()
        self._coordinator = coordinator
        self._owner = owner
        self._partition_counts = partition_counts
        self._topics: frozenset[str] = frozenset()
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._heartbeats: Heartbeats | None = None

        self._joined: Joined | None = None  # this round's; None: before it, or the next one's
        self._given: dict[str, bytes] | None = None  # of the leader, in this round
        self._counts: Mapping[str, int] | None = None  # of the leader: what it assigned by
        self._asked_for: frozenset[str] = frozenset()  # the topics with which it joined
        self._claim: tuple[Collection[TopicPartition], int] = ((), NO_GENERATION)

        # Both threads read and write what follows, under the lock.
        self._lock = threading.Lock()
        self._state = MemberState.UNJOINED
        self._member_id = NO_MEMBER_ID
        self._generation_id = NO_GENERATION  # of the partitions
        self._pending: JoinRequest | None = None  # a join that was not answered yet
        self._epoch = 0  # grows whenever what was asked before does not count any more
        self._is_attending = False
        self._attended_s = time.monotonic()
        self._must_join = False
        self._is_lost = False
        self._failure: Exception | None = None
        self._version: int | None = None  # of the group, when it last answered; None: not known
        self._due_s = inf  # when the group may have to be asked again without any news; monotonic

    # -- what it is ----------------------------------------------------------------------------

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Those that are its own to read."""
        return self._partitions

    @property
    def generation_id(self) -> int:
        """The generation in which it got them; -1: none."""
        return self._generation_id

    @property
    def member_id(self) -> str:
        """Empty before it has joined."""
        return self._member_id

    @property
    def state(self) -> MemberState:
        return self._state

    def metadata(self) -> ConsumerGroupMetadata:
        """All of this at one moment."""
        with self._lock:
            return ConsumerGroupMetadata(
                self.group_id,
                self._generation_id,
                self._member_id,
                self.config.group_instance_id,
                self._state,
            )

    # -- taking part ---------------------------------------------------------------------------

    def subscribe(self, topics: Iterable[str]) -> None:
        """What it asks for; the next `attend` joins again if that has changed."""
        self._topics = frozenset(topics)

    def join_again(self) -> None:
        """The next `attend` begins another round, even if nothing has changed."""
        with self._lock:
            self._must_join = True

    def attend(self, timeout_ms: int = 0) -> bool:
        """Takes part: joins if it has to, and tells the owner what goes and comes.

        To be called more often than every ``max_poll_interval_ms``.

        Args:
            timeout_ms: how long to wait for the others; the next call goes on waiting.

        Returns:
            Whether the member has its partitions, and no rebalance is under way.

        Raises:
            FencedInstanceIdError: another member has joined under its instance id; all is lost,
                and every further call raises it, until `leave`.
            GroupError: see `GroupCoordinator.try_join`.
            Exception: of the owner. What it was told holds all the same.
        """
        deadline_s = time.monotonic() + timeout_ms / 1000
        self._begin_attending()
        try:
            while True:
                self._act_on_news()
                if self._is_settled():
                    return True
                pending = self._advance()
                self._attended_s = time.monotonic()
                if pending is None:
                    continue
                left_ms = round((deadline_s - time.monotonic()) * 1000)
                if left_ms <= 0:
                    self._leave_waiting(pending)
                    return False
                most_ms = min(left_ms, self.config.session_timeout_ms // 3)
                self._coordinator.await_news(self.group_id, pending, most_ms)
        finally:
            with self._lock:
                self._is_attending = False
                self._attended_s = time.monotonic()

    def generation(self) -> MemberGeneration:
        """Under which generation a commit that is asked for now is made, whenever that is."""
        with self._lock:
            is_stable = self._state is MemberState.STABLE
            return MemberGeneration(self._epoch, self._member_id, self._generation_id, is_stable)

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        topic_ids: Mapping[str, UUID] | None = None,
        generation: MemberGeneration | None = None,
    ) -> None:
        """Stores how far the group has come; see `GroupCoordinator.commit`. From any thread.

        Args:
            generation: as it was when the commit was asked for: what comes after a rebalance is of
                partitions that may be somebody else's. None: as it is now.

        Raises:
            CommitFailedError: it is no member any more, or missed a rebalance: the partitions may
                be somebody else's. Nothing was committed.
            RebalanceInProgressError: not now; again after the next `attend`.
            FencedInstanceIdError: another member has joined under its instance id.
        """
        epoch, member_id, generation_id, was_stable = astuple(generation or self.generation())
        with self._lock:
            is_lost, failure = self._is_lost, self._failure
        if isinstance(failure, FencedInstanceIdError):
            raise failure
        if is_lost or generation_id == NO_GENERATION:
            raise self._commit_failed(member_id, generation_id)
        try:
            self._coordinator.commit(
                self.group_id,
                offsets,
                member_id=member_id,
                generation_id=generation_id,
                instance_id=self.config.group_instance_id,
                topic_ids=topic_ids,
            )
        except IllegalGenerationError as error:
            if was_stable:
                self._hear(error, epoch)
                raise self._commit_failed(member_id, generation_id) from error
            # It waits for the round that began this generation: what it keeps is still its own.
            raise RebalanceInProgressError(
                f"{member_id!r} of group {self.group_id!r} joins a new generation; nothing was "
                "committed. Poll, then commit again",
                group_id=self.group_id,
                member_id=member_id,
            ) from error
        except UnknownMemberIdError as error:
            self._hear(error, epoch)
            raise self._commit_failed(member_id, generation_id) from error
        except (FencedInstanceIdError, RebalanceInProgressError) as error:
            self._hear(error, epoch)
            raise

    def leave(self) -> None:
        """Gives up all partitions and leaves. A static member only falls silent, as Kafka's does:
        it has its session to come back.

        Raises:
            Exception: of the owner; the member has left all the same.
        """
        if self._heartbeats is not None:
            self._heartbeats.stop()
            self._heartbeats = None
        try:
            self._give_up(self._partitions)
        finally:
            with self._lock:
                member_id = self._member_id
                self._member_id = NO_MEMBER_ID
                self._failure = None
                self._must_join = False
            self._reset()
            if member_id and self.config.group_instance_id is None:
                self._say_goodbye(member_id)

    # -- joining -------------------------------------------------------------------------------

    def _begin_attending(self) -> None:
        with self._lock:
            self._is_attending = True
            self._attended_s = time.monotonic()
        if self._heartbeats is None or not self._heartbeats.is_alive:
            first_s = self.config.heartbeat_interval_ms / 1000
            name = f"lakelog-heartbeats-{self.group_id}"
            self._heartbeats = Heartbeats(self.beat, self.listen, first_s, name)

    def _leave_waiting(self, pending: Pending) -> None:
        """The other thread waits for the others, while this one reads what it keeps."""
        with self._lock:
            self._note(pending)
        if self._heartbeats is not None:
            self._heartbeats.hurry()

    def _act_on_news(self) -> None:
        """Does what the other thread has heard."""
        with self._lock:
            is_lost = self._is_lost
            failure = self._failure
        if is_lost:
            self._lose()
        if failure is not None:
            if not isinstance(failure, FencedInstanceIdError):
                self._failure = None
            raise failure

    def _is_settled(self) -> bool:
        if self._state is not MemberState.STABLE:
            return False
        if self._must_join or self._topics != self._asked_for:
            return False
        if self._counts is None:
            return True
        now = self._partition_counts()
        return all(now.get(topic, 0) == count for topic, count in self._counts.items())

    def _advance(self) -> Pending | None:
        """One step; returns what has to be waited for."""
        try:
            if self._state is not MemberState.REBALANCING:
                self._prepare()
            if self._joined is None:
                return self._join()
            return self._sync(self._joined)
        except RebalanceInProgressError:  # another round began before this one ended
            self._begin_round()
        except (UnknownMemberIdError, IllegalGenerationError, FencedInstanceIdError) as error:
            self._hear(error, self._epoch)
        return None

    def _prepare(self) -> None:
        """Before it joins: gives up what it cannot keep meanwhile."""
        self._claim = (self._partitions, self._generation_id)
        kept: frozenset[TopicPartition] = frozenset()
        if self.config.protocol is RebalanceProtocol.COOPERATIVE:
            kept = frozenset(tp for tp in self._partitions if tp.topic in self._topics)
        try:
            self._give_up(self._partitions - kept)
        finally:
            self._partitions = kept
            self._begin_round()

    def _begin_round(self) -> None:
        with self._lock:
            self._epoch += 1
            self._state = MemberState.REBALANCING
            self._pending = self._joined = self._given = None
            self._must_join = False

    def _join(self) -> Pending | None:
        try:
            if self._pending is None:
                self._asked_for = self._topics
                request = self._request()
                answer = self._coordinator.try_join(self.group_id, request)
            else:
                request = self._pending
                answer = self._coordinator.await_join(self.group_id, request)
        except MemberIdRequiredError as required:
            self._member_id = required.member_id
            return None
        with self._lock:
            self._member_id = answer.member_id
            if isinstance(answer, Pending):
                self._pending = replace(request, member_id=answer.member_id)
                return answer
            self._pending, self._joined = None, answer
        return None

    def _request(self) -> JoinRequest:
        owned, generation_id = self._claim
        subscription = Subscription(
            tuple(sorted(self._asked_for)),
            owned_partitions=tuple(sorted(self._partitions)),
            generation_id=generation_id,
        )
        protocols = tuple(
            (
                one.name,
                replace(
                    subscription, user_data=one.user_data(sorted(owned), generation_id)
                ).encode(),
            )
            for one in self.config.assignors
        )
        return JoinRequest(
            protocols,
            session_timeout_ms=self.config.session_timeout_ms,
            rebalance_timeout_ms=self.config.max_poll_interval_ms,
            member_id=self._member_id,
            instance_id=self.config.group_instance_id,
            client_id=self.config.client_id,
            client_host=self.config.client_host,
            asked_bytes=subscription.asked_bytes,
        )

    def _sync(self, joined: Joined) -> Pending | None:
        if joined.is_leader and self._given is None:
            self._given = self._assign(joined)
        answer = self._coordinator.try_sync(
            self.group_id, joined, self._given, instance_id=self.config.group_instance_id
        )
        if isinstance(answer, Pending):
            return answer
        self._complete(joined, answer)
        return None

    def _assign(self, joined: Joined) -> dict[str, bytes]:
        """What each member is to read, by the leader."""
        subscribers = {
            member.member_id: Subscriber(Subscription.decode(member.metadata), member.instance_id)
            for member in joined.members
        }
        asked = {topic for one in subscribers.values() for topic in one.subscription.topics}
        if joined.skip_assignment:
            # It came back, and what it assigned before holds. Topics may have grown meanwhile.
            shares = self._coordinator.assignments(self.group_id).values()
            held = Counter(tp.topic for one in shares for tp in Assignment.decode(one).partitions)
            self._counts = {topic: held[topic] for topic in asked}
            return {}
        counts = self._partition_counts()
        self._counts = {topic: counts.get(topic, 0) for topic in asked}
        assignor = self._assignor(joined.protocol_name)
        given = assignor.assign({t: n for t, n in self._counts.items() if n}, subscribers)
        return {member_id: share.encode() for member_id, share in given.items()}

    def _assignor(self, name: str) -> Assignor:
        return next(one for one in self.config.assignors if one.name == name)

    def _complete(self, joined: Joined, synced: Synced) -> None:
        """The generation has begun: takes what it got, and gives up what it did not keep."""
        assigned = frozenset(Assignment.decode(synced.assignment).partitions)
        had = self._partitions
        if not joined.is_leader:
            self._counts = None
        with self._lock:
            self._epoch += 1
            self._state = MemberState.STABLE
            self._generation_id = joined.generation_id
            self._joined = self._given = None
        if self._heartbeats is not None:
            self._heartbeats.hurry()  # from now on it listens for who comes
        taken = had - assigned
        try:
            if taken:
                self.join_again()  # so that the leader can hand them over
                self._give_up(taken)
        finally:
            self._partitions = assigned
            self._owner.assigned(set(assigned - had))

    # -- what goes -----------------------------------------------------------------------------

    def _give_up(self, partitions: frozenset[TopicPartition]) -> None:
        if not partitions:
            return
        if self._is_lost:
            self._owner.lost(set(partitions))
        else:
            self._owner.revoked(set(partitions))

    def _lose(self) -> None:
        """All it had is gone, and it has to join as if for the first time."""
        lost = self._partitions
        self._reset()
        if lost:
            self._owner.lost(set(lost))

    def _reset(self) -> None:
        self._partitions = frozenset()
        self._counts = None
        with self._lock:
            self._epoch += 1
            self._state = MemberState.UNJOINED
            self._generation_id = NO_GENERATION
            self._pending = self._joined = self._given = None
            self._is_lost = False

    def _say_goodbye(self, member_id: str) -> None:
        try:
            self._coordinator.leave(self.group_id, [Leaving(member_id)])
        except LakelogError as error:  # its session ends by itself
            logger.warning("%r did not leave group %r: %s", member_id, self.group_id, error)

    def _commit_failed(self, member_id: str, generation_id: int) -> CommitFailedError:
        return CommitFailedError(
            f"nothing was committed: {member_id or 'a consumer that has not joined'!r} is no "
            f"member of group {self.group_id!r}, or missed a rebalance, and its partitions may be "
            "somebody else's. Poll to join (again). If it took too long between two polls, raise "
            "max_poll_interval_ms or lower max_poll_records",
            group_id=self.group_id,
            member_id=member_id,
            generation_id=generation_id,
        )

    # -- the other thread ----------------------------------------------------------------------

    def beat(self) -> float:
        """Says that the member lives; returns the seconds until it is to do so again."""
        pause_s = self.config.heartbeat_interval_ms / 1000
        with self._lock:
            epoch, pending = self._epoch, self._pending
            member_id, generation_id = self._member_id, self._current_generation()
            idle_s = time.monotonic() - self._attended_s
            left_s = self.config.max_poll_interval_ms / 1000 - idle_s
            is_out = self._is_lost or self._state is MemberState.UNJOINED or not member_id
            # Waiting for the others says so as well, and would hear of its own round.
            is_joining = self._is_attending and self._state is MemberState.REBALANCING
            if is_out or is_joining:
                return min(pause_s, self.config.max_poll_interval_ms / 1000)
            if left_s <= 0:
                self._is_lost = True
        try:
            if left_s <= 0:
                self._leave_since_idle(member_id, epoch)
            elif pending is not None:
                answer = self._coordinator.await_join(self.group_id, pending)
                if isinstance(answer, Pending):
                    with self._lock:
                        if epoch == self._epoch:
                            self._note(answer)
                else:
                    self._on_news()
            else:
                instance_id = self.config.group_instance_id
                version = self._coordinator.heartbeat(
                    self.group_id, member_id, generation_id, instance_id
                )
                self._note_version(version, epoch)
        except GroupError as error:
            self._hear(error, epoch)
        except Exception as error:
            if not (isinstance(error, LakelogError) and error.retriable):
                self._hear(error, epoch)
            logger.info("no heartbeat of %r in group %r: %s", member_id, self.group_id, error)
        return max(0.0, min(pause_s, left_s))

    def listen(self, most_s: float) -> bool:
        """Waits for news of the group, so that who joins need not wait for the next heartbeat.

        Returns:
            Whether it has waited: there is nothing to hear before a heartbeat was answered, nor
            while another round is known to begin.
        """
        with self._lock:
            version, self._version = self._version, None
            left_s, self._due_s = self._due_s - time.monotonic(), inf
        if version is None or most_s <= 0:
            return False
        try:
            most_ms = round(1000 * max(0.0, min(most_s, left_s)))
            is_news = self._coordinator.await_change(self.group_id, version, most_ms)
        except LakelogError as error:
            logger.info("no news of group %r: %s", self.group_id, error)
            return False
        if is_news or left_s <= most_s:
            self._on_news()
        return True

    def _note(self, pending: Pending) -> None:
        """Under the lock: what is waited for."""
        self._version = pending.version
        self._due_s = time.monotonic() + pending.due_in_ms / 1000

    def _note_version(self, version: int, epoch: int) -> None:
        with self._lock:
            if epoch == self._epoch and not self._must_join:
                self._version = version

    def _current_generation(self) -> int:
        """That which the coordinator goes by, ahead of the partitions' while the leader assigns."""
        return self._generation_id if self._joined is None else self._joined.generation_id

    def _leave_since_idle(self, member_id: str, epoch: int) -> None:
        logger.warning(
            "%r leaves group %r: more than max_poll_interval_ms=%d passed between two polls. Raise "
            "it, or lower max_poll_records",
            member_id,
            self.group_id,
            self.config.max_poll_interval_ms,
        )
        if self.config.group_instance_id is None:
            with self._lock:
                if self._epoch == epoch:
                    self._member_id = NO_MEMBER_ID
            self._say_goodbye(member_id)

    def _hear(self, error: Exception, epoch: int) -> None:
        """Notes what the next `attend` acts on, unless the member has gone on meanwhile."""
        with self._lock:
            if epoch != self._epoch:
                return
            if isinstance(error, RebalanceInProgressError):
                self._must_join = True
            else:
                if isinstance(error, UnknownMemberIdError):
                    self._member_id = NO_MEMBER_ID
                elif not isinstance(error, IllegalGenerationError):
                    self._failure = error
                if isinstance(error, GroupError):
                    self._is_lost = True
        self._on_news()
