"""Which number a call carries, and which calls a queue holds."""

from collections import deque
from uuid import UUID

import pytest

from lakelog.codec import Entry
from lakelog.ingest.delivery import Delivery
from lakelog.ingest.partition_queue import Call, InFlight, PartitionQueue
from lakelog.values.producer_calls import MAX_SEQUENCES
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition


def call(records: int = 10) -> Call:
    made = Call(None, Delivery(None, TopicPartition("t", 0), []), 0.0)
    made.record_count = records
    made.entries = (Entry(records, [b"a", b"b"], 2, 2, 0, 0, None),)
    return made


def in_flight(*calls: Call) -> InFlight:
    made = InFlight(producer_id=7, max_calls=5)
    made.calls.extend(calls)
    return made


def numbers(calls: list[Call]) -> list[tuple[int, int, int]]:
    return [(c.batch.epoch, c.batch.first_sequence, c.batch.last_sequence) for c in calls]


def test_sequences_begin_again_at_0_after_the_largest():
    first, second = call(2), call(2)
    flight = in_flight(first, second)
    flight._sequence = MAX_SEQUENCES - 3
    assert numbers(flight.next_round()) == [
        (0, MAX_SEQUENCES - 3, MAX_SEQUENCES - 2),
        (0, MAX_SEQUENCES - 1, 0),
    ]
    flight.written(first)
    flight.written(second)
    flight.calls.append(call(1))
    assert numbers(flight.next_round()) == [(0, 1, 1)]


def test_behind_a_rejected_call_a_new_epoch_begins():
    rejected, behind = call(), call()
    flight = in_flight(rejected, behind)
    flight.next_round()
    flight.leave(rejected)
    assert numbers(flight.next_round()) == [(1, 0, 9)]


def test_a_call_that_may_be_written_keeps_its_number_and_the_new_epoch_waits_for_it():
    lost, kept, fresh = call(), call(), call()
    flight = in_flight(lost, kept, fresh)
    flight.next_round()
    lost.may_be_written = kept.may_be_written = True
    flight.leave(lost)
    assert numbers(flight.next_round()) == [(0, 10, 19)]
    flight.written(kept)
    assert numbers(flight.next_round()) == [(1, 0, 9)]


def test_a_written_call_keeps_its_place_while_an_earlier_one_is_asked_about():
    asked, *others = (call() for _ in range(5))
    flight = in_flight(asked, *others)
    flight.next_round()
    asked.may_be_written = True
    for other in others:
        flight.written(other)
    assert not flight.has_room()
    assert numbers(flight.next_round()) == [(0, 0, 9)]
    flight.written(asked)
    assert not flight.calls
    flight.calls.append(call())
    assert numbers(flight.next_round()) == [(0, 50, 59)]


class Interrupted(deque):
    """Ctrl-C comes right after a call was added."""

    def append(self, one):
        super().append(one)
        raise KeyboardInterrupt


@pytest.mark.parametrize("then", ["closed again", "taken", "failed"])
def test_an_interrupt_while_a_call_is_closed_leaves_it_whole(then):
    queue = PartitionQueue(
        Topic("t", UUID(int=1), 1), TopicPartition("t", 0), in_flight(), "none", None
    )
    held = queue.open = call()
    queue.closed = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        queue.close_open()
    queue.closed = deque(queue.closed)
    assert queue.unsettled() == [held]
    if then == "closed again":
        queue.close_open()
        assert (list(queue.closed), queue.open) == ([held], None)
    elif then == "taken":
        assert queue.take_due(0.0, 0.0) is held  # it is encoded now: no record may be added
        assert (queue.closed, queue.open, queue.take_due(0.0, 0.0)) == (deque(), None, None)
    else:
        queue.remove(held)
        assert (queue.closed, queue.open, queue.unsettled()) == (deque(), None, [])
