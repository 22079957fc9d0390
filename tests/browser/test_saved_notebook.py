"""The explore notebook after its kernel is gone: what it kept can be read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from explorer_page import ExplorerPage
from jupyter_lab import JupyterLab
from playwright.sync_api import expect

from lakelog import Lakelog
from lakelog.jobs.readings import add_readings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "50_explore.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notebooks")
    shutil.copy(NOTEBOOK, folder)
    return folder


@pytest.fixture(scope="module")
def page(
    browser: Browser,
    make_lab: Callable[..., JupyterLab],
    tmp_path_factory: pytest.TempPathFactory,
    folder: Path,
) -> Iterator[Page]:
    """The notebook, run from its menu."""
    directory = tmp_path_factory.mktemp("log")
    with Lakelog.embedded(directory, engine="inline") as lakelog:
        add_readings(lakelog, "readings", 600)
        lakelog.archive("readings")
        add_readings(lakelog, "readings", 700)
        lab = make_lab(folder, LAKELOG_DIRECTORY=str(directory), LAKELOG_TOPIC="readings")
        page = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="UTC")
        lab.open(page, NOTEBOOK.name)
        lab.run_all(page)
        page.keyboard.press("Control+b")  # the file list goes
        yield page
        page.close()


def test_what_is_kept_is_hidden_while_the_explorer_lives_and_follows_it(page: Page) -> None:
    explorer = ExplorerPage(page)
    explorer.root.scroll_into_view_if_needed()
    expect(explorer.root).to_be_visible()
    kept = page.locator(".ll-saved")
    expect(kept).to_have_count(1)
    expect(kept).to_be_hidden()
    shown = explorer.expression.locator(".ll-code")
    expect(shown).to_contain_text("lake.log('readings')")
    first = shown.inner_text()
    explorer.press("forward")
    expect(shown).not_to_have_text(first)
    expect(kept.locator("code")).to_have_text(shown.inner_text())


def test_nbconvert_shows_the_page_and_the_charts(
    page: Page, browser: Browser, folder: Path, take_picture: Callable[..., Path]
) -> None:
    page.keyboard.press("Control+s")
    expect(page.locator(".jp-Document .jp-mod-dirty, .lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", NOTEBOOK.name]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    made = folder / NOTEBOOK.with_suffix(".html").name
    converted = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="UTC")
    converted.goto(made.as_uri())

    kept = converted.locator(".ll-saved")
    expect(kept).to_be_visible()
    expect(kept).to_contain_text("as of 20")
    expect(kept.locator("tbody tr")).to_have_count(50)
    tables = converted.locator(".ll-rows")
    expect(tables).to_have_count(3 + 2)  # of charts, and as such
    for table in tables.all():
        expect(table).to_be_visible()
    kept.scroll_into_view_if_needed()
    take_picture(converted, "nbconvert")
    converted.close()


def test_after_a_restart_of_the_kernel_the_kept_page_takes_the_place_of_dead_buttons(
    page: Page, take_picture: Callable[..., Path]
) -> None:
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.locator(".lm-Menu-item").get_by_text("Restart Kernel…", exact=True).click()
    page.get_by_role("button", name="Confirm Kernel Restart").click()

    kept = page.locator(".ll-saved")
    expect(kept).to_be_visible()
    expect(page.locator(".lakelog-explorer")).to_be_hidden()
    expect(kept).to_contain_text("Run the cell again")
    kept.scroll_into_view_if_needed()
    take_picture(page, "restarted")


def test_after_a_reload_without_its_kernel_the_kept_page_is_shown(
    page: Page, take_picture: Callable[..., Path]
) -> None:
    page.keyboard.press("Control+s")
    page.reload()
    page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()

    kept = page.locator(".ll-saved")
    expect(kept).to_be_visible()
    expect(kept.locator("tbody tr")).to_have_count(50)
    expect(page.get_by_text("Error displaying widget")).to_be_hidden()
    kept.scroll_into_view_if_needed()
    take_picture(page, "reloaded")
