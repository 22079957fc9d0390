"""Curves from rows, how steep they are, and the page that is made of them."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from . import growth, growth_page, readme
from .curves import CPU_HERE, CPU_OF_REDIS, Curve, Point, curves, part, without_parts, work
from .line_chart import Line, Panel, svg
from .measures import BYTES, OURS, SECONDS, Row
from .report import Report
from .simulation import Cluster, Services, panels, services
from .test_report import MACHINE

SERVICES = Services(
    append_s=0.004, read_s=0.001, send_s=0.003, archive_s=0.005, task_s=0.002, commit_s=0.05
)
SVG = "{http://www.w3.org/2000/svg}"


def row(axis: str, at: int, measure: str, *seconds: float) -> Row:
    return Row(str(Point(axis, at, measure)), SECONDS, {OURS: seconds})


def curve(*points: tuple[int, float]) -> Curve:
    return Curve("partitions", "made", SECONDS, points)


@given(
    st.sampled_from(["partitions", "bytes of a value"]),
    st.integers(0, 10**7),
    st.sampled_from(
        ["made", "cold: a commit", "each alone, 20,000 records of 100 bytes", "1 2: 3"]
    ),
)
def test_a_point_is_read_from_its_words(axis: str, at: int, measure: str) -> None:
    assert Point.of(str(Point(axis, at, measure))) == Point(axis, at, measure)


def test_other_rows_are_no_points() -> None:
    with pytest.raises(ValueError, match="no point of a curve"):
        Point.of("opening a table after 10,000 commits")


def test_rows_make_curves_by_count_and_cpu_time_belongs_to_another_curve() -> None:
    made = curves(
        [
            row("partitions", 100, "made", 1.0, 3.0, 2.0),
            row("partitions", 1, "made", 0.5),
            row("partitions", 1, "made" + CPU_HERE, 0.4),
            row("topics", 1, "made", 9.0),
        ]
    )
    first, cpu, other = made
    assert first == curve((1, 0.5), (100, 2.0))
    assert list(without_parts(made)) == [first, other]
    assert part(made, first, CPU_HERE) == cpu
    assert part(made, first, CPU_OF_REDIS) is None
    assert work(made, first) == replace(cpu, measure=first.measure)
    assert work(made, other) == other
    redis = replace(first, measure=first.measure + CPU_OF_REDIS)
    assert work([*made, redis], first).points == ((1, 0.9),)  # where both were measured


@given(st.floats(-2, 3), st.floats(1e-6, 10), st.integers(2, 5))
def test_a_power_comes_out_as_it_went_in(power: float, factor: float, length: int) -> None:
    counts = [10**n for n in range(length)]
    made = curve(*((at, factor * at**power) for at in counts))
    assert [slope for _, _, slope in made.slopes()] == pytest.approx([power] * (length - 1))
    assert made.is_superlinear == (made.slopes()[0][2] > 1.2)


def test_the_steepest_part_is_named_and_what_was_nothing_has_no_slope() -> None:
    made = curve((1, 1.0), (10, 1.0), (100, 31.6), (1_000, 100.0))
    before, at, slope = made.steepest() or (0, 0, 0.0)
    assert (before, at) == (10, 100)
    assert slope == pytest.approx(1.5, rel=0.01)
    assert curve((1, 0.0), (10, 1.0)).steepest() is None
    assert curve((1, 1.0)).steepest() is None


def whole() -> Report:
    """A run in which everything is linear but one thing."""
    rows = []
    for way in ("`send_batch`", "`read(…).to_arrow()`", "`archive`"):
        for at in (100, 1_000):
            both = f"{way}, CPU of both"
            rows.append(row("bytes of a value", at, both, at * 5e-9))
            rows.append(row("bytes of a value", at, both + CPU_HERE, at * 4e-9))
            rows.append(row("bytes of a value", at, both + CPU_OF_REDIS, at * 1e-9))
    for at in (1, 10):
        archived = "a record of each archived"
        rows.append(row("partitions", at, archived, at * 0.001))
        rows.append(row("partitions", at, archived + CPU_HERE, at * 0.001))
        rows.append(row("segments", at, "cold: a commit", at * 0.01))
        rows.append(row("topics", at, "made", at**2 * 0.01))
    rows.append(Row("segments 1: cold: memory", BYTES, {OURS: (5.0,)}))
    return Report(MACHINE, "2026-11-26", 1, 1.0, {"growth": rows})


def test_what_is_steeper_than_linear_is_named() -> None:
    (found,) = growth_page.superlinear(whole().rows["growth"])
    assert (found.axis, found.measure) == ("topics", "made")
    assert growth_page.sections(whole())["steep"].endswith("topics: made (**2.00, 1 → 10**).")


def test_services_are_those_of_a_call_and_what_lacks_is_told() -> None:
    found = services(curves(whole().rows["growth"]))
    mebibyte = 2**20
    assert found.append_s == found.read_s == pytest.approx(1e-9 * mebibyte)
    assert found.archive_s == found.send_s == pytest.approx(4e-9 * mebibyte)
    assert (found.task_s, found.commit_s) == (pytest.approx(0.001), pytest.approx(0.1))
    with pytest.raises(ValueError, match="no figure of partitions"):
        services(curves([row("topics", 1, "made", 1.0)]))


def test_what_is_full_first_is_what_has_least() -> None:
    text = growth_page.nodes(replace(SERVICES, archive_s=0.02))
    assert "| 10 | a Redis and an archiver's core each | the other cores |" in text
    text = growth_page.nodes(replace(SERVICES, archive_s=0.001))
    assert "| 10 | a Redis and an archiver's core each | Redis's threads |" in text


def test_a_page_keeps_what_stands_around_its_sections() -> None:
    page = readme.GROWTH_PAGE.read_text("utf-8")
    written = readme.growth_text(whole(), page)
    assert readme.growth_text(whole(), written) == written
    cut = "## One node, ten, a hundred"
    assert written.partition(cut)[2].splitlines()[:3] == page.partition(cut)[2].splitlines()[:3]
    assert written.count(readme.END) == page.count(readme.END) == 4
    assert len(page.splitlines()) <= 300


def test_the_page_and_its_charts_are_those_of_the_figures_beside_them() -> None:
    kept = Report.of_json(readme.GROWTH_FIGURES.read_text("utf-8"))
    assert (
        readme.growth_text(kept, readme.GROWTH_PAGE.read_text("utf-8"))
        == readme.GROWTH_PAGE.read_text()
    )
    assert growth_page.charts(kept) == readme.GROWTH_CHART.read_text("utf-8")
    for chart in (readme.GROWTH_CHART, readme.QUEUES_CHART):
        assert len(chart.read_bytes()) <= 50_000


def test_a_chart_has_a_panel_an_axis_and_draws_all_lines() -> None:
    drawn = ElementTree.fromstring(growth_page.charts(whole()))
    titles = [text.text for text in drawn.iter(f"{SVG}text") if text.get("font-size") == "13"]
    assert titles == list(growth_page.TITLES.values())
    (panel,) = ElementTree.fromstring(
        svg("t", [Panel("p", "x", SECONDS, [Line("a", [(1, 1), (10, 0)]), Line("b", [], True)])])
    ).iter(f"{SVG}g")
    assert [text.text for text in panel.iter(f"{SVG}text")][-2:] == ["a", "b"]


def test_the_simulations_panels_are_of_a_small_cluster_too() -> None:
    small = Cluster(SERVICES, 0.0, nodes=2, seconds=4.0)
    appends, lags, heat = panels(SERVICES, small)
    assert [len(one.lines) for one in (appends, lags, heat)] == [5, 4, 3]
    assert all(y > 0 for line in lags.lines for _, y in line.points)


def test_every_axis_has_a_title_and_counts_that_grow() -> None:
    counts = (growth.PARTITIONS, growth.TOPICS, growth.SEGMENTS, growth.COMMITS)
    counts += (growth.VALUE_BYTES, growth.PRODUCERS, growth.CONSUMERS, growth.READERS)
    assert len(counts) == len(growth_page.TITLES)
    assert all(list(one) == sorted(set(one)) for one in counts)
