"""What the cold tier keeps of producers: all that is certain of what it holds, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakelog.values.producer_calls import (
    CUT,
    MAX_SEQUENCES,
    REMEMBERED_CALLS,
    ProducerCall,
    last_calls,
    newest,
)


@st.composite
def histories(draw: st.DrawFn) -> list[ProducerCall]:
    """All calls to a partition, of three producers with checksums and one without, by offset."""
    calls: list[ProducerCall] = []
    position: dict[int, tuple[int, int]] = {}  # epoch and next sequence, by producer
    offset = draw(st.integers(0, 50))
    for _ in range(draw(st.integers(0, 30))):
        producer, count = draw(st.integers(0, 3)), draw(st.integers(1, 4))
        epoch, sequence = position.get(producer, (0, 0))
        if draw(st.integers(0, 7)) == 0:
            epoch, sequence = epoch + draw(st.integers(1, 3)), 0
        offset += draw(st.sampled_from([0, 0, 0, 100]))  # a gap
        said = "" if producer == 3 else f"{len(calls):08x}"
        last = sequence + count - 1
        calls.append(ProducerCall(producer, epoch, sequence, last, offset, checksum=said))
        position[producer] = epoch, last + 1
        offset += count
    return calls


def remembered(history: list[ProducerCall], calls: int = REMEMBERED_CALLS) -> list[ProducerCall]:
    """What Redis knows: of each producer the last calls of its newest epoch."""
    found = []
    for producer in {call.producer_id for call in history}:
        own = [call for call in history if call.producer_id == producer]
        of_epoch = [call for call in own if call.epoch == own[-1].epoch]
        found += of_epoch[-calls:]
    return found


@given(histories())
def test_at_the_log_end_the_newest_call_of_each_producer_is_kept(
    history: list[ProducerCall],
) -> None:
    end = history[-1].end_offset if history else 0
    last = {call.producer_id: call for call in history if call.checksum}
    expected = tuple(sorted(last.values(), key=lambda call: call.base_offset))
    assert last_calls(remembered(history), end) == expected
    assert last_calls(remembered(history, 1), end) == expected  # the newest is enough there


@given(histories(), st.integers(0, 400), st.sampled_from([1, REMEMBERED_CALLS]))
def test_anywhere_else_what_is_kept_is_true_and_what_is_not_known_is_cut(
    history: list[ProducerCall], end: int, calls: int
) -> None:
    kept = last_calls(remembered(history, calls), end)
    assert list(kept) == sorted(kept, key=lambda call: call.base_offset)
    by_producer = {call.producer_id: call for call in kept}
    assert len(by_producer) == len(kept)
    assert all(call.base_offset < end for call in kept)
    for producer in {call.producer_id for call in history if call.checksum}:
        own = [call for call in history if call.producer_id == producer]
        in_epoch = [call for call in own if call.epoch == own[-1].epoch]
        below = [call for call in in_epoch if call.base_offset < end]
        found = by_producer.pop(producer, None)
        if found is None:  # a repeat of its newest work appends all of it
            assert below == []
        elif found.checksum != CUT:  # a repeat appends what follows
            assert found == below[-1]
            assert found.end_offset <= end
        else:  # a repeat is refused: it is within a call, or Redis remembers none below
            assert found.epoch == own[-1].epoch
            forgotten = len(in_epoch) > calls and in_epoch[-calls].base_offset >= end
            assert forgotten or (below and below[-1].end_offset > end)
    assert by_producer == {}


def test_sequences_that_begin_again_are_counted() -> None:
    call = ProducerCall(1, 0, MAX_SEQUENCES - 2, 1, 100)
    assert call.end_offset == 104
    assert [call.sequence(offset) for offset in range(100, 104)] == [
        MAX_SEQUENCES - 2,
        MAX_SEQUENCES - 1,
        0,
        1,
    ]


def test_of_too_many_the_newest_are_kept() -> None:
    calls = [ProducerCall(n, 0, 0, 0, offset, checksum="0") for n, offset in enumerate([7, 3, 9])]
    assert [call.base_offset for call in newest(calls, 2)] == [7, 9]
    assert [call.base_offset for call in newest(calls, 5)] == [3, 7, 9]
    assert newest(calls, 0) == ()
