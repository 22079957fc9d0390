"""How charts and tables reach a notebook: small, escaped, and without plotly too."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
from datetime import datetime, timezone
from types import SimpleNamespace

import pyarrow as pa
import pytest

from lakelog.errors import InvalidArgumentError
from lakelog.explore import charts, words
from lakelog.explore.charts.look import layout
from lakelog.explore.charts.partition_map import RANGES
from lakelog.explore.charts.shown import bundle, described

MIMETYPE = "application/vnd.plotly.v1+json"
TABLE = pa.table([[0, 0], ["cold", "hot"], [0, 90], [90, 100]], schema=RANGES)


def test_a_chart_goes_out_as_json_with_its_table_beside_it_and_no_plotly_js():
    pytest.importorskip("plotly")
    found = bundle(charts.partition_map(TABLE))

    assert set(found) == {MIMETYPE, "text/html", "text/plain"}
    assert found[MIMETYPE]["data"][0]["customdata"] == [[0, 0, 90, 90]]
    assert found["text/html"] == charts.PlainTable(TABLE, found["text/plain"])._repr_html_()
    assert found["text/plain"] == "90 % is archived; 10 offsets in Redis alone"
    assert len(json.dumps(found)) < 10_000


def test_a_cell_that_ends_with_a_chart_shows_the_same():
    pytest.importorskip("plotly")
    formatters = pytest.importorskip("IPython.core.formatters")
    figure = charts.partition_map(TABLE)

    data, _ = formatters.DisplayFormatter().format(figure)

    assert data[MIMETYPE] == bundle(figure)[MIMETYPE]
    assert data["text/html"] == bundle(figure)["text/html"]
    assert figure.table == TABLE


def test_a_notebook_keeps_few_rows_of_a_long_table():
    pytest.importorskip("plotly")
    many = pa.table([range(250), ["cold"] * 250, [0] * 250, [9] * 250], schema=RANGES)

    html = bundle(charts.partition_map(many))["text/html"]

    assert html.count("<tr>") == 21
    assert "… and 230 more rows" in html


def test_show_displays_it(monkeypatch):
    display = pytest.importorskip("IPython.display")
    shown = []
    monkeypatch.setattr(display, "display", lambda data, raw: shown.append((data, raw)))

    charts.show(TABLE)

    ((data, raw),) = shown
    assert raw is True
    assert data["text/html"] == charts.table_html(TABLE)


def test_databricks_draws_a_chart_as_html_and_a_table_as_any_other(monkeypatch):
    pytest.importorskip("plotly")
    ipython = pytest.importorskip("IPython")
    drawn, shown = [], []
    shell = SimpleNamespace(user_ns={"displayHTML": drawn.append})
    monkeypatch.setattr(ipython, "get_ipython", lambda: shell)
    monkeypatch.setattr(ipython.display, "display", lambda data, raw: shown.append(data))

    charts.show(charts.partition_map(TABLE))
    charts.show(TABLE)

    (html,) = drawn
    assert "cdn" in html
    assert len(html) < 50_000
    assert "[0,0,90,90]" in html.replace(" ", "")
    assert [list(data) for data in shown] == [["text/html", "text/plain"]]


def test_another_figure_is_shown_too_and_anything_else_refused():
    go = pytest.importorskip("plotly.graph_objects")
    found = bundle(go.Figure(data=[{"type": "bar", "y": [1]}]))
    assert found[MIMETYPE]["data"][0]["y"] == [1]
    with pytest.raises(InvalidArgumentError, match="dict is neither a chart nor a table"):
        charts.show({})


def test_a_chart_is_a_figure_and_survives_pickling():
    go = pytest.importorskip("plotly.graph_objects")
    figure = charts.partition_map(TABLE)
    assert isinstance(figure, go.Figure)

    again = pickle.loads(pickle.dumps(figure))

    assert again.to_json() == figure.to_json()
    assert bundle(again) == bundle(figure)


@pytest.mark.parametrize(
    "asking", ["partition_ranges", "segment_rows", "ingest_rates", "compaction_rows"]
)
def test_a_name_in_the_place_of_a_log_is_told_what_gives_one(asking):
    call = getattr(charts, asking)
    with pytest.raises(InvalidArgumentError) as refused:
        call("orders")
    assert refused.value.message == (
        f"{asking} takes the log of a topic, and was given a str: "
        f"charts.{asking}(lake.log('orders'))"
    )
    with pytest.raises(InvalidArgumentError, match=r'lake\.log\("NAME"\)'):
        call(None)


def test_it_reads_in_either_theme():
    pytest.importorskip("plotly")
    look = charts.partition_map(TABLE).layout
    assert look.paper_bgcolor == look.plot_bgcolor == "rgba(0,0,0,0)"
    assert look.font.color == look.title.font.color == "#7d7d7d"


@pytest.mark.parametrize("before", range(50, 76))
def test_no_line_ends_between_a_number_and_its_unit(before):
    text = layout(f"{'x' * before} takes 25 % in 8 h 24 min", plot_height=10)["title"]["text"]
    lines = re.sub("</?b>", "", text).split("<br>")
    assert " ".join(lines) == f"{'x' * before} takes 25 % in 8 h 24 min"
    assert not any(line[0] in "%hm" for line in lines)


def test_everything_in_a_table_is_escaped():
    table = pa.table(
        {
            "<b>": ["<script>alert(1)</script>", None],
            "raw": [b"\xff\x00", b"<i>"],
            "n": [1234567, -1],
            "at": [datetime(2026, 1, 1, tzinfo=timezone.utc), None],
        }
    )
    found = charts.table_html(table, "a < b")

    assert "<script" not in found
    assert "<i>" not in found
    assert "<b><b>" not in found
    for cell in ("&lt;script&gt;alert(1)&lt;/script&gt;", "0xff00", "1234567", "a &lt; b"):
        assert cell in found
    assert ">–<" in found


def test_data_is_shown_as_it_is_and_what_a_chart_is_drawn_of_for_people():
    row = {"dep_time": [2013], "price": [1234.5678], "late": [True]}
    found = bundle(pa.table(row))["text/html"]
    assert re.findall(r"<t[hd]\b[^>]*>([^<]*)", found) == [
        *("dep_time", "price", "late"),
        *("2013", "1234.5678", "true"),
    ]
    assert (
        ">1,234</td>" in charts.PlainTable(pa.table({"records": [1234]}), "A chart.")._repr_html_()
    )
    rates = pa.table({"records_per_second": [0.00263, 1234.5678]})
    found = charts.PlainTable(rates, "A chart.")._repr_html_()
    assert re.findall("<td[^>]*>([^<]*)", found) == ["0.00263", "1,234.568"]
    drawn_of = described(pa.table({"records": [1234]}), topic="orders", partitions=[0])
    assert ">1,234</td>" in bundle(drawn_of)["text/html"]


def test_a_long_table_is_cut_and_says_so():
    found = charts.table_html(pa.table({"n": list(range(250))}), rows=10)
    assert found.count("<tr>") == 11
    assert "… and 240 more rows" in found


def test_a_time_that_python_has_not_is_shown_as_a_number():
    far = pa.array([10**18], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    assert "1000000000000000000" in charts.table_html(pa.table({"at": far}))


def test_without_plotly_a_table_takes_the_charts_place():
    program = """
