"""Histories made by hand, with anomalies that no property of the oracle states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
PLACES = ((0, 0), (1, 1), (2, 2), (3, 3), (4, 100))  # of records that the consumer had


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
        consumptions=[Consumption("c", PLAIN, 0, seen(*PLACES), 101)],
        finals=[log((0, 0), (1, 1), (2, 2), (4, 100), end=101, gaps=(Span(3, 100),))],
        losses=[Span(9.0, 10.0)],
        restarts=1,
    )


def changed(history: History, *gone: int, **changes: Any) -> History:
    """Without the records of some places in all final readings; else each change says where."""
    for place in gone:
        for reading in history.finals[0].readings.values():
            reading.pop(place)
    for path, value in changes.items():
        *way, name = path.split("__")
        holder: Any = history
        for step in way:
            holder = holder[int(step)] if step.isdigit() else getattr(holder, step)
        setattr(holder, name, value)
    return history


def names(history: History) -> str:
    return ", ".join(sorted({anomaly.name for anomaly in judge(history)}))


def test_what_may_have_been_a_logs_history_has_no_anomaly() -> None:
    assert judge(history()) == []


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        # -- lost write: losses that no gap declares, gaps over what cannot have been lost
        (lambda: changed(history(), finals__0__gaps=[Span(4, 100)]), "lost write, skipped offset"),
        (lambda: changed(history(), sends__3__is_durable=True), "lost write"),
        (lambda: changed(history(), losses=[Span(9.7, 10.0)]), "lost write"),  # acked long before
        (lambda: changed(history(), losses=[Span(8.0, 9.0)]), "lost write"),  # sent after it
        (lambda: changed(history(), finals=[]), "lost write"),
        # a record that a consumer had: without an answer, it may have been appended just before
        (lambda: had(), ""),
        (lambda: changed(had(), losses=LATE_LOSSES, sends__2__sent_s=30.0), "lost write"),
        # A master shows a record before its replica has it; nobody was promised anything then.
        (lambda: changed(had(), sends__2__is_durable=True), ""),
        (
            lambda: changed(had(), sends__2__is_durable=True, finals__0__gaps=[Span(3, 100)]),
            "lost write, skipped offset",
        ),
        # -- a Redis that was lost altogether
        (lambda: lost_redis(), ""),
        (
            lambda: changed(lost_redis(), total_losses=[TotalLoss(Span(30.0, 35.0), {PLAIN: 4})]),
            "lost write",  # it was archived
        ),
        (
            lambda: changed(lost_redis(), finals__0__gaps=[Span(4, 100)]),
            "lost write, skipped offset",
        ),
        (lambda: changed(lost_redis(), sends__4__sent_s=36.0), "lost write"),  # sent after it
        (lambda: changed(lost_redis(), sends__4__is_durable=True), ""),  # even so it is lost
        # -- duplicate, phantom
        (lambda: changed(history(), sends__1__offset=50), "duplicate, lost write"),
        (lambda: without_send(history(), 2), "phantom write"),  # nobody sent it
        (lambda: changed(history(), sends__2__outcome=Outcome.REFUSED), "phantom write"),
        # -- offsets
        (lambda: changed(history(), restarts=0), "skipped offset"),  # no server went away
        (lambda: changed(history(), 0, finals__0__log_start=1), "lost write, skipped offset"),
        (
            lambda: changed(history(), finals__0__log_end=103, consumptions__0__position=103),
            "skipped offset",  # it ends beyond its last record
        ),
        # -- consumers
        (
            lambda: changed(history(), consumptions__0__position=3),
            "consumer stuck, position going back",
        ),
        (lambda: changed(history(), consumptions__0__start=1), "position going back"),
        (
            lambda: changed(
                history(), consumptions__0__seen=seen(*PLACES[:4]), consumptions__0__position=50
            ),
            "consumer stuck",
        ),
        (  # one that was killed early is held to what it passed
            lambda: changed(
                history(), consumptions=[Consumption("c", PLAIN, 0, seen(*PLACES[:2]))]
            ),
            "",
        ),
    ],
)
def test_each_anomaly_is_found(broken: Callable[[], History], found: str) -> None:
    assert names(broken()) == found


LATE_LOSSES = [Span(0.0, 1.0), Span(9.0, 9.55)]


def had() -> History:
    """A gap over a record without an answer, which the consumer was given."""
    return changed(history(), 2, finals__0__gaps=[Span(2, 100)])


def without_send(history: History, place: int) -> History:
    del history.sends[place]
    return history


def test_a_partition_that_cannot_be_read_is_told_once() -> None:
    broken = changed(
        history(),
        finals=[],
        unreadable={PLAIN},
        troubles=[("log unreadable", "plain-0: why")],
    )
    assert [str(anomaly) for anomaly in judge(broken)] == ["log unreadable: plain-0: why"]


def test_what_was_acknowledged_before_its_topic_was_made_anew_may_be_gone_with_it() -> None:
    reborn = history()
    reborn.creations = [
        Creation("plain", "id-0", Kind.PLAIN, 0.0, is_last=False),
        Creation("plain", PLAIN.topic_id, Kind.PLAIN, 5.0),
    ]
    reborn.sends.append(acked(6, 77, 1.5))
    assert names(reborn) == ""
    reborn.sends.append(acked(7, 101, 22.0))
    assert names(reborn) == "lost write"


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


def test_an_offset_that_is_given_again_after_redis_was_lost_is_offset_reuse() -> None:
    broken = lost_redis()
    broken.sends.append(acked(6, 3, 41.0))
    assert "offset reuse" in names(broken)


def test_one_record_in_two_lives_of_a_topic_is_a_duplicate() -> None:
    broken = history()
    broken.creations.append(Creation("plain", "id-0", Kind.PLAIN, 0.0, is_last=False))
    broken.consumptions.append(Consumption("c", Partition("id-0", 0), 0, seen((2, 0))))
    assert names(broken) == "duplicate"


def test_two_readers_of_one_offset_that_saw_two_records_saw_offset_reuse() -> None:
    broken = history()
    broken.sends += [unacked(6, Outcome.UNKNOWN, 9.5)]
    broken.consumptions.append(Consumption("d", PLAIN, 3, [Seen(3, "p.1.6")]))
    assert names(broken) == "offset reuse"


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
    assert names(broken) == "readers differ, reorder"


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
    changed(erased, 1)
    assert judge(erased) == []
    for emptied in (erased, with_erasure(None)):  # killed half-way: either may be
        for reading in emptied.finals[0].readings.values():
            reading[-1] = Seen(100, NULLED)
        emptied.erasures = [Erasure(PLAIN.topic_id, "gone", 5.0)]
        assert judge(emptied) == []


def test_an_erased_record_that_is_there_is_noticed() -> None:
    assert names(with_erasure(15.0)) == "erased record"
    assert names(with_erasure(None)) == ""


def test_what_was_not_to_be_erased_stays() -> None:
    erased = with_erasure(15.0)
    changed(erased, 1)
    changed(erased, 0)  # of another key
    assert names(erased) == "lost write"
    later = with_erasure(15.0)
    changed(later, 1)
    changed(later, -1)  # sent after the certificate
    assert "lost write" in names(later)
