"""The tables and charts of the READMEs here, from the figures of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from . import chart, growth_page
from .names import BESIDE_OTHERS, BY_ITSELF, GROWTH
from .report import Report, table

FOLDER = Path(__file__).parent
CHART, RESULTS = FOLDER / "ratios.svg", FOLDER / "results.json"
GROWTH_PAGE, GROWTH_FIGURES = FOLDER / "growth.md", FOLDER / "growth.json"
GROWTH_CHART, QUEUES_CHART = FOLDER / "growth.svg", FOLDER / "queues.svg"
BEGIN, END = "<!-- written from results.json -->", "<!-- until here -->"

#: Which benchmarks' rows are on which page.
PAGES = {FOLDER / "README.md": BESIDE_OTHERS, FOLDER / "figures.md": BY_ITSELF}


def text(report: Report, page: str, names: Sequence[str]) -> str:
    """A page with the run's figures of these benchmarks between its marks."""
    rows = [row for name in names for row in report.rows.get(name, ())]
    share = "" if report.scale == 1 else f" with {report.scale:g} of the records"
    head = f"Taken {report.taken}, {report.rounds} rounds{share}, on {report.machine.sentence()}."
    failed = [one for one in report.failed if one.startswith(tuple(f"`{name}`" for name in names))]
    left_out = [f"`{name}`" for name in names if name not in report.rows]
    if left_out:
        failed.append(f"{', '.join(left_out)}: not asked for in this run")
    told = "".join(f"\n\nNot measured: {one}." for one in failed)
    return between(page, BEGIN, f"{head}\n\n{table(rows)}{told}")


def growth_text(report: Report, page: str) -> str:
    """The page with each of its sections between marks of that name."""
    for name, section in growth_page.sections(report).items():
        page = between(page, f"<!-- written from growth.json: {name} -->", section)
    return page


def between(page: str, begin: str, new: str) -> str:
    """The page with something else from a mark up to the next end."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(END)
    return f"{before}{begin}\n{new}\n{END}{after}"


def write(report: Report) -> None:
    """growth.md, its figures and charts if `growth` was measured; the others' if others were."""
    if GROWTH in report.rows:
        growth = replace(report, rows={GROWTH: report.rows[GROWTH]}, failed=())
        GROWTH_FIGURES.write_text(growth.to_json(), "utf-8")
        GROWTH_PAGE.write_text(growth_text(report, GROWTH_PAGE.read_text("utf-8")), "utf-8")
        GROWTH_CHART.write_text(growth_page.charts(report), "utf-8")
        QUEUES_CHART.write_text(growth_page.queues(report), "utf-8")
    others = {name: rows for name, rows in report.rows.items() if name != GROWTH}
    if others:
        rest = replace(report, rows=others)
        RESULTS.write_text(rest.to_json(), "utf-8")
        for page, names in PAGES.items():
            page.write_text(text(rest, page.read_text("utf-8"), names), "utf-8")
        CHART.write_text(chart.ratios(rest), "utf-8")
