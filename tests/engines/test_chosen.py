"""Who watches is told what is chosen within a block, by its own thread."""

from __future__ import annotations

import threading

from lakelog.engines.engine import Choice, Choices, InlineEngine, chosen

HERE = Choice("inline", "as asked")
THERE = Choice("spark", "it is up")


def test_each_choice_is_told_once_to_all_blocks_around_it() -> None:
    outer, inner = Choices(), Choices()
    with outer.watched():
        chosen(HERE)
        with inner.watched():
            chosen(THERE)
            chosen(THERE)
        chosen(HERE)
    chosen(THERE)
    assert (outer.made, inner.made) == ((HERE, THERE), (THERE,))


def test_another_thread_is_not_watched() -> None:
    choices = Choices()
    with choices.watched():
        other = threading.Thread(target=chosen, args=(HERE,))
        other.start()
        other.join()
    assert choices.made == ()


def test_an_engine_that_was_asked_for_says_so_if_it_has_something_to_do() -> None:
    choices = Choices()
    with choices.watched():
        assert list(InlineEngine().map(abs, [])) == []
        assert choices.made == ()
        assert list(InlineEngine().map(abs, [-1])) == [1]
    assert choices.made == (HERE,)
