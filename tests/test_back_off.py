"""When what failed is tried again, and what the log says of it."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.base import back_off
from lakelog.base.back_off import (
    ASK_AGAIN,
    LONGEST_QUIET_S,
    BackOff,
    Tries,
    patiently,
)
from lakelog.errors import ColdTierAccessError, ColdTierUnavailableError

AWAY = ColdTierUnavailableError("away")

seconds = st.floats(0.001, 1000.0)
chances = st.integers(0, 2**32).map(lambda seed: Random(seed).uniform)


@st.composite
def back_offs(draw: st.DrawFn, within_s: st.SearchStrategy[float]) -> BackOff:
    first_s, longest_s = sorted((draw(seconds), draw(seconds)))
    return BackOff(first_s, longest_s, within_s=draw(within_s))


class Hands:
    """The hands that turn a clock: only a pause or work moves it."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.pauses: list[float] = []

    def clock_s(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.pauses.append(seconds)
        self.now_s += seconds


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    hands = Hands()
    clock = SimpleNamespace(sleep=hands.sleep, monotonic=hands.clock_s)
    monkeypatch.setattr(back_off, "time", clock)
    return hands


# -- the value -----------------------------------------------------------------------------------


@given(back_offs(st.just(inf)), st.integers(0, 100_000), chances)
def test_a_pause_is_between_half_and_all_of_what_doubles_up_to_the_longest(value, failures, draw):
    pause_s = value.pause_s(failures, draw)
    whole_s = min(value.longest_s, value.first_s * 2 ** min(max(failures, 1) - 1, 30))
    assert whole_s / 2 <= pause_s <= whole_s


@pytest.mark.parametrize(
    "values",
    [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (1.0, inf), (1.0, 2.0, -1.0), (1.0, 2.0, 1.0, 0)],
)
def test_what_is_no_back_off_is_refused(values):
    with pytest.raises(ValueError, match="are none"):
        BackOff(*values)


# -- tries ---------------------------------------------------------------------------------------


@given(back_offs(st.floats(0, 5000)), st.lists(st.floats(0, 100), min_size=1), chances)
def test_no_try_begins_after_the_deadline(value, works, draw):
    """Each try takes a time of its own; the deadline counts from the end of the first."""
    hands = Hands()
    tries = Tries("reading", value, clock_s=hands.clock_s, draw=draw)
    began_s = None
    for work_s in works:
        hands.now_s += work_s
        began_s = hands.now_s if began_s is None else began_s
        pause_s = tries.failed(AWAY)
        if pause_s is None:
            assert hands.now_s >= began_s + value.within_s
            return
        assert 0 < pause_s <= value.pause_s(tries.failures, max)
        assert hands.now_s + pause_s <= began_s + value.within_s + 1e-6
        assert tries.next_s == hands.now_s + pause_s
        hands.sleep(pause_s)


def test_a_time_that_was_given_is_kept_however_late_the_first_failure(hands):
    tries = Tries("reading", ASK_AGAIN, until_s=1003.0)
    hands.now_s = 1002.99
    assert tries.failed(AWAY) == pytest.approx(0.01)
    hands.now_s = 1003.0
    assert tries.failed(AWAY) is None


def test_what_stays_away_is_told_in_the_end(hands):
    with pytest.raises(ColdTierUnavailableError):
        patiently("reading", lambda: _answer(AWAY), ASK_AGAIN.within(10.0))
    assert sum(hands.pauses) == pytest.approx(10.0)


def test_what_no_pause_mends_is_told_at_once(hands):
    with pytest.raises(ColdTierAccessError):
        patiently("reading", lambda: _answer(ColdTierAccessError("no")))
    assert hands.pauses == []


# -- the log -------------------------------------------------------------------------------------


def test_the_log_says_what_is_tried_again_why_in_how_long_and_until_when(caplog, hands):
    tries = Tries("reading orders-0", BackOff(0.5, 2.0, within_s=10.0), draw=max)
    tries.failed(AWAY)
    tries.failed(AWAY)  # at once: nothing new
    tries.succeeded()
    assert caplog.messages == [
        "reading orders-0 failed and is tried again in 0.5 s, for 10 s more at most: away",
        "reading orders-0 succeeded after 2 failures",
    ]


def test_what_is_never_given_up_says_so(caplog, hands):
    Tries("archiving orders", BackOff(0.5, 2.0)).failed(AWAY)
    assert ", until it succeeds: away" in caplog.text


def test_a_trouble_that_lasts_is_told_ever_more_seldom_but_never_forgotten(caplog, hands):
    tries = Tries("archiving orders", BackOff(1.0, 1.0), draw=max)
    told_s = []
    while hands.now_s < 1000.0 + 3600.0:
        before = len(caplog.messages)
        hands.sleep(tries.failed(AWAY))
        if len(caplog.messages) > before:
            told_s.append(hands.now_s - 1001.0)
    gaps = [late - early for early, late in pairwise(told_s)]
    assert told_s[0] == 0
    assert gaps == sorted(gaps)
    assert gaps[:4] == [10.0, 20.0, 40.0, 80.0]
    assert set(gaps[6:]) == {LONGEST_QUIET_S}


def test_a_defect_is_told_with_where_it_happened(caplog, hands):
    tries = Tries("archiving orders")
    tries.failed(AWAY)
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError as error:
        tries.failed(error)
    assert [record.exc_info is not None for record in caplog.records] == [False, True]


def _answer(answer: object) -> str:
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, str)
    return answer
