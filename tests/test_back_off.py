"""When what failed is asked again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog import back_off
from lakelog.back_off import Patience, patiently, pause_s
from lakelog.errors import ColdTierAccessError, ColdTierUnavailableError

AWAY = ColdTierUnavailableError("away")


@given(st.integers(0, 10_000))
def test_pauses_grow_by_chance_up_to_the_longest(failures):
    pause = pause_s(failures, 0.5, 30.0)
    whole = min(30.0, 0.5 * 2 ** min(max(failures, 1) - 1, 20))
    assert whole / 2 <= pause <= whole


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only sleeping moves."""
    pauses: list[float] = []
    monkeypatch.setattr(back_off.time, "sleep", pauses.append)
    monkeypatch.setattr(back_off.time, "monotonic", lambda: sum(pauses))
    return pauses


def test_what_is_back_in_time_is_no_error(slept):
    answers = iter([AWAY, AWAY, AWAY, "an answer"])

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert patiently(ask) == "an answer"
    assert len(slept) == 3


def test_what_stays_away_is_told_in_the_end(slept):
    def ask() -> None:
        raise AWAY

    with pytest.raises(ColdTierUnavailableError):
        patiently(ask, 10.0)
    assert sum(slept) == pytest.approx(10.0)


def test_what_no_pause_mends_is_told_at_once(slept):
    def ask() -> None:
        raise ColdTierAccessError("no")

    with pytest.raises(ColdTierAccessError):
        patiently(ask)
    assert slept == []


def test_patience_waits_for_whatever_its_owner_says(slept):
    patience = Patience(1.0)
    patience.pause(ColdTierAccessError("no"))
    assert len(slept) == 1
