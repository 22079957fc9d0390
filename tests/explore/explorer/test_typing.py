"""What is typed is known as it is typed, and asked when it is asked for."""

from __future__ import annotations

import pytest
from hands import Hands
from held import Held

from lakelog.explore.explorer import handlers
from lakelog.testing.eventually import eventually


def test_what_is_typed_is_asked_by_enter_and_not_before(orders):
    hands = Hands(orders.explore())
    before = hands.explorer.expression
    for text in ("t", "te", 'value = "'):
        hands.find("search").value = text
        hands.explorer.wait()
        assert hands.explorer.expression == before
        assert hands.explorer.error is None
    hands.find("search").value = "text 101"
    hands.enter("search")
    hands.explorer.wait()
    assert hands.offsets() == [101]
    hands.click("clear")
    hands.find("search").value = "text 102"
    hands.click("clear")
    assert hands.find("search").value == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [("find", None), ("earliest", None), ("latest", None), ("follow", True), ("chosen", (1, 999))],
)
def test_whatever_is_asked_next_is_asked_of_what_was_typed(orders, name, value):
    hands = Hands(orders.explore())
    hands.find("search").value = "text 101"
    if value is None:
        hands.click(name)
    else:
        hands.type(name, value)
    eventually(lambda: hands.offsets() == [101])
    assert "matching('text 101')" in hands.explorer.expression
    hands.explorer.stop()


def test_a_key_that_comes_after_the_click_it_came_before_counts(orders):
    """As a page sends them that holds a key back until the one before was taken."""
    hands = Hands(orders.explore())
    for name in ("find", "latest"):
        hands.find("search").value = "text"
        hands.find(name).click()
        hands.find("search").value = "text 10"
        hands.find("search").value = "text 101"
        hands.explorer.wait()
        assert hands.offsets() == [101], name
        hands.find("search").value = "text 1015"  # the third is of another question
        hands.explorer.wait()
        assert hands.offsets() == [101], name
        hands.click("clear")
    hands.click("earliest")  # which nothing was typed before
    for text in ("t", "te", "text 101"):
        hands.find("search").value = text
    hands.explorer.wait()
    assert hands.offsets()[0] == 0
    hands.click("clear")
    hands.find("timestamp").value = "2023-11-14 22:1"
    hands.enter("timestamp")
    hands.find("timestamp").value = "2023-11-14 22:14:00"
    hands.explorer.wait()
    assert hands.offsets()[0] == 40
    assert hands.explorer.error is None


def test_what_is_typed_while_an_answer_is_under_way_is_left_there(orders, monkeypatch):
    monkeypatch.setattr(handlers, "_OVERTAKEN_S", 0.0)
    hands = Hands(orders.explore())
    held = Held(monkeypatch)
    hands.find("search").value = "text 101"
    hands.enter("search")
    eventually(lambda: held.questions)
    hands.find("search").value = "text 10"
    held.questions[0][1].set()
    hands.explorer.wait()
    assert hands.offsets() == [101]
    assert hands.find("search").value == "text 10"


def test_an_expression_that_cannot_be_read_is_told_once(orders):
    hands = Hands(orders.explore())
    hands.type("search", 'value = "')
    assert hands.explorer.error is not None
    hands.click("earliest")
    assert hands.explorer.error is None
    assert hands.offsets()[0] == 0
    assert hands.find("search").value == 'value = "'


def test_a_time_is_said_as_it_is_typed_and_gone_to_by_enter(orders):
    hands = Hands(orders.explore())
    for text, said in (("2023-11-", False), ("2023-11-14", True), ("2023-11-14 22:14", True)):
        hands.find("timestamp").value = text
        assert bool(hands.html("taken")) is said, text
    assert hands.explorer.error is None
    assert hands.offsets()[0] == 0
    hands.enter("timestamp")
    hands.explorer.wait()
    assert hands.offsets()[0] == 40
    hands.click("latest")
    hands.enter("timestamp")  # the same once more
    hands.explorer.wait()
    assert hands.offsets()[0] == 40
