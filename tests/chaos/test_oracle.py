"""Histories made by hand, with anomalies that no property of the oracle states."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .history import (
    Consumption,
    Creation,
    Erasure,
    FinalLog,
    History,
    Kind,
    Outcome,
    Partition,
    Seen,
    Send,
    Span,
    TotalLoss,
)
from .oracle import judge
from .payload import NULLED

PLAIN = Partition("id-1", 0)
READERS = ("log.read", "by hand")


def acked(sequence: int, offset: int, at_s: float | None = None, *, key: str = "k") -> Send:
    at_s = float(offset) if at_s is None else at_s
    payload = f"p.1.{sequence}"
    return Send(payload, "plain", key, at_s, False, Outcome.ACKED, at_s + 0.1, 0, offset)


def unacked(sequence: int, outcome: Outcome, at_s: float) -> Send:
    return Send(f"p.1.{sequence}", "plain", "k", at_s, False, outcome)


def seen(*places: tuple[int, int]) -> list[Seen]:
    return [Seen(offset, f"p.1.{sequence}") for sequence, offset in places]


def log(
    *places: tuple[int, int], end: int, start: int = 0, gaps: tuple[Span, ...] = ()
) -> FinalLog:
    records = seen(*places)
    return FinalLog(
        "plain",
        PLAIN,
        start,
        end,
        list(gaps),
        {reader: list(records) for reader in READERS},
        dict.fromkeys((record.payload for record in records), "k"),
    )


def history(kind: Kind = Kind.PLAIN) -> History:
    """Five records, one of them without an answer; a tail lost at 10 s; a consumer beside it."""
    return History(
        sends=[
            acked(0, 0),
            acked(1, 1),
            unacked(2, Outcome.UNKNOWN, 2.0),
            acked(3, 3, 9.5),  # lost
            acked(4, 100, 20.0),
            unacked(5, Outcome.REFUSED, 21.0),
        ],
        creations=[Creation("plain", PLAIN.topic_id, kind, 0.0)],
        consumptions=[
            Consumption("c", PLAIN, 0, seen((0, 0), (1, 1), (2, 2), (3, 3), (4, 100)), 101)
        ],
        finals=[log((0, 0), (1, 1), (2, 2), (4, 100), end=101, gaps=(Span(3, 100),))],
        losses=[Span(9.0, 10.0)],
        restarts=1,
    )


def names(history: History) -> list[str]:
    return sorted({anomaly.name for anomaly in judge(history)})


def change_all(history: History, change: Callable[[list[Seen]], object]) -> None:
    """The same for all readers."""
    for reading in history.finals[0].readings.values():
        change(reading)


def test_what_may_have_been_a_logs_history_has_no_anomaly() -> None:
    assert judge(history()) == []


# -- lost write ------------------------------------------------------------------------------------


def test_a_loss_that_no_gap_declares_is_a_lost_write_and_a_hole() -> None:
    broken = history()
    broken.finals[0].gaps = [Span(4, 100)]
    assert names(broken) == ["lost write", "skipped offset"]


def test_a_gap_over_what_was_durable_is_a_lost_write() -> None:
    broken = history()
    broken.sends[3].is_durable = True
    assert names(broken) == ["lost write"]


def test_a_gap_over_what_was_acknowledged_long_before_the_loss_is_a_lost_write() -> None:
    broken = history()
    broken.losses = [Span(9.7, 10.0)]
    assert names(broken) == ["lost write"]


def test_a_gap_over_what_was_sent_after_the_loss_is_a_lost_write() -> None:
    broken = history()
    broken.losses = [Span(8.0, 9.0)]
    assert names(broken) == ["lost write"]


def test_a_record_that_a_consumer_had_and_that_is_gone_is_a_lost_write() -> None:
    broken = history()
    change_all(broken, lambda reading: reading.pop(2))
    broken.finals[0].gaps = [Span(2, 100)]
    assert names(broken) == []  # it had no answer, so it may have been appended just before
    broken.losses = [Span(0.0, 1.0), Span(9.0, 9.55)]
    broken.sends[2].sent_s = 30.0
    assert names(broken) == ["lost write"]


def test_what_a_consumer_had_before_it_was_acknowledged_as_durable_may_be_lost() -> None:
    """A master shows a record before its replica has it; nobody was promised anything then."""
    broken = history()
    change_all(broken, lambda reading: reading.pop(2))
    broken.finals[0].gaps = [Span(2, 100)]
    broken.sends[2].is_durable = True
    assert names(broken) == []
    broken.finals[0].gaps = [Span(3, 100)]  # but a gap has to say so
    assert names(broken) == ["lost write", "skipped offset"]


def test_a_partition_that_is_gone_has_lost_its_writes() -> None:
    broken = history()
    broken.finals = []
    assert names(broken) == ["lost write"]


def test_a_partition_that_cannot_be_read_is_told_once() -> None:
    broken = history()
    broken.finals = []
    broken.unreadable = {PLAIN}
    broken.troubles = [("log unreadable", "plain-0: why")]
    assert [str(anomaly) for anomaly in judge(broken)] == ["log unreadable: plain-0: why"]


def test_what_was_acknowledged_before_its_topic_was_made_anew_may_be_gone_with_it() -> None:
    reborn = history()
    reborn.creations = [
        Creation("plain", "id-0", Kind.PLAIN, 0.0, is_last=False),
        Creation("plain", PLAIN.topic_id, Kind.PLAIN, 5.0),
    ]
    reborn.sends.append(acked(6, 77, 1.5))
    assert names(reborn) == []
    reborn.sends.append(acked(7, 101, 22.0))
    assert names(reborn) == ["lost write"]


# -- a Redis that was lost altogether -------------------------------------------------------------


def lost_redis() -> History:
    """Three records archived and two not, one of them for long, when Redis was lost at 30 s."""
    return History(
        sends=[
            acked(0, 0),
            acked(1, 1),
            acked(2, 2),
            acked(3, 3),
            acked(4, 4),
            acked(5, 100, 40.0),
        ],
        creations=[Creation("plain", PLAIN.topic_id, Kind.PLAIN, 0.0)],
        consumptions=[
            Consumption("c", PLAIN, 0, seen((0, 0), (1, 1), (2, 2), (3, 3), (5, 100)), 101)
        ],
        finals=[log((0, 0), (1, 1), (2, 2), (5, 100), end=101, gaps=(Span(3, 100),))],
        total_losses=[TotalLoss(Span(30.0, 35.0), {PLAIN: 3})],
        restarts=1,
    )


def test_what_was_archived_is_not_lost_with_redis() -> None:
    broken = lost_redis()
    broken.total_losses = [TotalLoss(Span(30.0, 35.0), {PLAIN: 4})]
    assert names(broken) == ["lost write"]


def test_a_gap_has_to_declare_what_was_lost_with_redis() -> None:
    broken = lost_redis()
    broken.finals[0].gaps = [Span(4, 100)]
    assert names(broken) == ["lost write", "skipped offset"]


def test_what_was_sent_after_redis_was_lost_is_not_lost_with_it() -> None:
    broken = lost_redis()
    broken.sends[4].sent_s = 36.0
    assert names(broken) == ["lost write"]


def test_even_what_is_durable_is_lost_with_redis() -> None:
    durable = lost_redis()
    durable.sends[4].is_durable = True
    assert names(durable) == []


def test_an_offset_that_is_given_again_after_redis_was_lost_is_offset_reuse() -> None:
    broken = lost_redis()
    broken.sends.append(acked(6, 3, 41.0))
    assert "offset reuse" in names(broken)


# -- duplicate, phantom, reorder -------------------------------------------------------------------


def test_one_record_in_two_lives_of_a_topic_is_a_duplicate() -> None:
    broken = history()
    broken.creations.append(Creation("plain", "id-0", Kind.PLAIN, 0.0, is_last=False))
    broken.consumptions.append(Consumption("c", Partition("id-0", 0), 0, seen((2, 0))))
    assert names(broken) == ["duplicate"]


def test_an_acknowledgement_for_another_place_is_a_duplicate() -> None:
    broken = history()
    broken.sends[1].offset = 50
    assert "duplicate" in names(broken)


def test_a_record_that_nobody_sent_is_a_phantom() -> None:
    broken = history()
    del broken.sends[2]
    assert names(broken) == ["phantom write"]


def test_a_record_that_is_there_although_it_was_refused_is_a_phantom() -> None:
    broken = history()
    broken.sends[2].outcome = Outcome.REFUSED
    assert names(broken) == ["phantom write"]


# -- offsets ---------------------------------------------------------------------------------------


def test_two_readers_of_one_offset_that_saw_two_records_saw_offset_reuse() -> None:
    broken = history()
    broken.sends += [unacked(6, Outcome.UNKNOWN, 9.5)]
    broken.consumptions.append(Consumption("d", PLAIN, 3, [Seen(3, "p.1.6")]))
    assert names(broken) == ["offset reuse"]


def test_a_gap_without_a_server_that_went_away_is_a_skipped_offset() -> None:
    broken = history()
    broken.restarts = 0
    assert names(broken) == ["skipped offset"]


def test_a_log_that_lost_its_beginning_has_a_skipped_offset() -> None:
    broken = history()
    broken.finals[0].log_start = 1
    change_all(broken, lambda reading: reading.pop(0))
    assert names(broken) == ["lost write", "skipped offset"]


def test_a_log_that_ends_beyond_its_last_record_has_a_skipped_offset() -> None:
    broken = history()
    broken.finals[0].log_end = broken.consumptions[0].position = 103
    assert names(broken) == ["skipped offset"]


# -- consumers -------------------------------------------------------------------------------------


def test_a_consumer_that_ends_below_what_it_had_went_back() -> None:
    broken = history()
    broken.consumptions[0].position = 3
    assert names(broken) == ["consumer stuck", "position going back"]


def test_a_consumer_that_was_given_less_than_where_it_began_went_back() -> None:
    broken = history()
    broken.consumptions[0].start = 1
    assert names(broken) == ["position going back"]


def test_a_consumer_that_does_not_come_to_the_end_is_stuck() -> None:
    broken = history()
    broken.consumptions[0].seen.pop()
    broken.consumptions[0].position = 50
    assert names(broken) == ["consumer stuck"]


def test_a_consumer_that_was_killed_early_is_held_to_what_it_passed() -> None:
    killed = history()
    killed.consumptions[0] = Consumption("c", PLAIN, 0, seen((0, 0), (1, 1)))
    assert names(killed) == []


# -- readers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", READERS)
def test_readers_that_do_not_agree_differ(reader: str) -> None:
    broken = history()
    broken.finals[0].readings[reader].pop(2)
    broken.sends[2].outcome = Outcome.UNKNOWN
    broken.consumptions = []
    assert "readers differ" in names(broken)


def test_readers_that_have_the_same_in_another_order_differ() -> None:
    broken = history()
    broken.finals[0].readings["by hand"].reverse()
    assert names(broken) == ["readers differ", "reorder"]


# -- erased record ---------------------------------------------------------------------------------


def with_erasure(ended_s: float | None, end: int = 100) -> History:
    """Offset 1 was erased with its key; the record at 100 was sent later, under the same key."""
    erased = history()
    erased.sends[1] = acked(1, 1, key="gone")
    erased.sends[4] = acked(4, 100, 20.0, key="gone")
    erased.erasures = [Erasure(PLAIN.topic_id, "gone", 5.0, ended_s, {0: end})]
    return erased


def test_a_record_whose_key_was_erased_may_be_gone_and_the_last_be_empty() -> None:
    erased = with_erasure(15.0)
    change_all(erased, lambda reading: reading.pop(1))
    assert judge(erased) == []
    for emptied in (erased, with_erasure(None)):  # killed half-way: either may be
        for reading in emptied.finals[0].readings.values():
            reading[-1] = Seen(100, NULLED)
        emptied.erasures = [Erasure(PLAIN.topic_id, "gone", 5.0)]
        assert judge(emptied) == []


def test_an_erased_record_that_is_there_is_noticed() -> None:
    assert names(with_erasure(15.0)) == ["erased record"]
    assert names(with_erasure(None)) == []


def test_what_was_not_to_be_erased_stays() -> None:
    erased = with_erasure(15.0)
    change_all(erased, lambda reading: reading.pop(1))
    change_all(erased, lambda reading: reading.pop(0))  # of another key
    assert names(erased) == ["lost write"]
    later = with_erasure(15.0)
    change_all(later, lambda reading: reading.pop(1))
    change_all(later, lambda reading: reading.pop(-1))  # sent after the certificate
    assert "lost write" in names(later)
