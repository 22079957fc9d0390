"""The page by its widgets, as a browser has them: links in, tables and an address out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.cli.explore import page_of
from lakelog.explore.link import ABOUT, GROUPS, RECORDS, TOPICS, Link
from tests.explore.explorer.hands import Hands

EPOCH_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    """Topic orders: partition 0 has [0, 20) cold and [20, 30) hot, partition 1 nothing."""
    lake = Lakelog.connect(redis_url, tmp_path / "cold", engine="inline")
    lake.topics.create("orders", 2, {"retention.ms": -1, "local.retention.ms": 0})
    send(lake, 0, 20)
    lake.archive("orders")
    send(lake, 20, 30)
    yield lake
    lake.close()


def send(lake: Lakelog, start: int, end: int) -> None:
    with lake.producer() as producer:
        for n in range(start, end):
            at_ms = EPOCH_MS + 1000 * n
            producer.send("orders", f'{{"n": {n}}}', key="k", partition=0, timestamp_ms=at_ms)


@pytest.fixture
def make_page() -> Iterator[Callable[[Lakelog], Any]]:
    made: list[Any] = []

    def make(lake: Lakelog) -> Any:
        made.append(page_of(lake, "./log", write=False))
        return made[-1]

    yield make
    for page in made:
        if page.explorer is not None:
            page.explorer.close()
        page.close()


def ask(page: Any, path: str) -> Hands:
    """What a browser tells that was asked for an address."""
    hands = Hands(page)
    hands.type("place", path)
    if page.explorer is not None:
        page.explorer.wait()
    return hands


def cells(html: str) -> list[list[str]]:
    """The rows of a table, but for its head."""
    rows = re.findall(r"<tr data-link.*?</tr>", html)
    return [
        [unescape(re.sub("<[^>]*>", "", one)) for one in re.findall("<td.*?</td>", row)]
        for row in rows
    ]


def address(page: Any) -> str:
    """What the browser is told to show as its address."""
    script = unescape(page.address.value)
    (path,) = set(re.findall(r"State\(null, '', '([^']*)'\)", script))
    return str(path)


def test_nothing_is_read_before_a_browser_says_where_it_is(make_page) -> None:
    class NoLog:
        redis = place = None

        def __getattr__(self, name: str) -> Any:
            return lambda *_: pytest.fail(f"{name} was called")

    page = page_of(NoLog(), "./log", write=False)  # type: ignore[arg-type]
    assert Hands(page).html("overview") == ""
    page.close()


def test_topics_have_sizes_what_waits_and_a_rate_from_the_second_look_on(lake, make_page) -> None:
    with lake.consumer("orders", group_id="nightly", auto_offset_reset="earliest") as consumer:
        consumer.poll(5000, max_records=12)
        consumer.commit()
    page = make_page(lake)
    hands = ask(page, "/?token=secret")
    (row,) = cells(hands.html("overview"))
    assert row[:3] == ["orders", "2", "30"]
    assert re.fullmatch(r"[\d.]+ (B|KiB)", row[3]), row
    assert re.fullmatch(r"[\d.]+ KiB", row[4]), row
    assert row[5:7] == ["–", "10"]
    assert row[8:] == ["18", "delete", "ok"]
    assert 'data-link="/orders"' in hands.html("overview")
    assert address(page) == "/"
    send(lake, 30, 70)
    hands.click("again")
    page.wait()
    (row,) = cells(hands.html("overview"))
    assert row[2] == "70"
    assert re.fullmatch(r"[\d,.]+/(s|min|h|day)", row[5]), row


def test_a_filter_finds_topics_and_groups(lake, make_page) -> None:
    for name in ("alpha", "beta"):
        lake.topics.create(name, 1)
    page = make_page(lake)
    hands = ask(page, "/")
    assert [row[0] for row in cells(hands.html("overview"))] == ["alpha", "beta", "orders"]
    hands.type("filter", "eta")
    assert [row[0] for row in cells(hands.html("overview"))] == ["beta"]


def test_a_link_to_a_record_opens_it_and_going_on_moves_the_address(lake, make_page) -> None:
    page = make_page(lake)
    ask(page, "/orders/0/7")
    explorer = page.explorer
    assert Hands(explorer).offsets()[0] == 7
    assert "&quot;n&quot;: 7" in Hands(explorer).html("record")
    assert page.link == Link(RECORDS, "orders", 0, 7)
    explorer.search("value.n > 25")
    assert page.link == Link(RECORDS, "orders", 0, where="value.n > 25")
    assert address(page) == "/orders/0?where=value.n%20%3E%2025"
    # What it says then shows the same again, in another browser too.
    other = make_page(lake)
    ask(other, address(page))
    assert Hands(other.explorer).offsets() == [26, 27, 28, 29]
    ask(other, "/orders/0/28")
    assert "&quot;n&quot;: 28" in Hands(other.explorer).html("record")


def test_a_link_by_time_over_all_partitions(lake, make_page) -> None:
    page = make_page(lake)
    ask(page, "/orders?at=2023-11-14T22:13:45")
    assert Hands(page.explorer).offsets() == [25, 26, 27, 28, 29]
    assert page.link == Link(RECORDS, "orders", at="2023-11-14T22:13:45")
    page.explorer.back()
    assert page.link == Link(RECORDS, "orders", at="2023-11-14T22:13:20Z")


def test_about_a_topic(lake, make_page) -> None:
    lake.topics.alter("orders", {"lakelog.value.columns": "n int"})
    page = make_page(lake)
    hands = ask(page, "/orders/~about")
    html = hands.html("overview")
    partitions = cells(html)
    assert [row[0] for row in partitions] == ["0", "1"]
    assert partitions[0][1:5] == ["0", "20", "20", "30"]
    assert "no group reads it" in html
    assert html.index("lakelog.value.columns") < html.index("segment.bytes")
    assert "n int" in html
    hands.find("tabs").value = RECORDS
    page.explorer.wait()
    assert page.link.name == "orders"
    hands.find("tabs").value = ABOUT
    page.wait()
    assert page.link == Link(ABOUT, "orders")


def test_groups_and_one_of_them(lake, make_page) -> None:
    group_id = "<b>reports</b> & 'more'"
    with lake.consumer("orders", group_id=group_id, auto_offset_reset="earliest") as consumer:
        consumer.poll(5000, max_records=12)
        consumer.commit()
    page = make_page(lake)
    hands = ask(page, "/~groups")
    (row,) = cells(hands.html("overview"))
    assert row[:5] == [group_id, "classic", "Empty", "0", "orders"]
    assert row[6] == "18"
    (link,) = re.findall(r'data-link="([^"]*)"', hands.html("overview"))
    hands.type("place", unescape(link))
    assert page.link == Link(GROUPS, group_id)
    rows = cells(hands.html("overview"))
    assert rows[0][:5] == ["orders", "0", "12", "30", "18"]
    assert "<b>reports" not in hands.html("overview")
    (link, *_) = re.findall(r'data-link="([^"]*)"', hands.html("overview"))
    ask(page, unescape(link))
    assert Hands(page.explorer).offsets()[0] == 12  # the first that is not read


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/nothing", "there is no topic 'nothing'"),
        ("/orders/7", "7"),
        ("/orders?at=soon", "'soon' is not a position"),
        ("/orders?where=value.n%20%3E", "value.n &gt;"),
        ("/nothing/~about", "there is no topic 'nothing'"),
    ],
)
def test_what_is_not_there_is_said_and_the_page_goes_on(lake, make_page, path, said) -> None:
    page = make_page(lake)
    hands = ask(page, path)
    assert said in unescape(hands.html("wrong")) or said in hands.html("wrong")
    ask(page, "/orders/0/7")
    assert page.link == Link(RECORDS, "orders", 0, 7)
    assert hands.html("wrong") == ""
    assert ask(page, "/").html("wrong") == ""
    assert page.link == Link(TOPICS)


def test_without_redis_the_archive_is_shown(lake, make_page, tmp_path) -> None:
    with Lakelog.connect(None, tmp_path / "cold", engine="inline") as archived:
        page = make_page(archived)
        hands = ask(page, "/")
        (row,) = cells(hands.html("overview"))
        assert row[:4] == ["orders", "2", "20", "–"]
        assert row[-1] == "cold only"
        assert cells(ask(page, "/~groups").html("overview")) == []
        ask(page, "/orders/0")
        assert Hands(page.explorer).offsets() == list(range(20))


def test_redis_that_is_away_is_said_and_looked_for_again(lake, make_page, monkeypatch) -> None:
    from lakelog.errors import HotTierUnavailableError

    page = make_page(lake)
    monkeypatch.setattr(
        type(lake), "status", lambda *_: (_ for _ in ()).throw(HotTierUnavailableError("away"))
    )
    assert "away" in ask(page, "/").html("wrong")
    monkeypatch.undo()
    hands = Hands(page)
    hands.click("again")
    page.wait()
    assert [row[0] for row in cells(hands.html("overview"))] == ["orders"]
    assert hands.html("wrong") == ""
