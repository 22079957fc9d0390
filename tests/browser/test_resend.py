"""A record sent again from the explorer, by clicks and keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from explorer_page import ExplorerPage
from jupyter_lab import JupyterLab, write_notebook
from playwright.sync_api import expect

from lakelog import Lakelog

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

RECORDS = 10
CELL = """
import os
from lakelog import Lakelog
lake = Lakelog.embedded(os.environ["LAKELOG_DIRECTORY"], engine="inline")
lake.explore("orders", write=True)
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log")


@pytest.fixture(scope="module")
def lakelog(directory: Path) -> Iterator[Lakelog]:
    with Lakelog.embedded(directory, engine="inline") as lakelog:
        for name in ("again", "orders"):
            lakelog.topics.create(name, 1, {"retention.ms": -1})
        with lakelog.producer() as producer:
            for number in range(RECORDS):
                headers = [("h", b"%d" % number)]
                producer.send("orders", f'{{"n": {number}}}', key=f"k{number}", headers=headers)
        yield lakelog


@pytest.fixture(scope="module")
def page(
    browser: Browser,
    make_lab: Callable[..., JupyterLab],
    tmp_path_factory: pytest.TempPathFactory,
    lakelog: Lakelog,
    directory: Path,
) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("notebooks")
    write_notebook(folder / "resend.ipynb", CELL)
    lab = make_lab(folder, LAKELOG_DIRECTORY=str(directory))
    page = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="UTC")
    lab.open(page, "resend.ipynb")
    lab.run_all(page)
    page.keyboard.press("Control+b")  # the file list goes
    yield page
    page.close()


@pytest.fixture
def explorer(page: Page, take_picture: Callable[..., Path], request: pytest.FixtureRequest):
    """The explorer of the orders, without an open record at first."""
    explorer = ExplorerPage(page)
    explorer.root.wait_for()
    expect(explorer.rows.first).to_be_visible()
    yield explorer
    take_picture(page, request.node.name.removeprefix("test_"))


def values(lakelog: Lakelog, topic: str) -> list[tuple[bytes | None, bytes | None, tuple]]:
    records = lakelog.log(topic).read(0).records()
    return [(record.key, record.value, record.headers) for record in records]


def test_it_is_sent_after_a_second_click_that_says_where_to(
    explorer: ExplorerPage, lakelog: Lakelog
) -> None:
    explorer.open(3)
    expect(explorer.part("sending")).to_be_hidden()
    explorer.press("again")
    expect(explorer.part("send-value").locator("textarea")).to_have_value('{"n": 3}')
    send = explorer.part("send")
    expect(send).to_have_text("Send")
    send.click()
    expect(send).to_have_text("Yes, append it to 'orders'")
    assert len(values(lakelog, "orders")) == RECORDS
    send.click()
    expect(explorer.part("sent")).to_contain_text(f"appended to orders-0 at offset {RECORDS}")
    expect(explorer.part("sending")).to_be_hidden()
    assert values(lakelog, "orders")[RECORDS:] == [(b"k3", b'{"n": 3}', (("h", b"3"),))]


def test_what_is_typed_after_the_first_click_is_to_be_confirmed_anew(
    explorer: ExplorerPage, lakelog: Lakelog
) -> None:
    explorer.open(4)
    explorer.press("again")
    send, box = explorer.part("send"), explorer.part("send-value").locator("textarea")
    expect(box).to_have_value('{"n": 4}')
    explorer.choose("send-topic", "again")
    expect(send).to_have_text("Send")
    send.click()
    expect(send).to_have_text("Yes, append it to 'again'")
    box.press("Control+a")
    box.press_sequentially('{"n": "none"}')
    expect(send).to_have_text("Send")
    assert values(lakelog, "again") == []
    send.click()
    expect(send).to_have_text("Yes, append it to 'again'")
    send.click()
    expect(explorer.part("sent")).to_contain_text("appended to again-0 at offset 0")
    assert values(lakelog, "again") == [(b"k4", b'{"n": "none"}', (("h", b"4"),))]


def test_cancel_sends_nothing(explorer: ExplorerPage, lakelog: Lakelog) -> None:
    before = len(values(lakelog, "orders"))
    explorer.open(5)
    explorer.press("again")
    explorer.part("send").click()
    expect(explorer.part("send")).to_have_text(re.compile("^Yes"))
    explorer.press("send-not")
    expect(explorer.part("sending")).to_be_hidden()
    assert len(values(lakelog, "orders")) == before
