"""Which number a call carries, and what an answer means for it."""

import pytest

from lakelog.codec import Entry
from lakelog.codec.entry import MAX_SEQUENCES
from lakelog.errors import (
    HotTierFullError,
    HotTierUnavailableError,
    InvalidTimestampError,
    NotEnoughReplicasError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecoveryNeededError,
    UnknownProducerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.hot import AppendResult
from lakelog.ingest.delivery import Delivery
from lakelog.ingest.in_flight import Call, InFlight, Verdict, verdict
from lakelog.record import TopicPartition

WRITTEN = AppendResult(0, -1, 0, "run", False)


def call(records: int = 10) -> Call:
    made = Call(None, Delivery(None, TopicPartition("t", 0), []), 0.0)
    made.record_count = records
    made.entries = (Entry(records, [b"a", b"b"], 2, 0, 0, None),)
    return made


def in_flight(*calls: Call) -> InFlight:
    made = InFlight(producer_id=7, max_calls=5)
    made.calls.extend(calls)
    return made


def numbers(calls: list[Call]) -> list[tuple[int, int, int]]:
    return [(c.batch.epoch, c.batch.first_sequence, c.batch.last_sequence) for c in calls]


def test_calls_are_numbered_in_order():
    flight = in_flight(call(10), call(5))
    assert numbers(flight.next_round()) == [(0, 0, 9), (0, 10, 14)]


def test_sequences_go_on_after_what_was_written():
    first, second = call(10), call(5)
    flight = in_flight(first)
    flight.next_round()
    flight.written(first)
    flight.calls.append(second)
    assert numbers(flight.next_round()) == [(0, 10, 14)]


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


def test_a_call_that_was_not_written_is_sent_again_under_its_number():
    flight = in_flight(call(), call())
    assert numbers(flight.next_round()) == numbers(flight.next_round())


def test_behind_a_rejected_call_a_new_epoch_begins():
    rejected, behind = call(), call()
    flight = in_flight(rejected, behind)
    flight.next_round()
    flight.leave(rejected)
    assert numbers(flight.next_round()) == [(1, 0, 9)]


def test_a_call_that_was_never_numbered_leaves_no_trace():
    first = call()
    flight = in_flight(first)
    flight.leave(first)
    flight.calls.append(call())
    assert numbers(flight.next_round()) == [(0, 0, 9)]


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


def unanswered(*, sent: bool) -> HotTierUnavailableError:
    return HotTierUnavailableError("away", sent=sent, run_id="run")


@pytest.mark.parametrize(
    ("answer", "fresh_first", "fresh_behind", "kept_first"),
    [
        (WRITTEN, Verdict.WRITTEN, Verdict.WRITTEN, Verdict.WRITTEN),
        (unanswered(sent=True), Verdict.WAIT, Verdict.WAIT, Verdict.WAIT),
        (unanswered(sent=False), Verdict.WAIT, Verdict.WAIT, Verdict.WAIT),
        (HotTierFullError("full"), Verdict.WAIT, Verdict.WAIT, Verdict.WAIT),
        (NotEnoughReplicasError("few"), Verdict.WAIT, Verdict.WAIT, Verdict.WAIT),
        (OutOfOrderSequenceError("gap"), Verdict.RENUMBER, Verdict.RESEND, Verdict.UNKNOWN),
        (UnknownProducerError("who?"), Verdict.RENUMBER, Verdict.RENUMBER, Verdict.UNKNOWN),
        (ProducerFencedError("old"), Verdict.REFUSED, Verdict.REFUSED, Verdict.UNKNOWN),
        (InvalidTimestampError("late"), Verdict.REFUSED, Verdict.REFUSED, Verdict.UNKNOWN),
        (RecoveryNeededError("new run"), Verdict.RECOVER, Verdict.RECOVER, Verdict.RECOVER),
        (UnknownTopicOrPartitionError("no"), Verdict.REPAIR, Verdict.REPAIR, Verdict.REPAIR),
        (UnknownTopicIdError("no"), Verdict.TOPIC_GONE, Verdict.TOPIC_GONE, Verdict.TOPIC_GONE),
    ],
)
def test_what_an_answer_means(answer, fresh_first, fresh_behind, kept_first):
    assert [
        verdict(answer, may_be_written=False, is_first=True),
        verdict(answer, may_be_written=False, is_first=False),
        verdict(answer, may_be_written=True, is_first=True),
    ] == [fresh_first, fresh_behind, kept_first]


def test_a_call_out_of_order_behind_an_unsettled_one_is_sent_again_even_if_it_may_be_written():
    answer = OutOfOrderSequenceError("gap")
    assert verdict(answer, may_be_written=True, is_first=False) is Verdict.RESEND
