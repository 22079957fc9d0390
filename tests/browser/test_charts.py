"""A chart as a cell's last line, in a JupyterLab whose panes move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jupyter_lab import JupyterLab, write_notebook
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TABLE = """
import pyarrow as pa
from lakelog.explore import charts
names = ["partition", "kind", "start_offset", "end_offset", "waiting_ms"]
ranges = pa.table([[0, 0], ["cold", "hot"], [0, 900], [900, 1000], [None, 5]], names)
"""
CHART = "charts.partition_map(ranges)"
DRAWN = "[...document.querySelectorAll('.js-plotly-plot .main-svg:first-child')]"
SIZES = "them => them.map(one => [one.clientHeight, one.clientWidth])"


def test_a_chart_takes_the_width_there_is_and_keeps_its_height(
    browser: Browser,
    make_lab: Callable[..., JupyterLab],
    tmp_path: Path,
    take_picture: Callable[..., Path],
) -> None:
    write_notebook(tmp_path / "charts.ipynb", TABLE, CHART, f"charts.show({CHART})")
    lab = make_lab(tmp_path)
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    lab.open(page, "charts.ipynb")
    lab.run_all(page)
    drawn = page.locator(".js-plotly-plot .main-svg:first-child")
    expect(drawn).to_have_count(2)
    (height, _), _ = before = drawn.evaluate_all(SIZES)
    page.keyboard.press("Control+b")  # the file list goes
    page.wait_for_function(
        f"was => ({SIZES})({DRAWN}).every((one, n) => one[1] > was[n][1])", arg=before
    )
    take_picture(page, "charts")
    assert [now for now, _ in drawn.evaluate_all(SIZES)] == [height, height]
    page.close()
