"""What a continuous run works on next, by a clock of the test's own: outages of any length."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from lakelog.archive.archiver import Flushed
from lakelog.archive.supervisor import (
    LONG_CALL_S,
    MOST_WORKERS,
    RETRIES_AT_ONCE,
    SWEEP_S,
    TOPIC_BACK_OFF,
    WORKERS,
    Supervisor,
)
from lakelog.errors import ColdTierUnavailableError
from lakelog.hot.looks import PartitionLook, ServerLook
from lakelog.hot.server_info import MemoryUse
from lakelog.values.config import TopicConfig
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

HOUR_S = 3600.0
CONFIG = TopicConfig().replace({"lakelog.flush.rows": 100, "lakelog.flush.interval.ms": 60_000})
AWAY = ColdTierUnavailableError("the store is away")


class Bench:
    """A supervisor, the hands that turn its clock, and a Redis whose records are numbers."""

    def __init__(self, topics: int) -> None:
        self.now_s = 1000.0
        self.supervisor = Supervisor(lambda: self.now_s, lambda: int(self.now_s * 1000))
        self.topics = [Topic(f"t{n:03}", uuid4(), 1, CONFIG) for n in range(topics)]
        self.seen: dict[TopicPartition, PartitionLook | None] = {}
        self.memory: MemoryUse | None = None
        self.supervisor.topics_are(self.topics)
        self.look()

    def append(self, topic: Topic, log_end: int, since_ms: int | None = None) -> None:
        since_ms = int(self.now_s * 1000) if since_ms is None else since_ms
        look = PartitionLook(str(topic.topic_id), True, log_end, since_ms)
        self.seen[topic.partition(0)] = look

    def look(self) -> None:
        for topic in self.topics:
            self.seen.setdefault(
                topic.partition(0), PartitionLook(str(topic.topic_id), True, 0, None)
            )
        self.supervisor.saw(ServerLook(int(self.now_s * 1000), dict(self.seen), self.memory))

    def started(self) -> list[Topic]:
        self.look()
        return self.supervisor.start()

    def work(self, *failing: Topic, error: BaseException = AWAY) -> list[Topic]:
        """Work as long as something is due now; what was worked on, in order."""
        done = []
        while started := self.started():
            for topic in started:
                self.end(topic, error if topic in failing else None)
            done += started
        return done

    def end(self, topic: Topic, error: BaseException | None = None, **more: Any) -> None:
        look = self.seen[topic.partition(0)]
        assert look is not None
        if error is None:  # it tells Redis that nothing waits
            self.seen[topic.partition(0)] = replace(look, unarchived_since_ms=None)
        outcome = error or Flushed(None, {0: look.log_end}, more.pop("next_ms", None), **more)
        self.supervisor.ended(topic.topic_id, outcome)

    def run(self, seconds: float, *failing: Topic, step_s: float = 0.5) -> list[Topic]:
        """What was worked on in so long."""
        done, until_s = [], self.now_s + seconds
        while self.now_s < until_s:
            self.now_s += step_s
            done += self.work(*failing)
        return done


def test_every_topic_is_worked_on_once_and_then_rests():
    bench = Bench(300)
    assert sorted(topic.name for topic in bench.work()) == [t.name for t in bench.topics]
    assert bench.run(SWEEP_S / 2) == []


def test_no_more_run_at_once_than_there_are_workers():
    bench = Bench(300)
    assert len(bench.started()) == WORKERS
    assert bench.started() == []


def test_rows_and_age_make_a_topic_due():
    bench = Bench(3)
    bench.work()
    many, old, few = bench.topics
    bench.append(many, 100)
    bench.append(old, 1, since_ms=int(bench.now_s * 1000) - 59_999)
    bench.append(few, 99)
    assert bench.work() == [many]
    bench.now_s += 0.001
    assert bench.work() == [old]
    assert bench.run(59) == []
    assert bench.run(2) == [few]


def test_what_came_back_from_quarantine_is_worked_on_though_no_log_end_moved():
    bench = Bench(1)
    (topic,) = bench.topics
    bench.append(topic, 5)
    assert bench.run(61) == [topic]
    bench.append(topic, 5)
    assert bench.run(59) == []
    assert bench.run(2) == [topic]


@pytest.mark.parametrize(
    "look",
    [None, PartitionLook("", False, 0, None)],
    ids=["its keys are lost", "its server has another run"],
)
def test_what_only_a_closer_look_can_tell_is_looked_at(look):
    bench = Bench(2)
    bench.work()
    bench.seen[bench.topics[0].partition(0)] = look
    assert bench.started() == [bench.topics[0]]


def test_a_nearly_full_server_makes_topics_due_that_have_anything_there():
    bench = Bench(2)
    bench.work()
    bench.append(bench.topics[0], 1)
    assert bench.run(10) == []
    bench.memory = MemoryUse(80, 100)
    assert bench.work() == bench.topics  # what is archived goes from there, too
    bench.append(bench.topics[0], 2)
    assert bench.work() == []  # not more often than that
    assert bench.run(10) == [bench.topics[0]]
    bench.memory = MemoryUse(79, 100)
    bench.append(bench.topics[0], 3)
    assert bench.run(10) == []


def test_an_outage_of_days_is_outlived_while_others_go_on():
    bench = Bench(20)
    away, *others = bench.topics
    bench.work(away)
    tries = []
    for hour in range(72):
        for topic in others:
            bench.append(topic, 100 * (hour + 1))
        done = bench.run(HOUR_S, away, step_s=5.0)
        assert {topic.name for topic in done} == {topic.name for topic in bench.topics}
        tries.append(done.count(away))
    assert min(tries) >= HOUR_S / (TOPIC_BACK_OFF.longest_s + 5) - 1  # it is never given up
    assert max(tries) <= HOUR_S / (TOPIC_BACK_OFF.longest_s / 2)  # nor asked without a pause
    (trouble,) = bench.supervisor.troubles()
    assert (trouble.topic, trouble.since_ms) == (away.name, 1_000_000)
    assert trouble.next_try_ms is not None
    assert trouble.next_try_ms - bench.now_s * 1000 <= TOPIC_BACK_OFF.longest_s * 1000
    assert "the store is away" in str(trouble)

    bench.run(2 * TOPIC_BACK_OFF.longest_s)  # it is back
    assert bench.supervisor.troubles() == ()
    bench.append(away, 100)
    bench.work(away)
    (trouble,) = bench.supervisor.troubles()
    assert trouble.tries == 1  # it begins anew
    assert trouble.next_try_ms - bench.now_s * 1000 <= 1000


def test_a_defect_of_any_kind_is_tried_again():
    bench = Bench(2)
    broken = bench.topics[0]
    for error in (ZeroDivisionError("a bug"), MemoryError(), SystemExit(3), AWAY):
        assert set(bench.work(broken, error=error)) >= {broken}
        (trouble,) = bench.supervisor.troubles()
        assert trouble.why.startswith(type(error).__name__)
        bench.now_s += TOPIC_BACK_OFF.longest_s
    assert broken in bench.work()
    assert bench.supervisor.troubles() == ()


def test_many_failing_topics_leave_room_for_those_that_go_well():
    bench = Bench(300)
    failing, (well,) = bench.topics[:-1], bench.topics[-1:]
    bench.work(*failing)
    bench.now_s += TOPIC_BACK_OFF.longest_s
    bench.look()
    assert len(bench.supervisor.start()) == RETRIES_AT_ONCE  # and none of them returns
    bench.append(well, 100)
    assert bench.started() == [well]


def test_calls_that_hang_give_their_places_to_others_up_to_a_limit():
    bench = Bench(100)
    hung = bench.started()
    assert len(hung) == WORKERS
    bench.now_s += LONG_CALL_S
    assert [one.topic for one in bench.supervisor.troubles()] == sorted(t.name for t in hung)
    assert "has not returned for 60 s" in str(bench.supervisor.troubles()[0])
    while started := bench.started():
        hung += started
        bench.now_s += LONG_CALL_S
    assert len(hung) == MOST_WORKERS
    bench.end(hung[0])
    assert len(bench.started()) == 1


def test_a_drain_works_on_what_is_not_archived_alone():
    bench = Bench(50)
    bench.work()
    bench.append(bench.topics[7], 1)
    bench.look()
    bench.supervisor.drain()
    assert bench.started() == [bench.topics[7]]
    assert not bench.supervisor.is_drained()
    bench.end(bench.topics[7], is_final=True)
    assert bench.supervisor.is_drained()
    assert bench.supervisor.unfinished() == ()


def test_a_run_that_goes_on_when_the_drain_begins_is_followed_by_the_last_one():
    bench = Bench(1)
    bench.work()
    (topic,) = bench.topics
    bench.append(topic, 100)
    assert bench.started() == [topic]
    bench.append(topic, 150)
    bench.look()
    bench.supervisor.drain()
    bench.supervisor.ended(topic.topic_id, Flushed(None, {0: 100}, None))
    assert bench.started() == [topic]
    bench.end(topic, is_final=True)
    assert bench.supervisor.is_drained()
