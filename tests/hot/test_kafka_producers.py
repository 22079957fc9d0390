"""Producers that are Kafka clients: what a broker's rules say of their sequences, and what a lost
tail leaves of them.
"""

from __future__ import annotations

import pytest

from lakelog.errors import OutOfOrderSequenceError, ProducerFencedError, RecoveryNeededError
from lakelog.hot import AppendCall
from lakelog.values.producer_calls import KAFKA, last_calls

NOW_MS = 1_700_000_000_000


@pytest.fixture
def send(make_batch):
    """``send(bench, first_sequence, records=1, producer_id=7, epoch=0)`` → its base offset, and
    whether it was a duplicate.
    """

    def sent(bench, first_sequence, records=1, *, producer_id=7, epoch=0):
        batch = make_batch(
            [NOW_MS] * records,
            producer_id=producer_id,
            epoch=epoch,
            first_sequence=first_sequence,
        )
        call = AppendCall(bench.tp(), bench.topic.topic_id, batch, is_kafka=True)
        (answer,) = bench.hot.append_all([call])
        if isinstance(answer, Exception):
            raise answer
        return answer.base_offset, answer.duplicate

    return sent


def test_an_unknown_one_begins_at_any_sequence_and_goes_on_in_order(bench, send):
    assert send(bench, 41, 2) == (0, False)
    assert send(bench, 43) == (2, False)
    assert send(bench, 41, 2) == (0, True)
    with pytest.raises(OutOfOrderSequenceError):
        send(bench, 45)
    with pytest.raises(OutOfOrderSequenceError):
        send(bench, 3, epoch=1)  # a new epoch begins at 0
    assert send(bench, 0, epoch=1) == (3, False)
    with pytest.raises(ProducerFencedError):
        send(bench, 44)


def test_sequences_wrap(bench, send):
    assert send(bench, 2**31 - 2, 3) == (0, False)
    assert send(bench, 1) == (3, False)


def test_of_one_without_an_id_nothing_is_kept(bench, send):
    assert send(bench, 0, producer_id=-1) == (0, False)
    assert send(bench, 0, producer_id=-1) == (1, False)
    assert bench.client.exists(bench.keys()[4]) == 0
    assert bench.state("producer_count") == b"0"


@pytest.fixture
def lost(make_redis, make_bench, redis_program, send):
    """Of five calls two had no time to reach the disk."""
    server = make_redis(program=redis_program)
    bench = make_bench(url=server.url)
    for sequence in range(3):
        send(bench, sequence)
    size = server.append_only_size()
    send(bench, 3)
    send(bench, 4)
    server.cut_append_only_file(to_size=size)
    server.start()
    return bench


def test_after_a_lost_tail_it_goes_on_behind_what_survived(lost, send):
    with pytest.raises(RecoveryNeededError):
        send(lost, 3)
    end = lost.hot.recover(lost.tp(), 5).log_end
    assert send(lost, 1) == (1, True)  # it survived, and is not appended twice
    assert send(lost, 3) == (end, False)
    assert send(lost, 4) == (end + 1, False)


def test_who_lost_what_was_acknowledged_is_told_so(lost, send):
    lost.hot.recover(lost.tp(), 5)
    with pytest.raises(OutOfOrderSequenceError):
        send(lost, 5)


def test_others_begin_anew_as_before(lost, send):
    lost.hot.recover(lost.tp(), 5)
    assert send(lost, 17, producer_id=8)[1] is False  # nobody knows it


def test_archivers_ask_for_its_calls(bench, send):
    send(bench, 0, 3)
    send(bench, 3)
    (seen,) = bench.hot.segments([bench.tp()], calls=5).values()
    (call,) = last_calls(seen.calls, 4)
    assert (call.producer_id, call.first_sequence, call.base_offset) == (7, 3, 3)
    assert call.checksum == KAFKA
