"""What goes wrong is shown and stays; the tail is followed; late answers are dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hands import Hands
from held import Held

from lakelog import Lakelog
from lakelog.errors import (
    HotTierUnavailableError,
    OffsetOutOfRangeError,
)
from lakelog.explore.explorer import follow as following
from lakelog.explore.explorer import questions
from lakelog.testing.eventually import eventually


def test_what_is_slow_says_at_once_that_it_is_under_way(orders, monkeypatch):
    hands = Hands(orders.explore())
    held = Held(monkeypatch)
    hands.find("latest").click()
    assert "reading" in hands.html("progress") or "1,234 records" in hands.html("progress")
    eventually(lambda: held.questions)
    eventually(lambda: "1,234 records" in hands.html("progress"))
    assert hands.offsets()[0] == 0  # the page before is still there
    held.questions[0][1].set()
    hands.explorer.wait()
    assert hands.html("progress") == ""
    assert hands.offsets()[-1] == 129


def test_a_slow_first_page_does_not_keep_the_widget_from_being_shown(orders, monkeypatch):
    held = Held(monkeypatch)
    explorer = orders.lakelog.explore("orders")
    assert "reading" in explorer._repr_mimebundle_()["text/plain"]
    assert Hands(explorer).html("progress") != ""
    held.questions[0][1].set()
    explorer.wait()
    assert "log.read(0, 0, 50)" in explorer._repr_mimebundle_()["text/plain"]
    explorer.close()


def test_an_older_answer_never_covers_a_newer_one(orders, monkeypatch):
    hands = Hands(orders.explore())
    held = Held(monkeypatch)
    hands.find("offset").value = 10
    eventually(lambda: len(held.questions) == 1)
    hands.find("offset").value = 20
    eventually(lambda: len(held.questions) == 2)
    held.questions[1][1].set()
    hands.explorer.wait()
    assert hands.offsets()[0] == 20
    threads = [one for one in threading.enumerate() if one.name == "lakelog-explorer"]
    held.questions[0][1].set()
    for thread in threads:
        thread.join(60)
    assert hands.offsets()[0] == 20
    assert hands.explorer.view.start_offset == 20


def test_a_scan_shows_its_progress_and_can_be_stopped(orders, monkeypatch):
    hands = Hands(orders.explore())
    assert hands.find("stop").disabled
    held = Held(monkeypatch)
    hands.find("search").value = "text 129"
    eventually(lambda: "1,234 records, 5.0 MB read; 7 matches" in hands.html("progress"))
    assert 'value="0.250"' in hands.html("progress")
    assert not hands.find("stop").disabled
    hands.click("stop")
    assert "stopped, Forward goes on" in hands.html("notes")
    assert hands.find("stop").disabled
    monkeypatch.setattr(questions, "answer", held._answer)
    hands.click("forward")
    assert hands.offsets() == [129]


def test_an_error_stays_until_something_succeeds(orders):
    hands = Hands(orders.explore(at=7))
    before = hands.html("table")
    hands.type("offset", 131)
    assert "offset 131 of orders-0 is out of range: the log holds [0, 130)" in hands.html("error")
    assert hands.visible("error")
    assert hands.visible("retry")
    assert isinstance(hands.explorer.error, OffsetOutOfRangeError)
    assert hands.html("table") == before
    assert hands.explorer.expression == "log.read(0, 7, 57)"  # of the rows that are shown

    hands.type("format", "hex")
    hands.type("zone", "Asia/Tokyo")
    hands.type("opened", "0:9")
    hands.click("retry")
    assert "offset 131" in hands.html("error")

    orders.send("one", "two")
    hands.click("retry")  # now there is such an offset
    assert not hands.visible("error")
    assert not hands.visible("retry")
    assert hands.html("error") == ""
    assert hands.explorer.error is None
    assert hands.offsets() == [131]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("timestamp", "next tuesday", "is not a time"),
        ("timestamp", "2023-02-30 00:00", "calendar"),
        ("zone", "Mars/Olympus", "not a time zone"),
        ("offset", -5, "offsets start at 0"),
    ],
)
def test_what_cannot_be_asked_for_is_an_error_below_the_table(orders, name, text, said):
    hands = Hands(orders.explore())
    hands.type(name, text)
    assert said in hands.html("error")
    hands.type("offset", 5)
    assert not hands.visible("error")


@pytest.mark.parametrize(
    ("box", "text", "said"),
    [
        ("search", "value.a =", "cannot be read"),
        ("search", "qty > 7", "did you mean value.qty?"),
        ("search", "partition = x", "cannot be read"),
    ],
)
def test_a_scan_that_cannot_be_made_is_refused(orders, box, text, said):
    hands = Hands(orders.explore())
    hands.find(box).value = text
    hands.click("find")
    assert said in hands.html("error")


def test_a_topic_that_vanishes_is_said_to_be_gone_and_comes_back(orders):
    hands = Hands(orders.explore())
    orders.lakelog.topics.delete("orders")
    hands.click("forward")
    assert "orders" in hands.html("error")
    assert hands.offsets()[0] == 0  # what was read is still there to look at
    assert "orders" not in hands.find("topic").options
    assert hands.find("topic").value is None
    hands.click("retry")
    orders.topic("another")
    hands.click("refresh")
    assert hands.visible("error")
    assert list(hands.find("topic").options) == ["another"]

    orders.topic()
    orders.send("of another topic by that name")
    hands.click("earliest")
    assert not hands.visible("error")
    assert "of another topic" in hands.html("table")
    assert hands.find("topic").value == "orders"


def test_redis_goes_away_and_comes_back(make_redis: Callable[..., Any], tmp_path: Path) -> None:
    server = make_redis()
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lakelog:
        lakelog.topics.create("orders", 1, {"retention.ms": -1})
        with lakelog.producer() as producer:
            producer.send("orders", "v", partition=0)
        hands = Hands(lakelog.explore("orders"))
        hands.explorer.wait()
        server.restart()
        server.stop()
        hands.click("latest")
        assert isinstance(hands.explorer.error, HotTierUnavailableError)
        assert hands.visible("retry")
        hands.click("retry")
        assert hands.visible("error")
        away = lakelog.explore("orders")  # opened meanwhile: shown, not raised
        away.wait()
        assert Hands(away).visible("retry")
        assert "error" in repr(away) or str(away.error) in repr(away)

        server.start()
        for one in (hands, Hands(away)):
            one.click("retry")
            assert not one.visible("error")
            assert one.offsets() == [0]
            one.explorer.close()


def test_while_redis_is_away_what_is_archived_is_shown(make_redis, tmp_path) -> None:
    server = make_redis()
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lakelog:
        lakelog.topics.create("orders", 2, {"retention.ms": -1, "local.retention.ms": 0})
        with lakelog.producer() as producer:
            for n in range(30):
                producer.send("orders", str(n), partition=0)
        lakelog.archive()
        with lakelog.producer() as producer:
            producer.send("orders", "in Redis alone", partition=0)
        hands = Hands(lakelog.explore("orders"))
        server.stop()
        away = lakelog.explore("orders")  # opened meanwhile
        away.wait()
        for one in (hands, Hands(away)):
            one.type("page-records", 20)
            one.click("latest")
            assert one.offsets() == list(range(10, 30))
            assert "the log is shown up to where its archive ends" in one.html("notes")
            assert "cannot reach Redis" in one.html("error")
            assert one.visible("retry")
            assert [number for _, number in one.find("partition").options] == [-1, 0, 1]
        server.start()
        for one in (hands, Hands(away)):
            one.click("retry")
            assert not one.visible("error")
            one.type("partition", 0)
            one.click("latest")
            assert one.offsets()[-1] == 30
            one.explorer.close()


# -- the tail ----------------------------------------------------------------------------------


def test_the_tail_is_followed_until_stopped(orders):
    explorer = orders.explore()
    hands = Hands(explorer)
    hands.type("page-records", 20)
    hands.type("follow", True)
    assert hands.offsets() == list(range(110, 130))
    assert "following" in hands.html("progress")
    for offset in (130, 131):
        orders.send(f"news {offset}")
        eventually(lambda offset=offset: hands.offsets()[-1] == offset)
    assert hands.offsets() == list(range(112, 132))
    assert explorer.expression == "log.read(0, 112, 132)"
    log = orders.lakelog.log("orders")
    assert eval(explorer.expression, {"log": log}).to_arrow().equals(explorer.data())

    hands.type("follow", False)
    eventually(lambda: hands.html("progress") == "")
    orders.send("unseen")
    explorer.wait()
    assert hands.offsets()[-1] == 131


def test_an_opened_record_holds_the_page_still(orders):
    explorer = orders.explore()
    hands = Hands(explorer)
    hands.type("page-records", 20)
    hands.type("follow", True)
    hands.type("opened", "0:120")
    orders.send("news 130", "news 131")
    eventually(lambda: hands.find("new").description == "+2 new" and hands.visible("new"))
    assert hands.offsets() == list(range(110, 130))
    assert "120" in hands.html("record")
    hands.type("opened", "")
    eventually(lambda: hands.offsets() == list(range(112, 132)))
    assert "following" in hands.html("progress")


def test_a_record_that_is_opened_while_the_next_page_is_read_stays_open(orders, monkeypatch):
    hands = Hands(orders.explore())
    hands.type("page-records", 20)
    hands.type("follow", True)
    assert hands.offsets() == list(range(110, 130))
    held = Held(monkeypatch)
    monkeypatch.setattr(
        following,
        "answer",
        lambda opened, ask, stopped: held(
            opened, ask, on_progress=lambda *_: None, stopped=stopped
        ),
    )
    orders.send("news 130")
    eventually(lambda: held.questions)  # the next page is being read
    hands.find("opened").value = "0:120"
    held.questions[0][1].set()
    orders.send("news 131")
    eventually(lambda: hands.find("new").description == "+2 new" and hands.visible("new"))
    assert hands.offsets() == list(range(110, 130))
    assert "120" in hands.html("record")
    hands.find("new").click()
    eventually(lambda: len(held.questions) == 2)
    held.questions[1][1].set()
    eventually(lambda: hands.offsets() == list(range(112, 132)))
    hands.type("follow", False)


def test_the_page_is_drawn_a_few_times_a_second_only(orders, monkeypatch):
    monkeypatch.setattr(following, "PAUSE_S", 3600.0)
    explorer = orders.explore()
    hands = Hands(explorer)
    hands.type("follow", True)
    for number in range(5):
        orders.send(f"news {number}")
    explorer.wait()
    assert hands.offsets()[-1] == 129  # the pause is not over
    hands.type("follow", False)
    eventually(lambda: hands.html("progress") == "")


def test_the_button_is_not_set_back_while_the_tail_is_followed(orders):
    """What is sent to a page can cross a click there, which would then be lost."""
    explorer = orders.explore()
    hands = Hands(explorer)
    sent = []
    hands.find("follow").observe(lambda change: sent.append(change["new"]), names="value")
    hands.type("follow", True)
    for offset in (130, 131):
        orders.send(f"news {offset}")
        eventually(lambda offset=offset: hands.offsets()[-1] == offset)
    assert sent == [True]
    hands.type("follow", False)
    eventually(lambda: hands.html("progress") == "")
    assert sent == [True, False]


def test_a_click_that_ends_the_following_while_a_page_is_drawn_is_not_undone(orders):
    hands = Hands(orders.explore())
    button = hands.find("follow")
    sent = []

    def untick(change):
        if "news 130" in change["new"] and not sent:
            button.observe(lambda change: sent.append(change["new"]), names="value")
            button.value = False

    hands.find("table").observe(untick, names="value")
    hands.type("follow", True)
    orders.send("news 130")
    eventually(lambda: sent and hands.html("progress") == "")
    assert sent == [False]


def test_following_shows_what_the_filter_lets_through(orders):
    explorer = orders.explore()
    explorer.search("wanted")
    explorer.follow()
    orders.send("not this", "wanted 1", "nor that", "wanted 2")
    eventually(lambda: explorer.data().num_rows == 2)
    assert Hands(explorer).find("follow").value
    assert explorer.expression.endswith(".matching('wanted')")


def test_going_elsewhere_ends_the_following(orders):
    hands = Hands(orders.explore())
    hands.type("follow", True)
    hands.type("offset", 3)
    assert not hands.find("follow").value
    orders.send("more")
    assert hands.offsets()[0] == 3


def followers():
    return [one for one in threading.enumerate() if one.name == "lakelog-explorer"]


def test_closing_ends_the_following(orders):
    explorer = orders.explore()
    explorer.follow()
    assert followers()
    explorer.close()
    for thread in followers():
        thread.join(60)
    assert not followers()


def test_a_followed_topic_that_vanishes_is_said_to_be_gone(orders):
    explorer = orders.explore()
    explorer.follow()
    orders.lakelog.topics.delete("orders")
    hands = Hands(explorer)
    eventually(lambda: hands.visible("error"))
    assert "orders" in hands.html("error")
    assert not hands.find("follow").value


@pytest.fixture
def restarted(make_redis, tmp_path):
    """A server that has stopped while the tail was followed, the log and the hands."""
    server = make_redis()
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lakelog:
        lakelog.topics.create("orders", 1, {"retention.ms": -1})
        with lakelog.producer() as producer:
            producer.send("orders", "v", partition=0)
        explorer = lakelog.explore("orders")
        hands = Hands(explorer)
        explorer.follow()
        server.stop()
        eventually(lambda: hands.visible("error"))
        yield server, lakelog, hands
        explorer.close()


def test_following_goes_on_by_itself_when_redis_is_back(restarted):
    server, lakelog, hands = restarted
    assert hands.find("follow").value
    assert "asked again" in hands.html("progress")
    assert isinstance(hands.explorer.error, HotTierUnavailableError)
    server.start()
    eventually(lambda: not hands.visible("error"))
    assert hands.explorer.error is None
    eventually(lambda: "following" in hands.html("progress"))
    with lakelog.producer() as producer:
        offset = producer.send("orders", "news", partition=0).result().offset
    eventually(lambda: hands.offsets()[-1] == offset)


def test_following_a_redis_that_is_away_can_be_stopped(restarted):
    _, _, hands = restarted
    hands.type("follow", False)
    eventually(lambda: hands.html("progress") == "")
    assert not hands.find("follow").value
    assert hands.visible("error")
    for thread in followers():
        thread.join(60)
    assert not followers()


def test_a_text_of_a_megabyte_is_looked_for_and_a_longer_one_is_refused(orders):
    text = "long" * 250_000
    orders.send(f"before {text} behind")
    hands = Hands(orders.explore())
    hands.type("search", text)
    assert hands.offsets() == [130]
    is_said_in_full = text in hands.explorer.code()
    assert is_said_in_full
    assert len(hands.html("expression")) < 10_000
    hands.type("search", text + "x")
    assert hands.offsets() == []
    hands.type("search", text * 2)
    assert "Search for a part of the text" in hands.html("error")
    assert len(hands.html("error")) < 1_000
    hands.type("search", "text 101")
    assert hands.offsets() == [101]
    assert not hands.visible("error")
