"""Members of JSON values as columns."""

from __future__ import annotations

import re
from html import unescape

import pyarrow as pa
import pytest
from hands import Hands

from lakelog.explore.explorer.member_columns import LARGEST_BYTES, members_of

VALUES = [
    b'{"carrier": "UA", "delay": 5, "legs": [1, 2]}',
    b'{"carrier": "B6", "delay": -2}',
    b'{"carrier": "UA", "delay": 11, "cancelled": true}',
    b'{"carrier": null, "delay": 7.5}',
]


def column_of(values, name):
    (found,) = [one for one in members_of(pa.chunked_array([values])).columns if one.name == name]
    return found


def cells(hands, heading):
    """A column's cells, by what its heading begins with."""
    table = hands.html("table")
    heads = [re.sub("<[^>]+>", "", one) for one in re.findall("<th.*?</th>", table)]
    place = next(number for number, head in enumerate(heads) if head.startswith(heading))
    rows = re.findall(r"<tr [^>]*data-row.*?</tr>", table)
    return [unescape(re.sub("<[^>]+>", "", re.findall("<td.*?</td>", row)[place])) for row in rows]


@pytest.fixture
def flights(shop):
    shop.topic("flights")
    shop.send(*VALUES, topic="flights")
    return Hands(shop.explore("flights"))


def test_members_are_typed():
    assert column_of(VALUES, "carrier").values == ("UA", "B6", "UA", None)
    delay = column_of(VALUES, "delay")
    assert (delay.type, delay.values, delay.is_number) == ("double", (5.0, -2.0, 11.0, 7.5), True)
    assert column_of(VALUES, "legs").values == ([1, 2], None, None, None)
    assert not column_of(VALUES, "cancelled").is_number


def test_the_columns_of_a_topic_come_as_themselves():
    known = members_of(pa.chunked_array([VALUES]), "delay string")
    assert known.columns[0].name == "delay"
    assert known.columns[0].values == ("5", "-2", "11", "7.5")


def test_a_topic_with_columns_is_shown_with_them_and_raw_after_one_click(shop):
    shop.topic("plain")
    shop.send(*VALUES, topic="plain")
    columns = "delay decimal(6,1), at timestamp, carrier string"
    shop.topic("typed", **{"lakelog.value.columns": columns})
    day = '{"carrier": "%s", "delay": %s, "at": "2013-07-04T%s:00", "more": 1}'
    shop.send(
        *(day % one for one in (("UA", "9.5", "12:00"), ("B6", "10.0", "09:30"))), topic="typed"
    )
    shop.lakelog.archive("typed")
    shop.send(day % ("DL", '"-3.5"', "23:59"), "no object", topic="typed")
    hands = Hands(shop.explore("typed"))
    assert cells(hands, "delay") == ["9.5", "10.0", "-3.5", "null"]  # of both tiers
    assert cells(hands, "at")[1] == "2013-07-04 09:30:00+00:00"
    assert 'title="decimal(6,1)"' in hands.html("table")
    assert hands.find("members").value == ("delay", "at", "carrier")  # the others are offered
    assert "more" in hands.find("members").options
    assert hands.visible("members")
    hands.type("sort", ("delay", True))
    assert hands.offsets() == [1, 0, 2, 3]  # by size, not by text
    hands.type("columns", False)
    assert "ll-c-value" in hands.html("table")
    hands.click("refresh")
    assert not hands.find("columns").value
    hands.type("topic", "plain")
    assert not hands.find("columns").value
    hands.type("topic", "typed")
    assert hands.find("columns").value
    hands.type("topic", "plain")
    assert not hands.find("columns").value
    assert not hands.visible("members")


@pytest.mark.parametrize("values", [[b"text", b"\xff"], [None], [], [b"[1]", b"{}"]])
def test_values_that_are_no_objects_have_no_columns(values):
    assert members_of(pa.chunked_array([pa.array(values, pa.binary())])).columns == ()


def test_a_page_of_large_values_is_left_as_it_is():
    value = b'{"a": "%s"}' % (b"x" * LARGEST_BYTES)
    assert members_of(pa.chunked_array([[value]])).columns == ()


def test_one_click_makes_columns_and_another_takes_them_away(flights):
    before = flights.html("table")
    flights.type("columns", True)
    assert cells(flights, "carrier") == ["UA", "B6", "UA", "null"]
    assert cells(flights, "delay") == ["5.0", "-2.0", "11.0", "7.5"]
    assert cells(flights, "cancelled") == ["null", "null", "true", "null"]
    assert "ll-c-value" not in flights.html("table")
    assert "<title>UA: 2</title>" in flights.html("table")
    flights.type("columns", False)
    assert flights.html("table") == before


def test_members_are_picked_and_sorted_by(flights):
    flights.type("columns", True)
    flights.type("members", ("delay",))
    assert "carrier" not in re.sub("<title>.*?</title>", "", flights.html("table"))
    flights.type("sort", ("delay", True))
    assert cells(flights, "delay") == ["11.0", "7.5", "5.0", "-2.0"]
    assert flights.offsets() == [2, 3, 0, 1]
    flights.type("sort", ("carrier", False))
    assert flights.offsets() == [1, 0, 2, 3]  # what lacks it comes last
    flights.type("opened", "0:3")
    assert "7.5" in flights.html("record")
    assert flights.explorer.data()["offset"].to_pylist() == [0, 1, 2, 3]
    flights.type("sort", None)
    assert flights.offsets() == [0, 1, 2, 3]


def test_other_values_stay_beside_the_columns(flights, shop):
    shop.send("no object", topic="flights")
    flights.click("refresh")
    flights.type("columns", True)
    assert cells(flights, "value")[-1] == "no object"
    assert cells(flights, "carrier")[-1] == "null"


def test_nothing_of_a_member_is_taken_for_html(shop):
    shop.topic("evil")
    evil = '{"<script>a</script>": "<script>b</script>", "offset": 1}'
    shop.send(evil, topic="evil")
    hands = Hands(shop.explore("evil"))
    hands.type("columns", True)
    assert "<script" not in hands.html("table")
    assert cells(hands, "offset") == ["0"]  # the record's own comes first
