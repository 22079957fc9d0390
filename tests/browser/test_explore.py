"""The explore notebook as its readers meet it: in JupyterLab, by clicks and keys."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import threading
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
        for name in ("nothing", "fast"):
            lakelog.topics.create(name, 1)
        lakelog.topics.create("odd", 1, {"retention.ms": -1})
        headers = [(f"header-{number}", b"%d" % number) for number in range(10_000)]
        with lakelog.producer(batch_size=1) as producer:
            for key, value in ODD_VALUES.items():
                producer.send("odd", value, key=key)
            producer.send("odd", b"", key="headers", headers=headers)
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
    page = browser.new_page(viewport={"width": 1280, "height": 1000}, timezone_id="UTC")
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
    if not explorer.part("secondary").is_visible():
        explorer.press("more")
    if explorer.part("topic").locator("select").input_value() != "readings":
        explorer.choose("topic", "readings")
        expect(explorer.expression).to_contain_text("lake.log('readings')")
    chosen = f"partition {PARTITION}"
    if explorer.part("partition").locator("select").input_value() != chosen:
        explorer.choose("partition", chosen)
    explorer.press("clear")
    explorer.press("earliest")
    expect(explorer.expression).to_contain_text(f".read({PARTITION}, 0, {PAGE})")
    yield explorer
    take_picture(page, request.node.name.removeprefix("test_"))


@pytest.mark.slow
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
    drawn = ("partition_map", "segment_map", "ingest_rate")
    charts = sum(code.count(f"charts.{name}(") for name in drawn)
    expect(page.locator(".js-plotly-plot")).to_have_count(charts)


def test_an_offset_that_is_typed_begins_the_page(explorer: ExplorerPage) -> None:
    explorer.type("offset", "360")
    explorer.expect_offsets(range(360, 360 + PAGE))
    archived_end = 375
    cold, hot = (explorer.of_tier(tier).locator("td.ll-c-offset") for tier in ("cold", "hot"))
    expect(cold).to_have_text([str(offset) for offset in range(360, archived_end)])
    expect(hot).to_have_text([str(offset) for offset in range(archived_end, 360 + PAGE)])


def test_a_time_that_is_typed_begins_the_page(explorer: ExplorerPage, lakelog: Lakelog) -> None:
    offset = lakelog.log("readings").seek(PARTITION, "2023-11-14T22:20:00Z")
    explorer.type("timestamp", "2023-11-14 22:20")
    expect(explorer.expression).to_contain_text(f".read({PARTITION}, {offset}, ")
    expect(explorer.column("offset").first).to_have_text(str(offset))
    expect(explorer.column("time").first).to_contain_text("2023-11-14 22:20:")


def test_the_range_below_the_picture_moves_by_keys(explorer: ExplorerPage) -> None:
    """It chooses what is searched where no script in HTML is run."""
    handle = explorer.part("chosen").locator(".noUi-handle, .ui-slider-handle").first
    handle.focus()
    handle.press("PageUp")
    expect(explorer.part("picture").locator(".ll-chosen")).to_have_count(1)
    expect(explorer.row(0)).to_have_count(0)
    expect(explorer.column("offset").first).not_to_have_text("0")
    explorer.press("whole")
    expect(explorer.part("picture").locator(".ll-chosen")).to_have_count(0)
    expect(explorer.row(0)).to_be_visible()


def test_a_click_in_the_picture_goes_there_and_a_drag_chooses_a_time(
    explorer: ExplorerPage, lakelog: Lakelog
) -> None:
    picture = explorer.part("picture").locator(".ll-time")
    place = picture.bounding_box()
    assert place is not None
    half = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
    explorer.page.mouse.click(*half)
    expect(explorer.row(0)).to_have_count(0)
    middle = lakelog.log("readings").offsets()[PARTITION].log_end / 2
    assert abs(explorer.first_offset() - middle) < middle / 4
    explorer.page.mouse.move(*half)
    explorer.page.mouse.down()
    # The answer to the click may come only now, and with it another picture of the same times.
    picture.evaluate(
        "one => { const again = one.cloneNode(true); "
        "delete again.dataset.from; one.replaceWith(again); }"
    )
    explorer.page.mouse.move(half[0] + place["width"] / 10, half[1], steps=4)
    explorer.page.mouse.up()
    expect(picture.locator(".ll-chosen")).to_have_count(1)
    expect(explorer.part("zoom")).to_be_enabled()
    explorer.press("zoom")
    expect(explorer.part("told")).not_to_contain_text("437 records")
    explorer.press("whole")
    expect(explorer.part("told")).to_contain_text("437 records")


def test_the_expression_gives_the_rows_shown(explorer: ExplorerPage, lakelog: Lakelog) -> None:
    explorer.type("search", "value.celsius = 20.3")
    explorer.press("find")
    expect(explorer.expression).to_contain_text("matching(")
    code = explorer.expression.locator(".ll-code").inner_text()
    found = eval(code, {"lake": lakelog}).to_arrow()
    assert found.num_rows > 1
    explorer.expect_offsets(found["offset"].to_pylist())
    expect(explorer.column("value").filter(has_text="20.3")).to_have_count(found.num_rows)


@pytest.mark.parametrize("times", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_a_search_answers_what_was_typed_right_before_the_click(
    explorer: ExplorerPage, times: int
) -> None:
    """The box is left by the click."""
    box = explorer.part("search").locator("input")
    for number in range(times):
        wanted = f"value.celsius = {15 + number % 20}.{number % 10}"
        box.fill("")
        box.press_sequentially(wanted)
        explorer.press("find")
        expect(explorer.expression).to_contain_text(f"matching('{wanted}')")
        expect(box).to_have_value(wanted)
    explorer.press("clear")
    expect(explorer.expression).not_to_contain_text("matching(")


@pytest.mark.slow
def test_typing_alone_asks_nothing_and_is_not_disturbed(explorer: ExplorerPage) -> None:
    """While answers come."""
    box = explorer.part("search").locator("input")
    before = explorer.expression.inner_text()
    for number in range(10):
        wanted = f"value.celsius = {15 + number}.25 and value.n >= {number}"
        explorer.press("earliest")
        box.fill("")
        box.press_sequentially(wanted, delay=number % 5)
        expect(box).to_have_value(wanted)
        expect(explorer.expression).to_have_text(before)
        box.fill("")
    for text in ("value.celsius = 20.3", "value.celsius = 20.4"):
        box.fill("")
        box.press_sequentially(text)
        box.press("Enter")
        expect(explorer.expression).to_contain_text(f"matching('{text}')")
        expect(box).to_have_value(text)
    box.press_sequentially("1")
    box.press_sequentially("2", delay=50)
    expect(box).to_have_value("value.celsius = 20.412")
    box.fill("value.celsius = 20.4")


def test_a_click_in_the_picture_is_asked_of_what_was_typed(explorer: ExplorerPage) -> None:
    box = explorer.part("search").locator("input")
    box.fill("")
    box.press_sequentially("value.celsius = 20.3")
    explorer.part("picture").locator(".ll-time").click()
    expect(explorer.expression).to_contain_text("matching('value.celsius = 20.3')")
    explorer.press("clear")
    expect(explorer.expression).not_to_contain_text("matching(")


def test_a_click_opens_a_record_in_full(explorer: ExplorerPage) -> None:
    value = json.loads(explorer.column("value").nth(40).inner_text())
    explorer.open(40)
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
    expect(explorer.opened_offset).to_have_text("1")
    number = json.loads(explorer.column("value").nth(1).inner_text())["n"]
    expect(explorer.record).to_contain_text(f'"n": {number}')
    opened = explorer.part("opened").locator("input")
    expect(opened).to_have_value(re.compile(r"\b1$"))
    explorer.page.keyboard.press("ArrowDown")  # the rows keep the keys
    explorer.page.keyboard.press("Enter")
    expect(opened).to_have_value(re.compile(r"\b2$"))


@pytest.mark.slow
def test_a_large_json_value_is_shown_whole(explorer: ExplorerPage) -> None:
    explorer.choose("topic", "odd")
    expect(explorer.expression).to_contain_text("log('odd')")
    explorer.open(explorer.offset_of("large"))
    expect(explorer.record).to_contain_text("are shown")
    explorer.press("full")
    expect(explorer.record.locator(".ll-cut")).to_have_count(0)
    value = ODD_VALUES["large"]
    assert value is not None
    assert len(value) > 1_200_000
    whole = explorer.record.locator("pre").last
    expect(whole).to_contain_text('"n": 19999')
    assert json.loads(whole.text_content() or "") == json.loads(value)
    copied = whole.evaluate(
        "pre => { getSelection().selectAllChildren(pre); return getSelection().toString(); }"
    )
    assert json.loads(copied) == json.loads(value)


def test_members_become_columns_that_a_click_sorts_by(explorer: ExplorerPage) -> None:
    explorer.press("columns")
    head = explorer.table.locator('th[data-sort="value.celsius"]')
    expect(head.locator("svg rect").first).to_be_visible()
    place = 1 + explorer.table.locator("th").evaluate_all(
        "heads => heads.findIndex(head => head.dataset.sort === 'value.celsius')"
    )
    cells = explorer.rows.locator(f"td:nth-child({place})")
    expect(cells).to_have_count(PAGE)
    in_order = sorted(cells.all_inner_texts(), key=float)
    for turn in (1, -1):
        head.click()
        expect(explorer.part("sort").locator("select")).to_have_value(
            f"celsius {'↑' if turn == 1 else '↓'}"
        )
        expect(cells).to_have_text(in_order[::turn])
    explorer.press("columns")
    expect(head).to_have_count(0)
    explorer.expect_offsets(range(PAGE))


def test_the_rows_are_taken_along_as_a_file(explorer: ExplorerPage) -> None:
    explorer.choose("export", "CSV")
    with explorer.page.expect_download() as download:
        explorer.part("download").locator("a").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert download.value.suggested_filename == "readings.csv"
    assert len(lines) >= 1 + PAGE
    explorer.choose("code", "command line")
    expect(explorer.expression).to_have_text(
        f"lakelog consume readings -p {PARTITION} --from 0 --to {PAGE}"
    )
    explorer.choose("code", "Python")


def test_odd_values_are_shown_as_what_they_are(explorer: ExplorerPage) -> None:
    title = explorer.page.title()
    explorer.choose("topic", "odd")
    expect(explorer.expression).to_contain_text("lake.log('odd')")
    html = ODD_VALUES["html"]
    assert html is not None
    for key, text in (
        ("binary", re.compile("^hex 00 01 02")),
        ("tombstone", re.compile("^tombstone$")),
        ("empty", re.compile("^empty$")),
        ("html", re.compile(re.escape(html.decode()))),
    ):
        row = explorer.row(explorer.offset_of(key))
        expect(row.locator("td.ll-c-value")).to_have_text(text)
    assert explorer.page.title() == title
    for key in ("long", "headers"):
        explorer.open(explorer.offset_of(key))
        expect(explorer.record.locator(".ll-cut").first).to_be_visible()
        explorer.press("full")
        expect(explorer.record.locator(".ll-cut")).to_have_count(0)
    expect(explorer.record.locator(".ll-headers-box tr")).to_have_count(10_000)


@pytest.mark.slow
def test_a_row_of_a_fast_tail_can_be_clicked(explorer: ExplorerPage, lakelog: Lakelog) -> None:
    """While hundreds of records a second arrive: the rows hold still below the pointer."""
    explorer.choose("topic", "fast")
    expect(explorer.expression).to_contain_text("lake.log('fast')")
    stop = threading.Event()

    def produce() -> None:
        with lakelog.producer(linger_ms=5) as producer:
            for number in itertools.count():
                if stop.wait(0.002):
                    return
                producer.send("fast", f"live {number}", partition=0)

    producing = threading.Thread(target=produce)
    producing.start()
    try:
        explorer.press("follow")
        expect(explorer.rows).to_have_count(PAGE)
        for _ in range(4):
            explorer.rows.nth(PAGE - 3).hover()
            expect(explorer.part("new")).to_be_visible()  # the rows are held
            offset = int(explorer.column("offset").nth(PAGE - 3).inner_text())
            explorer.open(offset)
            expect(explorer.record).to_contain_text(f"live {offset}")
            expect(explorer.part("new")).to_contain_text("new")
            explorer.press("new")
            expect(explorer.record).to_have_text("")
            expect(explorer.row(offset)).to_have_count(0)  # it caught up
    finally:
        stop.set()
        producing.join()
    explorer.press("follow")
    expect(explorer.part("follow")).not_to_have_class(re.compile("mod-active"))


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_it_fits_and_can_be_read(explorer: ExplorerPage, theme: str) -> None:
    """In either theme of JupyterLab, and in a window that is half as wide."""
    page = explorer.page
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.locator(".lm-Menu-item").get_by_text("Theme", exact=True).click()
    page.locator(".lm-Menu-item").get_by_text(f"JupyterLab {theme}", exact=True).click()
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", _is_light(theme))
    explorer.open(3)
    expect(explorer.record).to_contain_text("create time")
    wide = page.viewport_size
    page.set_viewport_size({"width": 640, "height": 1000})
    try:
        page.wait_for_function(FITS, arg=explorer.root.element_handle())
        parts = [explorer.part(name) for name in ("table", "record", "expression", "told")]
        for part in (*parts, explorer.record.locator(".ll-tier").first):
            page.wait_for_function(READABLE, arg=part.element_handle())
    finally:
        page.set_viewport_size(wide)


def test_the_page_asked_no_other_host(explorer: ExplorerPage, hosts: set[str]) -> None:
    assert hosts <= {"127.0.0.1", ""}


def _is_light(theme: str) -> str:
    return "true" if theme == "Light" else "false"


#: Nothing of it lies beside its box.
FITS = "root => root.scrollWidth === root.clientWidth"

#: A text has the contrast with what lies behind it that AA of WCAG 2.1 asks for.
READABLE = """part => {
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
  return (high + 0.05) / (low + 0.05) >= 4.5;
}"""
