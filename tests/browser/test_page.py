"""`lakelog explore` in a real browser: from the list of topics to a record, and its link."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from explorer_page import ExplorerPage
from playwright.sync_api import expect

from lakelog import Lakelog
from lakelog.jobs.readings import add_readings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URL of a page of 700 readings, 100 of them in Redis alone, and its token."""
    directory = tmp_path_factory.mktemp("log")
    with Lakelog.embedded(directory, engine="inline") as lake:
        add_readings(lake, "readings", 600)
        lake.archive("readings")
        add_readings(lake, "readings", 700)
        with lake.consumer("readings", group_id="night & day", auto_offset_reset="earliest") as one:
            one.poll(5000, max_records=100)
            one.commit()
    command = (sys.executable, "-m", "lakelog", "--dir", str(directory), "explore")
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        found = re.search(r"serving (\S+)/\?token=(\S+) \(Ctrl-C", process.stderr.readline())
        assert found
        yield found[1], found[2]
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def page(browser: Browser, served: tuple[str, str]) -> Iterator[Page]:
    """A visitor who has followed the link with the token."""
    url, token = served
    page = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="UTC")
    elsewhere: list[str] = []
    own = (url, "ws", "data", "blob")
    page.on("request", lambda one: one.url.startswith(own) or elsewhere.append(one.url))
    page.goto(f"{url}/?token={token}")
    yield page
    page.close()
    assert elsewhere == []


def rows(page: Page, text: str) -> Locator:
    return page.locator(".lakelog-overview tr[data-link]").filter(has_text=text)


def test_from_the_topics_to_a_record_and_back(
    page: Page, served: tuple[str, str], take_picture: Callable[..., Path]
) -> None:
    url, _ = served
    topic = rows(page, "readings")
    expect(topic).to_contain_text("700")
    expect(page).to_have_url(f"{url}/")  # the token is gone from the address
    take_picture(page, "page-topics")
    topic.click()
    expect(page).to_have_url(f"{url}/readings")
    explorer = ExplorerPage(page)
    expect(explorer.rows).to_have_count(50)
    explorer.rows.nth(3).click()
    expect(page).to_have_url(re.compile(rf"{url}/readings/\d/\d+$"))
    take_picture(page, "page-record")
    page.get_by_role("button", name="About the topic").click()
    expect(rows(page, "night & day").first).to_be_visible()
    take_picture(page, "page-about")
    page.go_back()
    expect(explorer.record).to_contain_text("celsius")
    page.go_back()
    expect(rows(page, "readings")).to_be_visible()


def test_a_colleague_opens_the_link(
    browser: Browser, page: Page, served: tuple[str, str], take_picture: Callable[..., Path]
) -> None:
    url, token = served
    colleague = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="UTC")
    colleague.goto(f"{url}/readings/1/150")
    colleague.get_by_label("Token").fill(token)
    colleague.get_by_role("button", name="Open").click()
    explorer = ExplorerPage(colleague)
    expect(explorer.record).to_contain_text("150")
    expect(colleague).to_have_url(f"{url}/readings/1/150")
    explorer.type("search", "value.celsius > 20.3")
    expect(colleague).to_have_url(re.compile(r"where=value\.celsius%20%3E%2020\.3"))
    shown = explorer.expression.inner_text()
    other = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="UTC")
    other.goto(f"{colleague.url}&token={token}")
    again = ExplorerPage(other)
    expect(again.expression).to_have_text(shown)
    take_picture(other, "page-search")
    other.close()
    colleague.close()


def test_a_dark_browser_gets_a_dark_page(
    browser: Browser, served: tuple[str, str], take_picture: Callable[..., Path]
) -> None:
    url, token = served
    dark = browser.new_page(viewport={"width": 1280, "height": 1000}, color_scheme="dark")
    dark.goto(f"{url}/readings/1/150?token={token}")
    explorer = ExplorerPage(dark)
    expect(explorer.record).to_contain_text("150")
    expect(dark.locator("body")).to_have_css("background-color", "rgb(17, 17, 17)")
    expect(explorer.rows.first).to_have_css("color", "rgb(255, 255, 255)")
    take_picture(dark, "page-dark")
    dark.close()


def test_groups(page: Page, served: tuple[str, str], take_picture: Callable[..., Path]) -> None:
    page.get_by_role("button", name="Groups").click()
    group = rows(page, "night & day")
    expect(group).to_contain_text("600")
    take_picture(page, "page-groups")
    group.click()
    expect(page).to_have_url(re.compile(r"/~groups/night%20%26%20day$"))
    take_picture(page, "page-group")
    rows(page, "readings").first.click()
    explorer = ExplorerPage(page)
    expect(explorer.rows).to_have_count(50)
    expect(page).to_have_url(re.compile(r"/readings/\d\?at=\d+$"))
