"""The segments that the explorer draws, and goes to."""

from __future__ import annotations

from hands import Hands

from lakelog.explore import charts
from lakelog.explore.explorer import questions


def test_segments_are_drawn_and_can_be_gone_to(orders):
    hands = Hands(orders.explore())
    assert not hands.visible("segment-map")
    hands.type("segments", True)
    assert hands.visible("segment-map")
    (output,) = hands.find("segment-map").outputs
    assert output["output_type"] == "display_data"
    assert output["data"]["application/vnd.plotly.v1+json"]["data"]
    assert "<table" in output["data"]["text/html"]

    places = dict(hands.find("segment").options)
    assert places.pop("–") == -1
    assert list(places.values()) == [100, 0]  # the newest first
    hands.type("offset", 77)
    for _ in range(2):
        hands.type("segment", 100)
        assert hands.offsets()[0] == 100
        assert hands.find("segment").value == 100
        hands.click("back")
        assert hands.find("segment").value == -1

    hands.type("segments", False)
    assert not hands.visible("segment-map")
    assert not hands.visible("segment")


def test_the_segments_are_those_of_the_partition_shown(orders):
    orders.topic("sales", partitions=2)
    orders.send(*"abc", topic="sales", partition=1)
    hands = Hands(orders.explore())
    hands.type("segments", True)
    hands.click("refresh")
    hands.type("topic", "sales")
    assert [label for label, _ in hands.find("segment").options] == ["–"]
    hands.type("partition", 1)
    ((_, _), (label, offset)) = hands.find("segment").options
    assert label.startswith("[0, 3) hot, 3 records")
    assert offset == 0
    hands.type("partition", -1)
    assert [label for label, _ in hands.find("segment").options] == ["–"]
    hands.type("segments", False)
    hands.type("segments", True)
    assert "choose one" in hands.html("error")


def test_without_plotly_the_segments_are_a_table(orders, monkeypatch):
    monkeypatch.setattr(charts, "segment_map", charts.PlainTable)
    hands = Hands(orders.explore())
    hands.type("segments", True)
    (output,) = hands.find("segment-map").outputs
    assert set(output["data"]) == {"text/html", "text/plain"}
    assert "<table" in output["data"]["text/html"]


def test_segments_that_cannot_be_read_are_an_error_with_a_retry(orders, monkeypatch):
    def fails(log, partition):
        raise OSError("no such disk")

    hands = Hands(orders.explore())
    whole = questions.segment_map
    monkeypatch.setattr(questions, "segment_map", fails)
    hands.type("segments", True)
    assert "OSError: no such disk" in hands.html("error")
    monkeypatch.setattr(questions, "segment_map", whole)
    hands.click("retry")
    assert not hands.visible("error")
    assert hands.visible("segment-map")
