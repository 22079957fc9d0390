"""The notebooks as Voilà shows them. Not collected by itself: Voilà's lane names this file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from explorer_page import ExplorerPage
from playwright.sync_api import expect
from voila_server import Voila

from lakelog import Lakelog
from lakelog.jobs.readings import add_readings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PAGE = 50
ARCHIVED, TOTAL = 600, 700


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """600 readings in the cold tier and 100 in the hot one, held open for the notebooks."""
    directory = tmp_path_factory.mktemp("log")
    with Lakelog.embedded(directory, engine="inline") as lakelog:
        add_readings(lakelog, "readings", ARCHIVED)
        lakelog.archive("readings")
        add_readings(lakelog, "readings", TOTAL)
        yield directory


@pytest.fixture(scope="module")
def show(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, directory: Path
) -> Iterator[Callable[[str], Page]]:
    """Shows a notebook: ``show("50_explore")``."""
    started: list[Voila] = []
    pages: list[Page] = []

    def show(name: str) -> Page:
        voila = Voila(
            tmp_path_factory.mktemp("voila"),
            NOTEBOOKS / f"{name}.ipynb",
            {"LAKELOG_DIRECTORY": str(directory), "LAKELOG_TOPIC": "readings"},
        )
        started.append(voila)
        page = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="UTC")
        pages.append(page)
        voila.open(page)
        return page

    yield show
    for page in pages:
        page.close()
    for voila in started:
        voila.stop()


@pytest.fixture(scope="module")
def explorer(show: Callable[[str], Page]) -> ExplorerPage:
    page = show("50_explore")
    explorer = ExplorerPage(page)
    explorer.root.wait_for()
    explorer.press("more")
    expect(explorer.part("secondary")).to_be_visible()
    return explorer


def test_the_explorer_lives_and_what_is_kept_of_it_is_hidden(
    explorer: ExplorerPage, take_picture: Callable[..., Path]
) -> None:
    expect(explorer.rows).to_have_count(PAGE)
    expect(explorer.root).to_be_visible()
    kept = explorer.page.locator(".ll-saved")
    expect(kept).to_have_count(1)
    expect(kept).to_be_hidden()
    take_picture(explorer.page, "voila")


def test_pages_searches_and_records_answer(explorer: ExplorerPage) -> None:
    before = explorer.expression.inner_text()
    explorer.press("forward")
    expect(explorer.expression).not_to_have_text(before)
    explorer.choose("partition", "partition 1")
    expect(explorer.expression).to_contain_text(f".read(1, 0, {PAGE})")
    explorer.expect_offsets(range(PAGE))
    explorer.type("search", "value.celsius = 20.3")
    expect(explorer.expression).to_contain_text("matching('value.celsius = 20.3')")
    first = explorer.column("value").first
    expect(first).to_contain_text("20.3")
    value = json.loads(first.inner_text())
    explorer.open(explorer.first_offset())
    expect(explorer.record).to_contain_text(f'"n": {value["n"]}')
    explorer.press("clear")
    expect(explorer.expression).not_to_contain_text("matching(")


def test_a_click_in_the_picture_goes_there(explorer: ExplorerPage) -> None:
    explorer.press("earliest")
    explorer.expect_offsets(range(PAGE))
    explorer.part("picture").locator(".ll-time").click()
    expect(explorer.row(0)).to_have_count(0)


def test_the_charts_are_shown(explorer: ExplorerPage, take_picture: Callable[..., Path]) -> None:
    drawn = explorer.page.locator(".js-plotly-plot .main-svg:first-child, .ll-rows")
    for number in range(3):
        expect(drawn.nth(number)).to_be_attached()
    expect(explorer.page.get_by_text("Traceback")).to_have_count(0)


def test_the_notebook_of_what_is_operated_is_shown(
    show: Callable[[str], Page], take_picture: Callable[..., Path]
) -> None:
    page = show("60_operate")
    expect(page.get_by_text("readings").first).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    take_picture(page, "voila-operate")
