"""JupyterLab on a folder of the test's own, and a Chromium that looks at it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # what follows are no test modules
from jupyter_lab import TIMEOUT_S, JupyterLab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: Debian, Ubuntu's snap and others, Google's own.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
NO_CHROMIUM = (
    f"no Chromium: none of {', '.join(PROGRAMS)} is on PATH. Debian: apt-get install chromium"
)
#: Where pictures go as well, to be looked at: a folder.
SCREENSHOTS = "LAKELOG_SCREENSHOTS"

_skipped: list[str] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Quiet pytest says only that something was skipped; this says what it takes not to."""
    if _skipped:
        terminalreporter.write_line(f"tests/browser was skipped: {_skipped[0]}", yellow=True)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of this machine's Chromium; without one, what needs it is skipped."""
    for program in PROGRAMS:
        if path := shutil.which(program):
            return path
    _skipped.append(NO_CHROMIUM)
    pytest.skip(NO_CHROMIUM)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    # The module's and not the run's: playwright keeps an event loop running in this thread, and
    # other tests start their own.
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=TIMEOUT_S * 1000)
    with sync_playwright() as playwright:
        # Whoever looks for another host finds none, so nothing can depend on one.
        only_loopback = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        browser = playwright.chromium.launch(executable_path=chromium, args=[only_loopback])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def make_lab(
    chromium: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., JupyterLab]]:
    """Starts JupyterLabs that end with the module: ``make_lab(folder, VARIABLE="value")``."""
    labs: list[JupyterLab] = []

    def make(folder: Path, **environment: str) -> JupyterLab:
        lab = JupyterLab(tmp_path_factory.mktemp("jupyter") / "home", folder, environment)
        labs.append(lab)
        return lab.start()

    try:
        yield make
    finally:
        for lab in labs:
            lab.stop()


@pytest.fixture
def take_picture(tmp_path: Path) -> Callable[[Page, str], Path]:
    """Saves what a page shows: ``take_picture(page, "name")``."""

    def take(page: Page, name: str) -> Path:
        picture = tmp_path / f"{name}.png"
        page.screenshot(path=picture)
        if folder := os.environ.get(SCREENSHOTS):
            Path(folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, folder)
        return picture

    return take
