"""Times stand in the zone of the reader's clocks, and in UTC below the pointer."""

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

CELL = """
import os
from lakelog import Lakelog
lake = Lakelog.embedded(os.environ["LAKELOG_DIRECTORY"], engine="inline")
lake.explore("orders")
"""


@pytest.fixture(scope="module")
def page(
    browser: Browser,
    make_lab: Callable[..., JupyterLab],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Page]:
    """A reader in Tokyo."""
    directory, folder = (tmp_path_factory.mktemp(name) for name in ("log", "notebooks"))
    with Lakelog.embedded(directory, engine="inline") as lakelog:
        lakelog.topics.create("orders", 1, {"retention.ms": -1})
        with lakelog.producer() as producer:
            for number in range(100):  # 2023-11-14T22:13:20Z on
                at_ms = 1_700_000_000_000 + 60_000 * number
                producer.send("orders", f"{number}", timestamp_ms=at_ms)
        write_notebook(folder / "zone.ipynb", CELL)
        lab = make_lab(folder, LAKELOG_DIRECTORY=str(directory))
        page = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="Asia/Tokyo")
        lab.open(page, "zone.ipynb")
        lab.run_all(page)
        yield page
        page.close()


def test_times_are_those_of_the_readers_clocks(
    page: Page, take_picture: Callable[..., Path]
) -> None:
    explorer = ExplorerPage(page)
    first = explorer.column("time").first
    expect(first).to_have_text("2023-11-15 07:13:20.000+09:00")
    expect(first).to_have_attribute("title", "2023-11-14 22:13:20.000Z")
    expect(explorer.part("told")).to_contain_text("15 Nov 2023")
    explorer.type("timestamp", "2023-11-15 07:20")  # as it is read there
    expect(explorer.column("offset").first).to_have_text("7")
    explorer.press("more")
    expect(explorer.part("zone").locator("input")).to_have_value("Asia/Tokyo")
    take_picture(page, "tokyo")
    explorer.type("zone", "Europe/London")
    expect(first).to_have_text(re.compile(r"^2023-11-14 22:20:20\.000Z$"))
    expect(explorer.part("told")).to_contain_text("14 Nov 2023")
