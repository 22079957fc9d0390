"""What becomes of a question while the kernel, the topic or another explorer goes its way."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest
from hands import Hands
from held import Held

from lakelog.errors import InvalidArgumentError, UnknownTopicIdError
from lakelog.explore.explorer import questions
from lakelog.testing.eventually import eventually


def test_a_kernel_that_is_interrupted_ends_the_search_it_waits_for(orders, monkeypatch):
    hands = Hands(orders.explore())
    held = Held(monkeypatch)
    shown_by, waits = hands.explorer._questions.background.shown_by, threading.Event()
    wait = shown_by.wait

    def told_wait(*given: Any) -> Any:
        waits.set()
        return wait(*given)

    monkeypatch.setattr(shown_by, "wait", told_wait)

    def interrupt() -> None:
        eventually(lambda: held.questions and waits.is_set())
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        hands.explorer.search("text 129")
    interrupting.join()
    hands.explorer.wait()
    assert "stopped, Forward goes on" in hands.html("notes")
    assert hands.html("progress") == ""
    monkeypatch.setattr(questions, "answer", held._answer)
    hands.click("forward")
    assert hands.offsets() == [129]


def test_a_topic_that_is_made_again_during_a_search_is_another_one(orders, monkeypatch):
    hands = Hands(orders.explore())
    held = Held(monkeypatch)
    hands.find("search").value = "text 101"
    eventually(lambda: held.questions)
    orders.lakelog.topics.delete("orders")
    orders.topic()
    orders.send("text 101 of another topic")
    held.questions[0][1].set()
    hands.explorer.wait()
    assert isinstance(hands.explorer.error, UnknownTopicIdError)
    monkeypatch.setattr(questions, "answer", held._answer)
    hands.click("retry")
    assert not hands.visible("error")
    assert hands.offsets() == [0]
    assert "of another topic" in hands.html("table")


def test_two_explorers_of_one_log_have_nothing_to_do_with_each_other(orders):
    one, other = Hands(orders.explore()), Hands(orders.explore())
    for hands, number in ((one, 101), (other, 102)):
        hands.find("search").value = f"text {number}"
    for hands, number in ((one, 101), (other, 102)):
        hands.explorer.wait()
        assert hands.offsets() == [number]
    one.click("clear")
    one.type("follow", True)
    other.type("opened", "0:102")
    orders.send("news")
    eventually(lambda: one.offsets()[-1] == 130)
    assert other.offsets() == [102]
    assert "text 102" in other.html("record")
    other.explorer.close()
    orders.send("more news")
    eventually(lambda: one.offsets()[-1] == 131)
    one.type("follow", False)


@pytest.mark.parametrize("name", ["0:60", "1:112", "112", "a:b", "<b>"])
def test_a_name_of_no_row_is_told_and_opens_nothing(orders, name):
    hands = Hands(orders.explore())
    hands.type("page-records", 20)
    hands.click("latest")
    hands.type("opened", "0:112")
    hands.type("opened", name)
    assert isinstance(hands.explorer.error, InvalidArgumentError)
    assert "none of the rows shown" in hands.html("error")
    assert hands.find("opened").value == "0:112"
    assert "text 112" in hands.html("record")
    hands.type("opened", "0:113")
    assert hands.explorer.error is None
    assert not hands.visible("error")


def test_a_name_of_no_row_stays_to_be_mended_where_none_is_open(orders):
    hands = Hands(orders.explore())
    assert not hands.find("opened").continuous_update  # each key was a name of its own
    hands.type("opened", "0:999")
    assert hands.find("opened").value == "0:999"
    hands.type("opened", "")
    assert not hands.visible("error")


@pytest.mark.parametrize(
    ("box", "text"),
    [("opened", "0:999"), ("zone", "Nowhere/Land"), ("timestamp", "noon-ish")],
)
@pytest.mark.parametrize(
    "then",
    [
        lambda hands: hands.type("format", "hex"),
        lambda hands: hands.type("columns", True),
        lambda hands: hands.click("forward"),
        lambda hands: hands.click("clear"),
        lambda hands: hands.type("opened", "0:5"),
    ],
)
def test_what_could_not_be_read_is_told_until_something_else_is_done(orders, box, text, then):
    hands = Hands(orders.explore())
    hands.type("page-records", 20)
    hands.type(box, text)
    assert hands.visible("error")
    then(hands)
    assert hands.explorer.error is None
    assert not hands.visible("error")


@pytest.mark.parametrize(
    "then",
    [
        lambda hands: hands.click("latest"),
        lambda hands: hands.click("back"),
        lambda hands: hands.type("search", "text 7"),
        lambda hands: hands.type("opened", "0:3"),
        lambda hands: hands.type("offset", 7),
    ],
)
def test_how_a_time_was_read_is_told_until_something_else_is_done(orders, then):
    hands = Hands(orders.explore())
    hands.type("timestamp", "2024-03-31 12:00")
    assert "= 2024-03-31 12:00" in hands.html("taken")
    then(hands)
    assert hands.html("taken") == ""


def test_another_zone_says_anew_how_a_time_is_read(orders):
    hands = Hands(orders.explore())
    hands.type("timestamp", "2024-03-31 12:00")
    hands.type("zone", "Europe/Berlin")
    assert "+02:00" in hands.html("taken")
