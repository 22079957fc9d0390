"""The explore notebook as its readers meet it: in JupyterLab, by clicks and keys."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from explorer_page import ExplorerPage
from jupyter_lab import JupyterLab
from playwright.sync_api import expect

from lakelog import Lakelog
from lakelog.jobs.readings import add_readings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "50_explore.ipynb"
PARTITION = 1  # of the readings: that with more of them
PAGE = 50

ODD_VALUES: dict[str, bytes | None] = {
    "text": b"plain text",
    "binary": bytes(range(256)),
    "tombstone": None,
    "empty": b"",
    "html": b'<b>bold</b><script>document.title = "taken"</script><img src=x onerror="taken()">',
    "json": json.dumps({"list": [1, 2, {"deep": "y" * 300}]}).encode(),
    "long": b"x" * 1_000_000,
    "lines": b"one\ntwo\n\tthree",
    "large": json.dumps([{"n": n, "text": "y" * 40} for n in range(20_000)]).encode(),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log")


@pytest.fixture(scope="module")
def lakelog(directory: Path) -> Iterator[Lakelog]:
    """600 readings in the cold tier and 100 in the hot one; odd values; nothing."""
    with Lakelog.embedded(directory, engine="inline") as lakelog:
        add_readings(lakelog, "readings", 600)
        lakelog.archive("readings")
        add_readings(lakelog, "readings", 700)
        for name in ("nothing", "tail", "doomed"):
            lakelog.topics.create(name, 1)
        lakelog.topics.create("odd", 1, {"retention.ms": -1})
        headers = [(f"header-{number}", b"%d" % number) for number in range(10_000)]
        with lakelog.producer(batch_size=1) as producer:
            for key, value in ODD_VALUES.items():
                producer.send("odd", value, key=key)
            producer.send("odd", b"", key="headers", headers=headers)
            producer.send("doomed", b"last words")
        yield lakelog


@pytest.fixture(scope="module")
def hosts() -> set[str]:
    """Whom the page asked for something."""
    return set()


@pytest.fixture(scope="module")
def page(
    browser: Browser,
    make_lab: Callable[..., JupyterLab],
    tmp_path_factory: pytest.TempPathFactory,
    lakelog: Lakelog,
    directory: Path,
    hosts: set[str],
) -> Iterator[Page]:
    """The notebook, run from its menu."""
    folder = tmp_path_factory.mktemp("notebooks")
    shutil.copy(NOTEBOOK, folder)
    lab = make_lab(folder, LAKELOG_DIRECTORY=str(directory), LAKELOG_TOPIC="readings")
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname or ""))
    lab.open(page, NOTEBOOK.name)
    lab.run_all(page)
    page.keyboard.press("Control+b")  # the file list goes
    yield page
    page.close()


@pytest.fixture
def explorer(page: Page, take_picture: Callable[..., Path], request: Any) -> Iterator[ExplorerPage]:
    """The explorer at the start of the readings. A picture is taken when the test ends."""
    explorer = ExplorerPage(page)
    explorer.root.wait_for()
    explorer.root.scroll_into_view_if_needed()
    if explorer.part("topic").locator("select").input_value() != "readings":
        explorer.choose("topic", "readings")
        expect(explorer.expression).to_contain_text("lakelog.log('readings')")
    if explorer.part("partition").locator("select").input_value() != str(PARTITION):
        explorer.choose("partition", str(PARTITION))
    explorer.press("clear")
    explorer.press("earliest")
    expect(explorer.expression).to_contain_text(f"log.read({PARTITION}, 0, {PAGE})")
    yield explorer
    take_picture(page, request.node.name.removeprefix("test_"))


def test_the_notebook_runs_to_its_end(page: Page) -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    code_cells = sum(cell["cell_type"] == "code" for cell in cells)
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()
    assert prompts == [f"[{number + 1}]:" for number in range(code_cells)]
    outputs = page.locator(".jp-OutputArea-output")
    assert outputs.and_(page.locator("[data-mime-type*=stderr]")).all_text_contents() == []
    assert outputs.and_(page.locator("[data-mime-type*=error]")).all_text_contents() == []


def test_its_charts_are_drawn(page: Page) -> None:
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_attached()
    code = NOTEBOOK.read_text("utf-8")
    assert page.locator(".js-plotly-plot").count() == sum(
        code.count(f"charts.{drawn}(") for drawn in ("partition_map", "segment_map", "ingest_rate")
    )


def test_an_offset_that_is_typed_begins_the_page(explorer: ExplorerPage) -> None:
    explorer.type("offset", "360")
    expect(explorer.row(360)).to_be_visible()
    assert explorer.offsets() == list(range(360, 360 + PAGE))
    archived_end = 375
    tiers = ["cold"] * (archived_end - 360) + ["hot"] * (360 + PAGE - archived_end)
    assert explorer.cells("tier") == tiers


def test_a_time_that_is_typed_begins_the_page(explorer: ExplorerPage, lakelog: Lakelog) -> None:
    offset = lakelog.log("readings").seek(PARTITION, "2023-11-14T22:20:00Z")
    explorer.type("timestamp", "2023-11-14 22:20")
    expect(explorer.expression).to_contain_text(f"log.read({PARTITION}, {offset}, ")
    assert explorer.offsets()[0] == offset
    assert explorer.cells("time")[0] >= "2023-11-14 22:20:00"


def test_the_slider_moves_by_keys(explorer: ExplorerPage) -> None:
    handle = explorer.part("slider").locator(".noUi-handle, .ui-slider-handle")
    handle.focus()
    handle.press("ArrowRight")
    expect(explorer.expression).to_contain_text(f"log.read({PARTITION}, 1, {1 + PAGE})")


def test_pages_follow_one_another_without_a_gap(explorer: ExplorerPage) -> None:
    explorer.press("forward")
    expect(explorer.row(PAGE)).to_be_visible()
    assert explorer.offsets() == list(range(PAGE, 2 * PAGE))
    explorer.press("back")
    expect(explorer.row(0)).to_be_visible()
    assert explorer.offsets() == list(range(PAGE))
    explorer.press("earliest-local")
    expect(explorer.row(375)).to_be_visible()
    explorer.press("latest")
    expect(explorer.row(436)).to_be_in_viewport()
    assert explorer.offsets() == list(range(437 - PAGE, 437))


def test_the_expression_gives_the_rows_shown(explorer: ExplorerPage, lakelog: Lakelog) -> None:
    explorer.type("search", "value.celsius = 20.3")
    explorer.press("scan")
    expect(explorer.expression).to_contain_text("matching(")
    code = explorer.expression.locator(".ll-code").inner_text()
    found = eval(code, {"log": lakelog.log("readings")}).to_arrow()
    assert found.num_rows > 1
    assert explorer.offsets() == found["offset"].to_pylist()
    assert all("20.3" in text for text in explorer.cells("value"))


def test_a_key_is_found_in_both_tiers(explorer: ExplorerPage) -> None:
    key = explorer.cells("key")[0]
    explorer.choose("page-records", "500")
    explorer.type("search", f'key = "{key}"')
    explorer.press("scan")
    expect(explorer.expression).to_contain_text(f"matching('key = \"{key}\"')")
    assert set(explorer.cells("key")) == {key}
    assert set(explorer.cells("tier")) == {"cold", "hot"}
    explorer.choose("page-records", str(PAGE))


def test_a_click_opens_a_record_in_full(explorer: ExplorerPage) -> None:
    value = json.loads(explorer.cells("value")[40])
    explorer.row(40).click()
    expect(explorer.record).to_contain_text("create time")
    assert json.loads(explorer.record.locator("pre").last.inner_text()) == value
    expect(explorer.row(40)).to_be_in_viewport()  # the table stayed where it was scrolled to


def test_a_row_is_opened_by_keys(explorer: ExplorerPage) -> None:
    scrolled = explorer.table.locator(".ll-scroll")
    scrolled.focus()
    for _ in range(3):
        explorer.page.keyboard.press("ArrowDown")
    explorer.page.keyboard.press("ArrowUp")
    explorer.page.keyboard.press("Enter")
    expect(explorer.record).to_contain_text(str(json.loads(explorer.cells("value")[1])["n"]))
    opened = explorer.part("opened").locator("select")
    expect(opened).to_have_value(re.compile(r"\b1$"))
    explorer.page.keyboard.press("ArrowDown")  # the rows keep the keys
    explorer.page.keyboard.press("Enter")
    expect(opened).to_have_value(re.compile(r"\b2$"))


def test_a_large_json_value_is_shown_whole(explorer: ExplorerPage) -> None:
    explorer.choose("topic", "odd")
    expect(explorer.expression).to_contain_text("log('odd')")
    explorer.row(explorer.offsets()[explorer.cells("key").index("large")]).click()
    expect(explorer.record).to_contain_text("are shown")
    explorer.press("full")
    expect(explorer.record.locator(".ll-cut")).to_have_count(0)
    value = ODD_VALUES["large"]
    assert value is not None
    assert len(value) > 1_200_000
    whole = explorer.record.locator("pre").last
    assert json.loads(whole.text_content() or "") == json.loads(value)
    copied = whole.evaluate(
        "pre => { getSelection().selectAllChildren(pre); return getSelection().toString(); }"
    )
    assert json.loads(copied) == json.loads(value)


def test_a_segment_is_gone_to(explorer: ExplorerPage) -> None:
    explorer.press("segments")
    expect(explorer.part("segment-map").locator(".js-plotly-plot .main-svg").first).to_be_visible()
    choices = explorer.part("segment").locator("select")
    assert choices.input_value() == "–"
    expect(choices.locator("option").nth(1)).to_contain_text("[375, 437) hot, 62 records")
    choices.select_option(index=1)
    expect(explorer.expression).to_contain_text(f"log.read({PARTITION}, 375, ")
    explorer.press("segments")
    expect(explorer.part("segment-map")).to_be_hidden()


def test_odd_values_are_shown_as_what_they_are(explorer: ExplorerPage) -> None:
    title = explorer.page.title()
    explorer.choose("topic", "odd")
    expect(explorer.expression).to_contain_text("lakelog.log('odd')")
    shown = dict(zip(explorer.cells("key"), explorer.cells("value"), strict=True))
    assert shown["binary"].startswith("hex 00 01 02")
    assert shown["tombstone"] == "tombstone"
    assert shown["empty"] == "empty"
    assert ODD_VALUES["html"].decode() in shown["html"]
    assert explorer.page.title() == title
    for key in ("long", "headers"):
        place = explorer.cells("key").index(key)
        explorer.row(explorer.offsets()[place]).click()
        expect(explorer.record).to_contain_text(key)
        explorer.press("full")
        expect(explorer.record.locator(".ll-cut")).to_have_count(0)
    assert explorer.record.locator(".ll-headers-box tr").count() == 10_000


def test_an_empty_topic_says_so(explorer: ExplorerPage) -> None:
    explorer.choose("topic", "nothing")
    expect(explorer.notes).to_contain_text("the partition is empty")
    assert explorer.offsets() == []


def test_the_tail_is_followed_until_it_is_stopped(explorer: ExplorerPage, lakelog: Lakelog) -> None:
    explorer.choose("topic", "tail")
    expect(explorer.notes).to_contain_text("the partition is empty")
    explorer.press("follow")
    expect(explorer.part("progress")).to_contain_text("following")
    pressed = re.compile("mod-active")
    with lakelog.producer() as producer:
        for offset in range(3):
            producer.send("tail", f"live {offset}", partition=0).result()
            expect(explorer.row(offset)).to_contain_text(f"live {offset}")
            expect(explorer.part("follow")).to_have_class(pressed)
    explorer.press("follow")
    expect(explorer.part("progress")).not_to_contain_text("following")
    expect(explorer.part("follow")).not_to_have_class(pressed)


def test_an_error_stays_until_something_succeeds(explorer: ExplorerPage) -> None:
    explorer.type("offset", "99999")
    expect(explorer.error).to_contain_text("offset 99999 of readings-1 is out of range")
    explorer.type("timestamp", "teatime")
    expect(explorer.error).to_contain_text("'teatime' is not a time")
    assert explorer.offsets() == list(range(PAGE))  # what was shown before
    explorer.type("timestamp", "2023-11-14 22:20")
    expect(explorer.error).to_be_hidden()


def test_a_topic_that_vanishes_is_an_error_and_others_go_on(
    explorer: ExplorerPage, lakelog: Lakelog
) -> None:
    explorer.choose("topic", "doomed")
    expect(explorer.row(0)).to_contain_text("last words")
    lakelog.topics.delete("doomed")
    explorer.press("earliest")
    expect(explorer.error).to_contain_text("doomed")
    explorer.choose("topic", "readings")
    expect(explorer.error).to_be_hidden()
    expect(explorer.row(0)).to_contain_text("celsius")


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_it_fits_and_can_be_read(explorer: ExplorerPage, theme: str) -> None:
    """In either theme of JupyterLab, and in a window that is half as wide."""
    page = explorer.page
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.locator(".lm-Menu-item").get_by_text("Theme", exact=True).click()
    page.locator(".lm-Menu-item").get_by_text(f"JupyterLab {theme}", exact=True).click()
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", _is_light(theme))
    explorer.row(3).click()
    expect(explorer.record).to_contain_text("create time")
    wide = page.viewport_size
    page.set_viewport_size({"width": 640, "height": 1000})
    try:
        assert explorer.root.evaluate("root => root.scrollWidth - root.clientWidth") == 0
        parts = [explorer.part(name) for name in ("table", "record", "expression", "map")]
        for part in (*parts, explorer.rows.locator(".ll-tier").first):
            assert part.evaluate(CONTRAST) >= 4.5, part  # WCAG's AA
    finally:
        page.set_viewport_size(wide)


def test_redis_goes_away_and_comes_back(
    explorer: ExplorerPage, lakelog: Lakelog, directory: Path
) -> None:
    server = json.loads((directory / "redis" / "server.json").read_text())
    os.kill(server["pid"], signal.SIGKILL)
    explorer.press("forward")
    expect(explorer.error).to_contain_text("Redis")
    expect(explorer.notes).to_contain_text("where its archive ends")  # which is shown beside it
    assert explorer.offsets() == list(range(PAGE, 2 * PAGE))
    with Lakelog.embedded(directory, engine="inline"):  # at the same URL
        explorer.press("retry")
        expect(explorer.error).to_be_hidden()
        expect(explorer.notes).not_to_contain_text("where its archive ends")
        assert explorer.offsets() == list(range(PAGE, 2 * PAGE))


def test_the_page_asked_no_other_host(explorer: ExplorerPage, hosts: set[str]) -> None:
    assert hosts <= {"127.0.0.1", ""}


def _is_light(theme: str) -> str:
    return "true" if theme == "Light" else "false"


#: The contrast of a part's text with what lies behind it, as WCAG 2.1 reckons it.
CONTRAST = """part => {
  const rgb = color => color.match(/[\\d.]+/g).map(Number);
  const luminance = color => {
    const [r, g, b] = rgb(color).slice(0, 3).map(c => c / 255)
      .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  let behind = part;
  const seen = node => getComputedStyle(node).backgroundColor;
  while (behind.parentElement && (rgb(seen(behind))[3] ?? 1) < 1) behind = behind.parentElement;
  const inner = part.querySelector('td, span, div') || part;
  const [low, high] = [luminance(getComputedStyle(inner).color), luminance(seen(behind))]
    .sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}"""
