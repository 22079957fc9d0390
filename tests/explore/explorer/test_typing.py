"""What is typed is asked by Enter, and by leaving the box."""

from __future__ import annotations

import pytest
from hands import Hands

from lakelog.testing.eventually import eventually


@pytest.mark.parametrize("name", ["search", "timestamp", "offset", "zone", "opened"])
def test_a_box_is_told_once_it_is_left(orders, name):
    assert not Hands(orders.explore()).find(name).continuous_update


def test_what_is_typed_is_asked_and_asked_once_more_by_a_click(orders):
    hands = Hands(orders.explore())
    hands.type("page-records", 20)
    hands.type("search", "text")
    assert hands.offsets() == list(range(100, 120))
    hands.click("forward")
    assert hands.offsets() == list(range(120, 130))
    hands.click("find")
    assert hands.offsets() == list(range(100, 120))
    hands.type("search", "")
    assert hands.offsets() == list(range(20))
    assert hands.explorer.error is None


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


def test_an_expression_that_cannot_be_read_is_told_once(orders):
    hands = Hands(orders.explore())
    hands.type("search", 'value = "')
    assert hands.explorer.error is not None
    hands.click("earliest")
    assert hands.explorer.error is None
    assert hands.offsets()[0] == 0
    assert hands.find("search").value == 'value = "'


def test_a_time_is_gone_to_and_said(orders):
    hands = Hands(orders.explore())
    hands.type("timestamp", "2023-11-14 22:14")
    assert "= 2023-11-14 22:14:00Z" in hands.html("taken")
    assert hands.offsets()[0] == 40
    hands.click("latest")
    hands.click("seek")
    assert hands.offsets()[0] == 40
    hands.type("timestamp", "")
    assert hands.offsets()[0] == 40
