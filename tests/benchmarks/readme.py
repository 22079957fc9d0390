"""The tables and charts of the READMEs here, from the figures of one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import chart
from .names import BESIDE_OTHERS, BY_ITSELF
from .report import Report, table

FOLDER = Path(__file__).parent
CHART, RESULTS = FOLDER / "ratios.svg", FOLDER / "results.json"
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


def between(page: str, begin: str, new: str) -> str:
    """The page with something else from a mark up to the next end."""
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(END)
    return f"{before}{begin}\n{new}\n{END}{after}"


def write(report: Report) -> None:
    """The tables of both pages, the chart, and the figures themselves."""
    RESULTS.write_text(report.to_json(), "utf-8")
    for page, names in PAGES.items():
        page.write_text(text(report, page.read_text("utf-8"), names), "utf-8")
    CHART.write_text(chart.ratios(report), "utf-8")
