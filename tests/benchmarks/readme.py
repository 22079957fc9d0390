"""The table and the chart of the README, from the figures of one run."""

from __future__ import annotations

from pathlib import Path

from . import chart
from .report import Report, table

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
CHART = FOLDER / "ratios.svg"
BEGIN, END = "<!-- written from results.json -->", "<!-- until here -->"


def text(report: Report, readme: str) -> str:
    """The README with the run's figures between its marks."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = [row for those in report.rows.values() for row in those]
    head = f"Taken {report.taken}, {report.rounds} rounds, on {report.machine.sentence()}."
    return f"{before}{BEGIN}\n{head}\n\n{table(rows)}\n{END}{after}"


def write(report: Report) -> None:
    README.write_text(text(report, README.read_text("utf-8")), "utf-8")
    CHART.write_text(chart.ratios(report), "utf-8")