import sys
sys.modules["plotly"] = None  # as if it were not installed
import pyarrow as pa
from lakelog.explore import charts
from lakelog.explore.charts.partition_map import RANGES
table = pa.table([[0], ["cold"], [0], [1200]], schema=RANGES)
shown = charts.partition_map(table)
assert isinstance(shown, charts.PlainTable), shown
assert "1,200" in shown._repr_html_() and "100 % is archived" in shown._repr_html_()
charts.show(shown)
try:
    shown.update_layout(height=1)
except AttributeError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[0].startswith("100 % is archived, 1,200 offsets")
    assert "pip install 'lakelog[explore]'" in said[1]


def test_importing_the_charts_loads_no_plotly():
    program = (
        "import sys, lakelog.explore.charts;"
        "print([m for m in ('plotly', 'pandas', 'ipywidgets', 'pyspark') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (words.duration(350), "350 ms"),
        (words.duration(12_500), "12.5 s"),
        (words.duration(59_990), "1 min"),
        (words.duration(125_000), "2 min 5 s"),
        (words.duration(3_600_000), "1 h"),
        (words.duration(90_061_000), "1 d 1 h"),
        (words.percent(1, 100_000), "less than 0.1 %"),
        (words.percent(99_999, 100_000), "more than 99.9 %"),
        (words.percent(3, 3), "100 %"),
        (words.percent(0, 0), "0 %"),
        (words.size(1), "1 B"),
        (words.size(5 << 20), "5.0 MiB"),
        (words.rate_unit(0.5).text(0.5), "30 records/min"),
        (words.rate_unit(1234.5).text(1234.5), "1,234 records/s"),
        (words.names([2]), "partition 2"),
        (words.names([0, 2, 5]), "partitions 0, 2 and 5"),
        (words.names(list(range(7))), "7 partitions"),
        (words.moment(2**62), f"{2**62} ms"),
        (words.period(0, 86_400_000 * 9), "1970-01-01 to 1970-01-10"),
        (words.period(0, 3_600_000), "1970-01-01 00:00 to 01:00 UTC"),
    ],
)
def test_numbers_as_people_read_them(said, expected):
    assert said == expected
