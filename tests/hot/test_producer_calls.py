"""What Redis tells of producers with checksums, and what a recovery puts back of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from lakelog.errors import (
    OutOfOrderSequenceError,
    RepeatDiffersError,
)
from lakelog.hot import AppendResult
from lakelog.values.producer_calls import (
    CUT,
    MAX_SEQUENCES,
    REMEMBERED_CALLS,
    ProducerCall,
    last_calls,
)
from lakelog.values.reservation import Reserved, Wanted
from lakelog.values.topic_partition import OffsetRange, TopicPartition

NOW_MS = 1_700_000_000_000


@pytest.fixture
def tiered(make_bench):
    return make_bench(remote_storage_enable="true")


class Sink:
    """A producer with checksums: two records a call."""

    def __init__(self, bench, make_batch, producer_id: int = 7) -> None:
        self.bench, self.make_batch, self.producer_id = bench, make_batch, producer_id

    def batch(self, number: int, *, epoch: int = 0, of: str = "a"):
        batch = self.make_batch(
            [NOW_MS] * 2, producer_id=self.producer_id, epoch=epoch, first_sequence=2 * number
        )
        return replace(batch, checksums=(f"{of}{number:07}", f"{of}{number + 1:07}"))

    def send(self, number: int, **more) -> AppendResult:
        return self.bench.send(self.batch(number, **more))

    def call(self, number: int, base_offset: int, epoch: int = 0) -> ProducerCall:
        """The call as it is known then."""
        return ProducerCall(
            self.producer_id,
            epoch,
            2 * number,
            2 * number + 1,
            base_offset,
            checksum=f"a{number + 1:07}",
        )


@pytest.fixture
def sink(tiered, make_batch):
    return Sink(tiered, make_batch)


def known(bench) -> tuple[ProducerCall, ...]:
    return bench.hot.offsets([bench.tp()], calls=REMEMBERED_CALLS)[bench.tp()].calls


def recover(bench, *calls: ProducerCall) -> None:
    """Another run of the server, which a cold tier that archived these calls recovers."""
    bench.client.hset(bench.keys()[1], "run_id", "f" * 40)

    def reserve(wanted: Mapping[TopicPartition, Wanted]) -> Mapping[TopicPartition, Reserved]:
        return {
            tp: Reserved(OffsetRange(one.least + 1000, one.least + 10**6), calls)
            for tp, one in wanted.items()
        }

    bench.hot.recover(bench.tp(), 0, reserve)


def lose(bench, *calls: ProducerCall) -> None:
    """Redis forgets all records, and all producers."""
    bench.client.delete(bench.keys()[0], bench.keys()[4])
    bench.client.hset(bench.keys()[1], mapping={"log_end": 0, "producer_count": 0})
    bench.client.hdel(bench.keys()[1], "checksums")
    recover(bench, *calls)


# -- looking ---------------------------------------------------------------------------------------


def test_the_last_five_calls_are_told_with_the_log_end(tiered, sink) -> None:
    for number in range(7):
        sink.send(number)
        tiered.append(NOW_MS)  # of a producer without checksums
    assert known(tiered) == tuple(sink.call(n, 3 * n) for n in reversed(range(2, 7)))
    newest = tiered.hot.offsets([tiered.tp()], calls=1)[tiered.tp()].calls
    assert newest == (sink.call(6, 18),)
    assert tiered.offsets().calls == ()  # not asked for


# -- recovering ------------------------------------------------------------------------------------


def test_what_was_archived_is_known_again(tiered, sink) -> None:
    for number in range(3):
        sink.send(number)
    archived = last_calls(known(tiered), 6)
    lose(tiered, *archived)
    again = sink.send(2)
    assert (again.duplicate, again.base_offset) == (True, 4)
    with pytest.raises(OutOfOrderSequenceError) as beyond:
        sink.send(1)  # the newest alone is known; that says that this one was appended
    assert beyond.value.expected == 6
    with pytest.raises(RepeatDiffersError):
        sink.send(3, of="b")
    assert not sink.send(3).duplicate
    assert {call.checksum for call in known(tiered)} == {"a0000003", "a0000004"}
    assert tiered.state("producer_count") == b"1"


def test_what_survived_in_redis_is_newer_than_what_is_archived(tiered, sink) -> None:
    sink.send(0)
    archived = last_calls(known(tiered), 2)
    sink.send(1)
    recover(tiered, *archived)
    assert known(tiered) == (sink.call(1, 2), sink.call(0, 0))
    assert sink.send(1).duplicate


def test_what_is_archived_beyond_what_survived_counts(tiered, sink) -> None:
    for number in range(4):
        sink.send(number)
    archived = last_calls(known(tiered), 8)
    tiered.client.hset(tiered.keys()[1], "log_end", 4)  # the calls 2 and 3 are lost
    recover(tiered, *archived)
    assert known(tiered) == (sink.call(3, 6),)
    assert sink.send(3).duplicate
    assert not sink.send(4).duplicate


def test_work_that_is_cut_is_refused_and_what_comes_next_is_taken(tiered, sink) -> None:
    cut = replace(sink.call(0, 2), last_sequence=MAX_SEQUENCES - 1, checksum=CUT)
    lose(tiered, cut)
    for number in (0, 5):
        with pytest.raises((RepeatDiffersError, OutOfOrderSequenceError)) as refused:
            sink.send(number)
        assert getattr(refused.value, "is_cut", number > 0)
    assert known(tiered) == (cut,)
    assert tiered.hot.inspection().producer_calls(tiered.tp()) == []
    assert not sink.send(0, epoch=1).duplicate
