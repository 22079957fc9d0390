"""The tables and charts of the READMEs here, from the figures of one run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from . import chart, growth_page
from .report import Report, table

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
CHART, RESULTS = FOLDER / "ratios.svg", FOLDER / "results.json"
GROWTH, GROWTH_FIGURES = FOLDER / "growth.md", FOLDER / "growth.json"
GROWTH_CHART, QUEUES_CHART = FOLDER / "growth.svg", FOLDER / "queues.svg"
BEGIN, END = "<!-- written from results.json -->", "<!-- until here -->"


def text(report: Report, readme: str) -> str:
    """The README with the run's figures between its marks."""
    rows = [row for those in report.rows.values() for row in those]
    share = "" if report.scale == 1 else f" with {report.scale:g} of the records"
    head = f"Taken {report.taken}, {report.rounds} rounds{share}, on {report.machine.sentence()}."
    failed = "".join(f"\n\nNot measured: {one}." for one in report.failed)
    return between(readme, BEGIN, f"{head}\n\n{table(rows)}{failed}")


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
    """growth.md, its figures and charts if `growth` was measured; the README's if others were."""
    if "growth" in report.rows:
        growth = replace(report, rows={"growth": report.rows["growth"]}, failed=())
        GROWTH_FIGURES.write_text(growth.to_json(), "utf-8")
        GROWTH.write_text(growth_text(report, GROWTH.read_text("utf-8")), "utf-8")
        GROWTH_CHART.write_text(growth_page.charts(report), "utf-8")
        QUEUES_CHART.write_text(growth_page.queues(report), "utf-8")
    others = {name: rows for name, rows in report.rows.items() if name != "growth"}
    if others:
        rest = replace(report, rows=others)
        RESULTS.write_text(rest.to_json(), "utf-8")
        README.write_text(text(rest, README.read_text("utf-8")), "utf-8")
        CHART.write_text(chart.ratios(rest), "utf-8")
