"""Links of the explorer's page: what they name, and that each is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import InvalidArgumentError
from lakelog.explore.link import ABOUT, GROUPS, RECORDS, TOPICS, Link
from lakelog.values.offsets import AtOffset, AtTimestamp, Earliest, Latest

TOPIC_NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,40}", fullmatch=True).filter(
    lambda name: name not in (".", "..")
)
NUMBERS = st.integers(0, 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LINKS = st.one_of(
    st.just(Link()),
    st.builds(Link, st.just(GROUPS), TEXTS),
    st.builds(Link, st.just(ABOUT), TOPIC_NAMES),
    st.builds(Link, st.just(RECORDS), TOPIC_NAMES, st.none(), st.none(), TEXTS, TEXTS),
    st.builds(Link, st.just(RECORDS), TOPIC_NAMES, NUMBERS, st.none() | NUMBERS, TEXTS, TEXTS),
)


@given(LINKS)
def test_a_link_is_read_back(link: Link) -> None:
    path = link.path
    assert Link.parse(path) == link
    assert Link.parse(f"http://host:8090{path}") == link
    # It stands in a script between apostrophes, and in HTML.
    assert not set(path) & set("'\"<>\\ \n")


@given(st.text(max_size=60))
def test_whatever_is_asked_for_is_a_link(url: str) -> None:
    found = Link.parse(url)
    assert Link.parse(found.path) == found


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("", Link()),
        ("/?token=abc", Link()),
        ("/orders?token=abc", Link(RECORDS, "orders")),
        ("/orders/", Link(RECORDS, "orders")),
        ("/orders/1/600", Link(RECORDS, "orders", 1, 600)),
        ("/orders/x/600", Link(RECORDS, "orders")),
        ("/orders/-1", Link(RECORDS, "orders")),
        (f"/orders/{'9' * 30}", Link(RECORDS, "orders")),
        ("/orders/1/600/more", Link(RECORDS, "orders", 1, 600)),
        ("/orders?at=latest&where=n+%3E+5", Link(RECORDS, "orders", at="latest", where="n > 5")),
        ("/~groups/a%2Fb", Link(GROUPS, "a/b")),
        ("/~nothing/of", Link()),
        ("http://[::1", Link()),
    ],
)  # fmt: skip
def test_what_links_name(url: str, wanted: Link) -> None:
    assert Link.parse(url) == wanted
    assert wanted.view in (TOPICS, GROUPS, ABOUT, RECORDS)


def test_where_the_records_begin() -> None:
    assert Link(RECORDS, "orders").position == Earliest()
    assert Link(RECORDS, "orders", 1, 600, at="latest").position == AtOffset(600)
    assert Link(RECORDS, "orders", at="latest").position == Latest()
    assert Link(RECORDS, "orders", at="2013-07-04T12:00").position == AtTimestamp(1372939200000)
    with pytest.raises(InvalidArgumentError, match="'soon' is not a position"):
        _ = Link(RECORDS, "orders", at="soon").position
