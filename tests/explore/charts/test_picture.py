"""The still picture of a chart: what plotly would draw, where plotly does not run."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.explore import charts
from lakelog.explore.charts.facts import described
from lakelog.explore.charts.partition_map import RANGES
from lakelog.explore.charts.picture import picture
from lakelog.explore.charts.picture_axis import date_ticks, number_ticks
from lakelog.explore.charts.style import COLD, HOT, layout

SVG = "{http://www.w3.org/2000/svg}"
MINUTE_MS = 60_000


def partition_map(topic: str = "orders", rows=((0, "cold", 0, 80), (0, "hot", 80, 100))):
    pytest.importorskip("plotly")
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = described(pa.table(columns, schema=RANGES), topic=topic, partitions=[0])
    return charts.partition_map(table)


def parsed(figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure._repr_mimebundle_()["image/svg+xml"])


def texts(root: ElementTree.Element) -> str:
    return " ".join(one.text or "" for one in root.iter(f"{SVG}text"))


def test_bars_are_as_long_as_their_shares_in_the_colours_of_the_tiers():
    root = parsed(partition_map())

    wide = {
        path.get("fill"): float(re.search(r"h([\d.]+)", path.get("d"))[1])
        for path in root.iter(f"{SVG}path")
        if path.get("fill") in (COLD, HOT)
    }
    assert wide[COLD] == pytest.approx(4 * wide[HOT], rel=0.01)
    assert "80 % is archived, 20 offsets are not" in texts(root)
    assert root.find(f"{SVG}title").text == "orders: 80 % is archived, 20 offsets are not"
    assert "hot alone (Redis, not archived)" in texts(root)


def test_a_picture_holds_nothing_to_fetch_or_to_run():
    hostile = "<script>x</script>&\"'"
    root = parsed(partition_map(hostile))

    kinds = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert kinds <= {"svg", "title", "text", "path", "rect", "circle", "pattern"}
    names = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name for name in names)
    assert hostile in texts(root)


def test_a_line_breaks_where_it_has_no_value():
    line = {"type": "scatter", "mode": "lines", "x": [0, 1, 2, 3], "y": [1, 2, None, 3]}

    found = picture([line], layout("said", plot_height=100, legend=False))

    (path,) = re.findall(r'd="([^"]+)" fill="none" stroke="#7d7d7d" stroke-width="2"', found)
    assert path.count("M") == 2


def test_two_pictures_on_a_page_share_no_pattern():
    both = partition_map(rows=((0, "both", 0, 80), (0, "hot", 80, 100)))
    other = partition_map(rows=((0, "both", 0, 50), (0, "hot", 50, 100)))

    ids = [parsed(figure).find(f"{SVG}pattern").get("id") for figure in (both, other)]

    assert ids[0] != ids[1]
    assert f"url(#{ids[0]})" in both._repr_mimebundle_()["image/svg+xml"]


def test_a_figure_that_uses_more_of_plotly_has_no_picture():
    figure = partition_map()
    figure.add_pie(values=[1, 2])

    assert set(figure._repr_mimebundle_()) == {"application/vnd.plotly.v1+json", "text/plain"}


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_ticks_are_few_in_order_and_within(low, wide):
    ticks = number_ticks(low, low + wide)
    places = [at for at, _ in ticks]
    assert places == sorted(places)
    assert len(places) <= 10
    assert all(low - wide * 0.01 <= at <= low + wide * 1.01 for at in places)


@given(st.integers(0, 2**45), st.integers(1, 2**43))
def test_date_ticks_are_few_in_order_within_and_say_where_they_are(low, wide):
    ticks = date_ticks(low, low + wide)
    places = [at for at, _ in ticks]
    assert places == sorted(places)
    assert len(places) <= 12
    assert all(low <= at <= low + wide for at in places)


def test_date_ticks_are_at_round_times():
    start = datetime(2023, 11, 14, 22, 13, tzinfo=timezone.utc).timestamp() * 1000

    assert [label for _, label in date_ticks(start, start + 110 * MINUTE_MS)] == [
        "22:30 (14 Nov 2023)",
        "23:00",
        "23:30",
        "00:00 (15 Nov)",
    ]
    assert [label for _, label in date_ticks(start, start + 400 * 86_400_000)][:2] == [
        "Jan 2024",
        "Mar 2024",
    ]


@pytest.mark.parametrize("before", range(50, 76))
def test_no_line_ends_between_a_number_and_its_unit(before):
    text = layout(f"{'x' * before} takes 25 % in 8 h 24 min", plot_height=10)["title"]["text"]
    lines = re.sub("</?b>", "", text).split("<br>")
    assert " ".join(lines) == f"{'x' * before} takes 25 % in 8 h 24 min"
    assert not any(line[0] in "%hm" for line in lines)
