"""A member in a thread of its own, which attends again and again and writes down what it got."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.membership import Membership
from lakelog.groups.settings import MemberConfig
from lakelog.values.topic_partition import TopicPartition

#: How long one call of `attend` waits for the others.
ATTEND_MS = 50


@dataclass(frozen=True)
class Seen:
    """What a member had after a call of `attend` that said it is settled."""

    generation_id: int
    partitions: frozenset[TopicPartition]


@dataclass(eq=False)
class ReadingMember:
    """Its owner, too: notes what it is told."""

    group: str
    coordinator: GroupCoordinator
    topics: Callable[[], Mapping[str, int]]
    config: MemberConfig
    told: list[tuple[str, frozenset[TopicPartition]]] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.member = Membership(self.coordinator, self.group, self, self.topics, self.config)
        self._stop = threading.Event()
        self._may_go_on = threading.Event()
        self._may_go_on.set()
        self._is_paused = threading.Event()
        self._leaves = True
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, *topics: str) -> ReadingMember:
        self.member.subscribe(topics or ("orders",))
        self._thread.start()
        return self

    def pause(self) -> None:
        """Attends no more until `go_on`; returns when it does not."""
        self._is_paused.clear()
        self._may_go_on.clear()
        self._is_paused.wait()

    def go_on(self) -> None:
        self._may_go_on.set()

    def stop(self) -> None:
        """Leaves."""
        self._stop.set()
        self.go_on()
        if self._thread.ident is not None:
            self._thread.join()

    def die(self) -> None:
        """Says nothing any more, as a process that was killed: nobody holds its membership."""
        self._leaves = False
        self.stop()
        del self.member

    @property
    def now(self) -> Seen | None:
        """What it had when it was settled last."""
        return self.seen[-1] if self.seen else None

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if not self._may_go_on.is_set():
                    self._is_paused.set()
                    self._may_go_on.wait()
                    continue
                if self.member.attend(ATTEND_MS):
                    seen = Seen(self.member.generation_id, self.member.partitions)
                    if self.now != seen:
                        self.seen.append(seen)
                    self._stop.wait(0.01)
            if self._leaves:
                self.member.leave()
        except BaseException as error:
            self.error = error

    # -- as an owner ---------------------------------------------------------------------------

    def revoked(self, partitions: set[TopicPartition]) -> None:
        self.told.append(("revoked", frozenset(partitions)))

    def lost(self, partitions: set[TopicPartition]) -> None:
        self.told.append(("lost", frozenset(partitions)))

    def assigned(self, partitions: set[TopicPartition]) -> None:
        self.told.append(("assigned", frozenset(partitions)))


def of(topic: str, *numbers: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(topic, number) for number in numbers)
